"""Progress: what a terminal shows while a run goes on, what a log keeps, and who is silent."""

from __future__ import annotations

import io
import os
import pty
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fcntl import ioctl
from functools import partial
from random import Random
from struct import pack
from termios import TIOCSWINSZ
from typing import Any, TextIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta

from trialwise.documents.printable import count_cells
from trialwise.engine.ports import (
    CriterionDecided,
    CriterionStanding,
    Event,
    RunEnded,
    RunStarted,
    SystemClock,
    TrialDone,
    VerdictReached,
)
from trialwise.model.contract import Contract
from trialwise.model.criterion import Criterion
from trialwise.model.evidence import Spending, StopReason, Tally
from trialwise.model.options import Budget, RunOptions
from trialwise.model.plan import Plan
from trialwise.model.trial import Trial
from trialwise.model.verdict import Decision
from trialwise.procedures.composite import compose
from trialwise.procedures.criterion_rows import Stream
from trialwise.procedures.observational import decide_observational
from trialwise.procedures.run_plan import plan_run
from trialwise.renderers.capabilities import Capabilities
from trialwise.renderers.progress import (
    LineProgress,
    TerminalProgress,
    open_progress,
    share_progress,
)
from trialwise.renderers.progress_status import Snapshot, open_end, status_block

SHOWN, HIDDEN = "\x1b[?25h", "\x1b[?25l"
HOSTILE = "evil\x1b[2J\x1b[?25l\n\u202ename\x07"


