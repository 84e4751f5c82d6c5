"""Inputs that would take minutes or the whole disk to read are refused within seconds."""

from __future__ import annotations

import os
import tempfile
import time
from glob import glob
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import trialwise as tw
from trialwise.outcomes.outcome_rows import OutcomesUnreadable
from trialwise.suite import SuiteError, input_files, load_suite
from trialwise.suite.input_files import find_files

SUITE = """\
service: {command: [echo, "{input}"]}
criteria: [{name: a, contains: x, at_least: 50%}]
"""


def load(folder: Path, inputs: str) -> tw.Sampling:
    path = folder / "trialwise.yaml"
    path.write_text(f"{SUITE}inputs: {inputs}\n", encoding="utf-8")
    (contract,) = load_suite(path, environment={}).contracts
    (sampling,) = contract.contract.samplings.values()
    return sampling


@pytest.fixture
def wide(tmp_path: Path) -> Path:
    """A table of 200,000 columns."""
    names = ",".join(f"c{n}" for n in range(200_000))
    (tmp_path / "wide.csv").write_text(f"{names}\n{names}\n", encoding="utf-8")
    return tmp_path


def test_a_table_of_200_000_columns_is_refused_as_inputs(wide: Path) -> None:
    """It took more than a minute."""
    began = time.process_time()
    with pytest.raises(SuiteError, match="200,000 columns, at most 10,000 are read"):
        load(wide, "{csv: wide.csv, value: c0}")
    assert time.process_time() - began < 5


def test_a_table_of_200_000_columns_is_refused_as_outcomes(wide: Path) -> None:
    """It took more than a minute."""
    began = time.process_time()
    with pytest.raises(OutcomesUnreadable, match="200,000 columns, at most 10,000 are read"):
        tw.outcomes.read_outcomes(wide / "wide.csv")
    assert time.process_time() - began < 5


def test_a_table_of_10_000_columns_is_read(tmp_path: Path) -> None:
    """Each is a field of the input's text."""
    names = ",".join(f"c{n}" for n in range(10_000))
    (tmp_path / "wide.csv").write_text(f"{names}\n{names}\n", encoding="utf-8")
    assert [one.value for one in load(tmp_path, "{csv: wide.csv, value: c7}").inputs] == ["c7"]


@pytest.mark.parametrize("pattern", ["/**/*", "/**/no-such-file", "**/*"])
def test_a_pattern_that_finds_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    """It would look through the whole disk."""
    monkeypatch.setattr(input_files, "MOST_ENTRIES", 1000)
    for n in range(1100):
        (tmp_path / f"{n}.txt").touch()
    began = time.process_time()
    with pytest.raises(SuiteError, match="looks through more than 1,000 files and folders"):
        load(tmp_path, f'{{files: "{pattern}"}}')
    assert time.process_time() - began < 5


NAMES = st.sampled_from(["a", "b.txt", ".c", "ab", "[x]"])
PARTS = st.sampled_from(["a", "*", "**", "*.txt", "?", ".*", "[ab]*", "..", ".", "b.txt"])


@given(
    files=st.lists(st.lists(NAMES, min_size=1, max_size=4), max_size=12),
    parts=st.lists(PARTS, min_size=1, max_size=4),
)
def test_a_pattern_finds_what_glob_finds(files: list[list[str]], parts: list[str]) -> None:
    """Folders, hidden files and brackets in names included."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "suite"
        folder.mkdir()
        for one in files:
            path = folder.joinpath(*one)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
            except OSError:
                continue  # a file stands where a folder is needed
        pattern = "/".join(parts)
        found = glob(pattern, root_dir=folder, recursive=True)
        expected = {os.path.normpath(one) for one in found if (folder / one).is_file()}

        assert {os.path.normpath(one) for one in find_files(pattern, folder)} == expected


def test_files_are_named_as_they_were(tmp_path: Path) -> None:
    """Relative to the suite, in the order of names; an absolute pattern gives absolute names."""
    (tmp_path / "data" / "more").mkdir(parents=True)
    for name in ("b.txt", "a.txt", "more/c.txt"):
        (tmp_path / "data" / name).touch()

    assert find_files("data/**/*.txt", tmp_path) == ["data/a.txt", "data/b.txt", "data/more/c.txt"]
    assert find_files(f"{tmp_path}/data/*.txt", tmp_path) == [
        f"{tmp_path}/data/a.txt",
        f"{tmp_path}/data/b.txt",
    ]
