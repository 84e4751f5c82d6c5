"""Suites about whole verdicts: criteria, composites, baselines and scenarios."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from trialwise.contrib.conformance.adapters.latency_cases import sequence
from trialwise.contrib.conformance.adapters.rate_cases import level
from trialwise.contrib.conformance.field_comparison import Difference
from trialwise.contrib.conformance.reference_cases import Case
from trialwise.model.claim import Intent
from trialwise.model.evidence import Tally
from trialwise.model.plan import CriterionPlan, LatencyPlan
from trialwise.model.verdict import Caution, Decision, Dimension, Finding, LatencyFinding, Verdict
from trialwise.procedures.compliance import decide_compliance
from trialwise.procedures.composite import compose
from trialwise.procedures.latency import decide_latency
from trialwise.procedures.observational import decide_observational
from trialwise.procedures.registry import procedure_of
from trialwise.procedures.regression import decide_regression
from trialwise.stats.regression_cutoffs import RegressionCutoff
from trialwise.stats.result_types import Rule
from trialwise.stats.toolbox.error_envelopes import Direction, type_one_envelopes

#: The denominator policy that counts only evaluable trials. The companion has withdrawn it (every
#: trial counts); the cases still carry it, so it is honoured here and nowhere else.
CONDITIONAL = "CONDITIONAL_ON_EVALUABLE"

CONFORMANCE_STATUS = {
    "formula_value_fixtures": "passed",
    "calibration_fixtures": "not-published",
    "calibration_claim_permitted": False,
}


def older_verdict(case: Case) -> dict[str, Any]:
    """The withdrawn point-estimate rule with its Wald statistic: diagnostic, decides nothing."""
    from trialwise.decimals import as_written
    from trialwise.stats.binomial import normal_cdf

    inputs = case.inputs
    k, n, threshold = inputs["successes"], inputs["trials"], inputs["threshold"]
    z = (k / n - threshold) / math.sqrt(threshold * (1 - threshold) / n)
    return {
        "passed": k >= as_written(threshold) * n,
        "observed_rate": k / n,
        "test_statistic": z,
        "p_value": normal_cdf(z),
        "false_positive_probability": level(inputs),
    }


def exact_verdict(case: Case) -> dict[str, Any]:
    if case.approach == "test_verdict":
        return _test_verdict(case)
    inputs = case.inputs
    tally = Tally(trials=inputs["trials"], passed=inputs["successes"])
    findings: list[Finding] = []
    intent = Intent(inputs.get("intent", "VERIFICATION"))
    if "threshold" in inputs:
        alpha = inputs.get("compliance_alpha", inputs.get("alpha"))
        name = inputs.get("compliance_criterion", "compliance")
        findings.append(
            decide_compliance(
                name, tally, inputs["threshold"], alpha=alpha, rule="fisher", intent=intent
            )
        )
    if "baseline_trials" in inputs:
        alpha = inputs.get("regression_alpha", inputs.get("alpha"))
        name = inputs.get("regression_criterion", "regression")
        baseline = Tally(trials=inputs["baseline_trials"], passed=inputs["baseline_successes"])
        findings.append(decide_regression(name, tally, baseline, alpha=alpha, rule="fisher"))
    verdict = compose(findings)
    return _composite_fields(verdict) | {
        "verdict": verdict.decision,
        "configuration_error": list(verdict.refusals),
        "observed_rate": tally.rate,
        "criteria": [] if verdict.refusals else [_criterion_row(f) for f in findings],
    }


def composite_verdict(case: Case) -> dict[str, Any]:
    findings = [
        Finding(
            plan=CriterionPlan(
                criterion=entry["criterion_id"],
                procedure=entry["procedure"] or "OBSERVATIONAL",
                alpha=entry["alpha"],
                trials=0,
            ),
            decision=Decision(entry["verdict"]),
            tally=Tally(trials=0, passed=0),
        )
        for entry in case.inputs["criteria"]
    ]
    verdict = compose(findings)
    return _composite_fields(verdict) | {"composite_verdict": verdict.decision}


def criterion_inferential(case: Case, rule: Rule) -> dict[str, Any]:
    return _inferential(case.name, case.inputs, rule)[1]


def criterion_observational(case: Case) -> dict[str, Any]:
    return _observational(case.name, case.inputs)[1]


def baseline_object(case: Case) -> dict[str, Any]:
    """No outputs are published: what can be checked is that each baseline adds up."""
    problems: list[Difference] = []
    for entry in case.inputs["baseline"]["criteria"]:
        seen = entry["observation"]
        trials, rate = _denominator(entry | seen)
        unrated = entry["mode"] == "observational" or not trials
        observed = None if unrated else seen["K_c"] / trials
        for field, value in (("n_c", trials), ("r_obs", rate), ("p_hat_c", observed)):
            given = seen[field]
            close = given == value or (
                given is not None
                and value is not None
                and math.isclose(given, value, abs_tol=1e-12)
            )
            if not close:
                name = f"{entry['criterion_id']}.{field}"
                problems.append(Difference(field=name, expected=given, got=value))
    return {"(inconsistent)": tuple(problems)}


def scenario(case: Case, rule: Rule) -> dict[str, Any]:
    baseline, run = case.inputs["baseline"], case.inputs["test_run"]
    policies = {entry["criterion_id"]: entry for entry in baseline["criteria"]}
    for seen in run["criteria_observations"]:
        before = policies.get(seen["criterion_id"])
        if before and before["denominator_policy"] != seen["denominator_policy"]:
            return _cross_policy(seen["criterion_id"], before, seen)
    pairs = [
        _observational(seen["criterion_id"], seen)
        if seen["mode"] == "observational"
        else _inferential(seen["criterion_id"], seen, rule)
        for seen in run["criteria_observations"]
    ]
    latency = [_constraint(entry, rule) for entry in run.get("latency_constraints", ())]
    findings = [finding for finding, _ in pairs]
    verdict = compose(findings, [finding for finding, _ in latency])
    functional = compose(findings)
    rows = [
        _identity(seen, finding) | fields
        for seen, (finding, fields) in zip(run["criteria_observations"], pairs, strict=True)
    ]
    return _composite_fields(functional) | {
        "per_criterion_verdicts": rows,
        "composite_verdict": functional.decision,
        "latency_constraints": [row for _, row in latency],
        "latency_verdict": verdict.latency_decision,
        "test_verdict": verdict.decision,
        "test_triggering": _triggering(verdict),
        "conformance_status": CONFORMANCE_STATUS,
    }


def _test_verdict(case: Case) -> dict[str, Any]:
    inputs = case.inputs
    findings = [_functional(inputs["functional"])] if "functional" in inputs else []
    latency = [_constraint(entry, "fisher") for entry in inputs["latency_constraints"]]
    advisory = [Dimension(name) for name in inputs.get("advisory") or ()]
    verdict = compose(findings, [finding for finding, _ in latency], advisory=advisory)

    def mode(dimension: Dimension, decision: Decision | None) -> str | None:
        if decision is None:
            return None
        return "advisory" if dimension in verdict.advisory else "enforced"

    return {
        "criteria": [{"criterion_id": f.criterion, "verdict": f.decision} for f in findings],
        "latency_constraints": [row for _, row in latency],
        "rate_verdict": verdict.functional_decision,
        "latency_verdict": verdict.latency_decision,
        "functional_mode": mode(Dimension.FUNCTIONAL, verdict.functional_decision),
        "latency_mode": mode(Dimension.LATENCY, verdict.latency_decision),
        "test_verdict": verdict.decision,
        "triggering": _triggering(verdict),
        "configuration_error": list(verdict.refusals),
    }


def _functional(entry: Mapping[str, Any]) -> Finding:
    tally = Tally(trials=entry["trials"], passed=entry["successes"])
    name, alpha = entry["criterion_id"], entry["alpha"]
    if "baseline_trials" in entry:
        baseline = Tally(trials=entry["baseline_trials"], passed=entry["baseline_successes"])
        return decide_regression(name, tally, baseline, alpha=alpha, rule="fisher")
    intent = Intent(entry.get("intent", "VERIFICATION"))
    return decide_compliance(
        name, tally, entry["threshold"], alpha=alpha, rule="fisher", intent=intent
    )


def _constraint(entry: Mapping[str, Any], rule: Rule) -> tuple[LatencyFinding, dict[str, Any]]:
    latencies = sequence(entry["latencies"])
    intent = Intent(entry.get("intent", "VERIFICATION"))
    name, explicit = entry["constraint_id"], entry["source"] == "explicit"
    plan = LatencyPlan(
        percentile=name,
        level=entry["percentile"],
        alpha=entry["alpha"],
        limit_s=entry["threshold_ms"] if explicit else None,
        baseline_latencies_s=None if explicit else tuple(sequence(entry["baseline_latencies"])),
    )
    finding = decide_latency(plan, latencies, rule=rule, intent=intent)
    row = {
        "constraint_id": name,
        "source": entry["source"],
        "decisionRule": finding.decision_rule,
        "verdict": finding.decision,
    }
    return finding, row


def _denominator(entry: Mapping[str, Any]) -> tuple[int, float]:
    """The trials that count under the case's policy, and the share that was evaluable."""
    attempted, evaluable = entry["n_attempted"], entry["n_evaluable"]
    trials = evaluable if entry["denominator_policy"] == CONDITIONAL else attempted
    return trials, evaluable / attempted if attempted else 0