class BentClock:
    """Time that passes only when it is told to."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return datetime(2026, 3, 14, tzinfo=UTC)


# --- A run, as its listeners hear of it -----------------------------------------------------------


def criterion(name: str, **question: Any) -> Criterion:
    return Criterion(name, bool, **(question or {"at_least": 0.9, "margin": 0.10, "power": 0.80}))


def planned(
    *criteria: Criterion, inputs: int = 12, contract: str = "support-agent", **options: Any
) -> Plan:
    promise = Contract(contract, str, criteria, sampling=[f"question {i}" for i in range(inputs)])
    return plan_run(
        promise, RunOptions(**options), seed=7, structure={}, fingerprints={"inputs": "f"}
    )


@dataclass
class Played:
    """A run in which each criterion passes at its rate, without a service."""

    plan: Plan
    rates: Mapping[str, float] = field(default_factory=dict)
    usd: float | None = 0.004
    seed: int = 1

    def __post_init__(self) -> None:
        inputs = len(self.plan.experiments[0].input_ids)
        self.streams = {
            one.criterion: [
                Stream(one.limits) for _ in range(inputs if one.counting.each_input else 1)
            ]
            for one in self.plan.criteria
        }

    def standing(self, name: str) -> CriterionStanding:
        streams = self.streams[name]
        decisions = [one.decision for one in streams]
        return CriterionStanding(
            criterion=name,
            trials=sum(one.trials for one in streams),
            passed=sum(one.passed for one in streams),
            planned=sum(one.limits.cap for one in streams),
            decision=decisions[0] if len(streams) == 1 else None,
        )

    def events(self, stop: StopReason = StopReason.COMPLETE, message: str = "") -> Iterator[Event]:
        """Everything a listener hears, in order."""
        rng, done = Random(self.seed), 0
        yield RunStarted(run_id="run-1", plan=self.plan)
        for index in range(self.plan.max_trials):
            settled = []
            for name, streams in self.streams.items():
                place, which = divmod(index, len(streams))
                passed = rng.random() < self.rates.get(name, 0.95)
                if streams[which].add(place, passed=passed) and len(streams) == 1:
                    settled.append(name)
            done = index + 1
            yield TrialDone(
                trial=Trial(experiment="inputs", index=index, input_id="1", seed=1, outcomes=()),
                standings=tuple(map(self.standing, self.streams)),
                spending=self.spent(done),
                in_flight=4,
            )
            for name in settled:
                decided = StopReason.DECIDED
                yield CriterionDecided(standing=self.standing(name), stop=decided)
            if all(one.is_settled for streams in self.streams.values() for one in streams):
                break
        yield RunEnded(stop=stop, spending=self.spent(done), message=message)

    def spent(self, trials: int) -> Spending:
        usd = None if self.usd is None else trials * self.usd
        return Spending(trials=trials, attempts=trials, seconds=trials / 2, usd=usd)


TWO = planned(criterion("valid-json"), criterion("grounded", at_least=0.9, trials=100))


def before_end(events: Iterator[Event], trials: int) -> list[Event]:
    """The beginning of a run, up to this many trials."""
    heard: list[Event] = []
    for event in events:
        heard.append(event)
        if sum(isinstance(one, TrialDone) for one in heard) == trials:
            break
    return heard


# --- A terminal -----------------------------------------------------------------------------------


class Screen:
    """Enough of a terminal to know what a person sees, lines rebroken when it is made narrower."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.rows = [""]
        self.row = self.column = 0
        self.cursor_shown = True

    def resize(self, columns: int) -> None:
        rows: list[str] = []
        at = 0
        for place, text in enumerate(self.rows):
            parts = [text[i : i + columns] for i in range(0, len(text), columns)] or [""]
            rows += parts
            if place == self.row:
                at = len(rows) - 1
        self.rows, self.row, self.columns = rows, at, columns
        self.column = min(self.column, columns)

    def feed(self, text: str) -> None:
        for token in re.findall(r"\x1b\[[?0-9;]*[A-Za-z]|[\s\S]", text):
            if token.startswith("\x1b["):
                self._obey(token[2:-1], token[-1])
            elif token == "\r":
                self.column = 0
            elif token == "\n":
                self.row += 1
                self.rows += [""] * (self.row + 1 - len(self.rows))
            else:
                assert token.isprintable(), repr(token)
                self._put(token)

    def _obey(self, argument: str, command: str) -> None:
        line = self.rows[self.row]
        if command == "A":
            self.row -= int(argument or 1)
            assert self.row >= 0, "moved above what it had drawn"
        elif command == "K":
            self.rows[self.row] = line[: self.column]
        elif command == "J":
            self.rows[self.row :] = [line[: self.column]]
        elif command in "hl":
            assert "?25" == argument
            self.cursor_shown = command == "h"
        else:
            assert "m" == command, command

    def _put(self, one: str) -> None:
        assert self.column < self.columns, "a line was too long"
        line = self.rows[self.row].ljust(self.column)
        self.rows[self.row] = line[: self.column] + one + line[self.column + 1 :]
        self.column += 1

    @property
    def seen(self) -> list[str]:
        return [row.rstrip() for row in self.rows if row.strip()]


class Terminal:
    """A pseudoterminal that is read while it is written to."""

    def __init__(self, columns: int = 80, rows: int = 24) -> None:
        self._master, self._slave = pty.openpty()
        self.resize(columns, rows)
        self.stream = open(self._slave, "w", encoding="utf-8", newline="")  # noqa: SIM115
        self._chunks: list[bytes] = []
        self.heard = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def resize(self, columns: int, rows: int = 24) -> None:
        ioctl(self._master, TIOCSWINSZ, pack("HHHH", rows, columns, 0, 0))

    def _read(self) -> None:
        while True:
            try:
                chunk = os.read(self._master, 65536)
            except OSError:  # the other end was closed
                return
            with self.heard:
                self._chunks.append(chunk)
                self.heard.notify_all()

    def text(self) -> str:
        # What the driver turns into "\r\r\n" moves nothing more than "\r\n" does.
        return b"".join(self._chunks).decode("utf-8", "ignore")

    def has_frames(self, count: int) -> bool:
        return self.text().count(SHOWN) >= count

    def close(self) -> str:
        self.stream.close()
        self._reader.join(timeout=10)
        os.close(self._master)
        return self.text()


