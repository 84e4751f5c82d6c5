"""`trialwise baseline`: what is in force, how old it is, and what is deleted only when asked."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click import MissingParameter
from click.testing import CliRunner, Result

from trialwise.cli import project_commands as baseline
from trialwise.errors import BaselineError
from trialwise.model.baseline import Baseline, CriterionBaseline
from trialwise.stores.baselines import BaselineStore

NOW = datetime.now(UTC)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def keep(folder: Path) -> Callable[..., Path]:
    """Puts a baseline of some age into the folder's store."""

    def kept(identifier: str, *, days: float = 1, contract: str = "agent", **more: Any) -> Path:
        one = CriterionBaseline(trials=1000, passed=953, structure="5f3a")
        usual: dict[str, Any] = {"criteria": {"grounded": one}, "run_id": "r-1"}
        made = Baseline(
            identifier=identifier,
            contract=contract,
            created_at=NOW - timedelta(days=days),
            **(usual | more),
        )
        return BaselineStore(folder / "baselines").save(made)

    return kept


def do(*arguments: str | Path) -> Result:
    return CliRunner().invoke(
        baseline.baseline_command, [*map(str, arguments)], standalone_mode=False
    )


def rows(text: str) -> dict[str, list[str]]:
    """The lines of a list by baseline."""
    states = ("in force", "superseded")
    lines = [line for line in text.splitlines() if line.strip().startswith(states)]
    split = [[part for part in line.split("  ") if part] for line in lines]
    return {parts[3].strip(): [part.strip() for part in parts] for parts in split}


# --- list -------------------------------------------------------------------------------------


def test_the_newest_of_each_set_of_conditions_is_in_force(keep: Callable[..., Path]) -> None:
    """A contract may have several at once: one a region."""
    keep("old-eu", days=9, covariates={"region": "EU"})
    keep("new-eu", days=2, covariates={"region": "EU"}, epoch=2)
    keep("us", days=5, covariates={"region": "US"})
    found = rows(do("list").stdout)

    assert "superseded" == found["old-eu (region=EU)"][0]
    assert ["in force", "2"] == found["new-eu (region=EU)"][:2]
    assert "in force" == found["us (region=US)"][0]


def test_every_criterion_shows_its_rate_and_counts(keep: Callable[..., Path]) -> None:
    """In columns."""
    criteria = {
        "grounded": CriterionBaseline(trials=1000, passed=953, structure="5f3a"),
        "polite": CriterionBaseline(trials=1000, passed=1000, structure="5f3b"),
    }
    keep("b", criteria=criteria)
    lines = [line.split() for line in do("list").stdout.splitlines()]

    assert ["grounded", "95.3", "%", "953", "of", "1,000"] in lines
    assert ["polite", "100.0", "%", "1,000", "of", "1,000"] in lines


@pytest.mark.parametrize(
    ("days", "validity", "words"),
    [
        (10, {}, "10 days, no expiry"),
        (10, {"valid_days": 100}, "10 days, expires in 90 days"),
        (80, {"valid_days": 100}, "80 days, expires soon, in 20 days"),
        (95, {"valid_days": 100}, "95 days, expiring imminently, in 5 days"),
        (103, {"valid_days": 100, "grace_days": 7}, "103 days, EXPIRED, grace ends in 4 days"),
        (103, {"valid_days": 100}, "103 days, EXPIRED 3 days ago"),
    ],
)
def test_age_and_validity_are_told_in_the_bands_of_the_companion(
    keep: Callable[..., Path], days: int, validity: dict[str, float], words: str
) -> None:
    """Soon in the last quarter, imminently in the last tenth (§8.4.2)."""
    keep("b", days=days, **validity)

    assert words == rows(do("list").stdout)["b"][4]


def test_contracts_stand_apart_and_can_be_chosen(keep: Callable[..., Path]) -> None:
    """By name."""
    keep("a", contract="first")
    keep("b", contract="second")
    whole = do("list").stdout.splitlines()

    assert ["first", "second"] == [line for line in whole if line and not line.startswith(" ")]
    assert ["b"] == [*rows(do("list", "--contract", "second").stdout)]


def test_a_list_is_data_too(keep: Callable[..., Path]) -> None:
    """With numbers instead of words."""
    keep("b", valid_days=30, days=1)
    (one,) = json.loads(do("list", "--json").stdout)["baselines"]

    assert ("agent", "b", "baselines/agent/b.json", True) == (
        one["contract"],
        one["identifier"],
        one["file"],
        one["in_force"],
    )
    assert {"trials": 1000, "passed": 953, "rate": 0.953} == one["criteria"]["grounded"]
    assert NOW + timedelta(days=29) == datetime.fromisoformat(one["expires_at"])


def test_an_empty_folder_says_how_to_measure(folder: Path) -> None:
    """Nothing on standard output, and nothing made."""
    done = do("list")

    assert (0, "") == (done.return_value, done.stdout)
    assert "trialwise measure" in done.stderr
    assert {"schema": "trialwise.baselines/1", "baselines": []} == json.loads(
        do("list", "--json").stdout
    )
    assert [] == [*folder.iterdir()]


