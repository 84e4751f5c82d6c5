"""A run at one moment, in a few lines: what is counted, how it stands, what is left.

Pure, so that the live display and the log say the same and both can be tested without a terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from trialwise.documents import numbers
from trialwise.documents.printable import clip, count_cells, pad
from trialwise.documents.results import Status
from trialwise.engine import ports
from trialwise.model.evidence import Spending, Tally
from trialwise.model.plan import CriterionPlan, Plan
from trialwise.model.verdict import Decision
from trialwise.procedures.comparing.findings import ArmsRow
from trialwise.procedures.compliance import decision_interval
from trialwise.renderers.capabilities import Capabilities, Style, pick_style

_INDENT, _GAP = "  ", "  "
#: With more criteria than this only those still open are shown.
_FEW = 8
_LONGEST_NAME, _LONGEST_TEST = 24, 40
#: How far ahead a verdict is looked for; farther off it is not worth a word.
_AHEAD = 99
_BAR = 12
#: A narrower terminal has no room for intervals, nor for the note that says what they are.
_WIDE = 56

Line: TypeAlias = list[tuple[str, Style | None]]
"""Pieces of a line, the most wanted first: those that have no room are left out."""


# Not frozen: one is made after every trial.
@dataclass(slots=True, kw_only=True)
class Snapshot:
    """What is known of a run so far."""

    plan: Plan
    standings: tuple[ports.CriterionStanding, ...]
    spending: Spending = field(default_factory=Spending)
    in_flight: int = 0
    resumed: int = 0
    elapsed_s: float = 0.0

    @classmethod
    def at_start(cls, event: ports.RunStarted) -> Snapshot:
        """Return a run before its first trial."""
        plan = event.plan
        inputs = {one.name: len(one.input_ids) for one in plan.experiments}
        standings = tuple(
            ports.CriterionStanding(
                criterion=one.criterion,
                trials=0,
                passed=0,
                planned=one.count_trials(inputs[one.experiment]),
            )
            for one in plan.criteria
        )
        spending = Spending(trials=event.resumed)
        return cls(plan=plan, standings=standings, spending=spending, resumed=event.resumed)

    def after(self, event: ports.Event, *, elapsed_s: float) -> Snapshot:
        """Return the run after one more event."""
        # A copy, since the display may be drawing the earlier one from the thread of its clock.
        known = replace(self, elapsed_s=elapsed_s)
        if isinstance(event, ports.TrialDone):
            known.standings, known.in_flight = event.standings, event.in_flight
            known.spending = event.spending
        elif isinstance(event, ports.CriterionDecided):
            new = {event.standing.criterion: event.standing}
            known.standings = tuple(new.get(one.criterion, one) for one in self.standings)
        elif isinstance(event, ports.RunEnded):
            known.spending, known.in_flight = event.spending, 0
        return known

    @property
    def trials(self) -> int:
        """Counted so far, those of an earlier start included."""
        return self.spending.trials

    @property
    def done(self) -> int:
        """Trials completed since this process began the run."""
        return self.trials - self.resumed

    @property
    def most_trials(self) -> int:
        """The most the run can take."""
        budget = self.plan.options.budget.trials
        planned = self.plan.max_trials
        return planned if budget is None else min(planned, budget)

    @property
    def remaining_trials(self) -> int:
        """The most still to come: what the criterion that asks for most lacks, by experiment."""
        missing: dict[str, int] = {}
        standing = {one.criterion: one for one in self.standings}
        for plan in self.plan.criteria:
            one = standing.get(plan.criterion)
            if one is None or one.decision is not None or plan.counting.rides_along:
                continue
            lacks = max(0, one.planned - one.trials)
            missing[plan.experiment] = max(missing.get(plan.experiment, 0), lacks)
        return min(sum(missing.values()), max(0, self.most_trials - self.trials))

    @property
    def time_left_s(self) -> float | None:
        """At most so long at the pace so far; None before the first trial."""
        if not self.done or self.elapsed_s <= 0:
            return None
        # At most: a decision may come sooner, and a promise that is missed helps nobody.
        left = self.remaining_trials * self.elapsed_s / self.done
        budget = self.plan.options.budget.seconds
        return left if budget is None else max(0.0, min(left, budget - self.elapsed_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmsStanding:
    """What is known so far of several arms that take turns, and so end together."""

    title: str
    """The labels of the arms."""
    unit: str
    """What is counted: a pair, or a round."""
    done: int
    most: int
    rows: Sequence[ArmsRow] = ()
    trials: int = 0
    """Of all arms."""
    usd: float | None = None
    elapsed_s: float = 0.0

    def list_facts(self) -> Iterator[str]:
        """Yield facts about all arms together, most wanted first."""
        yield f"{self.done:,}/{self.most:,} {self.unit}s"
        yield numbers.as_count(self.trials, "trial")
        yield numbers.as_duration(self.elapsed_s) if self.elapsed_s >= 1 else "0 s"
        if self.usd is not None:
            yield numbers.as_money(self.usd)
        decided = sum(one.outcome is not None for one in self.rows)
        if decided:
            yield f"{decided} of {len(self.rows)} decided"


def headline(snapshot: Snapshot) -> Iterator[str]:
    """Facts about the whole run, most wanted first."""
    yield f"{snapshot.trials:,}/{snapshot.most_trials:,} trials"
    yield numbers.as_duration(snapshot.elapsed_s) if snapshot.elapsed_s >= 1 else "0 s"
    left = snapshot.time_left_s
    if left is not None:
        yield f"at most {numbers.as_duration(max(left, 1.0))} left"
    if snapshot.spending.usd is not None:
        yield numbers.as_money(snapshot.spending.usd)


def open_end(plan: CriterionPlan, standing: ports.CriterionStanding) -> str:
    """Return how soon a criterion may be decided: if all trials pass from here, or if all fail.

    Where every input has a verdict of its own there is no such number; what only observes the
    trials of the others is told by its failures.
    """
    if plan.counting.rides_along:
        failed = standing.trials - standing.passed
        return f"{failed} failed so far" if failed else "no failure so far"
    if plan.counting.each_input:
        return ""
    limits = plan.limits
    trials, failures = standing.trials, standing.trials - standing.passed
    ahead = range(1, min(_AHEAD, limits.cap - trials) + 1)
    soonest = (
        (Decision.PASS, (m for m in ahead if limits.decide(trials + m, failures) == "PASS")),
        (Decision.FAIL, (m for m in ahead if limits.decide(trials + m, failures + m) == "FAIL")),
    )
    ways = [(decision, next(found, None)) for decision, found in soonest]
    return " or ".join(f"{decision} in {m}" for decision, m in ways if m is not None)


def status_block(snapshot: Snapshot | ArmsStanding, able: Capabilities) -> list[tuple[str, str]]:
    """Return the lines of the live display, each as it is measured and as it is written."""
    lines = _list_arms(snapshot, able) if isinstance(snapshot, ArmsStanding) else []
    if isinstance(snapshot, Snapshot):
        plans = {one.criterion: one for one in snapshot.plan.criteria}
        shown, notes = _select(snapshot.standings, able.height - 3)
        rows = [_list_cells(plans.get(one.criterion), one, able) for one in shown]
        lines = [head_line(snapshot, able), *_align(rows, [one.decision for one in shown])]
        if able.width > _WIDE and any(row[-2] for row in rows):
            notes.append("intervals of the counts so far, descriptive")
        if notes:
            lines.append([(able.show(f"{_INDENT}{able.dot.join(notes)}"), Style.FAINT)])
    # More rows than the terminal has would scroll, and could not be drawn over.
    return [draw_line(line, able) for line in lines[: max(1, able.height - 1)]]


def _list_arms(standing: ArmsStanding, able: Capabilities) -> list[Line]:
    told = ((one.name, one.counts, one.outcome or "open") for one in standing.rows)
    rows = [(able.show(name, _LONGEST_TEST), *map(able.show, more)) for name, *more in told]
    # An outcome may be good or bad news, by the question that was asked.
    decisions = [one.decision for one in standing.rows]
    return [_join(standing.title, standing.list_facts(), able), *_align(rows, decisions, marked=2)]


def draw_line(line: Line, able: Capabilities) -> tuple[str, str]:
    """Return a line as it is measured and as it is written: whole pieces, as far as they fit."""
    width = max(1, able.width - 1)  # a full line would leave the cursor on the next one
    (first, style), *rest = line
    plain = clip(first, width)
    written = able.paint(plain, style)
    for text, style in rest:
        piece = clip(text, width - count_cells(plain))
        # Half a number would be another number.
        if piece.rstrip() != text.rstrip():
            break
        plain += piece
        written += able.paint(piece, style)
    return plain, written


def head_line(snapshot: Snapshot, able: Capabilities) -> Line:
    """Return the first of these lines, which stands alone for a run beside others."""
    facts = [*headline(snapshot)]
    budget, most = snapshot.plan.options.budget.usd, snapshot.most_trials
    if budget is not None and snapshot.spending.usd is not None:
        facts[-1] += f" of {numbers.as_money(budget)}"
    if snapshot.in_flight:
        facts.append(f"{snapshot.in_flight} in flight")
    # Rounded down: a bar that is full says that nothing is left to wait for.
    full = min(_BAR, _BAR * snapshot.trials // most) if most else _BAR
    bar = f"{_GAP}{able.show('█' * full + '░' * (_BAR - full))}"
    return [*_join(snapshot.plan.contract, facts, able), (bar, Style.FAINT)]


def _join(title: str, facts: Iterable[str], able: Capabilities) -> Line:
    shown = [(able.show(title, max(8, able.width // 3)), Style.STRONG)]
    return [*shown, *((f"{able.dot if k else _GAP}{one}", None) for k, one in enumerate(facts))]


def _select(
    standings: Sequence[ports.CriterionStanding], room: int
) -> tuple[Sequence[ports.CriterionStanding], list[str]]:
    """Select the criteria worth a line, and counts of the others."""
    most = max(1, min(_FEW, room))
    if len(standings) <= most:
        return standings, []
    still_open = [one for one in standings if one.decision is None]
    found = [one.decision for one in standings]
    counts = [f"{found.count(one)} {one}" for one in Decision if one in found]
    if len(still_open) > most:
        counts.append(f"{len(still_open) - most} more open")
    return still_open[:most], counts


def _list_cells(
    plan: CriterionPlan | None, standing: ports.CriterionStanding, able: Capabilities
) -> tuple[str, ...]:
    """Return the name, the verdict so far, the rate, the count, the interval and the hint."""
    trials, passed, decision = standing.trials, standing.passed, standing.decision
    name = able.show(standing.criterion, _LONGEST_NAME)
    if not trials:
        return name, "waiting" if decision is None else decision.value, "", "", "", ""
    rate, count = numbers.as_observed(passed / trials), f"{passed:,}/{trials:,}"
    if not standing.has_rate:
        rate, count = "", f"{trials:,}"
    interval = ""
    # What is only observed claims no rate, and inputs decided one by one have no common one.
    # A decision has an interval of its own, which the result shows: these are of the counts so far.
    claims = plan is not None and plan.alpha is not None and not plan.counting.each_input
    if plan is not None and claims and decision is None and standing.has_rate:
        # Of the kind and at the level of the one that the result will show.
        tally = Tally(trials=trials, passed=passed)
        found = decision_interval(plan, tally, plan.rule or "exact")
        if found is not None:
            interval = f"{numbers.as_ends(found)} ({numbers.as_level(found.confidence or 0.0)})"
    hint = open_end(plan, standing) if plan is not None and decision is None else ""
    return name, "open" if decision is None else decision.value, rate, count, interval, hint


def _align(
    rows: Sequence[tuple[str, ...]], decisions: Sequence[Decision | None], *, marked: int = 1
) -> Iterator[Line]:
    """Pad the cells to columns, one of them marked by what was decided."""
    widths = [max(map(count_cells, column)) for column in zip(*rows, strict=True)]
    for row, decision in zip(rows, decisions, strict=True):
        style = Style.FAINT if decision is None else pick_style(Status(decision).tone)
        styles = {marked: style, 5: Style.FAINT}
        line: Line = [(f"{_INDENT}{pad(row[0], widths[0])}", None)]
        for place in range(1, len(row)):
            if widths[place]:
                line += [(_GAP, None), (pad(row[place], widths[place]), styles.get(place))]
        yield line
