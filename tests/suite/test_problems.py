"""How a problem looks: file, line, column, the line itself and a caret below it."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from trialwise.declarations.written import find_nearest as nearest
from trialwise.suite import Problem, SuiteError
from trialwise.suite.suite_problems import Problems, Source

Refused = Callable[..., SuiteError]

BASE = 'service: {command: [echo, "{input}"]}\ninputs: [one]\n'


def excerpt(line: str, column: int, length: int = 1) -> list[str]:
    """The two lines that show a place."""
    problems = Problems()
    problems.add_at(Source(Path("x"), line), 0, column, "wrong", length=length)
    with pytest.raises(SuiteError) as caught:
        problems.check()
    return caught.value.problems[0].excerpt.split("\n")


def test_a_whole_message(refused: Refused, tmp_path: Path) -> None:
    """Every problem at once, each as a compiler would show it."""
    error = refused(BASE + 'criteria:\n  - {name: a, contains: "555", at_lest: 90%}\ntimeout: 30\n')

    file = tmp_path / "trialwise.yaml"
    assert (
        f"{file}: 2 problems; nothing was run\n\n"
        f"{file}:4:32: unknown key `at_lest`; did you mean `at_least`?\n"
        '    4 |   - {name: a, contains: "555", at_lest: 90%}\n'
        "      |                                ^^^^^^^\n\n"
        f"{file}:5:10: `timeout` must be a time with its unit, such as 30s, 500ms, 2m or 1h, "
        "got `30`; did you mean 30s?\n"
        "    5 | timeout: 30\n"
        "      |          ^^"
    ) == str(error)


def test_a_file_is_named_as_somebody_here_would_write_it(
    refused: Refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the folder at hand, so that a terminal can open it."""
    monkeypatch.chdir(tmp_path)

    assert str(refused("[]")).startswith("trialwise.yaml: one problem")
    monkeypatch.chdir(tmp_path.parent)
    assert f"{tmp_path.name}/trialwise.yaml" == refused("[]").problems[0].file


def test_a_long_line_is_shown_around_the_caret() -> None:
    """A report is read in a terminal."""
    shown, caret = excerpt("x" * 500 + "HERE" + "y" * 500, 500, 4)

    assert len(shown) < 120
    start = caret.index("^")
    assert "HERE" == shown[start : start + 4]
    assert "^^^^" == caret.strip("| ")


def test_what_a_terminal_would_obey_is_shown_as_a_dot() -> None:
    """Neither an escape sequence nor a change of direction reaches it."""
    shown, caret = excerpt("a\x1b[31m\u202eb\tc: d", 9)

    assert shown.endswith("| a·[31m·b c: d")
    assert shown.index("c") == caret.index("^")


def test_wide_characters_keep_the_caret_in_place() -> None:
    """An ideograph takes two columns of a terminal."""
    _, caret = excerpt("日本: x", 4)

    assert len("    1 | 日本: ") + 2 == caret.index("^")


def test_a_caret_never_runs_past_the_line() -> None:
    """A value of many lines is marked in its first."""
    shown, caret = excerpt("ab: |", 4, 96)

    assert len(caret) == len(shown)


def test_many_problems_are_counted_and_the_first_shown(refused: Refused) -> None:
    """Nobody reads the thirtieth; programs have them all."""
    unknown = "".join(f"zz{k:02}: 1\n" for k in range(30))
    error = refused(BASE + unknown)

    assert "… and 11 more" in str(error)
    assert 31 == len(error.problems)
    assert sorted(one.line for one in error.problems) == [one.line for one in error.problems]


def test_an_error_survives_being_sent_elsewhere() -> None:
    """With its problems."""
    error = SuiteError([Problem(file="f", line=1, column=2, message="m")])
    again = pickle.loads(pickle.dumps(error))

    assert (str(error), error.problems) == (str(again), again.problems)


@pytest.mark.parametrize(
    ("word", "meant"),
    [("at_lest", "at_least"), ("at-least", "at_least"), ("AtLeast", "at_least"), ("zzz", None)],
)
def test_the_nearest_word_is_offered(word: str, meant: str | None) -> None:
    """Case and dashes are no difference."""
    assert meant == nearest(word, ["at_least", "trials", "margin"])