LIVE = Capabilities(live=True, unicode=True, width=80, height=24)


def shown(text: str, columns: int = 80) -> Screen:
    screen = Screen(columns)
    screen.feed(text)
    return screen


def drawn(events: Sequence[Event], columns: int = 80, step: float = 0.2) -> str:
    """What a terminal of some width received from these events."""
    there, clock = Terminal(columns), BentClock()
    able = Capabilities(live=True, unicode=True, colour=True, width=columns)
    progress = TerminalProgress(there.stream, able, clock, tick_s=None)
    for event in events:
        clock.seconds += step
        progress.on_event(event)
    return there.close()


def test_a_terminal_shows_the_run_as_it_stands() -> None:
    """Trials, time, what is left, money; a line a criterion; and what the interval is.

    It is of the kind and at the level that the result shows: exact, with each side's own error.
    """
    events = before_end(Played(TWO, {"valid-json": 0.9, "grounded": 0.97}, seed=4).events(), 31)
    head, *rows, note = shown(drawn(events)).seen
    last = events[-1]

    assert isinstance(last, TrialDone)
    assert head.startswith("support-agent")
    for part in ("31/156 trials", "at most", "left", "$0.12"):
        assert part in head
    for row, standing in zip(rows, last.standings, strict=True):
        passed, trials = standing.passed, standing.trials
        plan = next(one for one in TWO.criteria if one.criterion == standing.criterion)
        # Clopper and Pearson's bounds as quantiles of a beta distribution.
        assert plan.alpha is not None
        p, below = passed / trials, plan.alpha if plan.beta is None else plan.beta
        low = beta.ppf(below, passed, trials - passed + 1)
        high = beta.ppf(1 - plan.alpha, passed + 1, trials - passed) if passed < trials else 1
        level = f"({100 * (1 - below - plan.alpha):g} %)"
        assert row.split()[0] == standing.criterion
        ends = f"[{100 * low:.1f}, {100 * high:.1f}] {level}"
        for part in ("open", f"{100 * p:.1f} %", ends):
            assert part in row
        assert f"{passed}/{trials}" in row
    assert "intervals of the counts so far, descriptive" == note.strip()


def test_the_display_clears_itself_and_leaves_the_cursor() -> None:
    """After the end nothing of it is on the screen, and the cursor blinks where it began."""
    text = drawn([*Played(TWO).events()])
    screen = shown(text)

    assert [] == screen.seen
    assert (0, 0, True) == (screen.row, screen.column, screen.cursor_shown)


@pytest.mark.slow
def test_runs_side_by_side_have_a_line_each_until_they_end() -> None:
    """
    The one that ends first leaves, the other goes on, and nothing is left of either.
    """
    there, clock = io.StringIO(), BentClock()
    follow = share_progress(there, capabilities=LIVE, clock=clock)
    names = ("support-agent", "search-agent")
    heard = {name: [*Played(planned(criterion("right"), contract=name)).events()] for name in names}
    listeners = {name: follow() for name in names}

    def play(name: str, events: Sequence[Event]) -> list[list[str]]:
        for event in events:
            clock.seconds += 0.2
            listeners[name].on_event(event)
        return [line.split() for line in shown(there.getvalue()).seen]

    play(names[0], heard[names[0]][:4])
    both = play(names[1], heard[names[1]][:3])
    one = play(names[0], heard[names[0]][4:])
    none = play(names[1], heard[names[1]][3:])

    assert [line[0] for line in both] == [*names]
    assert any(word.startswith("3/") for word in both[0])
    assert [line[0] for line in one] == [names[1]]
    assert none == []


def test_the_cursor_is_never_left_hidden() -> None:
    """Not even by a run that is killed between two frames: each frame shows it again."""
    text = drawn(before_end(Played(TWO).events(), 9))

    assert text.count(HIDDEN) == text.count(SHOWN) > 1
    assert text.endswith(SHOWN)


