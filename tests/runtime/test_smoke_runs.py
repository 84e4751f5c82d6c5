"""Smoke runs that are too small for their requirement (companion §5.7.3)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import trialwise as tw
from trialwise.model.verdict import Decision
from trialwise.procedures.compliance import PROCEDURE


def contract(passing: int) -> tw.Contract:
    def ask(_text: str, index: int) -> str:
        return "ok" if index < passing else "bad"

    promise = tw.Criterion("up", tw.equals("ok"), at_least=0.95, origin="SLA")
    return tw.Contract("x", ask, [promise])


def smoke(passing: int, rule: str = "exact") -> tw.Result:
    given = {"trials": 20, "intent": "smoke", "rule": rule}
    return tw.run(contract(passing), inputs=["a"], store=None, progress=False, **given)  # type: ignore[arg-type]


def exact_bound(passed: int, trials: int) -> float:
    """The rate at which a run of this many trials has no failure with a chance of 5 %."""
    assert passed == trials
    return float(0.05 ** (1 / trials))


def wilson_bound(passed: int, trials: int) -> float:
    assert passed == trials
    return trials / (trials + 1.6448536269514722**2)


@pytest.mark.parametrize(("rule", "bound"), [("exact", exact_bound), ("wilson", wilson_bound)])
def test_a_small_smoke_run_passes_on_the_observed_rate_and_says_what_it_shows(
    rule: str, bound: Callable[[int, int], float]
) -> None:
    """20 of 20 at 95 %: labelled, with the bound by its closed form."""
    finding = smoke(20, rule).verdict.findings[0]

    assert (finding.decision, finding.label) == (Decision.PASS, "SMOKE PASS")
    shown = int(100 * bound(20, 20))
    assert finding.statement == (
        f"smoke: 20 of 20 passed; shows at least {shown} %, not the required 95 %."
    )


def test_a_small_smoke_run_fails_where_a_rate_below_the_required_one_is_shown() -> None:
    """19 of 20 is 95 %. At 95 %, 17 or fewer pass in 7.5 % of runs, 16 or fewer in 1.6 %."""
    decisions = [str(smoke(passed).decision) for passed in (19, 18, 17, 16)]

    assert decisions == ["PASS", "INCONCLUSIVE", "INCONCLUSIVE", "FAIL"]


def test_fishers_rule_set_fails_a_small_smoke_run_as_its_reference_cases_do() -> None:
    """0.95^59 is the first power at most 5 %."""
    finding = smoke(20, "fisher").verdict.findings[0]

    assert finding.decision is Decision.FAIL
    assert 0.95**59 <= 0.05 < 0.95**58
    assert finding.statement == "20 of 20 passed; 20 trials cannot show 95 %, 59 can."


def test_the_text_and_the_plan_say_the_same_of_a_small_smoke_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Beforehand in the plan, afterwards beside the label."""
    plan = tw.check(contract(20), inputs=["a"], trials=20, intent="smoke")
    described = PROCEDURE.describe_rule(plan.criteria[0])
    smoke(20).show()
    text = capsys.readouterr().out

    assert "SMOKE PASS with at least 19 of 20, on the observed rate alone" in described
    assert "SMOKE PASS" in text
    assert "shows at least 86 %, not the required 95 %" in " ".join(text.split())
