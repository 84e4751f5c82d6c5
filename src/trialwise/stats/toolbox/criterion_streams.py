"""Many criteria on one stream of trials: which are settled, and whether the run goes on.

Its own module because the run, not the criterion, pays for a trial. One reply is judged by every
criterion that still waits for an answer; a criterion that has decided, or whose own budget is
spent, waits for nothing and never keeps trials running. And because the criteria share replies,
their verdicts are dependent: the multiplicity method is named, and acts on the verdicts.

A FAIL is a rejection of "the rate is high enough", so correcting for many criteria makes *failing*
harder, never passing. A criterion brings its evidence as a p-value, an e-value, or the verdict of a
test of stated level: such a verdict is itself a p-value with two values, the level if the test
fails and 1 if not. With m criteria, designs at alpha/m therefore satisfy Bonferroni and Holm.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias

from trialwise.errors import InvalidArgument
from trialwise.stats.e_values import EvidenceAdjustment, check_e_value, e_bh
from trialwise.stats.multiplicity import (
    FAMILY_CORRECTIONS,
    Adjustment,
    Correction,
    FamilyCorrection,
    adjust,
)
from trialwise.validation import require_choice, require_count, require_open_rate, require_rate

StreamCorrection: TypeAlias = FamilyCorrection
"""How the verdicts of one family are corrected."""

STREAM_CORRECTIONS: tuple[StreamCorrection, ...] = FAMILY_CORRECTIONS

#: alpha/m rarely is a float: a level this much above it, relatively, is taken for it.
_ROUNDING = 1e-12

OwnVerdict: TypeAlias = Literal["pass", "fail"]
OWN_VERDICTS: tuple[OwnVerdict | None, ...] = (None, "pass", "fail")


class StreamStatus(StrEnum):
    """Where a criterion stands."""

    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    """Settled without a verdict: its budget is spent, or the family does not confirm its FAIL."""
    OPEN = "open"
    """It waits for more trials."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionStream:
    """What one criterion brings to the family after the trials it has judged.

    Of the evidence it gives what the method reads. An e-value must be that of the moment the
    criterion stopped (or of now), not the largest so far; a criterion that has failed keeps the
    one it failed with.
    """

    name: str
    trials: int
    """Trials it has judged; it stops counting when it settles."""
    budget: int
    """The most trials it may judge."""
    verdict: OwnVerdict | None = None
    """What its own sequential test has decided, if it has one and it has."""
    level: float | None = None
    """The false-alarm probability that test was designed for; with it the verdict is evidence."""
    p_value: float | None = None
    """Its p-value against "the rate is high enough"."""
    anytime: bool = True
    """Whether the p-value may be read at any time; if not, only when the budget is spent."""
    e_value: float | None = None

    def __post_init__(self) -> None:
        require_count(f"{self.name} budget", self.budget, minimum=1)
        if require_count(f"{self.name} trials", self.trials) > self.budget:
            raise InvalidArgument(
                f"{self.name} trials", self.trials, f"be at most its budget ({self.budget})"
            )
        require_choice(f"{self.name} verdict", self.verdict, OWN_VERDICTS)
        if self.level is not None:
            require_open_rate(f"{self.name} level", self.level)
        if self.p_value is not None:
            require_rate(f"{self.name} p_value", self.p_value)
        if self.e_value is not None:
            check_e_value(f"{self.name} e_value", self.e_value)

    @property
    def spent(self) -> bool:
        """Whether its budget is used up."""
        return self.trials >= self.budget


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamDecision:
    """Where one criterion stands after the correction, and why."""

    name: str
    status: StreamStatus
    reason: str
    adjusted: float
    """The smallest alpha at which the method fails this criterion, capped at 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsDecision:
    """Where every criterion stands, and whether the run needs another trial."""

    method: StreamCorrection
    alpha: float
    decisions: tuple[StreamDecision, ...]
    """In the order given."""
    adjustment: Adjustment | EvidenceAdjustment
    """The correction itself: what it controls, and the dependence that needs."""
    trials_left: int
    """The most trials any open criterion may still judge; 0 ends the run."""

    @property
    def goes_on(self) -> bool:
        """Whether some criterion still waits for trials."""
        return self.trials_left > 0

    @property
    def waiting(self) -> tuple[str, ...]:
        """The criteria that judge the next trial."""
        return tuple(d.name for d in self.decisions if d.status is StreamStatus.OPEN)


def decide_streams(
    streams: Iterable[CriterionStream], *, method: StreamCorrection, alpha: float = 0.05
) -> StreamsDecision:
    """The standing of every criterion of one run, corrected for their number.

    A criterion FAILS when the method rejects it at `alpha`; it PASSES when its own test says so and
    the family does not fail it. A FAIL of its own that the family does not confirm, and a spent
    budget, leave it INCONCLUSIVE. The run goes on while any criterion is open.

    Rejections are final: anytime p-values never rise, verdicts stand, and an e-value is kept from
    the moment its criterion fails, so no later call takes a FAIL back.

    Parameters
    ----------
    streams : iterable of CriterionStream
        The whole declared family, settled criteria included; at least one, with distinct names.
    method : {"none", "bonferroni", "holm", "bh", "by", "e-bh"}
        "e-bh" reads e-values, the others p-values. Where a criterion has neither it must state the
        `level` of its own test, whose verdict is then the evidence. Only Bonferroni, Holm, BY and
        e-BH are valid for criteria that judge the same replies, whatever their dependence.
    alpha : float
        The level of the family, or of each criterion with "none"; strictly between 0 and 1.

    References
    ----------
    Companion §7.3; Wang & Ramdas 2022 (e-BH).

    Examples
    --------
    >>> family = [
    ...     CriterionStream(name="valid", trials=14, budget=50, verdict="pass", p_value=1.0),
    ...     CriterionStream(name="grounded", trials=14, budget=50, p_value=0.012),
    ...     CriterionStream(name="polite", trials=10, budget=10, p_value=0.4),
    ... ]
    >>> result = decide_streams(family, method="holm")
    >>> [str(decision.status) for decision in result.decisions], result.goes_on
    (['pass', 'fail', 'inconclusive'], False)
    >>> decide_streams(family, method="by").waiting
    ('grounded',)
    """
    chosen = require_choice("method", method, STREAM_CORRECTIONS)
    level = require_open_rate("alpha", alpha)
    family = _check_family(streams)
    adjustment: Adjustment | EvidenceAdjustment
    if chosen == "e-bh":
        adjustment = e_bh([_e_value(stream) for stream in family], alpha=level)
    else:
        adjustment = adjust(
            [_p_value(stream, chosen) for stream in family], method=chosen, alpha=level
        )
    decisions = tuple(
        _decide(stream, rejected, adjusted)
        for stream, rejected, adjusted in zip(
            family, adjustment.rejected, adjustment.adjusted, strict=True
        )
    )
    left = [
        stream.budget - stream.trials
        for stream, decision in zip(family, decisions, strict=True)
        if decision.status is StreamStatus.OPEN
    ]
    return StreamsDecision(
        method=chosen,
        alpha=level,
        decisions=decisions,
        adjustment=adjustment,
        trials_left=max(left, default=0),
    )


def _decide(stream: CriterionStream, rejected: bool, adjusted: float) -> StreamDecision:
    status, reason = _standing(stream, rejected)
    return StreamDecision(name=stream.name, status=status, reason=reason, adjusted=adjusted)


def _standing(stream: CriterionStream, rejected: bool) -> tuple[StreamStatus, str]:
    # The family's rejection comes first: it is the one statement whose error rate is controlled,
    # and a criterion whose own test passed has stopped gathering evidence either way.
    if rejected:
        return StreamStatus.FAIL, "rejected by the family"
    if stream.verdict == "pass":
        return StreamStatus.PASS, "its own test passed"
    if stream.verdict == "fail":
        return StreamStatus.INCONCLUSIVE, "its own test failed, which the family does not confirm"
    if stream.spent:
        return StreamStatus.INCONCLUSIVE, f"its budget of {stream.budget} trials is spent"
    return StreamStatus.OPEN, f"{stream.budget - stream.trials} trials of its budget are left"


def _p_value(stream: CriterionStream, method: Correction) -> float:
    if stream.p_value is not None:
        # A fixed-n p-value read before its n is no p-value yet: until then it says nothing.
        return stream.p_value if stream.anytime or stream.spent else 1.0
    if stream.level is None:
        raise InvalidArgument(
            f"{stream.name} p_value", None, f"be given for {method}, or the level of its own test"
        )
    return stream.level * (1 - _ROUNDING) if stream.verdict == "fail" else 1.0


def _e_value(stream: CriterionStream) -> float:
    if stream.e_value is not None:
        return stream.e_value
    if stream.level is None:
        raise InvalidArgument(
            f"{stream.name} e_value", None, "be given for e-bh, or the level of its own test"
        )
    # All or nothing: 1/level with a probability of at most the level has a mean of at most 1.
    return (1 + _ROUNDING) / stream.level if stream.verdict == "fail" else 0.0


def _check_family(streams: Iterable[CriterionStream]) -> tuple[CriterionStream, ...]:
    allowed = "be at least one CriterionStream, each with its own name"
    try:
        family = tuple(streams)
    except TypeError:
        raise InvalidArgument("streams", streams, allowed) from None
    if not family or not all(isinstance(stream, CriterionStream) for stream in family):
        raise InvalidArgument("streams", family, allowed)
    names = [stream.name for stream in family]
    if len(set(names)) < len(names):
        raise InvalidArgument("streams", names, allowed)
    return family