def test_closing_without_an_end_clears_too() -> None:
    """A run that raised has no end; whoever opened the display closes it, twice if need be."""
    there = Terminal()
    progress = TerminalProgress(there.stream, LIVE, BentClock(), tick_s=None)
    progress.on_event(RunStarted(run_id="r", plan=TWO))
    progress.close()
    progress.close()

    assert [] == shown(there.close()).seen


def test_at_most_ten_frames_a_second() -> None:
    """A thousand trials a second are counted and not all drawn; a decision always is."""
    events = [e for e in Played(TWO).events() if not isinstance(e, RunEnded | CriterionDecided)]
    text = drawn(events, step=0.001)

    assert text.count(HIDDEN) <= 1 + len(events) * 0.001 / 0.1 + 1


def test_a_decision_is_drawn_at_once() -> None:
    """PASS and FAIL stand in the criterion's line, whatever the pace."""
    heard: list[Event] = []
    for event in Played(TWO, {"valid-json": 1.0}).events():
        heard.append(event)
        if isinstance(event, CriterionDecided):
            break
    rows = shown(drawn(heard, step=0.0)).seen

    assert "valid-json" == rows[1].split()[0]
    assert "PASS" == rows[1].split()[1]


def test_a_line_that_got_shorter_leaves_no_rest() -> None:
    """What would have decided a criterion is gone once it is decided."""
    heard: list[Event] = []
    for event in Played(TWO, {"valid-json": 1.0}).events():
        heard.append(event)
        if isinstance(event, CriterionDecided):
            break
    before, after = shown(drawn(heard[:-1])).seen[1], shown(drawn(heard)).seen[1]

    assert "FAIL in" in shown(drawn(heard[:-3])).seen[1]
    assert before.split()[1] == after.split()[1] == "PASS"
    assert after.endswith(f"{len(heard) - 2}/{len(heard) - 2}")


@pytest.mark.parametrize("columns", [120, 80, 60, 40, 20, 8])
def test_it_fits_every_width(columns: int) -> None:
    """No line reaches the last column, so that none wraps: the screen checks each sign."""
    events = before_end(Played(TWO, {"valid-json": 0.9}).events(), 40)
    screen = shown(drawn(events, columns), columns)

    assert all(len(row) < columns for row in screen.seen)
    assert len(screen.seen) >= 3


def test_forty_columns_keep_the_verdict_and_the_rate() -> None:
    """What goes is the interval, with the note that explains it."""
    rows = shown(drawn(before_end(Played(TWO).events(), 5), 40), 40).seen

    assert "5/156 trials" in rows[0]
    assert all("open" in row and " %" in row for row in rows[1:])
    assert "Wilson" not in "".join(rows)


@pytest.mark.parametrize(("before", "after"), [(100, 45), (45, 100), (80, 30)])
def test_a_resized_terminal_keeps_nothing_stale(before: int, after: int) -> None:
    """Made narrower it breaks the lines it has; the next frame takes all of them back."""
    there, clock = Terminal(before), BentClock()
    progress = TerminalProgress(there.stream, LIVE, clock, tick_s=None)
    screen, fed = Screen(before), 0
    events = before_end(Played(TWO).events(), 20)
    for number, event in enumerate(events):
        clock.seconds += 1
        if number == len(events) // 2:
            there.stream.flush()
            with there.heard:
                frames = number  # one for each event so far
                there.heard.wait_for(partial(there.has_frames, frames), timeout=10)
            text = there.text()
            screen.feed(text)
            fed = len(text)
            screen.resize(after)
            there.resize(after)
        progress.on_event(event)
    progress.close()
    text = there.close()
    last = text[fed:].rsplit(HIDDEN, 1)[0]
    screen.feed(last)

    assert 1 == sum("support" in row or "supp" in row for row in screen.seen)
    screen.feed(text[fed + len(last) :])
    assert [] == screen.seen


