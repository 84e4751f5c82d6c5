"""Graded criteria and services that do not reply: every counted trial is one score."""

from __future__ import annotations

import math
from typing import Any

import pytest

import trialwise as tw
from trialwise.model.trial import CheckResult, FailReason, Outcome, Trial
from trialwise.procedures.criterion_rows import Rows


def _raise(_: str) -> str:
    raise RuntimeError("no reply")


def _refuse(_: str) -> str:
    raise ConnectionRefusedError("refused")


def _run(service: Any, *criteria: tw.Criterion, **options: Any) -> Any:
    contract = tw.Contract("graded", service, criteria)
    return tw.run(contract, inputs=["a", "b"], store=None, progress=False, seed=1, **options)


def _graded(**question: Any) -> tw.Criterion:
    return tw.Criterion("graded", [tw.contains("yes"), tw.length(maximum=9)], **question)


@pytest.mark.parametrize("trials", [5, 8, 40, 41])
@pytest.mark.parametrize("passed", [0, 3])
def test_a_trial_without_a_score_is_one_score_of_its_outcome(trials: int, passed: int) -> None:
    """Whatever the number of trials: a pass is a score of 1, a failure a score of 0."""
    failed = CheckResult.fail("no", reason=FailReason.NO_VALUE)
    rows = Rows.of(
        [
            Trial(
                experiment="inputs",
                index=index,
                input_id="a",
                seed=index,
                outcomes=(
                    Outcome(criterion="c", result=CheckResult.ok() if index < passed else failed),
                ),
            )
            for index in range(trials)
        ]
    )
    assert list(rows.scores) == [1.0] * passed + [0.0] * (trials - passed)


@pytest.mark.parametrize("trials", [40, 41])
def test_a_service_that_never_replies_has_as_many_scores_as_trials(trials: int) -> None:
    """Its mean is 0, and the bound on it is that of this many zeros, not of an eighth of them."""
    (found,) = _run(_raise, _graded(mean_at_least=0.5, trials=trials)).verdict.findings

    assert (found.decision, found.scores.mean, found.scores.trials) == ("FAIL", 0.0, trials)
    # No bound of level 5 % on the mean of n zeros lies below that of n failures, 1 - 0.05^(1/n),
    # and a sound one is not far above it: five zeros would give 0.45.
    least = 1 - 0.05 ** (1 / trials)
    assert least <= found.interval.high <= 2 * least


@pytest.mark.parametrize("trials", [40, 41])
@pytest.mark.parametrize(
    "question", [{"at_least": 0.5, "pass_at": 0.7}, {"report_only": True, "pass_at": 0.7}]
)
def test_a_share_of_passing_scores_counts_every_trial_too(
    trials: int, question: dict[str, Any]
) -> None:
    """Beside a criterion that runs all trials, so that nothing ends early."""
    fixed = tw.Criterion("fixed", tw.contains("yes"), at_least=0.5, trials=trials)
    result = _run(_raise, fixed, _graded(**question), curtail=False, trials=trials)
    found = result.verdict.findings[1]

    assert (found.scores.trials, found.scores.mean) == (trials, 0.0)
    assert found.counts.intent_to_treat.trials == trials


@pytest.mark.parametrize("refused", [13, 41])
def test_an_outage_under_intent_to_treat_is_a_score_of_zero(refused: int) -> None:
    """Each refused call is one trial of score 0; the others keep theirs."""
    calls = iter(range(1000))

    def service(_: str) -> str:
        if next(calls) >= 41 - refused:
            raise ConnectionRefusedError("refused")
        return "yes"

    result = _run(
        service,
        _graded(mean_at_least=0.5, trials=41),
        analysis="intent-to-treat",
        retries=0,
        abort=tw.model.AbortRule(max_error_rate=1.0),
    )
    (found,) = result.verdict.findings
    assert found.scores.trials == 41
    assert math.isclose(found.scores.mean, (41 - refused) / 41)


def test_an_outage_is_left_out_of_the_scores_where_it_is_not_counted() -> None:
    """A service that is never reached has no score, and nothing is decided."""
    (found,) = _run(_refuse, _graded(mean_at_least=0.5, trials=41), retries=0).verdict.findings

    assert (found.decision, found.scores) == ("INCONCLUSIVE", None)
