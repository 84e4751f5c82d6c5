"""The reliability report against its published numbers, exact fractions and enumeration."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise, product

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, norm

from trialwise.errors import InvalidArgument
from trialwise.stats.rate_intervals import wald
from trialwise.stats.run_reliability import (
    confidence_band,
    graceful_degradation,
    recommend_runs,
    recommend_runs_wilson,
    reliability_decay_curve,
    summarize,
    variance_amplification,
)

OUTCOMES = st.lists(st.booleans(), min_size=1, max_size=80)


def runs(letters: str) -> list[bool]:
    return [letter == "P" for letter in letters]


def half_up(value: Fraction) -> int:
    return math.floor(value + Fraction(1, 2))


# Run counts


@pytest.mark.parametrize(
    ("half_width", "expected"),
    [
        (0.05, (271, 385, 664)),
        (0.10, (68, 97, 166)),
        (0.02, (1692, 2401, 4148)),
        (0.01, (6766, 9604, 16590)),
    ],
)
def test_recommended_runs_match_the_published_table(
    half_width: float, expected: tuple[int, int, int]
) -> None:
    """At 90, 95 and 99 %; 2401 and 9604 are whole already and must not be rounded up again."""
    assert tuple(recommend_runs(half_width, level) for level in (0.90, 0.95, 0.99)) == expected


def test_a_whole_number_of_runs_survives_tiny_half_widths() -> None:
    """(1.96 / 2h)² is whole at every power of ten, far beyond what doubles resolve."""
    assert [recommend_runs(float(f"1e-{d}")) for d in range(2, 12)] == [
        98**2 * 10 ** (2 * d - 4) for d in range(2, 12)
    ]
    assert recommend_runs(math.nextafter(0.02, 0)) == 2401


@given(half_width=st.floats(1e-4, 0.49), level=st.sampled_from([0.90, 0.95, 0.99]))
def test_a_recommendation_buys_its_half_width_and_no_fewer_runs_do(
    half_width: float, level: float
) -> None:
    """The band of the recommended runs fits; that of one run fewer does not."""
    needed = recommend_runs(half_width, level)

    assert confidence_band(needed, level) <= half_width * (1 + 1e-9)
    assert needed == 1 or confidence_band(needed - 1, level) > half_width * (1 - 1e-9)


def test_the_band_of_a_run_budget_matches_the_document() -> None:
    """100 runs pin the rate to 0.098, 385 to just under 0.05."""
    assert confidence_band(100, 0.95) == pytest.approx(0.098, rel=1e-15)
    assert confidence_band(385, 0.95) == pytest.approx(0.04994, abs=1e-5)
    assert confidence_band(385, 0.95) < 0.05 < confidence_band(384, 0.95)
    assert confidence_band(1, 0.99) == 1.288


def test_the_nominal_width_is_not_coverage() -> None:
    """Summed over every count, the 95 % Wald interval covers 65 % at 10 runs and p = 0.9."""
    covered = math.fsum(
        float(binom.pmf(c, 10, 0.9)) for c in range(11) if 0.9 in wald(c, 10, confidence=0.95)
    )

    assert round(covered, 3) == 0.650


@pytest.mark.parametrize("level", [0.8, 0.95, 0.999])
@pytest.mark.parametrize("half_width", [0.499, 0.3, 0.1, 0.05])
def test_the_wilson_recommendation_is_the_first_that_fits(half_width: float, level: float) -> None:
    """Scanning upwards with the textbook half-width at p̂ = ½ finds the same number."""
    z = float(norm.isf((1 - level) / 2))
    first = next(
        n
        for n in range(1, 10**6)
        if z / (1 + z * z / n) * math.sqrt(0.25 / n + z * z / (4 * n * n)) <= half_width
    )

    assert recommend_runs_wilson(half_width, level) == first


def test_the_wilson_recommendation_matches_the_readings() -> None:
    """381 runs for ±5 % at 95 %, four fewer than Wald."""
    assert recommend_runs_wilson(0.05, 0.95) == 381
    assert recommend_runs_wilson(5e-324) > 10**640


@pytest.mark.parametrize("recommend", [recommend_runs, recommend_runs_wilson])
@pytest.mark.parametrize("half_width", [0, -0.1, 0.5, 0.7, math.nan, math.inf, True, "5%", None])
def test_an_impossible_half_width_is_refused(
    recommend: Callable[..., int], half_width: object
) -> None:
    """A half-width lies strictly between 0 and 0.5."""
    with pytest.raises(InvalidArgument, match=r"half_width must lie strictly between 0 and 0\.5"):
        recommend(half_width, 0.95)


@pytest.mark.parametrize("confidence", [0.8, 0.951, 95, 1, math.nan, "0.95", None])
def test_only_the_three_published_levels_are_allowed(confidence: object) -> None:
    """The document rounds z for 90, 95 and 99 % only."""
    with pytest.raises(InvalidArgument, match=r"confidence must be one of 0\.9, 0\.95, 0\.99"):
        recommend_runs(0.05, confidence)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match=r"confidence must be one of 0\.9, 0\.95, 0\.99"):
        confidence_band(100, confidence)  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [0, -1, 1.5, True])
def test_a_band_needs_runs(count: object) -> None:
    """No runs, no band."""
    with pytest.raises(InvalidArgument, match="runs must"):
        confidence_band(count)  # type: ignore[arg-type]


# The decay curve


@pytest.mark.parametrize(
    ("letters", "expected"),
    [
        ("PPPF", (100, 100, 100, 31)),
        ("FPPP", (0, 25, 29, 31)),
        ("PFPP", (100, 25, 29, 31)),
        ("P", (100,)),
        ("F", (0,)),
    ],
)
def test_the_curve_matches_the_published_examples(letters: str, expected: tuple[int, ...]) -> None:
    """Rounded down, in order, and free to rise again."""
    assert reliability_decay_curve(runs(letters)) == expected


@given(outcomes=st.lists(st.booleans(), min_size=1, max_size=150))
def test_the_curve_is_the_floor_of_an_exact_power(outcomes: list[bool]) -> None:
    """Each entry is ⌊100 (c/k)^k⌋ in rationals."""
    expected = tuple(
        math.floor(100 * Fraction(sum(outcomes[:k]), k) ** k) for k in range(1, len(outcomes) + 1)
    )

    assert reliability_decay_curve(outcomes) == expected


@pytest.mark.parametrize("failures", [0, 1, 2, 3, 4, 5, 6])
def test_the_curve_is_exact_on_long_records(failures: int) -> None:
    """Where the powers are no longer computed, they would have given the same percents."""
    curve = reliability_decay_curve([False] * failures + [True] * 5000)

    for k in [*range(max(1, failures), 400), 1000, 5000]:
        assert curve[k - 1] == 100 * (k - failures) ** k // k**k


def test_the_curve_need_not_fall() -> None:
    """An early failure followed by passes makes it rise all the way."""
    curve = reliability_decay_curve(runs("F" + "P" * 30))

    assert all(earlier <= later for earlier, later in pairwise(curve))
    assert curve[0] == 0
    assert curve[-1] == 36


# Spread and degradation


@pytest.mark.parametrize(
    ("letters", "expected"),
    [("PFPF", 100), ("PPPP", 0), ("FFFF", 0), ("PPPF", 87), ("PPF", 94), ("P", 0), ("F", 0)],
)
def test_the_spread_matches_the_published_examples(letters: str, expected: int) -> None:
    """A standard deviation as a percent of its maximum."""
    assert variance_amplification(runs(letters)) == expected


def test_the_spread_is_rounded_as_in_fifty_digits() -> None:
    """For every count up to 60 runs, 50-digit arithmetic rounds to the same whole percent."""
    with mpmath.workdps(50):
        for n in range(1, 61):
            for c in range(n + 1):
                exact = 200 * mpmath.sqrt(mpmath.mpf(c) * (n - c)) / n

                assert variance_amplification([True] * c + [False] * (n - c)) == int(
                    mpmath.floor(exact + mpmath.mpf("0.5"))
                )


def test_the_spread_is_right_where_it_is_nearest_to_a_half() -> None:
    """Among all counts of 3900 to 4000 runs, the 40 nearest to a half are rounded rightly."""
    counts = [(c, n) for n in range(3900, 4001) for c in range(n // 2)]
    counts.sort(key=lambda cn: abs(200 * math.sqrt(cn[0] * (cn[1] - cn[0])) / cn[1] % 1 - 0.5))
    with mpmath.workdps(50):
        for c, n in counts[:40]:
            exact = 200 * mpmath.sqrt(mpmath.mpf(c) * (n - c)) / n

            assert variance_amplification([True] * c + [False] * (n - c)) == int(
                mpmath.floor(exact + mpmath.mpf("0.5"))
            )


@given(outcomes=OUTCOMES, data=st.data())
def test_the_spread_ignores_order_and_sides(outcomes: list[bool], data: st.DataObject) -> None:
    """Shuffling the runs or swapping pass and fail changes nothing."""
    shuffled = data.draw(st.permutations(outcomes))
    swapped = [not passed for passed in outcomes]

    assert (
        variance_amplification(outcomes)
        == variance_amplification(shuffled)
        == variance_amplification(swapped)
    )


@pytest.mark.parametrize(
    ("letters", "expected"),
    [("FPPP", 90), ("PPPF", 60), ("PF", 33), ("PPPP", 100), ("FFFF", 0), ("FFP" + "F" * 12, 3)],
)
def test_degradation_matches_the_published_examples(letters: str, expected: int) -> None:
    """The last one is 2.5 exactly and goes up, where banker's rounding would say 2."""
    assert graceful_degradation(runs(letters)) == expected


