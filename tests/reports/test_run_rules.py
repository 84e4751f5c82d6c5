"""What `check` says a run will do."""

from __future__ import annotations

from typing import Any

import pytest
from tests.revising import replace

import trialwise as tw
from trialwise.model.plan import Plan
from trialwise.pages.run_rules import render_rules
from trialwise.stats import Confusion


def planned(latency: tw.Latency | None = None, **options: Any) -> Plan:
    criterion = tw.Criterion("right", tw.contains("4"), at_least=0.8)
    contract = tw.Contract("sums", lambda _: "4", [criterion], latency=latency)
    return tw.check(contract, inputs=["2 + 2"], seed=1, **options)


def said(plan: Plan) -> str:
    return " ".join(render_rules(plan).split())


def test_limits_of_latency_are_among_the_rules() -> None:
    """With what they are held against, and whether they bind."""
    latency = tw.Latency.within(enforced=True, p50=0.25, p95=2.0)

    text = said(planned(latency, trials=100))

    assert "latency p50 of inputs: at most 0.25 s. " in text
    assert "latency p95 of inputs: at most 2 s. " in text


def test_an_advisory_limit_says_so_and_what_it_takes() -> None:
    """A decision that could end early does not."""
    text = said(planned(tw.Latency.within(p95=2.0)))

    assert (
        "latency p95 of inputs: at most 2 s, advisory; all planned trials are run, because of the "
        "percentile" in text
    )


def test_a_criterion_that_only_advises_says_why() -> None:
    """Before the first trial is paid."""
    plan = planned(trials=50)
    plan = replace(plan, criteria=(replace(plan.criteria[0], advisory=("nobody looked",)),))

    assert "advisory, it decides nothing: nobody looked" in said(plan)


def test_a_measured_judge_says_on_how_many_labels() -> None:
    """The corrected rate has a say, so that no rate alone tells the chance of a verdict."""
    errors = Confusion(true_pass=60, false_pass=1, true_fail=58, false_fail=1)
    plan = planned(trials=50)
    plan = replace(plan, criteria=(replace(plan.criteria[0], errors=errors),))

    assert "holds after correcting for the judge's errors, measured on 120 labels" in said(plan)
    assert "as required" not in said(plan)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("wilson", "SMOKE PASS with at least 3 of 3"),
        ("exact", "SMOKE PASS with at least 3 of 3"),
        ("fisher", "no count of 3 trials would PASS"),
    ],
)
def test_a_rule_that_shows_nothing_says_so(rule: Any, words: str) -> None:
    """A smoke run may be that small; no count beyond its trials is named."""
    text = said(planned(trials=3, intent=tw.model.Intent.SMOKE, rule=rule))

    assert words in text
