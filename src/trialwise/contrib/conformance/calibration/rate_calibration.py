"""Calibration of the pass-rate rules: false alarms, false compliance and power."""

from __future__ import annotations

from collections.abc import Iterator

from trialwise.contrib.conformance.calibration.calibration_row import Row
from trialwise.procedures import compliance as compliance_procedure
from trialwise.procedures import regression as regression_procedure
from trialwise.procedures.regression_designs import SCHEME_RULES
from trialwise.stats.compliance_cutoffs import compliance_cutoff
from trialwise.stats.regression_cutoffs import design_false_alarm, design_power, regression_cutoff
from trialwise.stats.result_types import RULES, Rule
from trialwise.stats.staged_regression import apply_scheme, average_chances, find_level, find_scheme

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
#: Baselines of comparisons that are decided after every trial, and the loss that they look for.
_STAGED_BASELINES, _LOSS = ((90, 100), (285, 300), (951, 1000)), 0.10
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
    for k, nb in _STAGED_BASELINES:
        yield from _staged_regression(k, nb)


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


def _staged_regression(k: int, nb: int) -> Iterator[Row]:
    scheme = find_scheme(nb, _LOSS)
    assert scheme is not None
    rate, lower = k / nb, k / nb - _LOSS
    design = apply_scheme(scheme, k, lower)
    same, worse = (average_chances(design, rate, now) for now in (rate, lower))
    label = f"baseline {k}/{nb}, at most {design.trials} trials"
    note = f"{same.mean_trials:.1f} trials; power {worse.fails:.4f} at {lower:.4g}"
    for quantity, achieved, said in (
        ("P(FAIL), baseline random", same.fails, note),
        ("largest P(FAIL) over common rates", find_level(scheme), ""),
    ):
        yield Row(
            section="regression",
            rule=SCHEME_RULES[0],
            design=label if said else f"baseline of {nb}, after every trial",
            quantity=quantity,
            bound="at most",
            nominal=scheme.alpha,
            achieved=achieved,
            claimed=True,
            note=said,
        )
