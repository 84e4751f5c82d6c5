"""A marker accepts what a suite's criterion and contract accept, written in the same ways."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trialwise.declarations.signatures import setting_keys, settings_of
from trialwise.model.baseline import CovariateKind
from trialwise.model.claim import Claim, PopulationClaim
from trialwise.model.contract import MARKER_PARTS, Contract
from trialwise.model.criterion import Criterion
from trialwise.model.options import Budget, RunOptions
from trialwise.plugin.session import Asked, MarkerError, Settings, read_marker
from trialwise.suite.keys import CONTRACT

NOTHING = Settings(
    forced={},
    usual={},
    budget=Budget(),
    store=Path(),
    baselines=Path(),
    inconclusive="fail",
    html=None,
    summary=None,
    measure=False,
    resume=False,
)


def asked(*args: Any, **kwargs: Any) -> Asked:
    return read_marker(args, kwargs, settings=NOTHING, body=bool)


def test_amounts_are_read_as_a_suite_reads_them() -> None:
    """Percentages, times with units and money."""
    found = asked(
        at_least="90%",
        margin="5%",
        max_trials=50,
        budget={"time": "2m", "money": "$1.50"},
        latency={"p95": "500ms", "p50": 0.2},
    )

    assert (0.9, 0.05) == (found.criteria[0].at_least, found.criteria[0].margin)
    assert (120.0, 1.5) == (found.options.budget.seconds, found.options.budget.usd)
    limits = {one.percentile: one.limit_s for one in found.parts["latency"].constraints}
    assert {"p95": 0.5, "p50": 0.2} == limits


def test_fields_and_keys_are_both_understood() -> None:
    """`ref` and `contract_ref` are one, and so are `class` and `category`."""
    (one,) = asked(at_least=0.9, ref="SLA 4.3", **{"class": "SAFETY"}).criteria
    (other,) = asked(at_least=0.9, contract_ref="SLA 4.3", category="SAFETY").criteria

    assert ("SLA 4.3", "SAFETY") == (one.contract_ref, one.category)
    assert (one.contract_ref, one.category) == (other.contract_ref, other.category)


def test_the_method_of_an_early_decision_can_be_chosen() -> None:
    """For all criteria, and for one of them otherwise."""
    found = asked(
        at_least=0.9,
        margin=0.1,
        method="wald",
        polite={"at_least": 0.8, "margin": 0.1, "method": "fixed"},
    )

    assert ["wald", "fixed"] == [one.method for one in found.criteria]


def test_the_parts_of_a_contract_are_built() -> None:
    """Claim, covariates, factors and gates, each as a suite would write it."""
    found = asked(
        20,
        never_fails=True,
        claim={"population": "no-generalisation"},
        covariates=["weekday", {"name": "region", "kind": "region", "value": "eu"}],
        factors={"model": "small-1", "temperature": 0.7},
        reliability={},
        stability={"exclude": ["redundancy"]},
        metrics={"k": [1, 3], "expect": [{"target": "metrics.pass_rate", "matcher": {"exact": 1}}]},
    )
    contract = Contract("c", len, found.criteria, sampling=found.sampling, **found.parts)

    assert contract.claim.population is PopulationClaim.NO_GENERALISATION
    assert [CovariateKind.WEEKDAY, CovariateKind.REGION] == [
        one.kind for one in contract.covariates
    ]
    assert {"model": "small-1", "temperature": "0.7"} == dict(contract.factors)
    assert {"reliability", "stability", "metrics"} == {gate.name for gate in contract.gates}


def test_an_object_of_the_model_is_taken_as_it_is() -> None:
    """Who builds a claim in Python need not write it as a mapping."""
    claim = Claim(population=PopulationClaim.NO_GENERALISATION)

    assert claim is asked(20, never_fails=True, claim=claim).parts["claim"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"claim": {"population": "everyone"}}, "`population` must be `fixed-inputs`"),
        ({"claim": {"populaton": "x"}}, "unknown key `populaton`; did you mean `population`?"),
        ({"stability": {"exclude": ["beauty"]}}, "an item of `exclude` must be"),
        ({"latency": {"p95": "soon"}}, "`p95` must be a time with its unit"),
        ({"method": "magic"}, "method must be one of"),
        ({"timeout": "1s"}, "has no 'timeout'"),
    ],
)
def test_what_a_part_cannot_be_is_refused(given: dict[str, Any], said: str) -> None:
    """With the words of the suite."""
    with pytest.raises(MarkerError, match=said.replace("?", r"\?")):
        asked(20, never_fails=True, **given)


def test_a_marker_declares_what_a_trial_costs() -> None:
    """A limit on money advises it where the body does not record a cost."""
    found = asked(20, never_fails=True, cost_per_trial="$0.05", budget={"money": "$2"})

    assert (0.05, 2) == (found.options.cost_per_trial_usd, found.options.budget.usd)


def test_a_marker_knows_every_key_of_a_contract_and_a_criterion() -> None:
    """But for what only a suite file, or a service that is called over a network, has."""
    runs = {
        key.name for key in setting_keys(RunOptions) if settings_of(RunOptions)[key.field].in_pytest
    }
    criterion = {key.name for key in setting_keys(Criterion)} - {"sampling"}
    others = {"name", "description", "service", "samplings", "models", "activity", "tags"}
    others.add("arms")  # `trialwise.compare` takes contracts
    others |= {"before_each", "graders"}  # fixtures and named criteria do that
    others.add("inconclusive")  # `--trialwise-inconclusive` does that
    network = {"rate", "timeout", "retries", "abort"}

    known = {*runs, *criterion, *MARKER_PARTS, "inputs", "criteria"}
    assert {key.name for key in CONTRACT.keys} <= known | others | network


def test_a_named_criterion_may_only_be_reported() -> None:
    """The body's own may not: a test that decides nothing could not pass."""
    found = asked(at_least=0.9, tone={"report_only": True})

    assert [False, True] == [one.report_only for one in found.criteria]
    with pytest.raises(MarkerError, match="report_only"):
        asked(report_only=True)
