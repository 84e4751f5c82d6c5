"""The lines of a run: which there are, what each says, and on which numbers it rests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trialwise.documents import numbers, results
from trialwise.documents.numbers import STOPS
from trialwise.model.evidence import StopReason
from trialwise.model.run import LatencyFacts, RunRecord, summarize_latencies
from trialwise.model.verdict import Decision, Dimension, Finding, LatencyFinding, Verdict
from trialwise.pages import finding_facts, judge_facts
from trialwise.pages.failure_groups import TrialIndex, count_checks, group_failures
from trialwise.pages.finding_facts import read_fields
from trialwise.pages.suite_totals import pick_status
from trialwise.pages.verdict_meaning import MEASURED
from trialwise.procedures.observational import NO_FAILURE_OBSERVED
from trialwise.procedures.registry import procedure_of
from trialwise.stats.result_types import Interval

if TYPE_CHECKING:
    # Few runs have gates, and every report comes through here.
    from trialwise.model.metrics import GateFinding


#: Inputs named on a line; the others are counted.
_NAMED_INPUTS = 3


def describe_lines(
    verdict: Verdict, record: RunRecord | None = None
) -> tuple[results.ResultLine, ...]:
    """Describe the lines of a run: criteria, their inputs, latency limits and gates.

    A run that does not PASS has a red line: its own, where the others have none.

    Args:
        verdict: What was decided.
        record: The run, which adds the inputs, the claims and the failures of the trials.
    """
    if record is not None and verdict.plan is None:
        verdict = replace(verdict, plan=record.plan)
    trials = None if record is None else TrialIndex(record)
    usual = finding_facts.find_usual_level(verdict)
    lines = [line for one in verdict.findings for line in _criterion(verdict, one, trials, usual)]
    lines += filter(None, (_scores(verdict, one) for one in verdict.findings))
    lines += [_latency(verdict, finding, record) for finding in verdict.latency]
    lines += [_gate(verdict, gate) for gate in verdict.gates]
    # JUnit and TAP know nothing but tests: without a red one, this run would look green.
    if verdict.decision is not Decision.PASS and not any(line.is_red for line in lines):
        lines.append(_run(verdict))
    return tuple(lines)


def _criterion(
    verdict: Verdict, finding: Finding, trials: TrialIndex | None, usual: str
) -> Iterator[results.ResultLine]:
    advisory = Dimension.FUNCTIONAL in verdict.advisory or bool(finding.advisory)
    # A guardrail about one criterion qualifies that line; the others are notes of the run.
    guards = tuple(one.message for one in verdict.guards if one.criterion == finding.criterion)
    # Where each input is decided on its own, each has a line below that of its criterion.
    for one in (finding, *finding.by_input):
        is_input = one.input_id is not None
        status = _finding_status(one.decision, bool(one.refusals))
        claim, is_measured = "", False
        failures: tuple[results.FailureGroup, ...] = ()
        checks: tuple[results.CheckCount, ...] = ()
        if trials is not None:
            is_measured = trials.record.plan.purpose == "measure"
            claim = _claim(one, status, verdict, 1 if is_input else trials.count_inputs(one))
            notable = trials.list_notable(one)
            failures = group_failures(one.criterion, notable, trials.record.texts)
            # 0.1.0 asked no postcondition after the first that failed.
            if not verdict.reproducibility.tool_version.startswith("0.1."):
                # Read again, since a million failing trials are not held at a time.
                notable, plain = trials.list_notable(one), trials.count_plain(one)
                checks = count_checks(one.criterion, notable, plain)
        label = MEASURED if is_measured else one.label or status.value
        kind = results.LineKind.INPUT if is_input else results.LineKind.CRITERION
        below = finding_facts.list_below(one)
        yield results.ResultLine(
            kind=kind if one.plan.standing.reported_at is None else results.LineKind.REPORTED,
            contract=verdict.contract,
            name=finding_facts.name_finding(one),
            status=status,
            label=label,
            advisory=advisory,
            figures=_figures(one, verdict, usual),
            sentence=_sentence(one),
            reason=_reason(one),
            target=finding_facts.name_section(one),
            statement=one.statement,
            advice=one.advice,
            below=below,
            # What came later is the end of the reason where it is the first thing below.
            unsaid=below[1:] if finding_facts.tells_later(one) else below,
            notes=_notes(one, () if is_input else guards),
            claim=claim,
            facts=_facts(one, label, advisory=advisory, claim=claim),
            failures=failures,
            checks=checks,
        )


def _scores(verdict: Verdict, finding: Finding) -> results.ResultLine | None:
    """Return the mean score of a criterion that is decided by the share of replies that pass."""
    if finding.scores is None or procedure_of(finding).decides_mean:
        return None
    said, trials = finding_facts.sum_up_scores(finding), finding.all_trials.trials
    facts = finding_facts.collect_scores(finding)
    return _report(verdict, f"mean of {finding.criterion}", said, trials, facts=facts)


def _report(verdict: Verdict, name: str, said: str, trials: int, **more: Any) -> results.ResultLine:
    """Return a line of numbers that decide nothing; it has no decision that could be red."""
    more |= {"figures": results.Figures(trials=trials), "sentence": said, "reason": said}
    kind, status = results.LineKind.REPORTED, results.Status.PASS
    contract = verdict.contract
    return results.ResultLine(
        kind=kind, contract=contract, name=name, status=status, label="REPORTED", **more
    )


def _claim(finding: Finding, status: results.Status, verdict: Verdict, inputs: int) -> str:
    if status is results.Status.REFUSED:
        return ""
    if not procedure_of(finding).claims_rate:
        return "about the trials of this run and nothing else"
    return verdict.claim.about(inputs)


def _notes(finding: Finding, guards: tuple[str, ...]) -> tuple[str, ...]:
    warnings = finding.diagnostics.warnings if finding.diagnostics is not None else ()
    # The same caveat may come from a guardrail and from the procedure: it is said once.
    unasked = filter(None, [finding_facts.list_unasked(finding)])
    return tuple(dict.fromkeys((*guards, *finding.caveats, *unasked, *warnings)))


def _figures(finding: Finding, verdict: Verdict, usual: str) -> results.Figures:
    known = "known" if procedure_of(finding).knows_rate(finding) else ""
    level = finding_facts.write_level(finding)
    interval = finding_facts.pick_interval(finding)
    return results.Figures(
        rate=finding_facts.write_rate(finding, ""),
        # A corpus that was tried whole needs no interval.
        interval=finding_facts.write_interval(finding, known),
        level=level,
        shows_level=level not in ("", usual),
        required=_word_requirement(finding),
        trials=finding_facts.pick_tally(finding).trials,
        inputs=_word_inputs(finding, verdict),
        difference=finding_facts.write_delta(finding),
        is_approximate=interval is not None and interval.is_approximate,
        stop=_word_stop(finding, verdict),
        cost=_cost(finding, verdict),
    )


def _word_inputs(finding: Finding, verdict: Verdict) -> str:
    """Say how many inputs were asked, unless all were and the heading says so."""
    coverage = finding.coverage
    is_whole = coverage is not None and coverage.asked == coverage.inputs
    if is_whole and len(verdict.experiments) == 1:
        return ""
    return finding_facts.write_coverage(finding)


def _word_stop(finding: Finding, verdict: Verdict) -> str:
    """Say how the trials ended, unless they went to their planned end: that is the usual case."""
    # What later trials made of a decision stands below the line, and reported ones decide nothing.
    if finding.plan.standing.reported_at is not None or finding_facts.write_later(finding):
        return ""
    ended = {one.name: one.stop for one in verdict.experiments}
    stop = finding.stop or ended.get(finding.experiment, verdict.stop)
    is_open = finding.decision is Decision.INCONCLUSIVE
    if is_open and stop is StopReason.DECIDED:
        return "undecided"
    return STOPS[stop].label if is_open or stop.is_premature else ""


def _word_requirement(finding: Finding) -> str:
    """Say what the rate is compared with, such as a required rate or a baseline.

    Short, with the margin subtracted: the line has to keep its trials at 80 columns.
    """
    if finding.plan.standing.reported_at is not None:
        return "report only"
    if not procedure_of(finding).claims_rate:
        return "no failure"
    required, other = finding_facts.find_required(finding), finding_facts.find_alternative(finding)
    if required is None:
        return ""
    if procedure_of(finding).decides_mean:
        return f"required ≥ {required:g}"
    if finding.threshold.required_rate is None:
        return f"baseline {numbers.as_probability(required, digits=1)}"
    # A difference of two rates as they were written: 0.9 − 0.8 has a rounding error.
    margin = "" if other is None else f" − {numbers.as_percent(round(required - other, 9))}"
    return f"required ≥ {numbers.as_percent(required)}{margin}"


def _cost(finding: Finding, verdict: Verdict) -> str:
    """Return what its trials cost: criteria share them, so a part of them is priced at the mean."""
    spent, trials = verdict.spending, finding.all_trials.trials
    if spent.usd is None or not spent.trials:
        return ""
    exact = trials == spent.trials
    return f"{'' if exact else '~'}{numbers.as_money(spent.usd / spent.trials * trials)}"


def _sentence(finding: Finding) -> str:
    """Return what stands in for the figures where they do not make up a claim about one rate."""
    tally = finding.all_trials
    if finding.by_input:
        return _inputs(finding)
    if finding.decision is None:
        return ", ".join(finding.refusals) or finding.statement
    if procedure_of(finding).claims_rate:
        return ""
    if not tally.trials:
        return "no trial was available"
    asked = finding_facts.write_coverage(finding)
    asked = f", {asked} asked" if asked else ""
    if tally.failed:
        return f"{tally.failed:,} of {tally.trials:,} failed{asked}"
    failed = "" if finding.label == NO_FAILURE_OBSERVED else " failed"
    return f"0 of {tally.trials:,}{failed}{asked} (no claim about the population)"


def _inputs(finding: Finding) -> str:
    """Return how many inputs pass, and which do not, worst first."""
    # Only a few are named: with a thousand inputs the line would bury the verdict.
    parts = finding.by_input
    passing = sum(part.decision is Decision.PASS for part in parts)
    text = f"{passing:,} of {numbers.as_count(len(parts), 'input')} PASS"
    for decision in (Decision.FAIL, Decision.INCONCLUSIVE):
        left = [part for part in parts if (part.decision or Decision.INCONCLUSIVE) is decision]
        # Of two equal rates the one with more trials tells more.
        left.sort(key=lambda part: (part.all_trials.rate or 0.0, -part.all_trials.trials))
        worst = ((one.input_id or "?", one.all_trials) for one in left[:_NAMED_INPUTS])
        named = [f"{name} ({tally.passed}/{tally.trials})" for name, tally in worst]
        if len(left) > _NAMED_INPUTS:
            named.append(f"{len(left) - _NAMED_INPUTS:,} more")
        if named:
            text += f"; {decision}: {', '.join(named)}"
    return text


def _reason(finding: Finding) -> str:
    """Return how the run ended, what was refused, and what else the rate was held against."""
    threshold = finding.threshold
    parts: list[str] = []
    if finding.plan.standing.reported_at is None:
        parts += filter(None, [finding_facts.write_stop(finding)])
    parts += filter(None, [finding_facts.write_coverage(finding)])
    parts += [refusal.replace("_", " ").lower() for refusal in finding.refusals]
    if threshold.baseline is not None:
        baseline = threshold.baseline
        parts.append(f"baseline {baseline.passed:,} of {baseline.trials:,}")
    elif context := finding_facts.write_context(finding):
        parts.append(f"for context {context}")
    parts += filter(None, [finding_facts.write_difference(finding)])
    if finding.cutoff is not None:
        parts.append(f"{finding.cutoff:,} needed")
    return ", ".join([*parts, *judge_facts.describe_corrections(finding)])


def _facts(finding: Finding, label: str, *, advisory: bool, claim: str) -> dict[str, results.Fact]:
    tally, together = finding_facts.pick_tally(finding), finding.plan.others.together
    later = finding.later if finding_facts.write_later(finding) else None
    return {
        "decision": None if finding.plan.standing.reported_at is not None else finding.decision,
        "label": label,
        "single_decision": finding.single_decision,
        "advisory": advisory,
        **read_fields(finding, "procedure", rule="decision_rule"),
        "claim": claim,
        **read_fields(tally, "trials", "passed"),
        **read_fields(finding, "planned_trials", "stop", "decided_at"),
        **read_fields(later, later_trials="trials", later_passed="passed"),
        "withdrawn": finding.withdrawn,
        **read_fields(finding.coverage, "inputs", inputs_asked="asked"),
        "rate": tally.rate,
        "estimate": finding.estimate,
        **_list_ends("interval", finding.interval),
        "required_rate": finding.threshold.required_rate,
        **read_fields(finding.threshold.baseline, baseline="identifier"),
        **read_fields(finding, "cutoff", "alpha", "beta"),
        **read_fields(together, joint_wrong_pass="wrong_pass", joint_wrong_fail="wrong_fail"),
        **read_fields(finding.p_value, p_value="value"),
        "lower_bound": finding.lower_bound,
        **_list_ends("difference", finding_facts.pick_difference(finding)),
        **judge_facts.collect_judge_facts(finding),
        **finding_facts.collect_scores(finding),
    }


def _list_ends(name: str, interval: Interval | None) -> dict[str, results.Fact]:
    """List what is known of an interval, also where there is none: rows have the same columns."""
    known = ("low", "high", "confidence", "method")
    return read_fields(interval, **{f"{name}_{one}": one for one in known})


def _latency(
    verdict: Verdict, finding: LatencyFinding, record: RunRecord | None
) -> results.ResultLine:
    status = _finding_status(finding.decision, bool(finding.refusals))
    advisory = Dimension.LATENCY in verdict.advisory
    claim = "about the latencies of successful trials"
    seconds = (finding.observed, finding.threshold)
    observed, threshold = ("" if one is None else numbers.as_seconds(one) for one in seconds)
    parts = [observed, f"limit {threshold}" if threshold else ""]
    found: LatencyFacts | None = None
    if record is not None:
        limits = [one for one in record.plan.latency if one.percentile == finding.constraint]
        found = summarize_latencies(record, {limit.experiment for limit in limits})
    if found is not None:
        mean, maximum = map(numbers.as_seconds, (found.mean_s, found.maximum_s))
        parts.append(f"mean {mean}, maximum {maximum}")
    parts.append(numbers.as_count(finding.trials, "success", "successes"))
    marks = finding_facts.list_latency_marks(finding, verdict)
    indicative = " (indicative)" if "indicative" in marks else ""
    required = f"required ≤ {threshold}" if threshold else ""
    return results.ResultLine(
        kind=results.LineKind.LATENCY,
        contract=verdict.contract,
        name=f"latency {finding.constraint}",
        status=status,
        label=status.value,
        advisory=advisory,
        figures=results.Figures(rate=observed, required=required, trials=finding.trials),
        sentence=", ".join(filter(None, parts)) + (f" ({', '.join(marks)})" if marks else ""),
        reason=f"{finding.statement}{indicative}",
        target=finding_facts.LATENCY,
        statement=finding.statement,
        claim=claim,
        facts={
            "decision": finding.decision,
            "label": status.value,
            "advisory": advisory,
            "rule": finding.decision_rule,
            "claim": claim,
            **read_fields(finding, "trials", "percentile", observed_s="observed"),
            **read_fields(found, "mean_s", "maximum_s"),
            **read_fields(finding, threshold_s="threshold", alpha="level"),
            "false_alarm": finding.false_alarm,
        },
    )


def _gate(verdict: Verdict, gate: GateFinding) -> results.ResultLine:
    """Return its numbers and their limits; of numbers without limits, the means."""
    # Few runs have gates, and every report comes through here.
    from trialwise.pages import gate_facts
    from trialwise.procedures.gates import PROCEDURE as GATES

    if gate.decision is None:
        return _report(
            verdict,
            gate.gate,
            gate_facts.sum_up_gate(gate),
            gate.inputs * gate.runs,
            target=gate_facts.name_gate_section(gate),
            facts=gate_facts.collect_number_facts(gate) | gate_facts.collect_input_facts(gate),
            details=gate_facts.list_input_lines(gate),
        )
    status, claim = pick_status(gate.decision), f"about {gate_facts.count_runs(gate)}"
    names = [one.target.partition(".")[2] for one in gate.checks]
    named = [*zip(names, gate.checks, strict=True)]
    numbers = "; ".join(f"{name} {one.shown}, {one.matcher}" for name, one in named)
    # Of several expectations a table shows those that do not hold.
    # A gate that holds shows all of its numbers; one that does not shows what broke it.
    telling = [(name, one) for name, one in named if not one.holds] or named
    shown = "; ".join(f"{name} {one.shown}" for name, one in telling)
    limits = "; ".join(str(one.matcher) for _, one in telling)
    kind = "heuristic" if len(gate.heuristics) == len(gate.checks) else "no error rate"
    notes, decay = GATES.explain(gate), gate_facts.write_decay(gate)
    numbers = "; ".join(filter(None, (numbers, decay))) if numbers else ""
    return results.ResultLine(
        kind=results.LineKind.GATE,
        contract=verdict.contract,
        name=gate.gate,
        status=status,
        label=status.value,
        figures=results.Figures(rate=shown, required=limits, trials=gate.inputs * gate.runs),
        sentence=f"{numbers} ({gate_facts.count_runs(gate)}, {kind})"
        if numbers
        else gate_facts.sum_up_gate(gate),
        reason=" ".join((gate_facts.explain_gate(gate), *notes)),
        target=gate_facts.name_gate_section(gate),
        statement=gate_facts.explain_gate(gate),
        notes=(*notes, *gate.caveats),
        claim=claim,
        facts={
            "decision": status.value,
            "label": status.value,
            "advisory": False,
            "claim": claim,
            **gate_facts.collect_gate_facts(gate),
            **gate_facts.collect_input_facts(gate),
        },
        details=gate_facts.list_input_lines(gate),
    )


def _run(verdict: Verdict) -> results.ResultLine:
    status = pick_status(verdict.decision)
    decision = None if status is results.Status.REFUSED else status.value
    refused = f"Refused: {', '.join(verdict.refusals)}." if verdict.refusals else ""
    advises = judge_facts.explain_advisory_run(verdict)
    return results.ResultLine(
        kind=results.LineKind.RUN,
        contract=verdict.contract,
        name="verdict",
        status=status,
        label=status.value,
        statement=verdict.aborted or refused or advises or f"The run is {status}.",
        facts={"decision": decision, "label": status.value, "advisory": False},
    )


def _finding_status(decision: Decision | None, refused: bool) -> results.Status:
    """A part without a decision counts as INCONCLUSIVE unless its design was refused."""
    if decision is None:
        return results.Status.REFUSED if refused else results.Status.INCONCLUSIVE
    return pick_status(decision)
