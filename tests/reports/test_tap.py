"""TAP: every line a point, never skipped, its numbers readable by any YAML parser."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML
from tap.parser import Parser  # type: ignore[import-untyped]
from tests.reports.short_reports import render_tap
from tests.revising import replace

from trialwise.errors import InvalidArgument
from trialwise.model.run import RunRecord

Made = Callable[[str], list[RunRecord]]
Runs = dict[str, RunRecord]

HOSTILE = ["# SKIP", " # todo later", "\nok 1 - x", "\\# SKIP", "\x1b[2J", "\ud800", "...", "---"]
TEXTS = st.text(st.characters(), max_size=40) | st.lists(st.sampled_from(HOSTILE)).map("".join)


def points(text: str) -> list[Any]:
    """The test points that tap.py finds."""
    return [line for line in Parser().parse_text(text) if line.category == "test"]


def blocks(text: str) -> list[Any]:
    """The YAML blocks, read by a parser of YAML 1.2."""
    found: list[list[str]] = []
    inside = False
    for line in text.splitlines():
        if line == "  ---":
            found.append([])
            inside = True
        elif line == "  ...":
            inside = False
        elif inside:
            found[-1].append(line)
    return [YAML(typ="safe", pure=True).load("\n".join(block)) for block in found]


def test_the_golden_stream(suite: list[RunRecord], golden: Callable[[str, str], None]) -> None:
    """Nine points: four of one contract, four of another, a refusal."""
    golden("report.tap", render_tap(suite))


def test_tap_py_reads_it(suite: list[RunRecord]) -> None:
    """The plan holds, and what is no PASS is not ok, without a directive that excuses it."""
    text = render_tap(suite)
    found = points(text)

    assert ["TAP version 14", "1..9"] == text.splitlines()[:2]
    assert list(range(1, 10)) == [int(one.number) for one in found]
    assert [2, 5, 7, 8, 9] == [int(one.number) for one in found if not one.ok]
    assert not any(one.skip or one.todo for one in found)
    assert "booking-agent: books [cellar]" == found[7].description.removeprefix("- ")


@pytest.mark.skipif(shutil.which("prove") is None, reason="Perl's harness is not installed")
def test_prove_counts_as_we_do(suite: list[RunRecord], runs: Runs, tmp_path: Path) -> None:
    """Perl's own harness, told that it is the version 13 it knows: 5 of 9 failed, and none."""
    for name, records, expected in (("red", suite, "Failed 5/9"), ("green", [runs["pass"]], "ok")):
        file = tmp_path / f"{name}.tap"
        file.write_text(render_tap(records).replace("version 14", "version 13", 1), "utf-8")
        done = subprocess.run(
            ["prove", "--exec", "cat", str(file)],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

        assert expected in done.stdout
        assert "Parse errors" not in done.stdout
        assert (name == "green") is (done.returncode == 0)


def test_the_numbers_are_numbers_in_both_versions_of_yaml(runs: Runs) -> None:
    """A small p-value too, which YAML 1.1 takes for a text when it has no point."""
    record = runs["pass"]
    finding = record.verdict.findings[0]
    assert finding.p_value is not None
    tiny = replace(finding, p_value=replace(finding.p_value, value=1e-07))
    record = replace(record, verdict=replace(record.verdict, findings=(tiny,)))
    text = render_tap([record])
    (point,) = points(text)
    (block,) = blocks(text)

    assert 1e-07 == block["p_value"] == point.yaml_block["p_value"]
    assert 60 == block["trials"] == point.yaml_block["trials"]
    assert 1.0 == block["rate"]


def test_a_block_tells_why(runs: Runs) -> None:
    """The statement, the advice, the notes and the failures by reason."""
    block = blocks(render_tap([runs["fail"]]))[1]

    assert "A rate above 0.9 was not shown (88 of 100, 95 needed)." == block["message"]
    assert "Look at the amounts." == block["advice"]
    assert ["neighbours are alike (p = 0.004)"] == block["notes"]
    assert [10, 2] == [one["count"] for one in block["failures"]]
    assert '"amount": 249' == block["failures"][0]["evidence"]


def test_an_empty_suite_is_refused() -> None:
    """`1..0` means skipped."""
    with pytest.raises(InvalidArgument, match="never PASS"):
        render_tap([])


@pytest.mark.slow
@given(TEXTS)
def test_no_text_excuses_or_adds_a_point(marked: Made, text: str) -> None:
    """As many points, the same ones red, none skipped, and every block can be read."""
    plain, rendered = points(render_tap(marked(""))), render_tap(marked(text))
    found = points(rendered.encode("utf-8").decode("utf-8"))

    assert [one.ok for one in plain] == [one.ok for one in found]
    assert not any(one.skip or one.todo for one in found)
    assert all(line[:1] in ("T", "1", "o", "n", "#", " ") for line in rendered.split("\n") if line)
    assert not any(line.lstrip().startswith("::") for line in rendered.split("\n"))
    assert len(plain) == len(blocks(rendered))
    if text.isprintable():
        assert text in blocks(rendered)[1]["message"]


def test_the_same_records_give_the_same_text(marked: Made) -> None:
    """Nothing but the records goes into it."""
    assert render_tap(marked("x")) == render_tap(marked("x"))
