"""Finding the suite, as git finds its root."""

from __future__ import annotations

from pathlib import Path

import pytest

from trialwise.errors import TrialwiseError
from trialwise.suite import SuiteError, SuiteNotFound, find_suite


@pytest.mark.parametrize("name", ["trialwise.yaml", "trialwise.yml"])
def test_the_suite_of_the_folder_itself_is_found(tmp_path: Path, name: str) -> None:
    """Both ways to end a YAML file's name count."""
    (tmp_path / name).write_text("")

    assert (tmp_path / name).resolve() == find_suite(tmp_path)


def test_the_nearest_suite_above_wins(tmp_path: Path) -> None:
    """A suite in a folder between hides the one above it."""
    inner = tmp_path / "a" / "b"
    (inner / "c").mkdir(parents=True)
    (tmp_path / "trialwise.yaml").write_text("")
    (inner / "trialwise.yml").write_text("")

    assert (inner / "trialwise.yml").resolve() == find_suite(inner / "c")
    assert (tmp_path / "trialwise.yaml").resolve() == find_suite(tmp_path / "a")


def test_a_folder_of_that_name_is_no_suite(tmp_path: Path) -> None:
    """Only a file is a suite."""
    (tmp_path / "deep" / "trialwise.yaml").mkdir(parents=True)
    (tmp_path / "trialwise.yaml").write_text("")

    assert (tmp_path / "trialwise.yaml").resolve() == find_suite(tmp_path / "deep")


def test_two_in_one_folder_are_refused(tmp_path: Path) -> None:
    """Which of them counts is not guessed."""
    for name in ("trialwise.yaml", "trialwise.yml"):
        (tmp_path / name).write_text("")

    with pytest.raises(SuiteNotFound, match=r"both trialwise\.yaml and trialwise\.yml"):
        find_suite(tmp_path)


def test_without_one_the_error_says_where_and_what_to_do(tmp_path: Path) -> None:
    """The way out is named."""
    with pytest.raises(SuiteError, match="trialwise init") as caught:
        find_suite(tmp_path / "nowhere")

    assert str(tmp_path.resolve()) in str(caught.value)
    assert isinstance(caught.value, TrialwiseError)
    assert () == caught.value.problems


def test_a_name_that_no_folder_can_have_is_a_clear_error() -> None:
    """A NUL raises nothing of Python's own."""
    with pytest.raises(SuiteNotFound, match="no suite can be looked for"):
        find_suite(Path("a\0b"))
