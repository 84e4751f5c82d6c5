"""What other rules say of the same comparison with a baseline (companion §3.2, §4.5).

The companion names three that count the baseline's uncertainty: the posterior predictive rule, and
the non-inferiority tests of Farrington and Manning and of Miettinen and Nurminen. All three are
approximate, so each stands beside the error that it really makes. None of them decides here.
"""

from __future__ import annotations

from trialwise.decimals import RELATIVE_BAND
from trialwise.documents.blocks import Section
from trialwise.documents.numbers import as_computed, as_percent, as_points, as_probability
from trialwise.model.verdict import Finding
from trialwise.procedures.explaining.analysis_sections import Rows, make_section
from trialwise.stats.margin_tests import METHODS, Method, noninferiority, noninferiority_size
from trialwise.stats.regression_cutoffs import RegressionCutoff
from trialwise.stats.result_types import Undefined
from trialwise.stats.toolbox.predictive import predictive_cutoff

_NAMES: dict[Method, str] = {
    "farrington-manning": "Farrington–Manning",
    "miettinen-nurminen": "Miettinen–Nurminen",
}
#: Enumerating the true error of larger comparisons takes seconds.
_LARGEST = 3_000


def explain_other_rules(finding: Finding, design: RegressionCutoff) -> tuple[Section, ...]:
    """Explain what the other rules say; nothing where the trials did not all run, or are many.

    Args:
        finding: Of a comparison with a baseline.
        design: The cutoff that decided it.
    """
    tally, lower = finding.tally, finding.threshold.alternative_rate
    complete = tally.trials == design.trials and design.cutoff is not None
    if not complete or lower is None or design.trials + design.baseline_trials > _LARGEST:
        return ()
    rate = design.baseline_successes / design.baseline_trials
    rows = _list_predictive(finding, design)
    margin = round(rate - lower, 12)
    if 0 < margin <= rate:
        for method in METHODS:
            rows += _list_margin_test(finding, design, margin, method)
    rows.append(("", "Approximate, for comparison. They do not decide this criterion."))
    return (make_section("OTHER RULES (§3.2, §4.5)", rows),)


def _list_predictive(finding: Finding, design: RegressionCutoff) -> Rows:
    baseline = design.baseline_successes, design.baseline_trials
    found = predictive_cutoff(*baseline, design.trials, alpha=design.alpha)
    says = "PASS" if finding.tally.passed >= found.cutoff else "FAIL"
    rows = [
        (
            "Posterior predictive",
            f"{says}: K ≥ {found.cutoff} of {design.trials} PASSes; beta-binomial, Jeffreys prior",
        )
    ]
    if not isinstance(found.design_false_alarm, Undefined):
        event = "of runs FAIL if nothing has changed"
        rows.append(("", _compare(found.design_false_alarm, design.alpha, event)))
    return rows


def _list_margin_test(
    finding: Finding, design: RegressionCutoff, margin: float, method: Method
) -> Rows:
    tally, alpha = finding.tally, design.alpha
    found = noninferiority(
        design.baseline_successes,
        design.baseline_trials,
        tally.passed,
        tally.trials,
        margin=margin,
        alpha=alpha,
        method=method,
    )
    size = noninferiority_size(
        design.baseline_trials,
        design.trials,
        margin=margin,
        baseline_rate=design.baseline_successes / design.baseline_trials,
        alpha=alpha,
        method=method,
    )
    shown = "shown" if found.noninferior else "not shown"
    claim = f"a loss of less than {as_points(margin)} is {shown}, p = {as_computed(found.p_value)}"
    event = f"of runs claim it after a loss of {as_points(margin)}"
    return [(_NAMES[method], claim), ("", _compare(size, alpha, event))]


def _compare(actual: float, alpha: float, event: str) -> str:
    """Say what a rule really does, and where that is more than its level."""
    exceeds = actual > alpha * (1 + RELATIVE_BAND)
    above = f", more than {as_percent(alpha)}" if exceeds else f", at most {as_percent(alpha)}"
    return f"{as_probability(actual)} {event}{above}"
