"""Resuming: one policy, which the command line, Python and pytest share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import trialwise as tw
from trialwise.errors import RunNotFound
from trialwise.model.options import RunOptions
from trialwise.runtime.preparing import prepare_run, prepare_runs
from trialwise.runtime.running import run_prepared
from trialwise.runtime.workspace import Workspace
from trialwise.stores.run_files import PlanChanged
from trialwise.stores.runs import RunStore


def contract(name: str = "c", calls: list[str] | None = None) -> tw.Contract:
    def answer(question: str) -> str:
        if calls is not None:
            calls.append(question)
        return "yes"

    criterion = tw.Criterion("says-yes", tw.contains("yes"), at_least=0.5)
    return tw.Contract(name, answer, [criterion], sampling=["a", "b"])


def run(store: Path, promised: tw.Contract | None = None, **given: Any) -> tw.Result:
    usual: dict[str, Any] = {"trials": 20, "curtail": False, "store": store, "progress": False}
    return tw.run(promised or contract(), **{**usual, **given})


def stop_early(store: Path, promised: tw.Contract | None = None, **given: Any) -> str:
    """A run that its budget ended; its name."""
    found = run(store, promised, budget=tw.Budget(trials=5), **given)
    assert found.path is not None
    return found.path.name


def space(store: Path, resume: bool | str = True) -> Workspace:
    return Workspace(store=store, baselines=store / "baselines", resume=resume)


OPTIONS = RunOptions(trials=20, curtail=False)


def test_the_newest_unfinished_run_is_resumed(tmp_path: Path) -> None:
    """With its seed and its trials; only what is missing is run."""
    stop_early(tmp_path)
    newest = stop_early(tmp_path)
    calls: list[str] = []

    whole = run(tmp_path, contract(calls=calls), resume=True)

    assert (newest, 20, 15) == (whole.record.run_id, len(whole.record.trials), len(calls))


def test_a_named_run_is_resumed_before_a_newer_one(tmp_path: Path) -> None:
    """A name says which one is meant."""
    named = stop_early(tmp_path)
    stop_early(tmp_path)

    assert named == run(tmp_path, resume=named).record.run_id


def test_a_changed_plan_is_refused_with_what_differs(tmp_path: Path) -> None:
    """Its trials answer another question; nothing is run."""
    stop_early(tmp_path)
    calls: list[str] = []

    with pytest.raises(PlanChanged, match=r"What differs: .*trials: 20 there, 30 here") as caught:
        run(tmp_path, contract(calls=calls), trials=30, resume=True)

    assert "trials: 20 there, 30 here" in caught.value.changed
    assert [] == calls
    assert 1 == len(RunStore(tmp_path).list())


def test_a_finished_run_with_the_same_plan_is_kept(tmp_path: Path) -> None:
    """Beside another contract that was cut short, as in an interrupted suite."""
    finished = run(tmp_path, contract("done")).record
    stop_early(tmp_path, contract("cut"))
    calls: list[str] = []
    several = [(contract("done", calls), OPTIONS), (contract("cut"), OPTIONS)]

    done, cut = prepare_runs(several, space(tmp_path))

    assert done.stored is None
    assert finished == run_prepared(done, space(tmp_path)).record
    assert [] == calls
    assert 20 == len(run_prepared(cut, space(tmp_path)).record.trials)


def test_a_finished_run_with_another_plan_is_not_kept(tmp_path: Path) -> None:
    """Its verdict is about another question, and would stand in for this one."""
    run(tmp_path, contract("done"))
    stop_early(tmp_path, contract("cut"))
    larger = RunOptions(trials=40, curtail=False)

    with pytest.raises(PlanChanged, match="trials: 20 there, 40 here"):
        prepare_runs([(contract("done"), larger), (contract("cut"), OPTIONS)], space(tmp_path))


def test_a_contract_that_was_never_run_starts_beside_one_that_is_resumed(tmp_path: Path) -> None:
    """A suite that was interrupted early has contracts without any run."""
    stop_early(tmp_path, contract("cut"))

    cut, new = prepare_runs(
        [(contract("cut"), OPTIONS), (contract("new"), OPTIONS)], space(tmp_path)
    )

    assert cut.stored is not None
    assert (None, None) == (new.stored, new.finished)


@pytest.mark.parametrize("earlier", ["nothing", "a finished run", "a run of another contract"])
def test_there_must_be_something_to_resume(tmp_path: Path, earlier: str) -> None:
    """A resume that would start from nothing, or do nothing, is a mistake."""
    if earlier == "a finished run":
        run(tmp_path)
    elif earlier == "a run of another contract":
        stop_early(tmp_path, contract("other"))

    with pytest.raises(RunNotFound, match="no run of 'c' is unfinished: there is nothing"):
        prepare_run(contract(), OPTIONS, space(tmp_path))


def test_a_measurement_and_a_test_do_not_resume_each_other(tmp_path: Path) -> None:
    """They count the same trials for different purposes."""
    stop_early(tmp_path)
    baselines = tmp_path / "baselines"

    with pytest.raises(RunNotFound, match="nothing to resume"):
        tw.measure(
            contract(), trials=20, store=tmp_path, baselines=baselines, resume=True, progress=False
        )
