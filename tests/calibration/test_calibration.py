"""The calibration table again, by other routes: scipy's enumeration and joint laws written out."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import betabinom, binom, norm

from trialwise.contrib.conformance.calibration import Row, calibrate
from trialwise.contrib.conformance.calibration import envelope_calibration as envelope_module
from trialwise.contrib.conformance.calibration import latency_calibration as latency_module
from trialwise.contrib.conformance.conformance_report import (
    calibration_data,
    render_calibration,
    render_calibration_markdown,
)
from trialwise.stats.staged_regression import find_scheme

PAGE = Path(__file__).resolve().parents[2] / "docs" / "calibration.md"


@cache
def table() -> tuple[Row, ...]:
    return tuple(calibrate())


def rows(section: str, quantity: str = "", rule: str = "") -> list[Row]:
    """The rows of a section whose quantity and rule contain the given words."""
    found = [
        row
        for row in table()
        if row.section == section and quantity in row.quantity and rule in row.rule
    ]
    assert found
    return found


def numbers(text: str) -> list[float]:
    return [float(part) for part in re.findall(r"\d+(?:\.\d+)?", text)]


# Promises


def test_no_promise_is_broken() -> None:
    """Every row that promises its bound keeps it; the others disclose."""
    assert not [row for row in table() if row.status == "BROKEN"]
    assert all(row.holds for row in table() if row.claimed)
    assert all(0 <= row.achieved <= 1 for row in table())


def test_the_exact_rule_set_promises_and_the_wilson_one_discloses() -> None:
    """Which rows claim, by the rule they speak of."""
    promises = {
        "regression/wilson-cutoff": False,
        "regression/fisher": True,
        "regression/boschloo": True,
        "regression/likelihood-ratio": True,
        "compliance/wilson-lower-bound": False,
        "compliance/exact-binomial": True,
        "latency/precedence": True,
        "latency/compliance-exact-binomial": True,
    }
    for row in table():
        if row.rule in promises:
            assert row.claimed is promises[row.rule], row
        elif row.section == "envelopes":
            assert row.claimed is ("(wilson)" not in row.design)
        else:
            assert row.rule == "latency/order-statistic-bound"
            assert row.claimed is ("true percentile" in row.quantity)


def make_row(achieved: float, *, claimed: bool = False, bound: Any = "at most") -> Row:
    return Row(
        section="s",
        rule="r",
        design="d",
        quantity="q",
        bound=bound,
        nominal=0.05,
        achieved=achieved,
        claimed=claimed,
    )


def test_a_broken_promise_would_be_called_one() -> None:
    """BROKEN for a promise, exceeds for a disclosure, up to the rounding of a sum."""
    assert make_row(0.05 + 1e-13, claimed=True).status == "holds"
    assert make_row(0.0500001, claimed=True).status == "BROKEN"
    assert make_row(0.0500001, claimed=False).status == "exceeds"
    assert make_row(0.04, claimed=True, bound="at least").status == "BROKEN"
    assert make_row(0.06, claimed=True, bound="at least").status == "holds"
    assert "1 broken" in render_calibration([make_row(0.06, claimed=True)])


def test_the_grid_has_both_rule_sets_every_section_and_every_regime() -> None:
    """What companion §10.6 asks for."""
    assert {row.section for row in table()} == {"regression", "compliance", "latency", "envelopes"}
    assert {row.rule for row in rows("envelopes")} == {
        "independent",
        "positively correlated",
        "adversarial",
    }
    for words in ("tied", "continuous"):
        assert any(words in row.design for row in rows("latency", "true percentile"))
    for percentile in ("p50", "p90", "p95", "p99"):
        assert any(row.design.startswith(percentile) for row in rows("latency"))
    for text in ("2 compliance", "3 compliance", "2 regression", "3 regression"):
        for rule in ("(wilson)", "(exact)"):
            assert any(text in row.design and rule in row.design for row in rows("envelopes"))


# Compliance, by scipy


def compliance_cutoff(rate: float, n: int, alpha: float, exact: bool) -> int:
    if not exact:
        z, observed = norm.isf(alpha), np.arange(n + 1) / n
        root = np.sqrt(observed * (1 - observed) / n + z * z / (4 * n * n))
        bound = (observed + z * z / (2 * n) - z * root) / (1 + z * z / n)
        return int(np.flatnonzero(bound >= rate)[0]) if bound[-1] >= rate else n + 1
    return int(np.flatnonzero(binom.sf(np.arange(-1, n + 1), n, rate) <= alpha)[0])


def test_every_compliance_row_by_scipy() -> None:
    """Cutoff, P(PASS) at the requirement and the power half-way to 1."""
    for row in rows("compliance"):
        match = re.fullmatch(r"required (\S+), n = (\d+), cutoff (\S+)", row.design)
        assert match
        rate, n = float(match[1]), int(match[2])
        cutoff = compliance_cutoff(rate, n, row.nominal, row.claimed)
        better = (rate + 1) / 2

        assert match[3] == ("None" if cutoff > n else str(cutoff))
        assert row.achieved == pytest.approx(binom.sf(cutoff - 1, n, rate), abs=1e-12)
        assert row.note == f"power {binom.sf(cutoff - 1, n, better):.4f} at {better:g}"


# Regression, by scipy


@cache
def fisher_tails(nb: int, n: int) -> Any:
    """F(k, 0), …, F(k, n) as cumulative shares of interleavings, in logarithms of gammas.

    One row for each k = 0 … n_b; nothing is below no success.
    """
    logs = gammaln(np.arange(nb + n + 1) + 1.0)  # of the factorials

    def log_comb(a: Any, b: Any) -> Any:
        return logs[a] - logs[b] - logs[a - b]

    k, j = np.arange(1, nb + 1)[:, None], np.arange(n + 1)[None, :]
    terms = log_comb(k + j - 1, j) + log_comb(nb - k + n - j, n - j) - log_comb(nb + n, n)
    return np.vstack([np.ones(n + 1), np.cumsum(np.exp(terms), axis=1)])


def exact_fisher_tail(k: int, x: int, nb: int, n: int) -> Fraction:
    ways = sum(math.comb(k + j - 1, j) * math.comb(nb - k + n - j, n - j) for j in range(x + 1))
    return Fraction(ways, math.comb(nb + n, n))


#: The rule that each name of a regression rule stands for.
NAMES = {
    "regression/wilson-cutoff": "wilson",
    "regression/fisher": "fisher",
    "regression/boschloo": "exact",
}


#: Common rates between which the worst one is looked for.
STEPS = 400


@cache
def distributions(n: int, near: int = 0) -> tuple[Any, Any]:
    """P(K = k) and P(K < k), k = 0 … n, at the rates of the grid, or at rates near one of them.

    One call of scipy for each size: every region is then a matter of picking columns.
    """
    rates = np.arange(1, STEPS) / STEPS
    if near:
        rates = np.clip(np.linspace(near - 1, near + 1, 41) / STEPS, 1e-9, 1 - 1e-9)
    masses = binom.pmf(np.arange(n + 1)[None, :], n, rates[:, None])
    return masses, np.hstack([np.zeros((len(rates), 1)), np.cumsum(masses, axis=1)])


@cache
def boschloo_cutoffs(nb: int, n: int, alpha: float) -> Any:
    """Boschloo's rule from its definition: the largest region by Fisher's p-value that keeps alpha.

    All outcomes with a p-value of at most c FAIL, and c is as large as the worst common rate
    allows. The worst rate is found on a grid and then refined between its neighbours.
    """
    tails = fisher_tails(nb, n)

    def region(level: float) -> Any:
        # Ties differ in the last digits of their logarithms.
        return np.sum(tails <= level * (1 + 1e-9), axis=1)

    def sizes(fewest: Any, near: int = 0) -> Any:
        return np.sum(distributions(nb, near)[0] * distributions(n, near)[1][:, fewest], axis=1)

    def keeps(level: float) -> bool:
        fewest = region(level)
        common = sizes(fewest)
        if common.max() > alpha:
            return False
        return bool(sizes(fewest, near=int(common.argmax()) + 1).max() <= alpha)

    levels = np.unique(tails[tails < 0.5])
    low, high = int(np.searchsorted(levels, alpha * (1 + 1e-9))) - 1, len(levels)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if keeps(float(levels[middle])) else (low, middle)
    return region(float(levels[low]))


@cache
def cutoffs(nb: int, n: int, alpha: float, rule: str) -> Any:
    """The cutoff at every baseline count 0 … n_b."""
    if rule == "exact":
        return boschloo_cutoffs(nb, n, alpha)
    exact = rule == "fisher"
    answer = [0]
    z = norm.isf(alpha)

    def wilson(p: float, size: int) -> float:
        root = math.sqrt(p * (1 - p) / size + z * z / (4 * size * size))
        return float((p + z * z / (2 * size) - z * root) / (1 + z * z / size))

    for k in range(1, nb + 1):
        if not exact:
            rate = wilson(1.0, nb) if k == nb else k / nb
            answer.append(math.ceil(n * wilson(rate, n) - 1e-12))
            continue
        tails = fisher_tails(nb, n)[k]
        x = int(np.flatnonzero(tails > alpha)[0])
        near = np.flatnonzero(np.abs(tails - alpha) < 1e-7 * alpha)
        for tied in map(int, near):
            above = exact_fisher_tail(k, tied, nb, n) > Fraction(repr(alpha))
            x = min(x, tied) if above else max(x, tied + 1)
        answer.append(x)
    return np.array(answer)


def rejection(nb: int, n: int, p0: Any, p1: Any, *, alpha: float, rule: str) -> Any:
    """Σ_k P(K_b = k) P(K_t < c(k)) for one or many pairs of rates."""
    p0, p1 = np.atleast_1d(p0)[:, None], np.atleast_1d(p1)[:, None]
    weights = binom.pmf(np.arange(nb + 1)[None, :], nb, p0)
    below = binom.cdf(cutoffs(nb, n, alpha, rule)[None, :] - 1, n, p1)
    return np.sum(weights * below, axis=1)


@pytest.mark.slow
def test_every_regression_row_by_scipy() -> None:
    """Cutoffs, sizes with the baseline known and random, power, and the worst common rate."""
    for row in rows("regression"):
        if row.rule not in NAMES:
            continue  # decided after every trial: below
        rule = NAMES[row.rule]
        exact = rule != "wilson"
        if row.quantity == "largest P(FAIL) over common rates":
            nb, n = (int(part) for part in numbers(row.design))
            grid = np.arange(1, 200) / 200
            worst = rejection(nb, n, grid, grid, alpha=row.nominal, rule=rule).max()
            assert row.achieved == pytest.approx(worst, abs=1e-11), row
            continue
        k, nb, n, cutoff = (int(part) for part in numbers(row.design))
        z = norm.isf(row.nominal)
        reference = nb / (nb + z * z) if k == nb and not exact else k / nb
        assert cutoff == cutoffs(nb, n, row.nominal, rule)[k], row
        if row.quantity == "P(FAIL), baseline taken as known":
            expected = binom.cdf(cutoff - 1, n, reference)
        else:
            assert row.quantity == "P(FAIL), baseline random"
            (expected,) = rejection(nb, n, reference, reference, alpha=row.nominal, rule=rule)
            lower = max(0.0, reference - 0.05)
            (power,) = rejection(nb, n, reference, lower, alpha=row.nominal, rule=rule)
            said = re.fullmatch(r"power (\S+) at (\S+)", row.note)
            assert said
            assert float(said[1]) == pytest.approx(power, abs=6e-5)
            assert float(said[2]) == pytest.approx(lower, rel=1e-3, abs=1e-9)
        assert row.achieved == pytest.approx(expected, abs=1e-11), row


def follow_paths(nb: int, before: float, now: float) -> tuple[float, float]:
    """P(FAIL) and mean trials of a scheme over its baselines, trial by trial in numpy."""
    scheme = find_scheme(nb, 0.1)
    assert scheme is not None
    fails = mean = 0.0
    for k in range(int(binom.ppf(1e-11, nb, before)), int(binom.ppf(1 - 1e-11, nb, before)) + 1):
        accept, reject = scheme.boundaries(k)
        weight = float(binom.pmf(k, nb, before))
        states = np.zeros(reject[-1] + 1)
        states[0] = 1
        for most, fewest in zip(accept[1:], reject[1:], strict=True):
            mean += weight * states.sum()
            states = np.append(states[:1] * now, states[1:] * now + states[:-1] * (1 - now))
            fails += weight * states[fewest:].sum()
            states[fewest:] = states[: most + 1] = 0
    return fails, mean


@pytest.mark.slow
def test_every_row_of_comparisons_decided_after_every_trial_by_their_paths() -> None:
    """Alarms, mean trials and powers; no rate of a coarse grid has more than the largest."""
    found = rows("regression", rule="likelihood-ratio")
    assert len(found) == 6
    for row in found:
        if row.quantity == "largest P(FAIL) over common rates":
            (nb,) = (int(part) for part in numbers(row.design))
            alarms = [follow_paths(nb, rate, rate)[0] for rate in (0.5, 0.9, 0.97)]
            assert 0.8 * row.achieved < max(alarms) <= row.achieved <= 0.05
            continue
        k, nb, _ = (int(part) for part in numbers(row.design))
        alarm, trials = follow_paths(nb, k / nb, k / nb)
        said = re.fullmatch(r"(\S+) trials; power (\S+) at (\S+)", row.note)
        assert said
        assert row.achieved == pytest.approx(alarm, rel=1e-6)
        assert float(said[1]) == pytest.approx(trials, abs=0.06)
        assert float(said[2]) == pytest.approx(follow_paths(nb, k / nb, k / nb - 0.1)[0], abs=6e-5)


def test_the_wilson_rule_discloses_a_quarter_where_it_is_configured_for_a_twentieth() -> None:
    """500 trials against 90 of 100."""
    (row,) = [
        row
        for row in rows("regression", "baseline random", "wilson")
        if "90/100, n = 500" in row.design and row.nominal == 0.05
    ]

    assert round(row.achieved, 2) == 0.25
    assert row.status == "exceeds"


# Latency


def test_every_coverage_row_by_scipy() -> None:
    """P(B < k) at the percentile, or at the share of tied latencies strictly below it."""
    seen = set()
    for row in rows("latency", "true percentile"):
        match = re.fullmatch(r"p(\d+), n = (\d+), rank (\d+), (continuous|tied)", row.design)
        assert match
        p, n, rank = int(match[1]) / 100, int(match[2]), int(match[3])
        below = p
        if match[4] == "tied":
            # Q(p) is the first multiple of 20 ms at which an exponential of mean 100 ms reaches p.
            step = next(s for s in itertools.count(1) if 1 - math.exp(-s / 5) >= p)
            below = 1 - math.exp(-(step - 1) / 5)
        seen.add((p, match[4]))

        assert rank == max(int(binom.ppf(0.95, n, p)) + 1, math.ceil(p * n - 1e-9))
        assert row.achieved == pytest.approx(binom.cdf(rank - 1, n, below), abs=1e-12)
        assert row.achieved >= row.nominal == 0.95
    assert seen == set(itertools.product((0.5, 0.9, 0.95, 0.99), ("continuous", "tied")))


def test_saturated_bounds_are_left_out() -> None:
    """(200, p99) has no bound, so it has no coverage; (299, p99) has one."""
    designs = [row.design for row in rows("latency", "true percentile")]

    assert not [design for design in designs if design.startswith("p99, n = 200,")]
    assert [design for design in designs if design.startswith("p99, n = 299,")]


@pytest.mark.slow
def test_every_continuous_false_alarm_row_by_scipy() -> None:
    """The beta-binomial law of the test's percentile, for both baseline rules."""
    checked = 0
    for row in rows("latency", "nothing changed"):
        if "tied" in row.design:
            continue
        p, nb, n, *rest = numbers(row.design)
        size, tests, rank = int(nb), int(n), math.ceil(p / 100 * n - 1e-9)
        if rest:
            k = next(
                k
                for k in range(1, size + 1)
                if betabinom.cdf(rank - 1, tests, k, size - k + 1) <= 0.05
            )
            assert k == rest[0]
        else:
            k = max(int(binom.ppf(0.95, size, p / 100)) + 1, math.ceil(p / 100 * size - 1e-9))
        assert row.achieved == pytest.approx(
            betabinom.cdf(rank - 1, tests, k, size - k + 1), abs=1e-11
        )
        checked += 1
    assert checked == 10


