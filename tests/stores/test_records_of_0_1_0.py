"""What 0.1.0 stored is read, decided again and resumed by this version."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from trialwise.errors import RunNotFound
from trialwise.model import trial_table
from trialwise.runtime.verifying import verify
from trialwise.stores.runs import RunStore

FOLDER = Path(__file__).parents[1] / "data" / "records-0.1.0"
STORE = RunStore(FOLDER)
RUNS = sorted(path.name for path in (FOLDER / "runs").iterdir())
UNDECIDED = tuple(name for name in RUNS if not (FOLDER / "runs" / name / "record.json").exists())
DECIDED = tuple(name for name in RUNS if name not in UNDECIDED)


def test_there_is_a_run_of_every_kind() -> None:
    """A killed run and a measured baseline have no verdict; all others have one."""
    assert len(DECIDED) == 29
    assert [name.rsplit("Z-", 1)[1].rsplit("-", 1)[0] for name in UNDECIDED] == [
        "regression",
        "killed",
    ]


@pytest.mark.parametrize("whole_bytes", [0, 1 << 21])
@pytest.mark.parametrize("run", DECIDED)
def test_a_stored_run_is_decided_again_alike(
    run: str, whole_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every number and decision follows from the stored plan and trials, wherever they are held."""
    monkeypatch.setattr(trial_table, "WHOLE_BYTES", whole_bytes)
    stored = STORE.open(run)

    found = verify(stored.record(), known_hash=stored.plan_hash)

    assert found.tool_version == "0.1.0"
    assert found.differences == ()


@pytest.mark.parametrize("run", UNDECIDED)
def test_a_run_without_a_verdict_keeps_its_plan_and_trials(run: str) -> None:
    """They can be read although nothing was decided."""
    stored = STORE.open(run)

    assert stored.trials()
    assert stored.plan.criteria
    with pytest.raises(RunNotFound, match="the run has no verdict"):
        stored.record()


def test_stored_runs_are_listed_without_damage() -> None:
    """The list shows the contract and the decision of each."""
    summaries = STORE.list()

    assert [one.damage for one in summaries] == [""] * len(RUNS)
    assert all(one.contract for one in summaries)
    assert sum(one.is_decided for one in summaries) == len(DECIDED)


def test_a_plan_keeps_its_hash_unless_its_rule_got_another_name() -> None:
    """Claims and judges have rules of their own now, and the rule `exact` of 0.1.0 is `fisher`.

    Every other plan is known by what it was.
    """
    claims = ("finite-corpus", "no-generalisation", "estimator", "judged-sequential")
    # The contract of the latency limit was decided by `exact` as well.
    renamed = (*claims, "compliance-exact", "regression-exact", "latency-limit")
    for run in RUNS:
        kept = json.loads((FOLDER / "runs" / run / "plan.json").read_text("utf-8"))
        same = STORE.open(run).plan_hash == kept["plan_hash"]

        assert same != any(name in run for name in renamed), run


def test_a_plan_that_was_changed_by_hand_is_given_away_by_its_hash(tmp_path: Path) -> None:
    """The upgrade gives a new hash only to a plan that has its old one."""
    run = next(name for name in DECIDED if "compliance-exact" in name)
    shutil.copytree(FOLDER / "runs" / run, tmp_path / "runs" / run)
    for name in ("plan.json", "record.json"):
        path = tmp_path / "runs" / run / name
        path.write_text(path.read_text("utf-8").replace('"alpha": 0.05', '"alpha": 0.06'), "utf-8")
    stored = RunStore(tmp_path).open(run)

    found = verify(stored.record(), known_hash=stored.plan_hash)

    assert "plan_hash" in {one.path for one in found.differences}
