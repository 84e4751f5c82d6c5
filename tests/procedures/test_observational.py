"""Deciding what was observed: exact on the run, silent about the population."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialwise.model.evidence import Tally
from trialwise.model.verdict import Caution, Decision, ObservedRate
from trialwise.procedures.observational import decide_observational


@given(trials=st.integers(0, 10**7), data=st.data())
def test_any_failure_fails_and_no_trial_is_inconclusive(trials: int, data: st.DataObject) -> None:
    """Companion §1.4.5: PASS if K = n > 0, FAIL if K < n, INCONCLUSIVE if n = 0."""
    passed = data.draw(st.integers(0, trials))
    finding = decide_observational("c", Tally(trials=trials, passed=passed))

    if trials == 0:
        expected = Decision.INCONCLUSIVE
    else:
        expected = Decision.PASS if passed == trials else Decision.FAIL
    assert finding.decision is expected
    assert finding.procedure == "OBSERVATIONAL"


@pytest.mark.parametrize(("passed", "trials"), [(200, 200), (199, 200), (0, 200), (0, 0)])
def test_there_is_nothing_inferential_about_it(passed: int, trials: int) -> None:
    """No alpha, no cutoff, no p-value, no bound, no rule: nothing to add to an envelope."""
    finding = decide_observational("c", Tally(trials=trials, passed=passed))

    assert (finding.alpha, finding.design, finding.cutoff) == (None, None, None)
    assert (finding.p_value, finding.lower_bound, finding.rule) == (None, None, None)
    assert finding.decision_rule is None
    assert finding.observed_rate is ObservedRate.NOT_APPLICABLE
    assert finding.refusals == ()


@pytest.mark.parametrize(
    ("trials", "bound"),
    [(200, "1.5 %"), (300, "1 %"), (1000, "0.3 %"), (10_000_000, "3e-05 %"), (4, "75 %")],
)
def test_a_pass_makes_no_claim_about_the_population(trials: int, bound: str) -> None:
    """The count, the disclaimer, and 3/n for context under a model that is named."""
    statement = decide_observational("c", Tally(trials=trials, passed=trials)).statement

    assert f"No failure of c was observed in {trials:,} trials." in statement
    assert "no population-level claim" in statement
    assert "context only" in statement
    assert "i.i.d. Bernoulli" in statement
    assert f"95 % upper bound of 3/{trials:,} ({bound}) on" in statement
    assert "PASS" not in statement
    assert "confidence" not in statement


@pytest.mark.parametrize("trials", [1, 2, 3])
def test_a_bound_that_says_nothing_is_left_out(trials: int) -> None:
    """3/1 is not a probability, and a probability of at most 3/3 is no bound."""
    statement = decide_observational("c", Tally(trials=trials, passed=trials)).statement

    assert "bound" not in statement
    assert "no population-level claim" in statement


def test_a_failure_is_counted_and_not_explained_away() -> None:
    """How many of how many, and no bound beside it."""
    finding = decide_observational("c", Tally(trials=200, passed=197))

    assert "3 of 200" in finding.statement
    assert "bound" not in finding.statement


def test_a_trial_that_could_not_be_evaluated_is_a_failure() -> None:
    """Companion §1.4.5a: every trial counts, a transform failure too."""
    finding = decide_observational("c", Tally(trials=200, passed=199, evaluable=199))

    assert finding.decision is Decision.FAIL
    assert "1 of 200" in finding.statement


def test_no_observation_says_so() -> None:
    """Nothing observed is not a zero."""
    finding = decide_observational("c", Tally(trials=0, passed=0))

    assert finding.caution is Caution.ZERO_EVALUABLE
    assert finding.statement == "No observation was available in the run."
