"""Many tests at once: the chance of any wrong statement, enumerated and through the API."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import comb
from typing import Any

import pytest

import trialwise as tw
from trialwise.model.verdict import Decision
from trialwise.procedures.comparison import adjust_family
from trialwise.runtime.answers import Comparison
from trialwise.stats.multiplicity import Correction
from trialwise.stats.paired import sign_test

INPUTS = [f"question {k}" for k in range(10)]
#: A direction and the p-value of it, with the chance of both.
Outcomes = dict[tuple[int, float], Fraction]


def list_outcomes(pairs: int, share: Fraction) -> Outcomes:
    """All results of this many discordant pairs of which the candidate wins a share on average."""
    chances: Outcomes = {}
    for won in range(pairs + 1):
        key = ((2 * won > pairs) - (2 * won < pairs), sign_test(won, pairs - won).p_value)
        chance = comb(pairs, won) * share**won * (1 - share) ** (pairs - won)
        chances[key] = chances.get(key, Fraction(0)) + chance
    return chances


def chance_of_error(shares: list[Fraction], pairs: int, method: Correction) -> Fraction:
    """The chance that any of several independent tests states something wrong, exactly."""
    wrong = Fraction(0)
    half = Fraction(1, 2)
    for results in product(*(list_outcomes(pairs, share).items() for share in shares)):
        adjusted = adjust_family([one[0][1] for one in results], method=method, alpha=0.05)
        errs = any(
            level <= 0.05
            and ((direction > 0 and share <= half) or (direction < 0 and share >= half))
            for level, share, ((direction, _), _) in zip(adjusted, shares, results, strict=True)
        )
        if errs:
            chance = Fraction(1)
            for _, one in results:
                chance *= one
            wrong += chance
    return wrong


HALF, LITTLE, MUCH = Fraction(1, 2), Fraction(45, 100), Fraction(95, 100)


@pytest.mark.requirement(
    "statistical-ci lessons",
    "Several criteria and arms that are compared share one level.",
    "`correction: holm` (default), `bonferroni`, `bh`, `by` or `none` of a comparison",
)
@pytest.mark.parametrize("method", ["holm", "bonferroni"])
@pytest.mark.parametrize(
    "shares",
    [
        [HALF, HALF],
        [HALF, HALF, HALF],
        [MUCH, HALF, HALF],
        [MUCH, LITTLE, LITTLE],
        [MUCH, MUCH, LITTLE],
    ],
    ids=str,
)
def test_any_wrong_statement_is_as_rare_as_is_said(
    shares: list[Fraction], method: Correction
) -> None:
    """
    Every result of 13 discordant pairs for each of two or three tests, with tests that are surely
    shown, tests of equals, and tests whose wrong direction is nearly as likely as the right one.
    """
    assert chance_of_error(shares, 13, method) <= Fraction(5, 100)


def test_without_a_correction_the_level_is_not_kept() -> None:
    assert chance_of_error([HALF] * 3, 13, "none") > Fraction(5, 100)


@pytest.mark.parametrize("method", ["holm", "bonferroni"])
def test_tests_that_depend_on_each_other_keep_the_level(method: Correction) -> None:
    """
    Two criteria with one result, and two with opposite ones: the most that they can depend.
    """
    for sign in (1, -1):
        wrong = sum(
            Fraction(comb(13, won), 2**13)
            for won in range(14)
            if min(
                adjust_family(
                    [sign_test(won, 13 - won).p_value, sign_test(13 - won, won).p_value][::sign],
                    method=method,
                    alpha=0.05,
                )
            )
            <= 0.05
        )
        assert wrong <= Fraction(5, 100)


def test_holm_never_states_less_than_bonferroni() -> None:
    for p_values in ([0.001, 0.02, 0.04], [0.01, 0.016, 0.9], [0.2, 0.3, 0.01]):
        holm, bonferroni = (
            adjust_family(p_values, method=method, alpha=0.05) for method in ("holm", "bonferroni")
        )
        assert all(one <= other for one, other in zip(holm, bonferroni, strict=True))


# --- Through the API ----------------------------------------------------------------------------


def compare(*services: Any, criteria: list[str], **settings: Any) -> Comparison:
    """Arms whose reply names the criteria that it passes."""
    contract = tw.Contract(
        "agent",
        services[0],
        [tw.Criterion(name, tw.contains(name), at_least=0.5) for name in criteria],
        sampling=INPUTS,
    )
    return tw.compare(
        contract,
        *(contract.with_service(one) for one in services[1:]),
        labels=[chr(65 + k) for k in range(len(services))],
        **({"trials": 20, "seed": 4, "store": None} | settings),
    )


def passes(**lost: int) -> Any:
    """A service that fails each criterion in this many of its first trials."""
    return lambda _, index: " ".join(name for name, most in lost.items() if index >= most)


def test_criteria_and_candidates_are_one_family() -> None:
    """
    Two candidates and two criteria: four tests, so that the smallest p-value counts four times.
    """
    found = compare(
        passes(right=10, kind=0), passes(right=0, kind=0), passes(right=10, kind=0),
        criteria=["right", "kind"],
    )  # fmt: skip
    best = next(one for one in found.findings if (one.arm, one.criterion) == ("B", "right"))

    assert 4 == len(found.findings)
    assert 2 / 2**10 == best.p_value
    assert 4 * 2 / 2**10 == best.adjusted_p_value
    assert "Holm over 4 tests: the chance of any wrong statement is at most 5 %" in (
        found.verdict.multiplicity
    )


@pytest.mark.parametrize(("against", "tests"), [("control", 2), ("all", 3)])
def test_all_pairs_of_arms_are_more_tests_than_those_against_the_control(
    against: Any, tests: int
) -> None:
    found = compare(
        passes(right=10), passes(right=0), passes(right=5), criteria=["right"], against=against
    )

    assert tests == len(found.findings)
    best = next(one for one in found.findings if one.arm == "B")
    assert tests * 2 / 2**10 == best.adjusted_p_value


# --- Guardrails ---------------------------------------------------------------------------------


@pytest.mark.requirement(
    "statistical-ci lessons",
    "A guardrail has its own margin, whatever is asked of the other criteria.",
    "`guardrails: {safe: 10%}`, `--guardrail safe=10%`, `tw.compare(guardrails={'safe': 0.1})`",
)
def test_a_guardrail_must_not_be_worse_by_its_own_margin() -> None:
    """
    B is better in the criterion that is asked about. Its guardrail is equal in all 60 pairs, which
    shows less than 10 points: 0.9⁶⁰ is 0.002. It does not show less than 2: 0.98⁶⁰ is 0.3.
    """
    arms = passes(right=20, safe=0), passes(right=0, safe=0)
    wide, narrow = (
        compare(*arms, criteria=["right", "safe"], guardrails={"safe": margin}, trials=60)
        for margin in (0.1, 0.02)
    )
    safe = next(one for one in wide.findings if one.criterion == "safe")

    assert (Decision.PASS, Decision.INCONCLUSIVE) == (wide.decision, narrow.decision)
    assert ("not-worse", 0.1, Decision.PASS) == (safe.question, safe.margin, safe.decision)
    assert "paired/margin-exact" == safe.decision_rule


def test_a_guardrail_that_became_worse_fails_the_comparison() -> None:
    """
    B is better in what is asked, and loses 15 of 60 pairs in its guardrail.
    """
    found = compare(
        passes(right=20, safe=0),
        passes(right=0, safe=15),
        criteria=["right", "safe"],
        guardrails={"safe": 0.02},
        trials=60,
    )

    assert Decision.FAIL is found.decision
    assert "is worse in safe" in found.verdict.statement


def test_a_guardrail_without_a_fixed_size_is_followed_pair_by_pair() -> None:
    found = compare(
        passes(right=400, safe=0),
        passes(right=0, safe=400),
        criteria=["right", "safe"],
        guardrails={"safe": 0.1},
        trials=None,
    )
    safe = next(one for one in found.findings if one.criterion == "safe")

    assert Decision.FAIL is found.decision
    assert ("not-worse", Decision.FAIL) == (safe.question, safe.decision)


def test_a_margin_that_no_exact_test_covers_is_answered_by_a_difference_from_0_only() -> None:
    """
    Runs that stopped because of what they saw: a better candidate is not worse by any margin, and
    two that are alike are not shown to be within one.
    """

    def run(service: Any) -> Any:
        criterion = tw.Criterion("right", tw.contains("right"), at_least=0.5)
        contract = tw.Contract("agent", service, [criterion], sampling=INPUTS)
        return tw.run(contract, seed=4, store=None).record

    poor, good = run(passes(right=400)), run(passes(right=0))
    better = tw.compare_runs(poor, good, margin=0.2)
    alike = tw.compare_runs(good, good, margin=0.2, labels=("A", "B"))

    assert "paired/anytime-bet" == better.findings[0].decision_rule
    assert Decision.INCONCLUSIVE is alike.decision
    assert "No exact test of a margin" in " ".join(alike.findings[0].caveats)
    told = better.findings[0].adjusted_p_value
    assert told is not None
    assert (told <= 0.05) is (better.decision is Decision.PASS)