def test_many_criteria_show_what_is_open_and_count_the_rest() -> None:
    """Thirty criteria do not fill a screen."""
    many = [criterion(f"c{i:02}", at_least=0.9, trials=100) for i in range(30)]
    rates = {f"c{i:02}": 0.1 for i in range(0, 30, 3)}
    rows = shown(drawn(before_end(Played(planned(*many), rates).events(), 30))).seen

    assert len(rows) == 1 + 8 + 1
    assert all("FAIL" not in row.split()[1:2] for row in rows[1:-1])
    assert "10 FAIL" in rows[-1]
    assert "12 more open" in rows[-1]


def test_a_low_terminal_is_not_overrun() -> None:
    """A display taller than the screen could not be taken back."""
    there = Terminal(80, 5)
    many = planned(*(criterion(f"c{i}", at_least=0.9, trials=100) for i in range(7)))
    progress = TerminalProgress(there.stream, LIVE, BentClock(), tick_s=None)
    for event in before_end(Played(many).events(), 3):
        progress.on_event(event)

    assert len(shown(there.close()).seen) <= 4


@pytest.mark.slow
def test_a_name_cannot_move_the_cursor() -> None:
    """Control characters of a suite file are shown, not obeyed: the screen refuses all others."""
    plan = planned(criterion(HOSTILE), contract=HOSTILE)
    text = drawn([*Played(plan).events()])

    assert "\x1b[2J" not in text
    assert text.count(HIDDEN) + 1 == text.count(SHOWN)
    assert [] == shown(text).seen


def test_the_clock_on_it_ticks_without_news() -> None:
    """A slow service does not make the display look dead."""
    there = Terminal()
    progress = TerminalProgress(there.stream, LIVE, SystemClock(), tick_s=0.12)
    progress.on_event(RunStarted(run_id="r", plan=TWO))
    with there.heard:
        assert there.heard.wait_for(partial(there.has_frames, 3), timeout=20)
    progress.on_event(RunEnded(stop=StopReason.INTERRUPTED, spending=Spending()))

    assert [] == shown(there.close()).seen


# --- What it says ---------------------------------------------------------------------------------


def test_the_time_left_is_what_the_pace_and_the_cap_say() -> None:
    """20 trials in 10 s, and the criterion that asks for most lacks 136: at most 68 s."""
    snapshot = Snapshot.at_start(RunStarted(run_id="r", plan=TWO))
    undecided = Played(TWO, {"valid-json": 0.9, "grounded": 0.97}, seed=4)
    for number, event in enumerate(before_end(undecided.events(), 20)[1:], start=1):
        snapshot = snapshot.after(event, elapsed_s=number / 2)

    assert all(one.decision is None for one in snapshot.standings)
    assert 156 - 20 == snapshot.remaining_trials
    assert pytest.approx(68.0) == snapshot.time_left_s


@pytest.mark.slow
def test_a_budget_shortens_what_is_left() -> None:
    """Neither more trials nor more seconds than were allowed."""
    plan = planned(criterion("c"), budget=Budget(trials=30, seconds=12))
    snapshot = Snapshot.at_start(RunStarted(run_id="r", plan=plan))
    for event in before_end(Played(plan).events(), 10)[1:]:
        snapshot = snapshot.after(event, elapsed_s=10)

    assert 20 == snapshot.remaining_trials
    assert pytest.approx(2.0) == snapshot.time_left_s


def test_each_input_is_planned_over_all_inputs() -> None:
    """Ten trials of each of three inputs are thirty."""
    plan = planned(criterion("c", never_fails=True, trials=10, each_input=True), inputs=3)
    snapshot = Snapshot.at_start(RunStarted(run_id="r", plan=plan))

    assert (30, 30) == (snapshot.standings[0].planned, snapshot.remaining_trials)
    for event in before_end(Played(plan).events(), 9)[1:]:
        snapshot = snapshot.after(event, elapsed_s=1)
    assert 21 == snapshot.remaining_trials
    assert "" == open_end(plan.criteria[0], snapshot.standings[0])


