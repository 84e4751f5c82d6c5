"""Trials in columns are the trials that were put there, in whatever order they came."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialwise.model import trial_table
from trialwise.model.reply import Usage
from trialwise.model.run import Trials
from trialwise.model.trial import CheckResult, ErrorClass, FailReason, OtherCheck, Outcome, Trial
from trialwise.model.trial_lines import write_trial
from trialwise.model.trial_table import TrialTable
from trialwise.procedures.criterion_rows import Rows
from trialwise.stats import TraceShape

CRITERIA = ("polite", "right")
NUMBERS = st.none() | st.floats(0, 1e6)
USAGES = st.none() | st.builds(
    Usage, input_tokens=st.integers(0, 9), output_tokens=st.sampled_from([0, 7, 2**70])
)
FAILED = st.builds(
    CheckResult.fail,
    st.text(max_size=3),
    evidence=st.text(max_size=3),
    reason=st.sampled_from(FailReason),
)


class Lines:
    """A journal in memory."""

    def __init__(self) -> None:
        self.lines: list[Mapping[str, Any]] = []
        self.reads = 0

    def append(self, trial: Trial) -> int:
        self.lines.append(write_trial(trial))
        return len(self.lines) - 1

    def read(self, at: int) -> Mapping[str, Any]:
        self.reads += 1
        return self.lines[at]


@st.composite
def outcomes(draw: st.DrawFn, error_class: ErrorClass) -> tuple[Outcome, ...]:
    found = []
    for name in CRITERIA:
        result = draw(st.just(CheckResult.ok()) | FAILED)
        others: tuple[OtherCheck, ...] = ()
        if not result.passed and draw(st.booleans()):
            others = (OtherCheck(postcondition="also", result=None),)
        found.append(
            Outcome(
                criterion=name,
                result=result,
                postcondition=None if result.passed else "first",
                error_class=error_class,
                others=others,
            )
        )
    return tuple(found)


@st.composite
def trials(draw: st.DrawFn, index: int) -> Trial:
    error_class = draw(st.sampled_from(ErrorClass))
    return Trial(
        experiment="inputs",
        index=index,
        input_id=draw(st.sampled_from("abc")),
        seed=draw(st.integers(0, 2**63 - 1) | st.just(2**80)),
        outcomes=draw(outcomes(error_class)),
        error_class=error_class,
        error=draw(st.sampled_from(["", "refused", "slow"])),
        latency_s=draw(NUMBERS),
        usage=draw(USAGES),
        cost_usd=draw(NUMBERS),
        setup_s=draw(NUMBERS),
        judging_usage=draw(USAGES),
        attempts=draw(st.integers(1, 3)),
        started_s=draw(st.floats(0, 1e6)),
        reply=draw(st.none() | st.text(max_size=3)),
        tool_calls=draw(st.sampled_from([(), ({"name": "find"},)])),
        ended=draw(st.none() | st.just("answer")),
    )


@st.composite
def runs(draw: st.DrawFn) -> list[Trial]:
    """Some trials in the order in which they came back."""
    indexes = draw(st.lists(st.integers(0, 30), unique=True, max_size=12))
    return [draw(trials(index)) for index in indexes]


def hold(came: list[Trial], whole_bytes: int) -> tuple[TrialTable, Lines]:
    lines = Lines()
    table = TrialTable("inputs", CRITERIA, lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trial_table, "WHOLE_BYTES", whole_bytes)
        for trial in came:
            table.put(trial, lines.append(trial))
    return table, lines


@pytest.mark.slow
@given(runs(), st.sampled_from([0, 3, 100]))
def test_a_table_is_the_list_of_its_trials(came: list[Trial], whole: int) -> None:
    """By place, from the end, in slices, in a loop and by index, wherever the trials are held."""
    table, _ = hold(came, whole)
    expected = sorted(came, key=lambda one: one.index)

    assert table == expected
    assert [*table] == expected
    assert len(expected) == len(table)
    assert [table[place] for place in range(-len(table), len(table))] == [*expected, *expected]
    assert tuple(expected[1:7:2]) == table[1:7:2]
    for index in range(-1, 32):
        place = table.find(index)
        found = [one for one in expected if one.index == index]
        assert found == ([] if place is None else [table[place]])
    with pytest.raises(IndexError):
        table[len(table)]


@pytest.mark.slow
@given(runs())
def test_columns_say_what_the_trials_say(came: list[Trial]) -> None:
    """Every column, against a loop over the trials."""
    table, lines = hold(came, 0)
    told = sorted(came, key=lambda one: one.index)

    assert [one.index for one in told] == [*table.indexes]
    assert [one.input_id for one in told] == [table.names[number] for number in table.inputs]
    assert [not one.passed for one in told] == [*map(bool, table.fails)]
    assert [one.started_s for one in told if one.seed < 2**63] == [
        start for start, one in zip(table.starts, told, strict=True) if one.seed < 2**63
    ]
    assert [k for k, one in enumerate(told) if one.reply is not None] == [*table.answered()]
    assert [k for k, one in enumerate(told) if one.tool_calls] == [*table.traced(calls=True)]
    assert [k for k, one in enumerate(told) if not one.passed] == [*table.failing()]
    assert any(one.has_expenses for one in told) == table.has_expenses
    for place, name in enumerate(CRITERIA):
        rows = Rows.of(table, place)
        results = [one.outcome(name).result for one in told]
        assert [result.reason for result in results] == [row.sign.reason for row in rows]
        assert sum(result.passed for result in results) == rows.passed
        assert [result.passed for result in results] == [*map(bool, rows.passes)]
        assert [one.is_excused or one.is_unjudged(one.outcome(name)) for one in told] == [
            row.is_excused for row in rows
        ]
    assert lines.reads == 0


@pytest.mark.slow
@given(runs())
def test_a_sketch_is_the_trial_without_the_texts_of_its_outcomes(came: list[Trial]) -> None:
    """Nothing is read for it, until somebody asks for a text."""
    table, lines = hold(came, 0)
    for sketch, trial in zip(
        table.sketches(), sorted(came, key=lambda one: one.index), strict=True
    ):
        assert (trial.passed, trial.error_class) == (sketch.passed, sketch.error_class)
        assert (trial.usage, trial.cost_usd, trial.setup_s, trial.judging_usage) == (
            *(sketch.usage, sketch.cost_usd, sketch.setup_s, sketch.judging_usage),
        )
        assert [one.result.reason for one in trial.outcomes] == [
            one.result.reason for one in sketch.outcomes
        ]
        assert lines.reads == 0
        assert trial.reply == sketch.reply
        lines.reads = 0


@pytest.mark.slow
@given(runs(), st.sets(st.integers(0, 11)))
def test_the_commonest_error_is_the_first_of_those_that_come_most_often(
    came: list[Trial], wanted: set[int]
) -> None:
    """As a list of the texts says."""
    table, _ = hold(came, 0)
    places = sorted(one for one in wanted if one < len(came))
    errors = [table[place].error for place in places if table[place].error]
    most = max(map(errors.count, errors), default=0)

    expected = next((one for one in errors if errors.count(one) == most), "")
    assert expected == table.find_commonest_error(places)


def passing(index: int, **more: Any) -> Trial:
    outcomes = tuple(Outcome(criterion=name, result=CheckResult.ok()) for name in CRITERIA)
    given: dict[str, Any] = {
        "experiment": "inputs",
        "input_id": "a",
        "seed": 1,
        "outcomes": outcomes,
    }
    return Trial(index=index, **(given | more))


def test_a_trial_that_is_read_back_behaves_as_the_one_that_was_put() -> None:
    """It is equal both ways, has the same hash, and can be changed, copied and pickled."""
    shape = TraceShape(
        total_calls=2, distinct_calls=1, distinct_tools=1, assistant_lengths=(3,), tokens=5
    )
    trial = passing(0, reply="yes", messages=(("assistant", "yes"),), shape=shape)
    (kept,) = hold([trial], 0)[0]

    assert kept is not trial
    assert kept == trial
    assert trial == kept
    assert hash(trial) == hash(kept)
    assert write_trial(trial) == write_trial(kept)
    assert replace(trial, seed=5) == replace(kept, seed=5)
    assert trial == pickle.loads(pickle.dumps(kept)) == copy(kept)
    assert kept != replace(trial, reply="no")
    assert kept.__eq__("trial") is NotImplemented
    with pytest.raises(AttributeError):
        getattr(kept, "nothing")  # noqa: B009


def test_a_run_adds_to_a_copy_of_trials_that_somebody_has() -> None:
    """What a run handed out does not grow afterwards."""
    table = TrialTable("inputs", CRITERIA)
    table.put(passing(0))
    other = table.copy()
    other.put(passing(1))

    assert (1, 2) == (len(table), len(other))
    assert Trials([table]).seal().tables[0].is_sealed
    assert not table.copy().is_sealed


def test_the_trials_of_a_run_are_those_of_its_experiments_one_after_the_other() -> None:
    """By place, by slice, by experiment; and equal to a plain list of them."""
    given = [passing(1), replace(passing(0), experiment="more"), passing(0)]
    expected = [passing(0), passing(1), replace(passing(0), experiment="more")]
    trials = Trials.of(given)

    assert trials == expected
    assert trials != expected[:2]
    assert trials[-1] == expected[-1] == trials[2]
    assert tuple(expected[1:]) == trials[1:]
    assert expected[:2] == [*trials.of_experiment("inputs")]
    assert [] == [*trials.of_experiment("others")]
    assert Trials.of(trials) is trials


def test_an_index_that_no_column_holds_is_refused() -> None:
    """No plan has 2 ** 63 trials."""
    table = TrialTable("inputs", CRITERIA)
    with pytest.raises(OverflowError):
        table.put(passing(2**63))
    assert len(table) == 0