def _inferential(name: str, entry: Mapping[str, Any], rule: Rule) -> tuple[Finding, dict[str, Any]]:
    trials, share = _denominator(entry)
    tally = Tally(trials=trials, passed=entry["K_c"])
    if entry["procedure"] == "REGRESSION":
        baseline = Tally(trials=entry["baseline_trials"], passed=entry["baseline_successes"])
        finding = decide_regression(
            name,
            tally,
            baseline,
            alpha=level(entry),
            rule=rule,
            planned_trials=entry["n_attempted"],
        )
    else:
        finding = decide_compliance(
            name, tally, entry["p_req"], alpha=level(entry), rule=rule, planned_trials=0
        )
    fields = {
        "n_c": trials,
        "r_obs": share,
        "p_hat_c": tally.rate,
        "verdict": finding.decision,
        "statistical_verdict": finding.decision,
        "observed_rate_status": finding.observed_rate,
        "operational_caution_category": finding.caution,
    }
    return finding, fields | _procedure_fields(finding, entry)


def _procedure_fields(finding: Finding, entry: Mapping[str, Any]) -> dict[str, Any]:
    if procedure_of(finding).compares_baseline:
        design = finding.design if isinstance(finding.design, RegressionCutoff) else None
        return {
            "cutoff_integer": finding.cutoff,
            "displayed_rate": None if design is None else design.displayed_rate,
            "configuration_error": list(finding.refusals),
            "achieved_size": None if design is None else design.achieved_size,
            "wilson_lower_real": finding.lower_bound,
        }
    feasible = finding.caution not in (Caution.FEASIBILITY_REFUSED, Caution.ZERO_EVALUABLE)
    p_value = finding.p_value
    return {
        "k_min": finding.cutoff,
        "clopper_pearson_lower": finding.lower_bound,
        "wilson_lower_real": finding.lower_bound,
        "feasibility_gate": "ADMIT" if feasible else "REFUSE",
        "p_value": None if p_value is None else p_value.value,
        "p_value_method": "exact-binomial-upper-tail" if p_value is None else p_value.method,
        "p_value_tail": "P_{p=p_req}(K >= K_c)" if p_value is None else p_value.tail,
        "p_req": entry["p_req"],
    }


