"""`trialwise compare` of files with results and of ordinary stored runs: what is paired."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from math import comb
from pathlib import Path
from typing import Any

import pytest
from tests.cli.suite_folders import Done, enter_folder
from tests.cli.suite_folders import type_command as do

from trialwise.errors import InvalidArgument

SERVICE = """
def old(question, index):
    return "no" if index % 4 == 0 else "yes"

def new(question, index):
    return "no" if index % 3 == 0 else "yes"
"""
SUITE = """
contracts:
  - {name: old, service: {python: "svc:old"}, inputs: [one, two, three], criteria: CRITERIA}
  - {name: new, service: {python: "svc:new"}, inputs: [one, two, three], criteria: CRITERIA}
""".replace("CRITERIA", "[{name: right, equals: 'yes', at_least: 60%}]")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return enter_folder(tmp_path, monkeypatch, SERVICE)


def write_rows(name: str, rows: Iterable[Sequence[Any]], *columns: str) -> str:
    lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
    Path(name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return name


def compare(*arguments: str, suite: str = "") -> Done:
    return do(suite, "compare", *arguments)


def find(*arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(compare(*arguments, "--json").output)
    return found


def list_named(worse: int) -> list[tuple[str, int, str]]:
    """Twelve inputs, three trials of each; some fail in their second trial."""
    return [
        (f"q{k}", trial, "false" if trial == 1 and k < worse else "true")
        for k in range(12)
        for trial in range(3)
    ]


def test_trials_of_files_are_paired_by_input_and_trial_whatever_their_order() -> None:
    """By their places the second trials of some inputs met other trials of the same input."""
    columns = "input", "trial", "passed"
    write_rows("a.csv", list_named(worse=8), *columns)
    # The third trial of each input comes first here.
    write_rows("b.csv", sorted(list_named(worse=3), key=lambda row: row[1] < 2), *columns)
    found = find("a.csv", "b.csv")
    (finding,) = found["findings"]
    pairs = finding["pairs"]

    assert (28, 0, 5, 3) == (pairs["both"], pairs["only_a"], pairs["only_b"], pairs["neither"])
    assert finding["p_value"] == pytest.approx(2 / 2**5)
    (pairing,) = found["pairings"]
    assert (False, False) == (pairing["same_order"], pairing["same_seeds"])
    text = " ".join(compare("a.csv", "b.csv").output.split())
    assert "36 pairs of the same inputs" in text
    assert "seeds" not in text


def test_inputs_that_were_tried_once_are_paired_without_names_of_trials() -> None:
    rows = [(f"q{k}", "true" if k < 15 else "false") for k in range(20)]
    write_rows("a.csv", rows, "input", "passed")
    write_rows("b.csv", reversed(rows), "input", "passed")
    (finding,) = find("a.csv", "b.csv")["findings"]

    assert (20, 0) == (sum(finding["pairs"].values()), finding["pairs"]["only_a"])


@pytest.mark.parametrize("named", [False, True])
def test_repeats_that_no_name_matches_are_compared_unpaired_and_it_is_said(named: bool) -> None:
    """The exact unconditional test of 9 against 29 of 30; Fisher's is never smaller."""

    def list_rows(passed: int, start: int) -> list[tuple[Any, ...]]:
        return [
            (f"q{k % 10}", *([start + k] if named else []), "true" if k < passed else "false")
            for k in range(30)
        ]

    columns = ("input", *(["trial"] if named else []), "passed")
    write_rows("a.csv", list_rows(9, 0), *columns)
    write_rows("b.csv", list_rows(29, 1000), *columns)
    found = find("a.csv", "b.csv")
    (finding,) = found["findings"]
    fisher = sum(comb(30, k) * comb(30, 38 - k) for k in range(29, 31)) / comb(60, 38)

    assert finding["pairs"] is None
    assert finding["decision_rule"] == "unpaired/boschloo"
    assert finding["p_value"] <= 2 * fisher
    assert any("not paired" in one and "`trial`" in one for one in finding["caveats"])


def test_unpaired_trials_of_another_mix_of_inputs_cannot_be_compared() -> None:
    write_rows("a.csv", [("q1", "true")] * 9 + [("q2", "true")] * 3, "input", "passed")
    write_rows("b.csv", [("q1", "true")] * 3 + [("q2", "false")] * 9, "input", "passed")
    done = compare("a.csv", "b.csv")

    assert done.exit_code == 3
    text = " ".join(done.output.split())
    assert "b.csv cannot be compared with a.csv: the trials cannot be paired" in text
    assert "`trial`" in text
    assert "not shown to differ" not in text


def test_two_ordinary_stored_runs_that_nothing_can_be_tested_on_cannot_be_compared() -> None:
    """They stopped because of what they saw, in different orders: the way out is named."""
    for name, seed in (("old", "1"), ("new", "2")):
        do(SUITE, "run", name, "--seed", seed, "--quiet")
    done = compare("old", "new", "--stored", suite=SUITE)
    text = " ".join(done.output.split())

    assert done.exit_code == 3
    assert "new cannot be compared with old: a run ended because of what it saw" in text
    assert "Run both with `compare`" in text
    assert "not shown to differ" not in text


def test_so_few_pairs_that_equivalence_cannot_be_shown_are_refused_or_said() -> None:
    """Before the first trial where the arms run, and as the answer where they ran before."""
    asked = "--question", "equivalent", "--margin", "1%"
    with pytest.raises(InvalidArgument, match="even if the two arms never differ"):
        compare("old", "new", "--trials", "40", *asked, suite=SUITE)
    assert not Path(".trialwise/runs").exists()

    rows = [(f"q{k}", "true") for k in range(40)]
    for name in ("a.csv", "b.csv"):
        write_rows(name, rows, "input", "passed")
    kept = compare("a.csv", "b.csv", *asked)
    assert kept.exit_code == 3
    assert "cannot be compared with a.csv: 40 pairs are too few" in " ".join(kept.output.split())
