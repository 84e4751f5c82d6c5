"""One claim decided over many trials: its checks, its threshold and where that came from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from typing import TypeAlias

from trialwise.decimals import complement
from trialwise.declarations.scalars import Choice, Count, Flag, Rate, Text
from trialwise.declarations.signatures import setting
from trialwise.errors import InvalidArgument
from trialwise.model.claim import Intent
from trialwise.model.trial import Analysis, Postcondition
from trialwise.validation import (
    require_choice,
    require_count,
    require_given,
    require_member,
    require_open_rate,
    require_positive,
    require_rate,
    require_text,
    require_trials,
)

Check: TypeAlias = Postcondition | Callable[..., object]
"""A postcondition, or a plain function that the engine wraps into one."""

#: The loss against a baseline, and the chance of finding it, where a criterion says neither.
USUAL_LOSS, USUAL_POWER = 0.10, 0.80

#: How a decision that may stop early finds its boundaries, the usual way first.
METHODS = ("optimal", "calibrated", "wald", "fixed")


class Origin(StrEnum):
    """Who set a threshold (§7.4)."""

    SLA = "SLA"
    SLO = "SLO"
    POLICY = "POLICY"
    EMPIRICAL = "EMPIRICAL"
    UNSPECIFIED = "UNSPECIFIED"

    @property
    def is_normative(self) -> bool:
        """Whether somebody promised it, rather than measured it."""
        return self in (Origin.SLA, Origin.SLO, Origin.POLICY)


@dataclass(frozen=True, slots=True)
class Criterion:
    """What is promised of the replies, and how surely.

    Exactly one question: `at_least` a rate, `no_worse_than` a baseline, `never_fails`, or
    `mean_at_least` a mean score. One that is `report_only` may have none.

    Args:
        at_least: The rate that is required, strictly between 0 and 1.
        no_worse_than: The baseline to compare with: `baseline` for the one that fits, or an
            identifier.
        pass_from: A threshold that you choose for `no_worse_than`: PASS from this observed rate on.
            The report says which alpha it implies. A required rate is `at_least`.
        never_fails: Whether one failure FAILs the criterion. It claims nothing about a population.
        report_only: Whether it is only measured and shown, with no part in the verdict. It shares
            the trials of the other criteria and needs no question.
        mean_at_least: The mean score that is required, strictly between 0 and 1. It takes a fixed
            number of trials.
        pass_at: The lowest score at which a reply passes. Checks then grade a reply with a score
            from 0 to 1.
        trials: A fixed number of trials (for each input with `each_input`).
        max_trials: Upper limit on trials (of each input with `each_input`).
        method: How such a decision finds its boundaries; the others are for comparison.
        margin: Accept a rate this far below: PASS then shows a rate above `at_least` − `margin`,
            and FAIL still shows one below `at_least`. Against a baseline: the loss whose chance of
            being found is reported.
        confidence: 1 − the largest probability of a wrong PASS, and of a wrong FAIL.
        alpha: The largest probability of a wrong FAIL.
        beta: The largest probability of a wrong PASS.
        power: 1 − `beta`, for those who think of it so. Against a baseline: the wanted probability
            of finding a loss of the margin.
        undecided: The verdict of a fixed number of trials that shows neither a rate above the
            required one nor one below it.
        origin: Who set the threshold.
        contract_ref: Where the threshold is written down, such as "SLA v2.1 §4.3".
        category: The class of failure it guards against, such as CORRECTNESS or SAFETY.
        sampling: The sampling of the contract to use.
        each_input: Whether every input is decided on its own, so that no pooled rate hides one.
        procedure: The name of the procedure that decides, where it is not the one the question asks
            for.
        analysis: Which trials decide it, where that is not as in the rest of the contract.
        intent: Intent of this criterion, if it differs from the rest of the contract:
            `verification` or `smoke`. A PASS by `smoke` is marked as one.
        categorical: Whether it is a prohibition that admits no rate. No number of trials shows
            that, so `discharged_by` names what does.
        discharged_by: What keeps a prohibition, such as a guardrail between the service and its
            users.
        min_probes: With fewer trials, `never_fails` is shown as NO FAILURE OBSERVED.

    >>> Criterion("answers", lambda text: "555" in text, at_least=0.9).question
    'at_least'
    >>> Criterion("answers", lambda text: "555" in text, at_least=1.0)
    Traceback (most recent call last):
        ...
    trialwise.errors.InvalidArgument: at_least must be below 1: no number of trials shows a rate
    of 1, so ask for never_fails, got 1.0
    """

    name: str
    postconditions: Check | Sequence[Check]
    """One or several, all of which must hold for a trial to pass; see `checks`."""
    _: KW_ONLY
    at_least: float | None = setting(
        Rate(), elsewhere="threshold pass_rate min_pass_rate pass_threshold min_rate required_rate"
    )
    no_worse_than: str | None = setting(Text("`baseline` or a baseline's identifier"))
    pass_from: float | None = setting(Rate(), words="derived from the baseline")
    never_fails: bool = setting(Flag(), default=False, words="")
    report_only: bool = setting(Flag(), default=False, elsewhere="informational non_gating gating")
    mean_at_least: float | None = setting(Rate(), elsewhere="min_score mean_score")
    pass_at: float | None = setting(
        Rate(),
        words="none; with `mean_at_least` the required mean, which decides",
        elsewhere="score_threshold",
    )
    trials: int | None = setting(Count())
    max_trials: int | None = setting(Count())
    method: str = setting(Choice(*METHODS), default=METHODS[0])
    margin: float | None = setting(Rate(), words="none; 10% against a baseline")
    confidence: float = setting(Rate(), default=0.95)
    alpha: float | None = setting(Rate(), words="1 − `confidence`")
    beta: float | None = setting(Rate(), words="1 − `confidence`")
    power: float | None = setting(Rate(), words="none; 80% against a baseline")
    undecided: str | None = setting(
        Choice("inconclusive", "fail"),
        words="inconclusive; fail with `rule: wilson` and `rule: fisher`",
    )
    origin: Origin | str | None = setting(
        Choice(*Origin), words="EMPIRICAL against a baseline, else UNSPECIFIED"
    )
    contract_ref: str = setting(Text(), default="", key="ref")
    category: str = setting(Text(), default="", key="class")
    sampling: str | None = setting(Text(), words="the only one")
    each_input: bool = setting(Flag(), default=False)
    procedure: str | None = setting(Text(), words="what the question asks for")
    analysis: Analysis | str | None = setting(Choice(*Analysis), words="as the run")
    intent: Intent | str | None = setting(
        Choice(*(one.lower() for one in Intent)), words="as the run"
    )
    categorical: bool = setting(Flag(), default=False)
    discharged_by: str = setting(Text(), default="")
    min_probes: int | None = setting(Count())
    weights: Sequence[float] = ()
    """How much each check counts in the score of a reply, in their order; all alike by default."""

    def __post_init__(self) -> None:
        put = object.__setattr__
        require_text("name", self.name, "be a text that names the criterion")
        put(self, "postconditions", _postconditions(self.postconditions))
        asked = self._list_questions()
        # A question has an error rate. Two in one criterion would need a correction, which separate
        # criteria get.
        if len(asked) != 1 and (asked or not self.report_only):
            allowed = "be exactly one of at_least, no_worse_than, never_fails and mean_at_least"
            raise InvalidArgument(f"the question of {self.name!r}", asked or None, allowed)
        if self.at_least is not None:
            put(self, "at_least", _required(self.at_least))
        if self.no_worse_than is not None:
            require_text("no_worse_than", self.no_worse_than, "name a baseline")
        self._check_numbers()
        self._check_grading()
        if self.analysis is not None:
            put(self, "analysis", require_member("analysis", self.analysis, Analysis))
        if self.intent is not None:
            put(self, "intent", require_member("intent", str(self.intent).upper(), Intent))
        self._check_clause()
        origin = self.origin
        if origin is None:
            origin = Origin.EMPIRICAL if self.no_worse_than else Origin.UNSPECIFIED
        put(self, "origin", require_member("origin", origin, Origin))

    def _check_numbers(self) -> None:
        require_open_rate("confidence", self.confidence)
        if self.pass_from is not None:
            require_open_rate("pass_from", self.pass_from)
            if self.no_worse_than is None:
                allowed = "go with no_worse_than; a required rate is at_least"
                raise InvalidArgument("pass_from", self.pass_from, allowed)
            # Either gives the cutoff, so that both could contradict each other.
            if self.alpha is not None:
                allowed = "be left out where pass_from is given, which implies it"
                raise InvalidArgument("alpha", self.alpha, allowed)
        require_given(self, "margin alpha beta power", require_open_rate)
        # Two names of one number: whoever gives both takes one of them for something else.
        if self.beta is not None and self.power is not None:
            raise InvalidArgument(
                "power", self.power, "be left out where beta is given: it is 1 − beta"
            )
        # A PASS would rule out rates of 0 and below, which it does without any trial.
        if self.at_least is not None and self.margin is not None and self.margin >= self.at_least:
            allowed = f"be below the required rate ({self.at_least:g})"
            raise InvalidArgument("margin", self.margin, allowed)
        require_given(self, "trials max_trials", require_trials)
        require_given(self, "undecided", require_choice, choices=("inconclusive", "fail"))
        require_given(self, "min_probes", require_count, minimum=1)
        if self.trials is not None and self.max_trials is not None:
            allowed = "be left out where trials fixes the number"
            raise InvalidArgument("max_trials", self.max_trials, allowed)
        # The exact test against a baseline compares two samples of fixed size.
        if self.max_trials is not None and self.no_worse_than is not None:
            allowed = "go with at_least or never_fails: a baseline fixes the number of trials"
            raise InvalidArgument("max_trials", self.max_trials, allowed)
        require_choice("method", self.method, METHODS)
        is_sequential = self.at_least is not None and self.margin is not None
        if self.method != METHODS[0] and (not is_sequential or self.trials is not None):
            allowed = f"be {METHODS[0]} except with at_least and a margin, and without trials"
            raise InvalidArgument("method", self.method, allowed)
        # Deciding each input is what `each_input` is for, and a report decides nothing.
        if self.report_only and self.each_input:
            allowed = "be left out of a criterion that is only reported: it decides no input"
            raise InvalidArgument("each_input", self.each_input, allowed)
        if self.min_probes is not None and not self.never_fails:
            raise InvalidArgument("min_probes", self.min_probes, "go with never_fails")

    def _check_clause(self) -> None:
        """A prohibition is no rate, however high (companion, clause forms)."""
        object.__setattr__(self, "categorical", self.categorical or bool(self.discharged_by))
        if self.categorical and not (self.never_fails or self.report_only):
            allowed = (
                "go with never_fails or report_only: no rate says never, so a prohibition is not "
                "shown by at_least or no_worse_than"
            )
            raise InvalidArgument("categorical", True, allowed)

    def _check_grading(self) -> None:
        weights = tuple(require_positive("weights", weight) for weight in self.weights)
        object.__setattr__(self, "weights", weights)
        # Where every check has to hold, none can count more than another.
        if self.weights and not self.is_graded:
            allowed = "go with pass_at or mean_at_least: without them every check has to hold"
            raise InvalidArgument("weights", list(self.weights), allowed)
        if self.weights and len(self.weights) != len(self.checks):
            allowed = f"be as many as the checks ({len(self.checks)})"
            raise InvalidArgument("weights", list(self.weights), allowed)
        if self.pass_at is not None and not 0 < require_rate("pass_at", self.pass_at) <= 1:
            raise InvalidArgument("pass_at", self.pass_at, "be above 0: every score is at least 0")
        # A mean has no boundaries of its own: the bounds on it hold at one number of trials.
        if self.mean_at_least is None:
            return
        require_open_rate("mean_at_least", self.mean_at_least)
        for name in ("margin", "max_trials"):
            if getattr(self, name) is not None:
                allowed = "be left out with mean_at_least, which takes a fixed number of trials"
                raise InvalidArgument(name, getattr(self, name), allowed)

    @property
    def is_graded(self) -> bool:
        """Whether a reply gets a score, which its checks give together."""
        return self.pass_at is not None or self.mean_at_least is not None

    @property
    def lowest_pass(self) -> float | None:
        """The score from which a reply passes; None where replies are not graded."""
        return self.mean_at_least if self.pass_at is None else self.pass_at

    @property
    def graders(self) -> tuple[tuple[str, float], ...]:
        """The name and the weight of each check of a graded criterion; else nothing."""
        if not self.is_graded:
            return ()
        weights = self.weights or (1.0,) * len(self.checks)
        return tuple(zip(map(_name_check, self.checks), weights, strict=True))

    @property
    def checks(self) -> tuple[Check, ...]:
        """The postconditions, always as several."""
        assert isinstance(self.postconditions, tuple)
        return self.postconditions

    @property
    def question(self) -> str:
        """Which of the four questions it asks; `report_only` where it decides none."""
        return "report_only" if self.report_only else self._list_questions()[0]

    def _list_questions(self) -> list[str]:
        rates = ("at_least", "no_worse_than", "mean_at_least")
        asked = [name for name in rates if getattr(self, name) is not None]
        return [*asked, "never_fails"] if self.never_fails else asked

    @property
    def is_normative(self) -> bool:
        """Whether somebody promised the threshold, rather than measured it."""
        return Origin(self.origin or Origin.UNSPECIFIED).is_normative

    @property
    def wrong_fail(self) -> float:
        """The largest probability of a FAIL although the rate is as required, in decimals."""
        # In decimals: 1 − 0.95 in doubles is a little above 0.05 and could move a cutoff.
        return complement(self.confidence) if self.alpha is None else self.alpha

    @property
    def wrong_pass(self) -> float:
        """The largest probability of a PASS although the rate is below what a PASS shows."""
        if self.beta is not None:
            return self.beta
        return complement(self.confidence if self.power is None else self.power)

    @property
    def wanted_power(self) -> float:
        """The wanted probability of finding a loss of the margin against a baseline."""
        return USUAL_POWER if self.power is None else self.power

    @property
    def loss(self) -> float:
        """The loss against a baseline whose chance of being found is reported."""
        return USUAL_LOSS if self.margin is None else self.margin


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionScope:
    """What a criterion's trials are trials of: a test's must be its baseline's (§1.5.2)."""

    structure: str
    """The fingerprint of its postconditions and of its sampling's name."""
    postconditions: tuple[str, ...] = ()
    """Each as a reader would tell it from another; they explain a changed structure."""
    sampling: str = ""
    """Identifier and version of the sampling."""
    sampling_fingerprint: str = ""
    """The fingerprint of the inputs' contents."""


def _postconditions(given: object) -> tuple[Check, ...]:
    several = tuple(given) if isinstance(given, list | tuple) else (given,)
    if not several:
        raise InvalidArgument("postconditions", given, "hold at least one")
    for one in several:
        if not callable(one) and not isinstance(one, Postcondition):
            allowed = "be postconditions or functions of a reply"
            raise InvalidArgument("postconditions", one, allowed)
    return several


def _name_check(check: Check) -> str:
    """Return the name of a check in reports; a function goes by its own."""
    plain: object = check
    while not hasattr(plain, "name") and hasattr(plain, "func"):  # a `functools.partial`
        plain = plain.func
    return str(getattr(plain, "name", None) or getattr(plain, "__name__", type(plain).__name__))


def _required(rate: float) -> float:
    # After n passes of n the exact lower bound is alpha^(1/n) (Clopper and Pearson 1934), below 1
    # for every n.
    if rate == 1:
        allowed = "be below 1: no number of trials shows a rate of 1, so ask for never_fails"
        raise InvalidArgument("at_least", rate, allowed)
    return require_open_rate("at_least", rate)