def _observational(name: str, entry: Mapping[str, Any]) -> tuple[Finding, dict[str, Any]]:
    trials, share = _denominator(entry)
    finding = decide_observational(name, Tally(trials=trials, passed=entry["K_c"]))
    policy = entry["denominator_policy"]
    statements = {
        Decision.PASS: f"No failure observed across {trials} trials drawn from the criterion's "
        f"validation set (policy: {policy}).",
        Decision.FAIL: f"{finding.tally.failed} failure(s) of the criterion were observed across "
        f"{trials} trials (policy: {policy}).",
        Decision.INCONCLUSIVE: "No conclusive observation of the criterion was available in the "
        "run.",
    }
    assert finding.decision is not None
    return finding, {
        "n_c": trials,
        "r_obs": share,
        "verdict": finding.decision,
        "statement": statements[finding.decision],
    }


def _identity(entry: Mapping[str, Any], finding: Finding) -> dict[str, Any]:
    return {
        "criterion_id": entry["criterion_id"],
        "mode": entry["mode"],
        "procedure": entry["procedure"],
        "denominator_policy": entry["denominator_policy"],
        "alpha": finding.alpha,
        "decisionRule": finding.decision_rule,
    }


def _criterion_row(finding: Finding) -> dict[str, Any]:
    return {
        "criterion_id": finding.criterion,
        "procedure": finding.procedure,
        "decisionRule": finding.decision_rule,
        "alpha": finding.alpha,
        "verdict": finding.decision,
    }


