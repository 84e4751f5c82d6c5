"""Calibration of the pass-rate rules: false alarms, false compliance and power."""

from __future__ import annotations

from collections.abc import Iterator

from trialwise.contrib.conformance.calibration.calibration_row import Row
from trialwise.procedures import compliance as compliance_procedure
from trialwise.procedures import regression as regression_procedure
from trialwise.stats.compliance_cutoffs import compliance_cutoff
from trialwise.stats.regression_cutoffs import design_false_alarm, design_power, regression_cutoff
from trialwise.stats.result_types import RULES, Rule

#: The worked example of companion §3.4, the boundary cases of §4, and where the baseline is small.
_BASELINES = (
    (951, 1000, 100),
    (951, 1000, 1000),
    (90, 100, 50),
    (90, 100, 100),
    (90, 100, 500),
    (285, 300, 100),
    (285, 300, 300),
    (99, 100, 100),
    (100, 100, 100),
    (1000, 1000, 100),
    (0, 100, 100),
)
_ALPHAS = (0.05, 0.01)
_MARGIN = 0.05
#: Where the largest false alarm over all common rates is looked for.
_RATES = tuple(i / 200 for i in range(1, 200))
_REQUIREMENTS = ((0.80, 50), (0.90, 100), (0.95, 150), (0.95, 1000), (0.99, 793), (0.995, 1000))


def regression_rows() -> Iterator[Row]:
    """The regression rules: size at the reference, with the baseline random, and at its worst."""
    for rule in RULES:
        for k, nb, n in _BASELINES:
            for alpha in _ALPHAS:
                if rule == "fisher" and n > nb:
                    continue  # refused before the first trial: there is no error rate to speak of
                yield from _regression(rule, k, nb, n, alpha)


def compliance_rows() -> Iterator[Row]:
    """The compliance rules: P(PASS) exactly at the requirement, and half-way from it to 1."""
    for rule in RULES:
        for required, n in _REQUIREMENTS:
            for alpha in _ALPHAS:
                design = compliance_cutoff(required, n, alpha=alpha, rule=rule)
                better = (required + 1) / 2
                yield Row(
                    section="compliance",
                    rule=compliance_procedure.DECISION_RULES[rule],
                    design=f"required {required:g}, n = {n}, cutoff {design.cutoff}",
                    quantity="P(PASS) at the requirement",
                    bound="at most",
                    nominal=alpha,
                    achieved=design.achieved_size,
                    claimed=rule != "wilson",
                    note=f"power {design.power(better):.4f} at {better:g}",
                )


def _regression(rule: Rule, k: int, nb: int, n: int, alpha: float) -> Iterator[Row]:
    design = regression_cutoff(k, nb, n, alpha=alpha, rule=rule)
    name = regression_procedure.DECISION_RULES[rule]
    label = f"baseline {k}/{nb}, n = {n}, cutoff {design.cutoff}"
    lower = max(0.0, design.reference_rate - _MARGIN)
    power = design_power(design.reference_rate, lower, nb, n, alpha=alpha, rule=rule)
    if rule == "wilson" and design.achieved_size is not None:
        yield Row(
            section="regression",
            rule=name,
            design=label,
            quantity="P(FAIL), baseline taken as known",
            bound="at most",
            nominal=alpha,
            achieved=design.achieved_size,
            claimed=False,
        )
    if design.design_false_alarm is not None:
        yield Row(
            section="regression",
            rule=name,
            design=label,
            quantity="P(FAIL), baseline random",
            bound="at most",
            nominal=alpha,
            achieved=design.design_false_alarm,
            claimed=rule != "wilson",
            note=f"power {power:.4f} at {lower:.4g}",
        )
    if rule != "wilson":
        worst = max(design_false_alarm(rate, nb, n, alpha=alpha, rule=rule) for rate in _RATES)
        yield Row(
            section="regression",
            rule=name,
            design=f"baseline of {nb}, n = {n}",
            quantity="largest P(FAIL) over common rates",
            bound="at most",
            nominal=alpha,
            achieved=worst,
            claimed=True,
        )