@given(outcomes=OUTCOMES)
def test_degradation_is_the_rounded_exact_share(outcomes: list[bool]) -> None:
    """In rationals, halves up."""
    places = range(1, len(outcomes) + 1)
    earned = sum(place for place, passed in zip(places, outcomes, strict=True) if passed)

    assert graceful_degradation(outcomes) == half_up(Fraction(100 * earned, sum(places)))


@given(outcomes=OUTCOMES)
def test_a_later_failure_never_costs_less(outcomes: list[bool]) -> None:
    """Moving every failure to the front is the mildest order, to the back the harshest."""
    score = graceful_degradation(outcomes)

    assert graceful_degradation(sorted(outcomes, reverse=True)) <= score
    assert score <= graceful_degradation(sorted(outcomes))


# The summary


def test_the_targets_of_the_published_example() -> None:
    """Three passes and a failure: 4 runs, 100, 0, 87, 60."""
    summary = summarize(runs("PPPF"))
    names = ("runs", "pass_at_k", "passhat_k", "variance_amplification", "graceful_degradation")

    assert [summary.resolve_target(f"reliability.{name}") for name in names] == [4, 100, 0, 87, 60]
    assert summary.metrics_object() == {
        **{name: summary.resolve_target(f"reliability.{name}") for name in names},
        "decay_curve": [100, 100, 100, 31],
    }


