"""A run at one moment, in a few lines: what is counted, how it stands, what is left.

Pure, so that the live display and the log say the same and both can be tested without a terminal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from trialwise.documents.numbers import (
    as_count,
    as_duration,
    as_ends,
    as_level,
    as_money,
    as_observed,
)
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
_NAME, _LONGEST_NAME, _LONGEST_TEST = 10, 24, 40
#: How far ahead a verdict is looked for; farther off it is not worth a word.
_AHEAD = 99
_BAR = 12
#: Below this an interval has no room, nor has the note that says what it is.
_WIDE = 56
#: Which figures are shown, as far as there is room.
_CHOICES = (("rate", "interval", "count"), ("rate", "interval"), ("rate", "count"), ("rate",))
_NARROW_CHOICES = (("rate", "count"), ("rate",))

_Line: TypeAlias = list[tuple[str, Style | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """One criterion's line in the display."""

    name: str
    verdict: str
    """So far."""
    style: Style | None
    rate: str
    interval: str
    level: str
    """The confidence of the interval."""
    count: str
    hint: str
    """What would decide it."""


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
                planned=one.trials * (inputs[one.experiment] if one.counting.each_input else 1),
            )
            for one in plan.criteria
        )
        spending = Spending(trials=event.resumed)
        return cls(plan=plan, standings=standings, spending=spending, resumed=event.resumed)

    def after(self, event: ports.Event, *, elapsed_s: float) -> Snapshot:
        """Return the run after one more event."""
        if isinstance(event, ports.TrialDone):
            # Spelled out: this runs after every trial, and `replace` takes twice as long.
            return Snapshot(
                plan=self.plan,
                standings=event.standings,
                spending=event.spending,
                in_flight=event.in_flight,
                resumed=self.resumed,
                elapsed_s=elapsed_s,
            )
        known = replace(self, elapsed_s=elapsed_s)
        if isinstance(event, ports.CriterionDecided):
            new = event.standing
            changed = tuple(new if x.criterion == new.criterion else x for x in self.standings)
            return replace(known, standings=changed)
        if isinstance(event, ports.RunEnded):
            return replace(known, spending=event.spending, in_flight=0)
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
        yield as_count(self.trials, "trial")
        yield as_duration(self.elapsed_s) if self.elapsed_s >= 1 else "0 s"
        if self.usd is not None:
            yield as_money(self.usd)
        decided = sum(one.outcome is not None for one in self.rows)
        if decided:
            yield f"{decided} of {len(self.rows)} decided"


def headline(snapshot: Snapshot) -> Iterator[str]:
    """Facts about the whole run, most wanted first."""
    yield f"{snapshot.trials:,}/{snapshot.most_trials:,} trials"
    yield as_duration(snapshot.elapsed_s) if snapshot.elapsed_s >= 1 else "0 s"
    left = snapshot.time_left_s
    if left is not None:
        yield f"at most {as_duration(max(left, 1.0))} left"
    if snapshot.spending.usd is not None:
        yield as_money(snapshot.spending.usd)


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
    width = max(1, able.width - 1)  # a full line would leave the cursor on the next one
    if isinstance(snapshot, ArmsStanding):
        return [_draw_line(line, able, width) for line in _list_arms(snapshot, able)]
    plans = {one.criterion: one for one in snapshot.plan.criteria}
    shown, notes = _select(snapshot.standings, able.height - 3)
    rows = [_row(plans.get(one.criterion), one, able) for one in shown]
    levels = {row.level for row in rows if row.interval}
    if len(levels) > 1:
        cells = [f"{row.interval} ({row.level})" if row.level else "" for row in rows]
        rows = [replace(row, interval=cell) for row, cell in zip(rows, cells, strict=True)]
    lines = [_head(snapshot, able, width), *_table(rows, able, width)]
    if levels and width >= _WIDE:
        level = "" if len(levels) > 1 else f"{levels.pop()} "
        notes.append(f"{level}intervals of the counts so far, descriptive")
    if notes:
        lines.append([(able.show(f"{_INDENT}{able.dot.join(notes)}"), Style.FAINT)])
    return [_draw_line(line, able, width) for line in lines[: max(1, able.height - 1)]]


def status_line(snapshot: Snapshot, able: Capabilities) -> tuple[str, str]:
    """Return the first of these lines alone, for a run that is shown beside others."""
    width = max(1, able.width - 1)
    return _draw_line(_head(snapshot, able, width), able, width)


def _list_arms(standing: ArmsStanding, able: Capabilities) -> Iterator[_Line]:
    yield [(able.show(f"{standing.title}{_GAP}{able.dot.join(standing.list_facts())}"), None)]
    name = min(max((count_cells(one.name) for one in standing.rows), default=0), _LONGEST_TEST)
    # More rows than the terminal has would scroll, and could not be drawn over.
    for one in standing.rows[: max(0, able.height - 2)]:
        shown = pad(clip(one.name, _LONGEST_TEST), name)
        # An outcome may be good or bad news, by the question that was asked.
        style = Style.FAINT if one.decision is None else pick_style(Status(one.decision).tone)
        text = able.show(f"{_INDENT}{shown}{_GAP}{one.counts}{_GAP}")
        yield [(text, None), (one.outcome or "open", style)]


