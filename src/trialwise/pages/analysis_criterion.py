"""One criterion's block: what was asked, what was seen, what it was held against, what follows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from trialwise.documents.blocks import Facts, Section
from trialwise.documents.numbers import STOPS, as_computed, as_percent, as_probability
from trialwise.model.claim import Claim, TargetEstimand
from trialwise.model.evidence import Breakdown, Diagnostics, Tally
from trialwise.model.verdict import Caution, Decision, Finding, Verdict
from trialwise.pages import finding_facts as facts
from trialwise.pages.judge_facts import find_labels, list_judge_rows
from trialwise.procedures import explanations
from trialwise.procedures.chances import characterize
from trialwise.procedures.registry import procedure_of
from trialwise.stats.cluster_estimators import ClusterEstimate, StratifiedEstimate
from trialwise.stats.guardrail_bounds import GuardrailBound, ResidualHarm
from trialwise.stats.result_types import Interval, Undefined

#: What is said of a PASS's power, which holds at one true rate.
_POWERS = (Caution.ADEQUATE_POWER, Caution.POWER_NOT_SHOWN)
_NO_CLAIM = (
    "A claim about the population needs an inferential criterion of adequate size, or "
    "architectural discharge (§1.4.5b)."
)


def list_criterion_sections(finding: Finding, verdict: Verdict) -> Iterator[Section]:
    """List the sections of one criterion.

    What only its procedure can say comes from the procedure's `explain`: the question first, then
    what the criterion is held against and the numbers of its rule.
    """
    # The question stands before the data: a reader has to see that it was not chosen after them.
    question, *explained = procedure_of(finding).explain(finding)
    described = Facts(pairs=tuple(_describe_sampling(finding, verdict)))
    yield replace(question, blocks=(*question.blocks, described))
    yield explanations.make_section("OBSERVED DATA", _list_observed(finding, verdict))
    if finding.by_input:
        yield explanations.make_section("BY INPUT", _list_inputs(finding))
    if isinstance(finding.estimator, ClusterEstimate):
        yield explanations.make_section("ESTIMATOR", _list_clusters(finding.estimator))
    elif isinstance(finding.estimator, StratifiedEstimate):
        yield explanations.make_section("ESTIMATOR", _list_strata(finding.estimator, verdict.claim))
    # The numbers of the rule come after the data that it was applied to, and before the verdict.
    yield from explained
    if find_labels(finding) is not None:
        yield explanations.make_section("JUDGE", list(list_judge_rows(finding)))
    yield from _list_guardrail_sections(finding, verdict)
    yield explanations.make_section("VERDICT", _list_decision(finding))
    if finding.diagnostics is not None:
        yield explanations.make_section("DIAGNOSTICS", _list_diagnostics(finding.diagnostics))


def _describe_sampling(finding: Finding, verdict: Verdict) -> Iterator[tuple[str, str]]:
    """Describe whose trials were counted, and which class of failure they may show."""
    for one in verdict.experiments:
        # Criteria may share an experiment; each names whose trials it counted, as it is read alone.
        if one.name == finding.experiment:
            named = f"{one.identifier} {one.version}".strip()
            described = f", {one.description}" if one.description else ""
            yield "Sampling", f"{named} (role: {one.role}{described})"
    if finding.category:
        yield "Category", finding.category


def _list_observed(finding: Finding, verdict: Verdict) -> explanations.Rows:
    tally, every = facts.pick_tally(finding), finding.intent_to_treat or finding.tally
    evaluable = every.trials if every.evaluable is None else every.evaluable
    # A criterion that uses the trials of others may have seen more of them than it planned.
    known = finding.planned_trials is not None and every.trials <= finding.planned_trials
    planned = f" of {finding.planned_trials} planned" if known else ""
    observed = f"{evaluable / every.trials:.3f}" if every.trials else ""
    later, context = facts.write_later(finding), facts.write_context(finding)
    # Which trials are in the denominator decides what the rate means: it is said beside the number,
    # not in a footnote (§10.2).
    counts = "every trial counts" if tally.trials == every.trials else f"{verdict.analysis}"
    # Where nothing is claimed about a rate, the counts say everything.
    has_rate = tally.rate is not None and procedure_of(finding).claims_rate
    return [
        ("Attempted trials", f"{every.trials}{planned}"),
        ("Evaluable trials", str(evaluable)),
        ("Observation rate (r_obs)", observed),
        ("Denominator (n)", f"{tally.trials} ({'the trials that decided' if later else counts})"),
        ("Successes (K)", str(tally.passed)),
        ("Failures", str(tally.failed)),
        ("Observed rate", f"p̂ = {tally.rate:.6f}" if has_rate else ""),
        # Inputs that are decided one by one have these counts of their own.
        *([] if finding.by_input else _list_reasons(finding.breakdown)),
        *([] if finding.by_input else _list_other_counts(finding)),
        # A required rate decides here; an earlier measurement beside it must not look like the bar.
        ("Baseline, for context", f"{context}; it decides nothing here" if context else ""),
        ("Inputs asked", facts.write_coverage(finding)),
        ("Inputs not asked", facts.list_unasked(finding)),
        ("Stopped", "" if finding.stop is None else STOPS[finding.stop].label),
        ("Later trials", later),
    ]


def _list_reasons(breakdown: Breakdown | None) -> explanations.Rows:
    if breakdown is None:
        return []
    found = breakdown.condition, breakdown.transform, breakdown.no_value
    named = zip(("condition", "transform", "no-value"), found, strict=True)
    counts = (f"{name} {count}" for name, count in named if count)
    return [
        ("FAILs by reason", ", ".join(counts) or "none"),
        ("Trials by error class", ", ".join(f"{k} {n}" for k, n in breakdown.errors.items())),
        ("Passed after a retry", str(breakdown.retried) if breakdown.retried else ""),
    ]


def _list_other_counts(finding: Finding) -> explanations.Rows:
    """List the counts that did not decide, where they differ from those that did."""
    other = (("Intent-to-treat", finding.intent_to_treat), ("Per protocol", finding.per_protocol))
    return [
        (label, _write_counts(tally))
        for label, tally in other
        # The same counts under another name would look like a second result.
        if tally is not None and tally.trials != finding.all_trials.trials
    ]


def _write_counts(tally: Tally) -> str:
    rate = "" if tally.rate is None else f" = {tally.rate:.6f}"
    return f"{tally.passed} of {tally.trials}{rate}"


def _list_inputs(finding: Finding) -> explanations.Rows:
    rows = []
    for part in finding.by_input:
        bound = "" if part.lower_bound is None else f", at least {as_computed(part.lower_bound)}"
        stop = "" if part.stop is None else f", {STOPS[part.stop].label}"
        counts = f"{_write_counts(facts.pick_tally(part))}{bound}{stop}"
        rows.append((part.input_id or "?", f"{facts.pick_badge(part)}, {counts}"))
    # Many decisions at one level each: together they err more often than the level says.
    note = "Each input is decided on its own at the configured level; the worst decides."
    return [*rows, ("", note)]


def _list_decision(finding: Finding) -> explanations.Rows:
    weight = "advisory: reported, and left out of the run's verdict" if finding.advisory else ""
    if finding.decision is None:
        refused = f"{', '.join(finding.refusals)}. {finding.statement}"
        return [("Weight", weight), ("Refused", refused)]
    procedure, caveats = procedure_of(finding), [("Caveat", one) for one in finding.caveats]
    if not procedure.claims_rate:
        # One line suffices: the verdict is exact on the observation (§10.2).
        return [
            ("Weight", weight),
            ("Result", f"{finding.decision} (observational)"),
            ("Shown as", finding.label),
            ("Statement", finding.statement),
            ("No population claim", _NO_CLAIM),
            *caveats,
        ]
    # A level belongs to the rule in the long run and is no probability of this verdict (§7.2).
    has_level = finding.alpha is not None and procedure.long_run
    long_run = explanations.word_long_run(procedure.long_run) if has_level else ""
    return [
        ("Weight", weight),
        ("Statistical verdict", f"{facts.pick_badge(finding)}. {finding.statement}"),
        ("Observed-rate status", _compare_rate(finding)),
        ("Operational caution", _word_caution(finding)),
        ("Confidence statement", finding.confidence_statement or long_run),
        *caveats,
    ]


def _compare_rate(finding: Finding) -> str:
    """Show the point estimate beside the decision: where they disagree is the point (§10.2)."""
    words, decision = finding.observed_rate.replace("_", " "), finding.decision
    # At the threshold the observed rate is high enough, though no evidence that the true one is.
    above = finding.observed_rate in ("ABOVE_THRESHOLD", "AT_THRESHOLD")
    below = finding.observed_rate == "BELOW_THRESHOLD"
    if not (above or below) or decision not in (Decision.PASS, Decision.FAIL):
        return words
    agree = "agree" if above is (decision is Decision.PASS) else "disagree"
    return f"{words}. The point estimate and the statistical verdict {agree}."


def _word_caution(finding: Finding) -> str:
    words = "" if finding.caution is None else finding.caution.replace("_", " ")
    found = characterize(finding.plan)
    # Power depends on a true rate that nobody knows: the number is worthless without it.
    if finding.caution in _POWERS and found.strength is not None and found.power is not None:
        rate, wanted = found.strength
        power = as_probability(found.power, digits=1)
        words += f": at a true rate of {as_percent(rate)} it is a {wanted} in {power} of runs"
    return ". ".join(part for part in (words, finding.advice) if part)


def _list_diagnostics(found: Diagnostics) -> explanations.Rows:
    rows: explanations.Rows = []
    if found.autocorrelation is not None:
        lag = f"{found.autocorrelation:.3f}{_add_p('runs test', found.autocorrelation_p)}"
        rows.append(("Lag-1 autocorrelation", lag))
    if found.effective_trials is not None:
        # Under a first-order dependence n trials tell as much as this many independent ones.
        worth = f"{found.effective_trials:.1f}, if each trial depends on the one before"
        rows.append(("Effective trials", f"{worth}: n (1−r)/(1+r)"))
    # A service that changes during a run has no single rate: its two halves are compared.
    first, second = found.first_half_rate, found.second_half_rate
    if first is not None and second is not None:
        halves = f"{first:.3f} and {second:.3f}{_add_p('Fisher', found.drift_p)}"
        rows.append(("Rate of the two halves", halves))
    # Trials whose reply could not be judged at all: a high rate of the others says little then.
    if found.untestable_share is not None:
        rows.append(("Untestable share", f"{found.untestable_share:.3f}"))
    rows += (("Warning", warning) for warning in found.warnings)
    return rows or [("", "none: too few trials to look for dependence")]


def _add_p(test: str, p_value: float | None) -> str:
    return "" if p_value is None else f", {test} p = {as_computed(p_value)}"


_USUAL_METHOD = "Wilson's interval on the effective number of trials"
_METHODS = {
    "gee": "estimating equations, exchangeable correlation, Student's interval on the logit",
    "cluster-bootstrap": "whole inputs drawn again, BCa interval",
    "beta-binomial": "Wilson's interval on the trials that the fitted correlation leaves",
}


def _list_clusters(found: ClusterEstimate) -> explanations.Rows:
    effective, interval = found.effective_trials, found.interval
    # What the data do not define is named with its reason and never shown as 0.
    trials = effective.reason if isinstance(effective, Undefined) else f"{effective:.2f}"
    ends = interval.reason if isinstance(interval, Undefined) else _with_level(interval)
    return [
        ("Target estimand", found.estimand),
        ("Estimate", f"{found.rate:.6f} from {found.trials} trials of {found.prompts} inputs"),
        ("Method", f"{found.method}: {_METHODS.get(found.method, _USUAL_METHOD)}"),
        ("Effective trials", trials),
        ("Interval", ends),
        ("Generalises to", found.population),
    ]


#: Weighted rates of which every input is a part of its own.
_BY_INPUT = tuple(TargetEstimand[f"{one}_WEIGHTED"] for one in ("PROMPT", "PRODUCTION", "SEVERITY"))


def _with_level(interval: Interval) -> str:
    level = "" if interval.confidence is None else f" at {100 * interval.confidence:g} %"
    return f"{explanations.as_brackets(interval)}{level}"


def _list_strata(found: StratifiedEstimate, claim: Claim) -> explanations.Rows:
    # Where every input is its own stratum, a reader knows it as an input.
    by_input = claim.estimand in _BY_INPUT
    effective = "" if found.effective_trials is None else f"{found.effective_trials:.2f}"
    population = "these inputs, in the proportions of their declared weights"
    parts = ((x.name, f"{int(x.successes)} of {int(x.trials)}") for x in found.strata)
    weights = zip(parts, found.weights, strict=True)
    weighted = (f"{name}: {counts}, weight {weight:.4f}" for (name, counts), weight in weights)
    return [
        ("Target estimand", str(claim.estimand) if by_input else found.estimand),
        ("Estimate", f"{found.rate:.6f}, interval {_with_level(found.interval)}"),
        ("Effective trials", effective),
        *explanations.put_under("Inputs" if by_input else "Strata", weighted),
        ("Generalises to", population if by_input else found.population),
    ]


def _list_guardrail_sections(finding: Finding, verdict: Verdict) -> Iterator[Section]:
    """List the guardrail's bound with its strata and residual, where the claim reaches that far."""
    found = finding.evidence
    if found.containment is None:
        return
    rows = _list_bound(found.containment)
    if found.containment_strata is not None:
        strata = found.containment_strata
        counts = ((name, f"{x.correct} of {x.presented}", x.lower) for name, x in strata.strata)
        bounds = (f"{name}: {of}, at least {as_computed(low)}" for name, of, low in counts)
        rows += explanations.put_under("By stratum", bounds)
        rows += [("Weakest stratum", strata.weakest), ("", strata.statement)]
    if found.residual is not None:
        rows.append(("Residual harm", _word_residual(found.residual)))
        given = None if verdict.plan is None else verdict.plan.prevalence
        if given is not None:
            # Residual harm scales with the prevalence; a guess in it is a guess in the result.
            evidence = given.evidence or "none is recorded"
            rows.append(("Prevalence", f"{given.rate:g}, {given.source}; evidence: {evidence}"))
        rows += _list_stack(verdict)
    yield explanations.make_section("GUARDRAIL BOUND", rows)