@pytest.mark.parametrize("letters", ["".join(row) for row in product("PF", repeat=3)])
def test_the_headline_is_any_and_every_run(letters: str) -> None:
    """pass_at_k is 100 when any run passed, passhat_k when all did, else 0; both plain ints."""
    summary = summarize(runs(letters))

    assert summary.pass_at_k == (100 if "P" in letters else 0)
    assert summary.passhat_k == (100 if "F" not in letters else 0)
    assert type(summary.pass_at_k) is int
    assert type(summary.passhat_k) is int
    assert summary.outcomes == tuple(runs(letters))


@pytest.mark.parametrize(
    "path", ["reliability.curve", "reliability", "runs", "", "stability.score", None, []]
)
def test_an_unknown_path_lists_the_known_ones(path: object) -> None:
    """A misspelt target is an error, never a null."""
    with pytest.raises(
        InvalidArgument, match=r"'reliability\.runs'.*graceful_degradation"
    ) as error:
        summarize([True]).resolve_target(path)  # type: ignore[arg-type]

    assert error.value.argument == "path"


@pytest.mark.parametrize(
    "function", [reliability_decay_curve, variance_amplification, graceful_degradation, summarize]
)
@pytest.mark.parametrize("outcomes", [[], [1, 0], "PF", [True, None], None, 3, [0.5]])
def test_outcomes_are_bools_and_at_least_one(
    function: Callable[..., object], outcomes: object
) -> None:
    """An empty record has no reliability, and a 1 is not a pass."""
    with pytest.raises(InvalidArgument, match="outcomes must be a sequence of at least one bool"):
        function(outcomes)