@pytest.mark.slow
def test_a_criterion_that_rides_along_asks_for_nothing() -> None:
    """Once the others are decided the run is over, whatever was only observed."""
    plan = planned(criterion("answers"), criterion("no-pii", never_fails=True))
    snapshot = Snapshot.at_start(RunStarted(run_id="r", plan=plan))
    standing = CriterionStanding(
        criterion="answers", trials=14, passed=14, planned=156, decision=Decision.PASS
    )
    decided = CriterionDecided(standing=standing, stop=StopReason.DECIDED)

    observed = CriterionStanding(criterion="no-pii", trials=14, passed=13, planned=156)

    assert 156 == snapshot.remaining_trials
    assert 0 == snapshot.after(decided, elapsed_s=1).remaining_trials
    assert "1 failed so far" == open_end(plan.criteria[1], observed)


def test_what_is_only_observed_has_no_interval() -> None:
    """It makes no claim about a population, not even a descriptive one."""
    plan = planned(criterion("no-pii", never_fails=True, trials=50))
    snapshot = Snapshot.at_start(RunStarted(run_id="r", plan=plan))
    for event in before_end(Played(plan, {"no-pii": 1.0}).events(), 9)[1:]:
        snapshot = snapshot.after(event, elapsed_s=1)
    text = "\n".join(plain for plain, _ in status_block(snapshot, LIVE))

    assert "100.0 %" in text
    assert "9/9" in text
    assert "[" not in text
    assert "Wilson" not in text


def test_before_the_first_trial_there_is_no_pace() -> None:
    """And no rate: the criteria wait."""
    snapshot = Snapshot.at_start(RunStarted(run_id="r", plan=TWO, resumed=5))
    lines = [plain for plain, _ in status_block(snapshot, LIVE)]

    assert snapshot.time_left_s is None
    assert "5/156 trials" in lines[0]
    assert all("waiting" in line for line in lines[1:])


@given(st.integers(0, 1), st.lists(st.booleans(), min_size=1, max_size=40))
def test_the_shortest_ways_are_the_shortest(which: int, outcomes: list[bool]) -> None:
    """Played on, the stream is decided after exactly this many more passes, or failures."""
    plan = TWO.criteria[which]
    stream = Stream(plan.limits)
    for place, passed in enumerate(outcomes):
        stream.add(place, passed=passed)
    if stream.is_settled:
        return
    standing = CriterionStanding(
        criterion="c", trials=stream.trials, passed=stream.passed, planned=stream.limits.cap
    )
    told = dict(re.findall(r"(PASS|FAIL) in (\d+)", open_end(plan, standing)))
    for word, passed in (("PASS", True), ("FAIL", False)):
        ahead = Stream(plan.limits)
        for place, one in enumerate([*outcomes, *[passed] * 99][: plan.limits.cap]):
            ahead.add(place, passed=one)
        reached = ahead.decision == word
        assert told.get(word) == (str(ahead.trials - stream.trials) if reached else None)


@pytest.mark.slow
@settings(max_examples=8)  # each number of criteria is another design to find
@given(
    st.lists(st.text(min_size=1, max_size=40).filter(str.strip), min_size=1, max_size=4),
    st.integers(1, 130),
    st.booleans(),
)
def test_any_name_fits_any_width(names: list[str], width: int, unicode: bool) -> None:
    """Each line stays below the width, in cells, and in ASCII where that is all there is."""
    plan = planned(*map(criterion, dict.fromkeys(names)))
    snapshot = Snapshot.at_start(RunStarted(run_id="r", plan=plan))
    able = Capabilities(live=True, unicode=unicode, width=width)
    for event in before_end(Played(plan).events(), 3)[1:]:
        snapshot = snapshot.after(event, elapsed_s=1)
    for plain, written in status_block(snapshot, able):
        assert count_cells(plain) <= max(1, width - 1)
        assert plain == written
        assert plain.isprintable()
        assert unicode or plain.isascii()


