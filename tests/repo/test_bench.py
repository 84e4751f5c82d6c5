"""The benchmarks run, and the published page shows only benchmarks that exist; no timing here."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from bench.comparisons import section

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "benchmarks.md"
#: The section whose numbers are computed and not timed.
PAIRS = "## Pairs that a comparison takes\n"
ROW = re.compile(r"^\| `(?P<name>[^`]+)` \|")


def bench(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "bench", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def names() -> list[str]:
    return bench("--list").splitlines()


def rows(page: str) -> list[str]:
    """The lines of the page's tables that hold numbers."""
    return [line for line in page.splitlines() if line.startswith("|") and re.search(r"\d", line)]


def test_names_are_unique(names: list[str]) -> None:
    """A name finds one benchmark: references and the page rely on it."""
    assert len(names) == len(set(names))


def test_every_published_number_names_a_benchmark(names: list[str]) -> None:
    """No line of the published tables is written by hand or outlives its benchmark."""
    timed, _, rest = PAGE.read_text(encoding="utf-8").partition(PAIRS)
    # What concurrency costs is simulated by a command of its own.
    timed_too = rest.partition("\n## ")[2].partition("\n## What concurrency costs")[0]
    published = rows(timed) + rows(timed_too)
    assert published
    for line in published:
        found = ROW.match(line)
        assert found is not None, line
        assert found["name"] in names


@pytest.mark.slow
def test_the_published_pairs_are_those_that_are_computed() -> None:
    """The whole section, number by number."""
    assert f"{section()}\n" in PAGE.read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_quick_run_measures_and_writes_the_page(names: list[str], tmp_path: Path) -> None:
    """Each benchmark runs, peers give the same numbers as ours, and each shown line is known."""
    target = tmp_path / "page.md"
    text = bench("--quick", "--markdown", str(target))
    page = target.read_text(encoding="utf-8")
    shown = [found["name"] for line in rows(page) if (found := ROW.match(line)) is not None]
    assert shown
    assert set(shown) <= set(names)
    assert all(name in text for name in shown)
    assert "goals met." in text
    assert str(ROOT) not in page
