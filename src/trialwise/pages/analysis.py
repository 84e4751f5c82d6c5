"""The full analysis: all the reasoning behind a verdict (companion §10.2–10.4).

The verdict of the run comes first, then the sections of each criterion, then how to check it all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from trialwise.documents.blocks import Document, Section
from trialwise.documents.numbers import STOPS, as_count, as_duration
from trialwise.model.claim import Intent, PopulationClaim, TargetEstimand
from trialwise.model.evidence import ExperimentSummary
from trialwise.model.trial import Analysis
from trialwise.model.verdict import Decision, Dimension, Verdict
from trialwise.pages.analysis_criterion import list_criterion_sections
from trialwise.pages.finding_facts import name_mode, pick_badge, word_guard
from trialwise.pages.suite_totals import list_plain_caveats, write_abandoned, write_amounts
from trialwise.pages.verdict_meaning import ANALYSES
from trialwise.procedures.chances import bound_verdicts
from trialwise.procedures.explanations import Rows, make_section, put_under
from trialwise.procedures.registry import procedure_of

#: Under which condition a decision is wrong.
_CONDITIONS = {
    Decision.PASS: "if one rate is such that its PASS is wrong",
    Decision.FAIL: "if every rate is as required and nothing has changed",
}


def build_analysis(verdict: Verdict, *, title: str) -> Document:
    """Build the full statistical analysis of a verdict.

    Args:
        verdict: What was decided.
        title: The contract's name.
    """
    sections = tuple(_list_sections(verdict))
    return Document(kind="Analysis", title=f"STATISTICAL ANALYSIS: {title}", blocks=sections)


def render_analysis(verdict: Verdict, *, title: str, unicode: bool = True) -> str:
    """Render the full statistical analysis of a verdict, as text of at most 80 columns.

    Args:
        verdict: What was decided.
        title: The contract's name.
        unicode: Whether to use α, ≥ and their like; otherwise their ASCII fallbacks.
    """
    from trialwise.renderers.capabilities import Capabilities
    from trialwise.renderers.document_text import render_document_text

    return render_document_text(build_analysis(verdict, title=title), Capabilities(unicode=unicode))


def _list_sections(verdict: Verdict) -> Iterator[Section]:
    yield from list_opening_sections(verdict)
    yield from list_caveat_sections(verdict)
    for number, finding in enumerate(verdict.findings, start=1):
        place = f"CRITERION {number} of {len(verdict.findings)}: {finding.criterion}"
        # A criterion that is only reported was never to decide: "advisory" would say that it might
        # have.
        advises = finding.advisory and finding.plan.standing.reported_at is None
        advisory = ", advisory" if advises else ""
        yield make_section(f"{place} ({name_mode(finding)}{advisory})", [])
        yield from list_criterion_sections(finding, verdict)
    if verdict.latency:
        # Few runs have latency limits or gates.
        from trialwise.pages.latency_details import explain_latency

        yield explain_latency(verdict)
    if verdict.gates:
        from trialwise.pages.gate_details import build_gate

        for gate in verdict.gates:
            section = build_gate(gate, verdict)
            # The same section as in the report: two accounts of one gate could come apart.
            yield replace(section, heading=f"GATE: {gate.gate}", depth="analysis")
    yield from list_closing_sections(verdict)


_INTENTS = {
    Intent.VERIFICATION: "VERIFICATION: the design was admitted as evidence",
    # A smoke run may be too small for its claim: its PASS must never read like one that is
    # evidence.
    Intent.SMOKE: "SMOKE: a quick check; a PASS is a directional signal, not evidence",
}


def list_opening_sections(verdict: Verdict) -> Iterator[Section]:
    """List the composite verdict, and what it was reached under."""
    yield make_section("COMPOSITE VERDICT", _list_composite(verdict))
    for experiment in verdict.experiments:
        yield make_section(f"SAMPLING: {experiment.name}", _list_sampling(experiment))
    conditions = [
        *put_under("Covariate", map(" = ".join, verdict.covariates.items())),
        *put_under("Factor", map(" = ".join, verdict.factors.items())),
    ]
    if conditions:
        yield make_section("CONDITIONS", conditions)


def list_caveat_sections(verdict: Verdict) -> Iterator[Section]:
    """List what qualifies the verdict without changing it."""
    if verdict.guards:
        yield make_section(
            "GUARDRAILS", [(one.criterion or "The run", word_guard(one)) for one in verdict.guards]
        )
    caveats = [("Caveat", caveat) for caveat in list_plain_caveats(verdict)]
    if caveats:
        yield make_section("CAVEATS", caveats)


def list_closing_sections(verdict: Verdict) -> Iterator[Section]:
    """List what bounds a series of such runs, and what reproduces the numbers of this one."""
    if verdict.horizon is not None:
        yield make_section("MONITORING HORIZON (§8.5)", _list_horizon(verdict))
    yield make_section("REPRODUCIBILITY", _list_reproducibility(verdict))
    yield make_section("CONFORMANCE STATUS", _list_conformance(verdict))
    yield make_section("CONFORMANCE CHECKLIST (§10.7)", list_checklist(verdict))


def _list_composite(verdict: Verdict) -> Rows:
    # A reader of FAIL asks first which part it was: the worst decision is that of the whole.
    named = ", ".join(trigger.name for trigger in verdict.triggers)
    decided = str(verdict.decision) if verdict.decision else "none: the design was refused"
    found = verdict.findings
    criteria = (f"{one.criterion}: {pick_badge(one)} ({name_mode(one)})" for one in found)
    return [
        ("Contract verdict", f"{decided} (triggered by {named})" if named else decided),
        ("Refused because", ", ".join(verdict.refusals)),
        *put_under("Per criterion", criteria),
        ("Dimensions", ", ".join(_list_dimensions(verdict)) if verdict.latency else ""),
        *_list_envelopes(verdict),
        ("Intent", _INTENTS[verdict.intent]),
        # Records of other versions may name an analysis that this one does not know.
        ("Analysis", ANALYSES.get(verdict.analysis, verdict.analysis)),
        *_list_claim(verdict),
        *_list_spending(verdict),
    ]


def _list_dimensions(verdict: Verdict) -> Iterator[str]:
    decisions = (verdict.functional_decision, verdict.latency_decision)
    for dimension, decision in zip(Dimension, decisions, strict=True):
        if decision is not None:
            yield f"{dimension} {decision}{' (advisory)' if dimension in verdict.advisory else ''}"


def _list_envelopes(verdict: Verdict) -> Rows:
    """List how often all criteria together are wrong, by the decision that is wrong (§1.4.6)."""
    rows = []
    # The run passes only if every criterion does. If one rate is too low, a wrong PASS needs that
    # one rule to err; a wrong FAIL can come from any of them. Hence the largest of the one kind of
    # error, and the sum of the other (§1.4.6).
    for wrong, how in ((Decision.PASS, "the largest of"), (Decision.FAIL, "the sum over")):
        bound = bound_verdicts([verdict], wrong)
        if bound is None:
            continue
        said = "" if bound.at_least is None else f"at least {bound.at_least:.6f}"
        if bound.raw is not None:
            of = as_count(bound.levels, "decision")
            said = f"at most {bound.raw:.6f} (a bound: {how} {of})"
            said = f"exactly {bound.raw:.6f} (exact)" if bound.is_exact else said
        rows += [(f"Wrong {wrong}", f"{said}, {_CONDITIONS[wrong]}")] if said else []
        rows += [("", f"not counted: {one.name} {one.reason}") for one in bound.not_counted]
    nominal = (f"Σα = {total:.6g} {meaning}" for meaning, total in _sum_levels(verdict))
    return [*rows, ("Nominal levels", ", ".join(nominal))]


def _sum_levels(verdict: Verdict) -> Iterator[tuple[str, float]]:
    """Sum up the nominal levels of either direction, as the companion does (§1.4.6)."""
    for family, meaning in _FAMILIES.items():
        levels = [
            # A criterion that decides each input on its own makes as many decisions as it has
            # inputs.
            one.alpha * max(1, len(one.by_input))
            for one in verdict.findings
            if procedure_of(one).error_family == family and one.alpha is not None
        ]
        if levels:
            yield meaning, math.fsum(levels)


_FAMILIES = {
    "false-compliance": "of false compliance",
    "false-degradation": "of a false degradation signal",
}


def _list_claim(verdict: Verdict) -> Rows:
    # Whom the numbers speak of comes before the numbers: without it a reader takes trials on a few
    # fixed inputs for evidence about all traffic.
    claim, estimand = verdict.claim, verdict.claim.estimand
    several = len(verdict.experiments) > 1
    starts = (f"{one.name}: this" if several else "This" for one in verdict.experiments)
    abouts = (claim.about(one.inputs) for one in verdict.experiments)
    said = [f"{start} is {about}." for start, about in zip(starts, abouts, strict=True)]
    if not said and claim.population is not PopulationClaim.FIXED_INPUTS:
        said.append(claim.population.value)
    # Nothing in the trials can show that inputs represent a population; somebody said so.
    taken = f"{claim.representativeness} (recorded, not checked)"
    return [
        *put_under("Claim", said),
        ("Target estimand", "" if estimand is TargetEstimand.CALL_WEIGHTED else estimand.value),
        ("Estimator", "" if claim.estimator is None else claim.estimator.value),
        ("Representativeness", taken if claim.representativeness else ""),
    ]


def _list_spending(verdict: Verdict) -> Rows:
    spent, started, stopped, took, abandoned = verdict.spending, verdict.started_at, "", "", ""
    if spent.trials:
        stopped = f"{STOPS[verdict.stop].label}. {verdict.aborted}".strip().rstrip(".")
        amounts = write_amounts(tokens=spent.tokens, usd=spent.usd)
        counts = as_count(spent.trials, "trial"), as_count(spent.attempts, "attempt")
        took = ", ".join(filter(None, (*counts, as_duration(spent.seconds), amounts)))
    if spent.abandoned:
        trials = as_count(spent.abandoned, "trial")
        abandoned = f"{trials}, no longer needed{write_abandoned(spent)}"
    return [
        ("Run", verdict.run_id),
        ("Started", "" if started is None else started.isoformat(" ", "seconds")),
        ("Stopped", stopped),
        ("Spent", took),
        ("Spent on setup", write_amounts(spent.setup_s, spent.setup_tokens, spent.setup_usd)),
        ("Spent on judges", write_amounts(tokens=spent.judging_tokens, usd=spent.judging_usd)),
        ("Abandoned", abandoned),
    ]


def _list_sampling(one: ExperimentSummary) -> Rows:
    # How often each input was asked decides whether its trials may count as independent.
    repeated = ", ".join(f"{n} tried {times} ×" for times, n in one.repetitions.items())
    return [
        ("Sampling", f"{one.identifier} {one.version}".strip()),
        ("Role", one.role),
        ("Description", one.description),
        ("Inputs", f"{one.inputs:,}, {one.distinct or one.inputs:,} distinct"),
        ("Clusters", "" if one.clusters is None else f"{one.clusters:,} that are independent"),
        ("Trials", f"{one.trials:,} of at most {one.planned:,}; {STOPS[one.stop].label}"),
        ("Repetitions per input", repeated),
        ("Draw", f"{one.draw}, {one.sampling_mode}"),
        ("Fingerprint", one.fingerprint),
    ]


def _list_horizon(verdict: Verdict) -> Rows:
    """List what many runs together are worth: at most H times the error of one run."""
    assert verdict.horizon is not None
    # A horizon is declared as a number of runs or as a window of time with a pace; of the second
    # kind the words are shown beside the number.
    declared = None if verdict.plan is None else verdict.plan.options.horizon
    window = "" if declared is None or isinstance(declared, int) else f", {declared}"
    count = as_count(verdict.horizon, "run")
    rows = [("Horizon", f"H = {count} against one reference state{window}")]
    for wrong in (Decision.FAIL, Decision.PASS):
        rows += _list_repeated(verdict, wrong, verdict.horizon)
    for meaning, total in _sum_levels(verdict):
        nominal = f"H·Σα = {verdict.horizon * total:.6g} {meaning}"
        rows.append(("Nominal, over the horizon", nominal))
    # The horizon counts runs against one state of the reference: a new epoch begins a new one.
    baselines = [one.threshold.baseline for one in verdict.findings]
    epochs = {one.epoch for one in baselines if one is not None}
    return [*rows, ("Reference-state epoch", ", ".join(map(str, sorted(epochs))))]


def _list_repeated(verdict: Verdict, decision: Decision, runs: int) -> Rows:
    """List how often a wrong verdict happens in a horizon of runs; nothing if none can."""
    per_run = bound_verdicts([verdict], decision)
    if per_run is not None and per_run.at_least is not None:
        return [(f"Wrong {decision} per run", f"at least {per_run.at_least:.6f}, achieved")]
    if per_run is None or per_run.raw is None:
        return []
    together, wrong = per_run.raw * runs, f"wrong {decision}"
    word = "exactly" if per_run.is_exact else "at most"
    plural = "es" if decision is Decision.PASS else "s"
    # Boole's inequality needs no independence, but says nothing from a sum of 1 on.
    some = f"at most {together:.6g}, whatever the dependence" if together < 1 else ""
    # 1 − (1 − p)^runs, computed without losing digits where p is tiny.
    independent = -math.expm1(runs * math.log1p(-per_run.raw))
    return [
        (f"Wrong {decision} per run", f"{word} {per_run.raw:.6f}, achieved"),
        (f"Expected {wrong}{plural}", f"at most {together:.6g} in the horizon"),
        (f"At least one {wrong}", some),
        (f"Wrong {decision}, independent", f"at least one with at most {independent:.4f}"),
    ]


def _list_reproducibility(verdict: Verdict) -> Rows:
    made = verdict.reproducibility
    return [
        ("referenceDataVersion", made.reference_data_version),
        ("quantileSource", made.quantile_source),
        ("intervalImplementation", made.interval_implementation),
        # Names and spellings are those of the source document, so that a program of another
        # implementer finds them.
        ("sortStable", str(made.sort_stable).lower()),
        ("tiePolicy", made.tie_policy),
        ("exactBoundary", made.exact_boundary),
        ("toolVersion", made.tool_version),
        ("pythonVersion", made.python_version),
        ("seed", "" if made.seed is None else str(made.seed)),
        ("planHash", made.plan_hash),
    ]


def _list_conformance(verdict: Verdict) -> Rows:
    """List the two statuses of §10.6, which are not interchangeable."""
    checked = verdict.reproducibility.formula_value_fixtures
    return [
        ("formulaValueFixtures", f"{checked}; `trialwise conformance DIR` checks a published set"),
        # No calibration fixtures have been published for anybody to run, so that nobody may claim
        # them.
        ("calibrationFixtures", "not-published"),
        ("calibrationClaimPermitted", "false"),
    ]


# --- The companion's conformance checklist (§10.7), answered for one verdict ----------------------
#
# Each line names what the verdict itself shows, so that an auditor can look it up on the same page.


def list_checklist(verdict: Verdict) -> Rows:
    """List each item of the checklist with what this verdict does about it."""
    found = [one for one in verdict.findings if procedure_of(one).claims_rate]
    named = ", ".join(sorted({str(one.procedure).lower() for one in found}))
    # A rule without a name cannot be looked up, so that nobody could repeat the decision.
    bare = [one.criterion for one in found if one.decision_rule is None]
    bounds = sum(one.estimator is not None for one in found)
    kinds = ((len(found) - bounds, "by counts"), (bounds, "by a lower bound"))
    counts = ", ".join(f"{as_count(n, 'criterion', 'criteria')} {how}" for n, how in kinds if n)
    sized = [one for one in found if one.cutoff is not None]
    # A cutoff is a whole number, so that its true error rate is not the α that was asked for.
    sizes = (getattr(x.design, "achieved_size", getattr(x.design, "size", None)) for x in sized)
    unsized = [one.criterion for one, size in zip(sized, sizes, strict=True) if size is None]
    # A p-value belongs to a sample whose size was fixed before: after an early stop it would be too
    # small.
    tested = [one for one in found if one.p_value is not None]
    p_values = as_count(len(tested), "p-value")
    # A saturated rank bounds nothing: a PASS on it would rest on too few baseline latencies.
    saturated = [one for one in verdict.latency if getattr(one.evidence, "saturated", False)]
    passed = [one.constraint for one in saturated if one.decision is Decision.PASS]
    claims = f"{named}, each with null, alternative and rule"
    none_fixed = "no p-value is reported, because no fixed sample was completed"
    no_cutoff = "no criterion has an integer cutoff"
    return [
        ("Procedures kept apart", _answer(found, claims, "no criterion is inferential", bare)),
        # A displayed rate is rounded; a decision by it could turn on the rounding (§10.3).
        ("Decided on counts", _answer(found, f"{counts}; no displayed rate decides")),
        ("Achieved size", _answer(sized, "reported with each cutoff", no_cutoff, unsized)),
        ("p-value", _answer(tested, f"{p_values}, each with method, null and tail", none_fixed)),
        ("Saturated latency rank", _answer(saturated, *_SATURATED, passed)),
        ("Repeated inputs", _check_claim(verdict) if found else _answer((), "")),
        ("Denominator", _list_denominator(verdict)),
        ("Availability apart", _list_availability(verdict)),
        # The last two hold for every verdict of this version: both are written above on each page.
        ("Two conformance statuses", "met: formula values and calibration, listed above"),
        ("Reproducibility metadata", "met: quantiles, intervals, sort and ties, listed above"),
    ]


_SATURATED = ("INCONCLUSIVE or advisory", "no latency rank is saturated")


def _answer(about: Sequence[object], met: str, absent: str = "", broken: Sequence[str] = ()) -> str:
    """Answer an item of the checklist, which may be about nothing in this verdict."""
    if not about:
        return f"does not apply: {absent}" if absent else "does not apply"
    return f"not met: {', '.join(broken)}" if broken else f"met: {met}"


def _list_availability(verdict: Verdict) -> str:
    """Say which criteria count what never reached the service as failed, where others do not."""
    plan = verdict.plan
    if plan is None or plan.analysis is Analysis.INTENT_TO_TREAT:
        return _answer((), "", "every criterion counts what never reached the service as failed")
    # Availability is its own criterion, in which silence counts as failed; in any other a service
    # that was down would look like one that answers badly.
    every = Analysis.INTENT_TO_TREAT
    counts = [one.criterion for one in plan.criteria if one.terms.analysis is every]
    apart = f"{', '.join(counts)}; no other denominator depends on it"
    return _answer(counts, apart, "no criterion is about availability")


def _check_claim(verdict: Verdict) -> str:
    if verdict.claim.population is not PopulationClaim.SUPERPOPULATION:
        return f"met: the claim is {verdict.claim.population}, not a population"
    if verdict.claim.estimator is not None:
        return f"met: estimator {verdict.claim.estimator} for {verdict.claim.estimand}"
    # Repeated trials of one input resemble each other: without an estimator for clusters the
    # interval would be too narrow. A record read from JSON has its keys as text.
    once = all(set(one.repetitions) <= {1, "1"} for one in verdict.experiments)
    return "met: every input was tried once" if once else "not met: no estimator"


def _list_denominator(verdict: Verdict) -> str:
    # What is left out of a denominator must be visible: otherwise outages could hide failures.
    if verdict.analysis == "intent-to-treat":
        return "met: every trial counts"
    pairs = ((one.intent_to_treat, one.all_trials) for one in verdict.findings)
    missing = sum(max(0, every.trials - one.trials) for every, one in pairs if every is not None)
    if not missing:
        return "met: every trial counts; none was left out"
    return (
        f"departs: {as_count(missing, 'trial')} that never reached the service did not count; "
        "`analysis: intent-to-treat` counts them as failed"
    )
