"""A suite as a whole: what it concludes, what that costs in certainty, and what it took."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from trialwise.documents.numbers import as_duration, as_money, list_amounts
from trialwise.documents.results import Status
from trialwise.errors import InvalidArgument
from trialwise.model.evidence import Spending, StopReason
from trialwise.model.verdict import Decision, Verdict
from trialwise.procedures.composite import combine
from trialwise.procedures.registry import procedure_of
from trialwise.stats.error_envelopes import Envelope, envelope

T = TypeVar("T")


def require_runs(runs: Sequence[T]) -> tuple[T, ...]:
    """The runs of a suite: at least one, since what was not run is never PASS."""
    if not runs:
        raise InvalidArgument("records", [], "hold a run: what was not run is never PASS")
    return tuple(runs)


def pick_suite_status(verdicts: Iterable[Verdict]) -> Status:
    """FAIL beats refused beats INCONCLUSIVE beats PASS.

    A failure was shown whatever else could not be run; without one, a contract that was not run
    leaves the suite without a decision.
    """
    found = {pick_status(one.decision) for one in verdicts}
    decided = combine(Decision(status) for status in found if status is not Status.REFUSED)
    if Status.REFUSED in found and decided is not Decision.FAIL:
        return Status.REFUSED
    return pick_status(decided)


def decide_suite(verdicts: Iterable[Verdict]) -> Decision | None:
    """The suite's decision, or None where a contract was refused and none FAILs."""
    status = pick_suite_status(verdicts)
    return None if status is Status.REFUSED else Decision(status)


def pick_exit_code(verdicts: Sequence[Verdict]) -> int:
    """The code a process ends with after these runs: one code, one meaning."""
    if any(one.stop is StopReason.INTERRUPTED for one in verdicts):
        return 130
    codes = {Status.PASS: 0, Status.FAIL: 1, Status.REFUSED: 2, Status.INCONCLUSIVE: 3}
    return codes[pick_suite_status(verdicts)]


def pick_status(decision: Decision | None) -> Status:
    """What is shown for a decision."""
    return Status.REFUSED if decision is None else Status(decision.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteEnvelope:
    """The union bound on one kind of wrong verdict somewhere in a suite (companion §7.3)."""

    error: str
    meaning: str
    levels: int
    """How many decisions can make the error; every input where each is decided."""
    raw: float
    """The sum of their levels: at 1 or more it bounds nothing."""
    capped: float


#: Each kind of error, what it is, and the family of procedures that can make it, at which level.
_ERRORS: tuple[tuple[str, str, str, str], ...] = (
    (
        "false-compliance",
        "some PASS although its rate does not exceed the required one",
        "false-compliance",
        "alpha",
    ),
    (
        "false-degradation-signal",
        "some FAIL although nothing has degraded from its baseline",
        "false-degradation",
        "alpha",
    ),
    (
        "false-rejection",
        "some sequential FAIL although its rate is as required",
        "false-rejection",
        "alpha",
    ),
    (
        "false-acceptance",
        "some sequential PASS although its rate is the margin or more below",
        "false-rejection",
        "beta",
    ),
)


def bound_suite_errors(verdicts: Iterable[Verdict]) -> tuple[SuiteEnvelope, ...]:
    """The envelopes of all contracts together, by kind of error and never added up across kinds.

    A refused contract decided nothing and adds nothing; neither does what only advises.
    """
    findings = [
        part
        for verdict in verdicts
        if verdict.decision is not None
        for finding in verdict.findings
        if not finding.advisory
        for part in finding.by_input or (finding,)
    ]
    found = []
    families = [(one, procedure_of(one).error_family) for one in findings]
    for error, meaning, family, level in _ERRORS:
        levels = [getattr(one, level) for one, known in families if known == family]
        bound = envelope(value for value in levels if value is not None)
        if isinstance(bound, Envelope):
            found.append(
                SuiteEnvelope(
                    error=error,
                    meaning=meaning,
                    levels=len(bound.alphas),
                    raw=bound.raw,
                    capped=bound.capped,
                )
            )
    return tuple(found)


def sum_spending(verdicts: Sequence[Verdict]) -> Spending:
    """What all runs took together; money is known only where some run knows it."""
    spent = [verdict.spending for verdict in verdicts]
    sums: dict[str, Any] = {}
    for one in fields(Spending):
        known = [value for each in spent if (value := getattr(each, one.name)) is not None]
        # Seconds and money are added exactly; counts stay whole numbers.
        add = math.fsum if any(isinstance(value, float) for value in known) else sum
        sums[one.name] = add(known) if known else one.default
    return Spending(**sums)


def list_plain_caveats(verdict: Verdict) -> list[str]:
    """The caveats of a run that no guardrail says already."""
    known = {guard.message for guard in verdict.guards}
    return [caveat for caveat in verdict.caveats if caveat not in known]


def list_spent(spent: Spending) -> Iterator[tuple[str, str | None]]:
    """Time, money and tokens, each without a value where there is none."""
    yield "time", as_duration(spent.seconds) if spent.seconds else None
    yield "cost", None if spent.usd is None else as_money(spent.usd)
    yield "tokens", f"{spent.tokens:,}" if spent.tokens else None


def write_amounts(
    seconds: float | None = None, tokens: int | None = 0, usd: float | None = None
) -> str:
    """Time, tokens and money, as far as there are any."""
    return ", ".join(list_amounts(seconds=seconds or None, tokens=tokens or None, usd=usd))


def write_abandoned(spent: Spending) -> str:
    """What trials cost that were given up, as the rest of a sentence."""
    took = write_amounts(tokens=spent.abandoned_tokens, usd=spent.abandoned_usd)
    return f", at least {took}" if took else ", at an unknown cost"
