"""Calibration of the composite envelopes: the chance that any of several criteria errs.

Each contract holds criteria of one direction, each exactly at its requirement or reference. Three
joint laws: independent criteria; positively correlated ones, which share half of their trials'
fate (where only the test is random) or coincide (where the baseline is too); and the worst law
there is, which makes the errors disjoint and attains the union bound. The envelope Σα must hold
under all three.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from trialwise.contrib.conformance.calibration.calibration_row import Row
from trialwise.stats.compliance_cutoffs import compliance_cutoff
from trialwise.stats.regression_cutoffs import regression_cutoff
from trialwise.stats.result_types import RULES, Rule
from trialwise.stats.toolbox.binomial_weights import binomial_pmfs
from trialwise.stats.toolbox.error_envelopes import Envelope, envelope

#: How often two criteria of one reply share their fate, in the positively correlated regime.
_SHARED = 0.5
_TRIALS = 100
_ALPHA = 0.05


def envelope_rows() -> Iterator[Row]:
    """Two- and three-criterion contracts, both directions and rule sets, three dependences."""
    for criteria in (2, 3):
        for rule in RULES:
            yield from _compliance(criteria, rule)
            yield from _regression(criteria, rule)


def _compliance(criteria: int, rule: Rule) -> Iterator[Row]:
    design = compliance_cutoff(0.9, _TRIALS, alpha=_ALPHA, rule=rule)
    assert design.cutoff is not None
    erring = range(design.cutoff, _TRIALS + 1)
    yield from _rows(
        f"{criteria} compliance criteria ({rule}), required 0.9, n = {_TRIALS}",
        "false-compliance envelope",
        _regimes(criteria, design.achieved_size)
        | {"positively correlated": _shared_fate(criteria, design.required_rate, erring)},
        criteria=criteria,
        claimed=rule != "wilson",
    )


def _regression(criteria: int, rule: Rule) -> Iterator[Row]:
    design = regression_cutoff(951, 1000, _TRIALS, alpha=_ALPHA, rule=rule)
    assert design.cutoff is not None
    assert design.achieved_size is not None
    regimes = _regimes(criteria, design.achieved_size)
    if rule == "wilson":
        # The reference is taken as known, so only the test's trials can be shared.
        erring = range(design.cutoff)
        shared = _shared_fate(criteria, design.reference_rate, erring)
        regimes |= {"positively correlated": shared}
    yield from _rows(
        f"{criteria} regression criteria ({rule}), baseline 951/1000, n = {_TRIALS}",
        "false-degradation-signal envelope",
        regimes,
        criteria=criteria,
        claimed=rule != "wilson",
    )


def _regimes(criteria: int, single: float) -> dict[str, float]:
    """P(any errs) by regime; full positive correlation makes the criteria one and the same."""
    return {
        "independent": 1 - (1 - single) ** criteria,
        "positively correlated": single,
        "adversarial": min(1.0, criteria * single),
    }


def _rows(
    design: str, quantity: str, regimes: dict[str, float], *, criteria: int, claimed: bool
) -> Iterator[Row]:
    bound = envelope([_ALPHA] * criteria)
    assert isinstance(bound, Envelope)
    for regime, achieved in regimes.items():
        yield Row(
            section="envelopes",
            rule=regime,
            design=design,
            quantity=quantity,
            bound="at most",
            nominal=bound.capped,
            achieved=achieved,
            claimed=claimed,
        )


def _shared_fate(criteria: int, rate: float, erring: range) -> float:
    """P(any errs) when each trial is shared by all criteria with probability ½, else their own.

    Given m shared trials with a successes, the criteria's remaining counts are independent, so
    the joint probability is a product under two binomial sums.
    """
    clean = []
    for shared, chance in enumerate(binomial_pmfs(_TRIALS, _SHARED)):
        if chance < 1e-18:
            continue
        own = binomial_pmfs(_TRIALS - shared, rate)
        for successes, weight in enumerate(binomial_pmfs(shared, rate)):
            if weight < 1e-18:
                continue
            errs = math.fsum(own[k - successes] for k in erring if 0 <= k - successes < len(own))
            clean.append(chance * weight * max(0.0, 1 - errs) ** criteria)
    return 1 - math.fsum(clean)