# --- A log ----------------------------------------------------------------------------------------


def logged(events: Sequence[Event], step: float = 0.5) -> list[str]:
    """The lines that came out of a pipe."""
    read, write = os.pipe()
    clock = BentClock()
    with open(write, "w", encoding="utf-8") as stream:
        progress = open_progress(stream, clock=clock)
        assert isinstance(progress, LineProgress)
        for event in events:
            clock.seconds += step
            progress.on_event(event)
        progress.close()
    with open(read, encoding="utf-8") as received:
        return received.read().splitlines()


@pytest.mark.slow
def test_a_log_begins_with_the_rule_and_ends_with_the_spending() -> None:
    """Who reads it later needs to know what was asked, of how many, and what it took."""
    plan = planned(
        criterion("valid-json"),
        criterion("grounded", at_least=0.9, trials=100),
        criterion("no-pii", never_fails=True),
        budget=Budget(usd=5, seconds=3600),
    )
    played = [*Played(plan, {"valid-json": 1.0, "no-pii": 1.0}).events()]
    verdict = compose([decide_observational("no-pii", Tally(trials=100, passed=100))])
    reached = VerdictReached(verdict=verdict, record=".trialwise/runs/run-1")
    lines = logged([*played, reached])

    assert lines[0] == (
        "support-agent: run run-1: at most 156 trials of 12 inputs, seed 7, budget 60 min, "
        "budget $5.00"
    )
    assert lines[1] == (
        "support-agent: valid-json: at least 90 %, sequential/optimal/2, at most 156 trials"
    )
    assert "compliance/exact-binomial/2, 100 trials, 96 must pass" in lines[2]
    assert lines[3].endswith("no-pii: never fails, observed")
    assert lines[-2].startswith("support-agent: ended, all planned trials run, ")
    assert lines[-1].endswith("verdict PASS, record: .trialwise/runs/run-1")


def test_a_log_has_a_line_for_every_decision() -> None:
    """With the count it was reached at."""
    lines = logged([*Played(TWO, {"valid-json": 1.0, "grounded": 1.0}).events()])
    # Thirteen successes PASS the shortest sequential run, 96 of 100 the fixed one:
    # P(96 or more of 100 | 90 %) = 2.4 %, P(95 or more) = 5.8 %.
    decided = [line for line in lines if " PASS after " in line]

    assert 2 == len(decided)
    assert "grounded: PASS after 96 trials (96 passed, 100.0 %), decided early" in decided[1]


def test_a_log_hears_of_every_tenth_of_the_way() -> None:
    """Ten lines however many trials there are."""
    plan = planned(criterion("c", at_least=0.5, trials=1000), curtail=False)
    lines = [line for line in logged([*Played(plan).events()], step=0.001) if "/1,000" in line]

    assert [f"{n}/1,000" for n in range(100, 1000, 100)] == [
        re.findall(r"[\d,]+/[\d,]+", line)[0] for line in lines[:9]
    ]
    assert 10 == len(lines)


def test_a_log_hears_of_a_slow_run_every_thirty_seconds() -> None:
    """A trial every ten seconds: a line at every third, tenths apart."""
    plan = planned(criterion("c", at_least=0.5, trials=1000), curtail=False)
    lines = [
        line for line in logged(before_end(Played(plan).events(), 60), step=10) if "/1,000" in line
    ]

    assert ["3/", "6/", "9/"] == [re.findall(r"\d+/", line)[0] for line in lines[:3]]


def test_a_log_says_which_budget_ended_the_run() -> None:
    """In the words of the engine."""
    why = "the budget of $0.05 is spent"
    events = [*Played(TWO).events(StopReason.MONEY_BUDGET, why)]

    assert logged(events)[-1].endswith(f"{why}")
    assert "ended, money budget, " in logged(events)[-1]


