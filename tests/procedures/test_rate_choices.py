"""The ways to ask for a required rate, side by side, each number counted again here."""

from __future__ import annotations

from math import comb

import pytest

from trialwise.procedures.sizing.sizing_base import list_choices


def chance_of_at_least(k: int, n: int, p: float) -> float:
    return sum(comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(k, n + 1))


def test_fixed_trials_are_the_fewest_that_pass_often_enough() -> None:
    """
    The first size whose cutoff a service of 97 % reaches in 80 % of runs.
    """

    def power(n: int) -> float:
        cutoff = next((k for k in range(n + 1) if chance_of_at_least(k, n, 0.9) <= 0.05), n + 1)
        return chance_of_at_least(cutoff, n, 0.97)

    fewest = next(n for n in range(1, 500) if power(n) >= 0.8)
    *_, fixed = list_choices(0.9, 0.97, trial_usd=0.5)
    assert f"+ trials: {fewest}" == fixed.setting
    assert fixed.passes == pytest.approx(power(fewest))
    # FAIL shows a rate below 90 %, and the rest is open.
    most = max(k for k in range(fewest + 1) if 1 - chance_of_at_least(k + 1, fewest, 0.9) <= 0.05)
    assert fixed.fails == pytest.approx(1 - chance_of_at_least(most + 1, fewest, 0.97), abs=1e-9)
    assert (fixed.passes or 0) + (fixed.fails or 0) + (fixed.inconclusive or 0) == pytest.approx(1)
    assert fixed.mean_trials is not None
    assert fixed.mean_trials < fewest
    assert fixed.mean_usd == pytest.approx(0.5 * fixed.mean_trials)


def test_a_wider_margin_shows_less_and_costs_less() -> None:
    """
    Strict shows 90 %, a margin of 5 points 85 %, one of 10 points 80 %.
    """
    strict, five, ten, _ = list_choices(0.9, 0.97)
    assert [0.9, 0.85, 0.8] == [one.shows for one in (strict, five, ten)]
    means = [one.mean_trials or 0.0 for one in (strict, five, ten)]
    assert means == sorted(means, reverse=True)
    for one in (strict, five, ten):
        assert (one.passes or 0) + (one.fails or 0) + (one.inconclusive or 0) == pytest.approx(1)


@pytest.mark.slow
def test_an_expensive_promise_is_named_and_not_searched_for() -> None:
    """
    99.9 % takes consent: the choice says how many trials to allow.
    """
    strict, *_ = list_choices(0.999)
    assert strict.passes is None
    assert strict.setting.startswith("+ max_trials: ")


def test_no_fixed_sample_shows_a_rate_that_is_not_there() -> None:
    """
    Where somebody expects less than is required, no fixed number of trials is proposed.
    """
    assert all("trials:" not in one.setting for one in list_choices(0.9, 0.85))