def test_ties_never_raise_the_false_alarms_of_the_exact_rule() -> None:
    """Equality is no breach, so tied latencies breach less often than continuous ones."""
    pairs: dict[str, dict[str, float]] = {}
    for row in rows("latency", "nothing changed", "precedence"):
        design, _, kind = row.design.rpartition(", ")
        pairs.setdefault(design, {})[kind] = row.achieved

    assert pairs
    for pair in pairs.values():
        assert pair["tied"] < pair["continuous"] <= 0.05


@pytest.mark.parametrize(
    ("rank", "nb", "test_rank", "n"),
    [(1, 2, 1, 2), (2, 2, 2, 2), (2, 3, 1, 1), (3, 3, 1, 1), (1, 1, 2, 3)],
)
def test_the_tied_breach_by_writing_every_sample_down(
    rank: int, nb: int, test_rank: int, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps as long as the mean, so that thirty of them hold all but 1e-13 of the mass."""
    monkeypatch.setattr(latency_module, "_STEP", 100.0)
    steps = np.arange(1, 31)
    mass = np.exp(-(steps - 1.0)) - np.exp(-steps.astype(float))
    size = nb + n
    values = np.stack(np.meshgrid(*[steps] * size, indexing="ij")).reshape(size, -1)
    weights = np.ones(values.shape[1])
    for sample in values:
        weights *= mass[sample - 1]
    limit = np.sort(values[:nb], axis=0)[rank - 1]
    observed = np.sort(values[nb:], axis=0)[test_rank - 1]
    expected = float(np.sum(weights[observed > limit]))

    got = latency_module._tied_breach(rank, nb, test_rank, n)
    assert got == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("percentile", [0.5, 0.9, 0.95, 0.99])
def test_the_tied_rows_by_the_law_of_two_order_statistics(percentile: float) -> None:
    """A sum over pairs of steps of the probability masses of both order statistics."""
    for row in rows("latency", "nothing changed", "precedence"):
        p, nb, n, rank = numbers(row.design)
        if "tied" not in row.design or p / 100 != percentile:
            continue
        test_rank = math.ceil(p / 100 * n - 1e-9)
        share = -np.expm1(-np.arange(0, 400) / 5)
        baseline = np.diff(binom.sf(rank - 1, nb, share))
        test = np.diff(binom.sf(test_rank - 1, n, share))
        joint = baseline[:, None] * test[None, :]

        assert row.achieved == pytest.approx(float(np.triu(joint, k=1).sum()), abs=1e-11)


def test_every_limit_row_by_scipy() -> None:
    """The exact compliance rule at the percentile."""
    for row in rows("latency", "at the limit"):
        p, n, least = numbers(row.design)
        tails = binom.sf(np.arange(-1, int(n) + 1), int(n), p / 100)

        assert least == np.flatnonzero(tails <= 0.05)[0]
        assert row.achieved == pytest.approx(tails[int(least)], abs=1e-12)


# Envelopes


def singles() -> Iterator[tuple[str, float, float, range]]:
    """(start of the design, P(one criterion errs), its rate, the counts that err)."""
    for rule in ("wilson", "exact", "fisher"):
        cutoff = compliance_cutoff(0.9, 100, 0.05, rule != "wilson")
        erring = range(cutoff, 101)
        yield f"compliance criteria ({rule})", float(binom.sf(cutoff - 1, 100, 0.9)), 0.9, erring
        cutoff = int(cutoffs(1000, 100, 0.05, rule)[951])
        if rule == "wilson":
            size = float(binom.cdf(cutoff - 1, 100, 0.951))
        else:
            (size,) = rejection(1000, 100, 0.951, 0.951, alpha=0.05, rule=rule)
        yield f"regression criteria ({rule})", float(size), 0.951, range(cutoff)


@pytest.mark.parametrize("criteria", [2, 3])
def test_independent_and_adversarial_envelopes_by_scipy(criteria: int) -> None:
    """1 − (1 − s)^m, and the union bound m·s where the errors exclude one another."""
    for design, single, _, _ in singles():
        found = {
            row.rule: row
            for row in rows("envelopes")
            if row.design.startswith(f"{criteria} {design}")
        }

        assert found["independent"].achieved == pytest.approx(
            1 - (1 - single) ** criteria, abs=1e-11
        )
        assert found["adversarial"].achieved == pytest.approx(criteria * single, abs=1e-11)
        assert [row.nominal for row in found.values()] == [pytest.approx(criteria * 0.05)] * 3
        ordered = [
            found[r].achieved for r in ("positively correlated", "independent", "adversarial")
        ]
        assert ordered == sorted(ordered)


def any_errs(criteria: int, n: int, rate: float, erring: range) -> float:
    """P(any errs), by adding one trial at a time to the joint law of all the counts."""
    law = np.zeros((n + 1,) * criteria)
    law[(0,) * criteria] = 1.0
    outcomes = list(itertools.product((0, 1), repeat=criteria))
    for _ in range(n):
        following = np.zeros_like(law)
        for outcome in outcomes:
            own = math.prod(rate if hit else 1 - rate for hit in outcome)
            same = (rate if outcome[0] else 1 - rate) if len(set(outcome)) == 1 else 0.0
            target = tuple(slice(hit, n + 1) for hit in outcome)
            source = tuple(slice(0, n + 1 - hit) for hit in outcome)
            following[target] += (0.5 * same + 0.5 * own) * law[source]
        law = following
    clean = [k for k in range(n + 1) if k not in erring]
    return 1 - float(law[np.ix_(*[clean] * criteria)].sum())


@pytest.mark.parametrize(
    ("criteria", "n", "rate", "erring"),
    [
        (2, 3, 0.9, range(3, 4)),
        (3, 5, 0.6, range(4, 6)),
        (2, 6, 0.95, range(5)),
        (1, 7, 0.5, range(2)),
    ],
)
def test_the_shared_fate_by_full_joint_enumeration(
    criteria: int, n: int, rate: float, erring: range, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tiny runs: the joint law of every count, trial by trial."""
    monkeypatch.setattr(envelope_module, "_TRIALS", n)

    assert envelope_module._shared_fate(criteria, rate, erring) == pytest.approx(
        any_errs(criteria, n, rate, erring), abs=1e-13
    )


def test_the_positively_correlated_rows_by_the_joint_law() -> None:
    """Two criteria at the table's own hundred trials; three are the slow test's."""
    check_correlated(2)


@pytest.mark.slow
def test_the_positively_correlated_rows_of_three_criteria_by_the_joint_law() -> None:
    """A million cells, a hundred times."""
    check_correlated(3)


def check_correlated(criteria: int) -> None:
    for design, single, rate, erring in singles():
        (row,) = [
            row
            for row in rows("envelopes", rule="positively correlated")
            if row.design.startswith(f"{criteria} {design}")
        ]
        if "regression criteria" in design and "wilson" not in design:
            # The baseline is shared too: the criteria coincide.
            expected = single
        else:
            expected = any_errs(criteria, 100, rate, erring)
        assert row.achieved == pytest.approx(expected, abs=1e-11)


# The page


def test_the_page_is_what_is_computed() -> None:
    """docs/calibration.md, to the letter; `make calibration` writes it."""
    written = PAGE.read_text(encoding="utf-8")

    assert written.rstrip("\n") == render_calibration_markdown(table()).rstrip("\n")


def test_a_line_of_the_page_sums_up_its_designs() -> None:
    """The rate furthest to the wrong side, its design, and how many are on that side."""
    page = render_calibration_markdown([make_row(0.04), make_row(0.07), make_row(0.06)])
    (line,) = (one for one in page.splitlines() if one.startswith("| r |"))

    assert "| 3 | 0.070000 | " in line
    assert line.endswith("| exceeds in 2 |")


def test_every_design_is_in_one_line_of_the_page() -> None:
    """Their numbers add up, and each section has its table."""
    page = render_calibration_markdown(table())
    counts = [line.split(" | ")[3] for line in page.splitlines() if line.startswith("| ")]

    assert len(table()) == sum(int(count) for count in counts if count.isdigit())
    assert page.count("| rule | computed |") == len({one.section for one in table()})


def test_the_page_says_how_many_promises_there_are() -> None:
    """And that none is broken."""
    promises = sum(row.claimed for row in table())
    last = render_calibration_markdown(table()).strip().splitlines()[-1]

    assert last.startswith(f"{len(table())} rows: {promises} promises, 0 broken")


def test_the_data_hold_every_row() -> None:
    """As plain values, unrounded."""
    data = calibration_data(table())

    assert [entry["achieved"] for entry in data] == [row.achieved for row in table()]
    assert {entry["status"] for entry in data} == {"holds", "exceeds"}