def _composite_fields(verdict: Verdict) -> dict[str, Any]:
    # The reference cases add up nominal levels, and none where a part was refused; verdicts report
    # achieved errors.
    directions: dict[str | None, Direction] = {
        "false-compliance": "compliance",
        "false-degradation": "regression",
    }
    nominal = type_one_envelopes(
        (directions[family], one.alpha)
        for one in (() if verdict.refusals else verdict.findings)
        if (family := procedure_of(one).error_family) in directions and one.alpha is not None
    )
    return {
        "triggering_criteria": [trigger.name for trigger in verdict.triggers],
        "false_compliance_envelope": nominal.false_compliance,
        "false_degradation_signal_envelope": nominal.false_degradation_signal,
    }


def _triggering(verdict: Verdict) -> list[dict[str, str]]:
    return [{"kind": trigger.kind, "id": trigger.name} for trigger in verdict.triggers]


def _cross_policy(name: str, before: Mapping[str, Any], seen: Mapping[str, Any]) -> dict[str, Any]:
    """Two denominators estimate two quantities: the comparison does not exist (§1.4.5a, §8.4.5)."""
    reason = (
        f"Cross-policy comparison rejected: {name[:1].upper()}{name[1:]} carries "
        f"denominator_policy {before['denominator_policy']} on the baseline but "
        f"{seen['denominator_policy']} on the test run."
    )
    return {
        "composite_verdict": "STRUCTURAL_ERROR",
        "structural_error": {"reason": reason, "conflicting_criteria": [name]},
        "conformance_status": CONFORMANCE_STATUS,
    }


VERDICTS = {
    ("verdict", "wilson"): older_verdict,
    ("verdict", "fisher"): exact_verdict,
    ("composite_verdict", "wilson"): composite_verdict,
    ("composite_verdict", "fisher"): composite_verdict,
    ("criterion_verdict_inferential", "wilson"): lambda c: criterion_inferential(c, "wilson"),
    ("criterion_verdict_inferential", "fisher"): lambda c: criterion_inferential(c, "fisher"),
    ("criterion_verdict_observational", "wilson"): criterion_observational,
    ("criterion_verdict_observational", "fisher"): criterion_observational,
    ("baseline_object", "wilson"): baseline_object,
    ("baseline_object", "fisher"): baseline_object,
    ("multi_criteria_scenario_consult_advice", "wilson"): lambda c: scenario(c, "wilson"),
    ("multi_criteria_scenario_consult_advice", "fisher"): lambda c: scenario(c, "fisher"),
}