def test_the_folder_is_the_suites_or_one_that_is_named(
    folder: Path, keep: Callable[..., Path]
) -> None:
    """As `run` finds it."""
    keep("b")
    shutil.move(folder / "baselines", folder / "kept")

    assert {} == rows(do("list").stdout)
    assert ["b"] == [*rows(do("list", "--folder", folder / "kept").stdout)]
    (folder / "trialwise.yaml").write_text("store: {baselines: kept}\n", encoding="utf-8")
    assert ["b"] == [*rows(do("list").stdout)]


def test_a_damaged_file_is_an_error_that_names_it(keep: Callable[..., Path]) -> None:
    """A list without it would be a quiet lie."""
    path = keep("b")
    path.write_text(path.read_text(encoding="utf-8").replace("953", "999"), encoding="utf-8")
    error = do("list").exception

    assert isinstance(error, BaselineError)
    assert "baselines/agent/b.json" in str(error)


# --- show -------------------------------------------------------------------------------------


def test_one_is_shown_by_identifier_contract_and_file(keep: Callable[..., Path]) -> None:
    """The newest of a contract is meant."""
    keep("old", days=9)
    path = keep(
        "new",
        factors={"model": "small-1"},
        latencies_s={"inputs": (0.1, 0.2, 0.4)},
        run_trials={"inputs": 3},
    )
    text = do("show", "new").stdout

    assert [text] * 2 == [do("show", name).stdout for name in ("agent", path)]
    for words in ("small-1", "953 of 1,000", "p50 200 ms, p95 400 ms", "baselines/agent/new.json"):
        assert words in text
    assert "old" not in text


def test_json_is_the_file(keep: Callable[..., Path]) -> None:
    """As it is kept in git."""
    path = keep("b")

    assert json.loads(path.read_text(encoding="utf-8")) == json.loads(
        do("show", "b", "--json").stdout
    )


def test_failures_stand_by_reason(keep: Callable[..., Path]) -> None:
    """Where they were counted."""
    one = CriterionBaseline(trials=10, passed=6, condition=3, no_value=1, structure="s")
    keep("b", criteria={"grounded": one})

    assert "condition 3, no value 1" in do("show", "b").stdout


def test_an_identifier_of_two_contracts_asks_which(keep: Callable[..., Path]) -> None:
    """And takes the answer."""
    keep("nightly", contract="first")
    keep("nightly", contract="second")

    assert "--contract" in str(do("show", "nightly").exception)
    assert "second" in do("show", "nightly", "--contract", "second").stdout


def test_an_unknown_one_is_told_what_there_is(keep: Callable[..., Path]) -> None:
    """By identifier."""
    keep("nightly")
    error = do("show", "hourly").exception

    assert isinstance(error, BaselineError)
    assert "nightly" in str(error)


# --- promote and prune ------------------------------------------------------------------------


def test_a_promoted_file_becomes_the_one_in_force(folder: Path, keep: Callable[..., Path]) -> None:
    """With the next epoch; a second time changes nothing."""
    artefact = folder / "artefact.json"
    shutil.move(keep("fresh", days=1), artefact)
    keep("stale", days=50)
    first, second = do("promote", artefact), do("promote", artefact)

    assert "agent: fresh (epoch 2) is in force" in first.stdout
    assert first.stdout == second.stdout
    assert ["in force", "2"] == rows(do("list").stdout)["fresh"][:2]


def test_promoting_an_older_one_puts_it_in_force(folder: Path, keep: Callable[..., Path]) -> None:
    """Whoever promotes a baseline means it to be the reference, whenever it was measured."""
    artefact = folder / "artefact.json"
    shutil.move(keep("stale", days=50), artefact)
    keep("fresh", days=1)
    done = do("promote", artefact, "--json")

    assert json.loads(done.stdout)["in_force"] is True


def test_what_is_no_baseline_is_not_promoted(folder: Path) -> None:
    """Absent, or something else."""
    (folder / "other.json").write_text("{}", encoding="utf-8")

    for name in ("absent.json", "other.json"):
        assert isinstance(do("promote", folder / name).exception, BaselineError)
    assert not (folder / "baselines").exists()


def test_pruning_deletes_only_when_asked(keep: Callable[..., Path]) -> None:
    """What it lists is what it deletes."""
    paths = [keep(f"b{days}", days=days) for days in (9, 5, 2)]
    listed = do("prune", "--keep", "1")

    assert all(path.exists() for path in paths)
    assert "nothing was deleted" in listed.stderr
    done = do("prune", "--keep", "1", "--yes")
    assert listed.stdout.replace("would delete", "deleted") == done.stdout
    assert [False, False, True] == [path.exists() for path in paths]
    assert "nothing to delete" in do("prune", "--keep", "1").stderr


def test_pruning_keeps_some_of_each_set_of_conditions(keep: Callable[..., Path]) -> None:
    """And of each contract."""
    keep("eu", covariates={"region": "EU"})
    keep("us", covariates={"region": "US"})
    keep("other", contract="other")
    keep("old", days=8, contract="other")
    found = json.loads(do("prune", "--keep", "1", "--json").stdout)

    assert found["deleted"] is False
    assert ["old.json"] == [Path(path).name for path in found["files"]]


def test_how_many_to_keep_has_to_be_said() -> None:
    """Nobody deletes by default."""
    assert isinstance(do("prune", "--yes").exception, MissingParameter)
