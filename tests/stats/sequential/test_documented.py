"""Every number in the tables of docs/guides/sequential.md, recomputed by counting paths."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from trialwise.stats.sequential import (
    SequentialDesign,
    expected_trials_bound,
    fixed_size,
    naive_interval,
)

PAGE = (Path(__file__).parents[3] / "docs" / "guides" / "sequential.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (0\.\d\d) / (0\.\d\d) \| (\d+) \| `(\w+)` \| (.+) \|$", PAGE, re.MULTILINE)
BOUNDS = re.findall(r"^\| (0\.\d\d) / (0\.\d\d) \| any \| any test \| (.+) \|$", PAGE, re.MULTILINE)
PAIRS = [("0.90", "0.80")]


def paths(design: SequentialDesign) -> list[tuple[int, int, int, str]]:
    """Every end (trials, failures, number of paths, verdict), counted in integers."""
    ends, open_paths = [], {0: 1}
    for n in range(1, design.cap + 1):
        grown: dict[int, int] = {}
        for f, count in open_paths.items():
            grown[f] = grown.get(f, 0) + count
            grown[f + 1] = grown.get(f + 1, 0) + count
        open_paths = {}
        for f, count in grown.items():
            if f <= design.accept[n]:
                ends.append((n, f, count, "PASS"))
            elif f >= design.reject[n]:
                ends.append((n, f, count, "FAIL"))
            elif n == design.cap:
                ends.append((n, f, count, "INCONCLUSIVE"))
            else:
                open_paths[f] = count
    return ends


def weight(n: int, f: int, count: int, p: float) -> float:
    """P(a run ends so) at rate p."""
    return float(count) * p ** (n - f) * (1 - p) ** f


def test_the_table_holds_every_pair_at_both_caps() -> None:
    """Wald and optimal, at 50 trials and at twice the fixed sample."""
    caps = {pair: {50, 2 * fixed_size(*map(float, pair)).trials} for pair in PAIRS}
    expected = {
        (*pair, str(c), m) for pair in PAIRS for c in caps[pair] for m in ("wald", "optimal")
    }

    assert expected == {row[:4] for row in ROWS}
    assert PAIRS == [bound[:2] for bound in BOUNDS]


@pytest.mark.parametrize("row", ROWS, ids=" ".join)
def test_a_row_is_what_path_counting_gives(row: tuple[str, str, str, str, str]) -> None:
    """Errors, open ends and mean trials, to the digits shown."""
    p0, p1, cap = float(row[0]), float(row[1]), int(row[2])
    optimal = row[3] == "optimal"
    make = SequentialDesign.optimal if optimal else SequentialDesign.wald
    ends = paths(make(p0, p1, cap=cap))

    def chance(verdict: str, p: float) -> float:
        return sum(weight(n, f, c, p) for n, f, c, v in ends if v == verdict)

    def mean(p: float) -> float:
        return sum(n * weight(n, f, c, p) for n, f, c, _ in ends)

    errors = f"{chance('FAIL', p0):.4f} / {chance('PASS', p1):.4f}"
    ended = f"{chance('INCONCLUSIVE', p0):.3f} / {chance('INCONCLUSIVE', p1):.3f}"
    trials = " / ".join(f"{mean(p):.1f}" for p in (p0, (p0 + p1) / 2, p1))

    assert row[4] == f"{errors} | {ended} | {trials}"


@pytest.mark.slow
@pytest.mark.parametrize("bound", BOUNDS, ids=" ".join)
def test_a_bound_is_the_designs_own(bound: tuple[str, str, str]) -> None:
    """The least expected trials of any test that always decides."""
    p0, p1 = float(bound[0]), float(bound[1])
    least = " / ".join(f"{expected_trials_bound(p0, p1, p):.1f}" for p in (p0, (p0 + p1) / 2, p1))

    assert bound[2] == f"at most 0.05 / 0.20 | none | {least}"


def test_the_stated_coverages_are_the_least_over_a_thousand_rates() -> None:
    """The exact interval keeps 95 %, and the naive one does not."""
    design = SequentialDesign.optimal(0.90, 0.80, cap=50)
    ends = paths(design)
    least = []
    for interval in (design.interval, lambda n, f: naive_interval(design, n, f)):
        limits = {(n, f): interval(n, f) for n, f, _, _ in ends}
        least.append(
            min(
                sum(weight(n, f, c, i / 1000) for n, f, c, _ in ends if i / 1000 in limits[n, f])
                for i in range(1001)
            )
        )

    assert least[0] >= 0.95
    assert f"least coverage is {least[0]:.4f}" in PAGE
    assert f"{least[1]:.4f} for the Wilson interval" in PAGE


@pytest.mark.slow
def test_the_strict_table_is_what_a_walk_gives() -> None:
    """P(PASS), P(FAIL) and mean trials of the strict design, to the digits shown."""
    lines = PAGE.split("| at most 200 trials, true rate |")[1].splitlines()
    rates = [float(cell.strip(" %")) / 100 for cell in lines[0].split("|") if cell.strip()]
    shown = {
        cells[1].strip(): [float(cell) for cell in cells[2:-1]]
        for cells in (line.split("|") for line in lines[2:5])
    }
    design = SequentialDesign.strict(0.9, cap=200)
    for place, rate in enumerate(rates):
        states, found = {0: 1.0}, {"P(PASS)": 0.0, "P(FAIL)": 0.0, "mean trials": 0.0}
        for n in range(1, 201):
            after: dict[int, float] = {}
            for failures, chance in states.items():
                for f, part in ((failures, rate), (failures + 1, 1 - rate)):
                    after[f] = after.get(f, 0.0) + chance * part
            low, high = design.futile[n]
            ends = {f for f in after if f <= design.accept[n] or f >= design.reject[n]}
            ends |= {f for f in after if n == 200 or low <= f <= high}
            found["P(PASS)"] += sum(w for f, w in after.items() if f <= design.accept[n])
            found["P(FAIL)"] += sum(w for f, w in after.items() if f >= design.reject[n])
            found["mean trials"] += n * sum(after[f] for f in ends)
            states = {f: w for f, w in after.items() if f not in ends}
        for name, digits in (("P(PASS)", 3), ("P(FAIL)", 3), ("mean trials", 1)):
            assert round(found[name], digits) == shown[name][place]