def _draw_line(line: _Line, able: Capabilities, width: int) -> tuple[str, str]:
    plain = written = ""
    for text, style in line:
        piece = clip(text, width - count_cells(plain))
        plain += piece
        written += able.paint(piece, style)
    return plain, written


def _head(snapshot: Snapshot, able: Capabilities, width: int) -> _Line:
    name = able.show(snapshot.plan.contract, max(8, width // 3))
    facts = [able.show(fact) for fact in headline(snapshot)]
    budget = snapshot.plan.options.budget.usd
    if budget is not None and snapshot.spending.usd is not None:
        facts[-1] += f" of {as_money(budget)}"
    if snapshot.in_flight:
        facts.append(f"{snapshot.in_flight} in flight")
    # Facts are dropped from the end: the last ones are the least wanted.
    while len(facts) > 1 and count_cells(f"{name}{_GAP}{able.dot.join(facts)}") > width:
        facts.pop()
    text = able.dot.join(facts)
    line: _Line = [(name, Style.STRONG)]
    if count_cells(name) + count_cells(text) + _BAR + 2 * len(_GAP) <= width:
        line.append((f"{_GAP}{_bar(snapshot, able)}", Style.FAINT))
    return [*line, (f"{_GAP}{text}", None)]


def _bar(snapshot: Snapshot, able: Capabilities) -> str:
    most = snapshot.most_trials
    full = min(_BAR, _BAR * snapshot.trials // most) if most else _BAR
    return able.show("█" * full + "░" * (_BAR - full))


def _select(
    standings: Sequence[ports.CriterionStanding], room: int
) -> tuple[Sequence[ports.CriterionStanding], list[str]]:
    """Select the criteria worth a line, and counts of the others."""
    most = max(1, min(_FEW, room))
    if len(standings) <= most:
        return standings, []
    still_open = [one for one in standings if one.decision is None]
    counts = [
        f"{sum(one.decision is decision for one in standings)} {decision}"
        for decision in Decision
        if any(one.decision is decision for one in standings)
    ]
    if len(still_open) > most:
        counts.append(f"{len(still_open) - most} more open")
    return still_open[:most], counts


def _row(plan: CriterionPlan | None, standing: ports.CriterionStanding, able: Capabilities) -> _Row:
    trials, passed, decision = standing.trials, standing.passed, standing.decision
    waiting = "open" if trials else "waiting"
    # What is only observed claims no rate, and inputs decided one by one have no common one.
    # A decision has an interval of its own, which the result shows: these are of the counts so far.
    described = (
        trials
        and decision is None
        and plan is not None
        and plan.alpha is not None
        and not plan.counting.each_input
        and standing.has_rate
    )
    counts = f"{passed:,}/{trials:,}" if standing.has_rate else f"{trials:,}"
    interval = None
    if described and plan is not None:
        # Of the kind and at the level of the one that the result will show.
        tally = Tally(trials=trials, passed=passed)
        interval = decision_interval(plan, tally, plan.rule or "exact")
    return _Row(
        name=able.show(standing.criterion),
        verdict=waiting if decision is None else decision.value,
        style=Style.FAINT if decision is None else pick_style(Status(decision).tone),
        rate=as_observed(passed / trials) if trials and standing.has_rate else "",
        interval="" if interval is None else as_ends(interval),
        level="" if interval is None else as_level(interval.confidence or 0.0),
        count=counts if trials else "",
        hint=open_end(plan, standing) if plan is not None and decision is None and trials else "",
    )


def _table(rows: Sequence[_Row], able: Capabilities, width: int) -> Iterator[_Line]:
    """Aligned rows; a column that does not fit is left out of all of them."""
    longest = min(max((count_cells(row.name) for row in rows), default=0), _LONGEST_NAME)
    verdict = max((len(row.verdict) for row in rows), default=0)
    columns, room = _columns(rows, longest, verdict, width)
    name = max(1, min(longest, room))
    for row in rows:
        figures = "".join(
            f"{_GAP}{pad(getattr(row, column), one, right=True)}" for column, one in columns
        )
        start = f"{_INDENT}{pad(able.show(row.name, name), name)}{_GAP}"
        hint = f"{_GAP}{row.hint}" if row.hint else ""
        if count_cells(start) + verdict + len(figures) + len(hint) > width:
            hint = ""
        mark = pad(row.verdict, verdict)
        yield [(start, None), (mark, row.style), (figures, None), (hint, Style.FAINT)]


def _columns(
    rows: Sequence[_Row], name: int, verdict: int, width: int
) -> tuple[list[tuple[str, int]], int]:
    """Return the columns that fit, with their widths, and the room they leave for a name."""
    fixed = len(_INDENT) + len(_GAP) + verdict
    for choice in _CHOICES if width >= _WIDE else _NARROW_CHOICES:
        sizes = {one: max((len(getattr(row, one)) for row in rows), default=0) for one in choice}
        found = [(one, size) for one, size in sizes.items() if size]
        room = width - fixed - sum(len(_GAP) + size for _, size in found)
        if room >= min(name, _NAME):
            return found, room
    return [], width - fixed