@pytest.mark.slow
def test_a_log_keeps_hostile_names_on_their_line() -> None:
    """One line an event, whatever a criterion is called."""
    plan = planned(criterion(HOSTILE), contract=HOSTILE)
    lines = logged([*Played(plan).events()])

    assert all(line.isprintable() for line in lines)
    assert all(line.startswith("evil\\x1b[2J") for line in lines)


# --- Silence --------------------------------------------------------------------------------------


def test_a_terminal_is_drawn_on_and_a_pipe_is_not() -> None:
    """The stream decides, unless its capabilities are given."""
    there = Terminal()

    assert isinstance(open_progress(there.stream, capabilities=LIVE), TerminalProgress)
    assert isinstance(open_progress(io.StringIO()), LineProgress)
    there.close()


def test_a_log_reads_the_same_whether_it_hears_of_every_trial_or_of_those_it_wants() -> None:
    """A quick service makes thousands of trials between two lines."""
    texts = []
    for is_choosy in (False, True):
        stream = io.StringIO()
        progress = LineProgress(stream, clock=BentClock())
        trials = 0
        for event in Played(TWO).events():
            trials += isinstance(event, TrialDone)
            is_wanted = not isinstance(event, TrialDone) or progress.wants_trial(trials)
            if is_wanted or not is_choosy:
                progress.on_event(event)
        texts.append(stream.getvalue())

    assert texts[0] == texts[1]
    assert "trials" in texts[0]


def make_lines(stream: TextIO) -> LineProgress:
    return LineProgress(stream)


def make_display(stream: TextIO) -> TerminalProgress:
    return TerminalProgress(stream, LIVE, BentClock(), tick_s=None)


@pytest.mark.parametrize("make", [make_lines, make_display])
def test_a_broken_pipe_silences_it(make: Callable[[TextIO], Any]) -> None:
    """Whoever read the progress is gone; the run goes on."""
    read, write = os.pipe()
    stream = open(write, "w", encoding="utf-8", buffering=1)  # noqa: SIM115
    progress = make(stream)
    os.close(read)
    for event in Played(TWO).events():
        progress.on_event(event)
    progress.close()
    with pytest.raises(BrokenPipeError):  # what was buffered is lost with the reader
        stream.close()


@pytest.mark.parametrize("make", [make_lines, make_display])
def test_a_closed_stream_silences_it(make: Callable[[TextIO], Any]) -> None:
    """As does one that somebody else closed."""
    stream = io.StringIO()
    progress = make(stream)
    progress.on_event(RunStarted(run_id="r", plan=TWO))
    stream.close()
    for event in Played(TWO).events():
        progress.on_event(event)
    progress.close()


@pytest.mark.parametrize("make", [make_lines, make_display])
def test_events_before_a_start_are_ignored(make: Callable[[TextIO], Any]) -> None:
    """A listener that joins late hears nothing it could place."""
    stream = io.StringIO()
    progress = make(stream)
    for event in [*Played(TWO).events()][1:4]:
        progress.on_event(event)

    assert "" == stream.getvalue()


@pytest.mark.slow
def test_decisions_are_told_apart_without_colour() -> None:
    """Words carry the meaning: PASS, FAIL and INCONCLUSIVE are written out."""
    plan = planned(criterion("a"), criterion("b"), criterion("c"))
    snapshot = Snapshot.at_start(RunStarted(run_id="r", plan=plan))
    for name, decision in zip("abc", Decision, strict=True):
        standing = CriterionStanding(
            criterion=name, trials=20, passed=10, planned=156, decision=decision
        )
        event = CriterionDecided(standing=standing, stop=StopReason.DECIDED)
        snapshot = snapshot.after(event, elapsed_s=1)
    rows = [plain.split()[1] for plain, _ in status_block(snapshot, LIVE)[1:4]]

    assert ["PASS", "FAIL", "INCONCLUSIVE"] == rows
    assert 0 == snapshot.remaining_trials
