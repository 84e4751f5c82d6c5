"""The tool that refreshes the documents changes outputs, and nothing else of a page."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools import documents
from tools.rerun_documents import main, merge_output, rewrite_outputs

PAGE = """# A page

```console
$ echo old \\
>   words
new words
$ printf 'one\\ntwo\\nthree\\nfour\\n'
one
...
FOUR

$ false
$ echo $?
0
```

The text after it.
"""


def replies_of(page: str, folder: Path) -> list[documents.Reply]:
    (session,) = documents.sessions(page)
    return documents.play(session, folder / "play", cache=folder / "cache")


def test_only_outputs_that_no_longer_match_are_rewritten(tmp_path: Path) -> None:
    """Commands, blank lines, text, and what `...` stands for stay as they are."""
    page = PAGE.replace("old \\\n>   words", "old \\\n   words")

    changed = rewrite_outputs(page, replies_of(page, tmp_path))

    wanted = page.replace("new words", "old words").replace("FOUR", "four")
    assert wanted.replace("echo $?\n0", "echo $?\n1") == changed


def test_a_page_that_shows_what_happens_stays_as_it_is(tmp_path: Path) -> None:
    """To the letter, also where a duration differs."""
    page = "```console\n$ echo took 5 ms\ntook 7.2 ms\n```\n"

    assert page == rewrite_outputs(page, replies_of(page, tmp_path))


def test_an_omission_does_not_swallow_lines_that_changed() -> None:
    """A shown line beside `...` is shown again with its new numbers."""
    shown = "agent: at most 156 trials\n...\nPASS  14 trials\n"
    output = "agent: at most 200 trials\nplan\nprogress\nPASS  84 trials\n"

    assert ["agent: at most 200 trials", "...", "PASS  84 trials"] == merge_output(shown, output)


def test_lines_that_are_new_are_shown_and_lines_that_are_gone_are_not() -> None:
    """Where nothing was left out."""
    shown = "first line of all\nsecond line of all\nPASS\n"
    output = "first line of all\nPASS\nreport: results.xml\n"

    assert output.splitlines() == merge_output(shown, output)


def test_names_of_runs_stay_where_nothing_else_changed() -> None:
    """A refreshed page differs in what matters alone."""
    shown = "PASS  14 trials\nreport: 2026-11-15T07-59-15Z-agent-bc20\n"
    output = "PASS  84 trials\nreport: 2027-01-01T00-00-00Z-agent-ffff\n"

    assert ["PASS  84 trials", shown.splitlines()[1]] == merge_output(shown, output)


def test_an_unknown_page_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """By its name, before anything runs."""
    assert 2 == main(["docs/nowhere.md"])
    assert "docs/nowhere.md" in capsys.readouterr().out
