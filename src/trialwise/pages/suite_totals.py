"""A suite as a whole: what it concludes, what that costs in certainty, and what it took."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from typing import Any, TypeVar

from trialwise.documents.numbers import as_duration, as_money, list_amounts
from trialwise.documents.results import Status
from trialwise.errors import InvalidArgument
from trialwise.model.evidence import Spending, StopReason
from trialwise.model.plan import Plan
from trialwise.model.verdict import Decision, Verdict
from trialwise.procedures import chances
from trialwise.procedures.composite import combine

T = TypeVar("T")


def require_runs(runs: Sequence[T]) -> tuple[T, ...]:
    """Return the runs of a suite: at least one, since what was not run is never PASS."""
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
    # A PASS of the others would be one of a suite that was not run whole.
    if Status.REFUSED in found and decided is not Decision.FAIL:
        return Status.REFUSED
    return pick_status(decided)


def decide_suite(verdicts: Iterable[Verdict]) -> Decision | None:
    """Return the suite's decision, or None where a contract was refused and none FAILs."""
    status = pick_suite_status(verdicts)
    return None if status is Status.REFUSED else Decision(status)


def pick_exit_code(verdicts: Sequence[Verdict]) -> int:
    """Pick the code a process ends with after these runs: one code, one meaning."""
    if any(one.stop is StopReason.INTERRUPTED for one in verdicts):
        # What a shell reports of a process that Ctrl-C ended: 128 + SIGINT.
        return 130
    codes = {Status.PASS: 0, Status.FAIL: 1, Status.REFUSED: 2, Status.INCONCLUSIVE: 3}
    # 0 to 3 are promised in docs/compatibility.md: CI scripts branch on them.
    code = codes[pick_suite_status(verdicts)]
    if code != codes[Status.INCONCLUSIVE]:
        return code
    undecided = [one.plan for one in verdicts if one.decision is Decision.INCONCLUSIVE]
    # One contract that must not stay open is enough: the code belongs to the whole suite.
    must_decide = any(one is not None and one.options.inconclusive == "fail" for one in undecided)
    return codes[Status.FAIL] if must_decide else code


def pick_status(decision: Decision | None) -> Status:
    """Return what is shown for a decision."""
    return Status.REFUSED if decision is None else Status(decision.value)


_CONDITIONS = {
    "wrong-pass": "If one rate were too low",
    "wrong-fail": "If every rate were as required",
}
_EVENTS = {"wrong-pass": "this suite would still pass", "wrong-fail": "it would fail"}


def list_error_sentences(envelopes: Sequence[chances.ErrorBound]) -> list[str]:
    """List a sentence for each error that several parts make together; none for a single part.

    What is not counted is named once, in the first sentence that it belongs in.
    """
    # A single decision errs as often as its own line says.
    if not any(one.is_joint for one in envelopes):
        return []
    said: list[str] = []
    # A part without an error rate would otherwise be named in both sentences.
    named: set[chances.Uncounted] = set()
    for one in envelopes:
        by_reason: dict[str, list[str]] = {}
        for part in one.deciding:
            if part not in named:
                by_reason.setdefault(part.reason, []).append(part.name)
        named.update(one.deciding)
        parts = ((reason, ", ".join(dict.fromkeys(names))) for reason, names in by_reason.items())
        left_out = "; ".join(f"{names} ({reason})" for reason, names in parts)
        if one.chance:
            end = f". Not counted: {left_out}." if left_out else "."
            said.append(f"{_CONDITIONS[one.error]}, {_EVENTS[one.error]} in {one.chance}{end}")
        elif left_out:
            said.append(f"{_CONDITIONS[one.error]}, nothing is counted: {left_out}.")
    return said


def bound_suite_errors(verdicts: Iterable[Verdict]) -> tuple[chances.ErrorBound, ...]:
    """Return how often all contracts together are wrong, by the decision that is wrong."""
    decided = list(verdicts)
    # The two errors are never added up: a suite cannot be wrong in both ways at once (§7.3).
    bounds = (chances.bound_verdicts(decided, wrong) for wrong in _WRONG)
    return tuple(filter(None, bounds))


def bound_planned_errors(plans: Iterable[Plan]) -> tuple[chances.ErrorBound, ...]:
    """Return the same before the first trial."""
    planned = list(plans)
    return tuple(filter(None, (chances.bound_plans(planned, wrong) for wrong in _WRONG)))


_WRONG = (Decision.PASS, Decision.FAIL)


def sum_spending(verdicts: Sequence[Verdict]) -> Spending:
    """Sum up what all runs took together; money is known only where some run knows it."""
    spent = [verdict.spending for verdict in verdicts]
    sums: dict[str, Any] = {}
    for one in fields(Spending):
        known = [value for each in spent if (value := getattr(each, one.name)) is not None]
        # Seconds and money are added exactly; counts stay whole numbers.
        add = math.fsum if any(isinstance(value, float) for value in known) else sum
        sums[one.name] = add(known) if known else one.default
    return Spending(**sums)


def list_plain_caveats(verdict: Verdict) -> list[str]:
    """List the caveats of a run that no guardrail says already."""
    # A guardrail is shown with its severity, so that its bare text would only repeat it.
    known = {guard.message for guard in verdict.guards}
    return [caveat for caveat in verdict.caveats if caveat not in known]


def list_spent(spent: Spending) -> Iterator[tuple[str, str | None]]:
    """Time, money and tokens, each without a value where there is none."""
    yield "time", as_duration(spent.seconds) if spent.seconds else None
    yield "cost", None if spent.usd is None else as_money(spent.usd)
    yield "cost of setup", as_money(spent.setup_usd) if spent.setup_usd else None
    yield "cost of judges", as_money(spent.judging_usd) if spent.judging_usd else None
    yield "tokens", f"{spent.tokens:,}" if spent.tokens else None


def write_amounts(
    seconds: float | None = None, tokens: int | None = 0, usd: float | None = None
) -> str:
    """Time, tokens and money, as far as there are any."""
    return ", ".join(list_amounts(seconds=seconds or None, tokens=tokens or None, usd=usd))


def write_abandoned(spent: Spending) -> str:
    """Write what trials cost that were given up, as the rest of a sentence."""
    took = write_amounts(tokens=spent.abandoned_tokens, usd=spent.abandoned_usd)
    return f", at least {took}" if took else ", at an unknown cost"