def _list_bound(bound: GuardrailBound) -> explanations.Rows:
    counts = f"{bound.correct} of {bound.presented} = {bound.observed:.6f}"
    level = f"at confidence {bound.confidence:g}, {bound.rule}"
    return [
        (bound.quantity.capitalize(), counts),
        ("Lower bound", f"{as_computed(bound.lower)} {level}"),
        ("Error, at most", as_computed(bound.error_upper)),
        ("Reach", bound.statement),
    ]


def _word_residual(found: ResidualHarm) -> str:
    if isinstance(found.bound, Undefined):
        return f"not bounded: {found.statement}"
    known = isinstance(found.confidence, float)
    level = f" at confidence {found.confidence:g}" if known else ""
    return f"at most {as_computed(found.bound)}{level}. {found.statement}"


def _list_stack(verdict: Verdict) -> explanations.Rows:
    """List what several boundaries in series miss together; their misses are not multiplied."""
    evidence = [one.evidence for one in verdict.findings if one.evidence.residual is not None]
    bounds = [one.containment for one in evidence if one.containment is not None]
    if len(bounds) < 2:
        return []
    # Few contracts have several guardrails.
    from trialwise.stats.toolbox.boundary_stacks import combine_boundaries

    # The least confidence stands for each of them; together they hold at less, which the function
    # works out: several bounds that hold with 95 % each do not hold together with 95 %.
    errors, least = [one.error_upper for one in bounds], min(one.confidence for one in bounds)
    found = combine_boundaries(errors, given="harm", confidence=least)
    level = f" at confidence {found.confidence:g}" if isinstance(found.confidence, float) else ""
    said = f"at most {as_computed(found.upper)}{level}, if they stand in series"
    return [("All boundaries miss", f"{said}. {found.statement}")]
