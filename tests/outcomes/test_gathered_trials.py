"""From rows to trials: what belongs together, what is missing, and in which order it stands."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from trialwise.errors import InvalidArgument
from trialwise.model.trial import ErrorClass, FailReason
from trialwise.model.trial_lines import read_trial, write_trial
from trialwise.outcomes.outcome_rows import OutcomeRow, Outcomes, OutcomesUnreadable, input_id_of
from trialwise.outcomes.outcome_trials import (
    Experiment,
    Order,
    TrialRows,
    gather,
    in_order,
    is_sorted_by_input,
)


def row(
    input_id: str, criterion: str = "answers", passed: bool = True, **more: object
) -> OutcomeRow:
    return OutcomeRow(input_id=input_id, criterion=criterion, passed=passed, **more)  # type: ignore[arg-type]


def outcomes(*rows: OutcomeRow) -> Outcomes:
    return Outcomes(rows=rows, name="sums")


def told(*inputs: str) -> list[TrialRows]:
    return [TrialRows(input_id=one, rows=(row(one),)) for one in inputs]


def test_rows_without_a_number_are_counted_off() -> None:
    """The k-th row of a criterion belongs to the k-th trial of its input."""
    [experiment] = gather(
        outcomes(row("a", "x"), row("a", "x", False), row("a", "y", False), row("a", "y"))
    )
    found = [tuple(one.passed for one in trial.rows) for trial in experiment.trials]
    assert [(True, False), (False, True)] == found


def test_a_criterion_that_says_nothing_of_a_trial_failed_it() -> None:
    """Rows that are left out are more often the bad ones; how many is a note."""
    [experiment] = gather(
        outcomes(row("a", "x", trial="1"), row("a", "y", trial="1"), row("b", "x", trial="1"))
    )
    missing = experiment.trials[1].rows[1]
    assert (False, FailReason.NO_VALUE, "y") == (missing.passed, missing.reason, missing.criterion)
    assert {"y": 1} == experiment.missing


def test_criteria_without_an_input_in_common_had_trials_of_their_own() -> None:
    """Nothing is missing then."""
    experiments = gather(outcomes(row("a", "x"), row("b", "x"), row("c", "y")))
    assert [("x",), ("y",)] == [one.criteria for one in experiments]
    assert ["x", "y"] == [one.name for one in experiments]
    assert [{}, {}] == [one.missing for one in experiments]


def test_groups_keep_equal_inputs_apart() -> None:
    """Two tests may have parameters of the same name."""
    experiments = gather(outcomes(row("1", "x", group="x"), row("1", "y", group="y")))
    assert 2 == len(experiments)


def test_inputs_tie_criteria_together_by_way_of_others() -> None:
    """x and z share no input, and both share one with y."""
    rows = [row("a", "x"), row("a", "y"), row("b", "y"), row("b", "z")]
    [experiment] = gather(outcomes(*rows))
    assert ("x", "y", "z") == experiment.criteria
    assert 2 == len(experiment.trials)


def test_two_outcomes_of_one_criterion_in_one_trial_are_a_contradiction() -> None:
    """With both places."""
    rows = [row("a", trial="1", where="line 1"), row("a", trial="1", where="line 9")]
    with pytest.raises(OutcomesUnreadable, match=r"line 9: trial 1 of 'a' .* already \(line 1\)"):
        gather(outcomes(*rows))


def test_a_trial_in_which_something_was_judged_did_not_break() -> None:
    """A judge that crashed does not excuse the service that answered."""
    broken = {"passed": False, "reason": FailReason.NO_VALUE, "error": "503"}
    crash = row("a", "y", error_class=ErrorClass.INFRASTRUCTURE, **broken)  # type: ignore[arg-type]
    [experiment] = gather(outcomes(row("a", "x"), crash))
    assert ErrorClass.NONE == experiment.trials[0].trial("e", 0, str).error_class
    [alone] = gather(outcomes(crash))
    trial = alone.trials[0].trial("e", 0, str)
    assert (ErrorClass.INFRASTRUCTURE, "503", True) == (
        trial.error_class,
        trial.error,
        trial.is_excused,
    )


def test_a_trial_is_journalled_and_read_back() -> None:
    """With reasons, explanations and what it took, after the texts were cleaned."""
    failed = row("a", "x", False, explanation="key sk-1", latency_s=0.5, cost_usd=0.1, attempts=2)
    [experiment] = gather(outcomes(failed, row("a", "y")))
    trial = experiment.trials[0].trial("e", 3, lambda text: text.replace("sk-1", "***"))
    assert "key ***" == trial.outcomes[0].result.explanation
    assert trial == read_trial(write_trial(trial), experiment="e", criteria=("x", "y"))


def test_blocks_hold_every_input_once() -> None:
    """Where each input is judged, a trial's block is its place among its input's own."""
    trials = tuple(told("a", "a", "b", "a"))
    experiment = Experiment(name="e", criteria=("answers",), inputs=("a", "b"), trials=trials)
    assert [0, 2, 1, 4] == list(experiment.indexes(each_input=True))
    assert [0, 1, 2, 3] == list(experiment.indexes(each_input=False))


def test_pooling_makes_criteria_inputs_and_selecting_leaves_them_out() -> None:
    """A suite of tests that ran once each is one criterion of many inputs."""
    some = outcomes(row("-", "x"), row("-", "y", False))
    assert (("passes",), 2) == (some.pool().criteria, len(some.pool().inputs))
    assert ("y",) == some.only("y").criteria
    with pytest.raises(InvalidArgument, match="be one of x, y"):
        some.only("z")


def test_outcomes_hold_at_least_one_row() -> None:
    """There is nothing to say of none."""
    with pytest.raises(InvalidArgument, match="at least one outcome"):
        outcomes()


def test_a_failure_has_a_reason_and_a_pass_has_none() -> None:
    """Whatever was given."""
    assert FailReason.CONDITION == row("a", passed=False).reason
    assert row("a", reason=FailReason.NO_VALUE).reason is None


def test_half_a_surrogate_pair_does_not_reach_a_file() -> None:
    """JSON can write it, UTF-8 cannot."""
    assert b"\\ud800" == input_id_of("\ud800").encode("utf-8")
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    assert input_id_of(deep).startswith("#")


# --- Order ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("trials", [1, 5, 6, 7, 8, 200, 5000])
def test_standing_together_is_told_from_chance(trials: int) -> None:
    """Of two inputs of n trials each, 2 of the C(2n, n) arrangements keep them together."""
    share = Fraction(2, math.comb(2 * trials, trials))
    assert (share < Fraction(1, 1000)) is is_sorted_by_input(told(*"a" * trials, *"b" * trials))


def test_a_sorted_file_is_recognised_and_a_mixed_one_is_not() -> None:
    """Twenty trials of each of three inputs, one input after the other, and in turn."""
    assert is_sorted_by_input(told(*"a" * 20, *"b" * 20, *"c" * 20))
    assert not is_sorted_by_input(told(*"abc" * 20))
    assert not is_sorted_by_input(told(*"abcdefghij"))
    assert not is_sorted_by_input(told(*"a" * 50))


def test_an_unknown_order_is_a_random_one_that_the_seed_repeats() -> None:
    """No trial is lost, and the file's own order does not matter to chance."""
    experiment = Experiment(
        name="e", criteria=("answers",), inputs=("a",), trials=tuple(told(*map(str, range(50))))
    )
    one, same = (in_order(experiment, Order.UNKNOWN, 1) for _ in range(2))
    assert one == same != in_order(experiment, Order.UNKNOWN, 2)
    assert experiment == in_order(experiment, Order.FILE, 1)
    assert sorted(trial.input_id for trial in one.trials) == sorted(map(str, range(50)))


def test_trials_are_sorted_by_time_where_all_have_one() -> None:
    """One without is an error that names it."""
    rows = [row("a", order=3.0), row("b", order=1.0), row("c", order=2.0)]
    [experiment] = gather(outcomes(*rows))
    found = in_order(experiment, Order.TIME, 0).trials
    assert ["b", "c", "a"] == [trial.input_id for trial in found]
    [unknown] = gather(outcomes(*rows, row("d", where="line 4")))
    with pytest.raises(InvalidArgument, match="line 4 of 'd'"):
        in_order(unknown, Order.TIME, 0)
