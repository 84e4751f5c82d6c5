"""The results of a run and of a suite, as every short format shows them, with warnings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from shlex import quote

from trialwise.documents import numbers, results
from trialwise.documents.numbers import STOPS, join_few
from trialwise.model.claim import Intent
from trialwise.model.evidence import NoteKind, Spending, StopReason
from trialwise.model.options import RunOptions
from trialwise.model.run import RunRecord, summarize_latencies
from trialwise.model.verdict import Caution, Decision, Finding, Verdict
from trialwise.pages import finding_facts, suite_totals
from trialwise.pages.failure_groups import list_repeated_runs
from trialwise.pages.judge_facts import describe_left_out
from trialwise.pages.result_lines import describe_lines
from trialwise.pages.verdict_meaning import ANALYSES
from trialwise.procedures.chances import bound_verdicts
from trialwise.procedures.partial_findings import SMOKE_PASS


def describe_suite(
    records: Sequence[RunRecord],
    *,
    name: str = "trialwise",
    locations: Mapping[str, str] | None = None,
    files: Mapping[str, str] | None = None,
) -> results.SuiteResults:
    """Describe the results of the runs of a suite.

    Args:
        records: One run for each contract.
        name: The suite's.
        locations: Where each run's record is kept, by run id.
        files: The suite file of each run, by run id; a run without one came from Python.
    """
    runs = []
    for one in suite_totals.require_runs(records):
        location, file = ((given or {}).get(one.run_id, "") for given in (locations, files))
        runs.append(describe_run(one, location=location, file=file))
    verdicts = [one.verdict for one in records]
    bounds = suite_totals.list_error_sentences(suite_totals.bound_suite_errors(verdicts))
    return replace(_sum(runs, verdicts), name=name, bounds=tuple(bounds))


def describe_verdicts(verdicts: Sequence[Verdict]) -> results.SuiteResults:
    """Describe the results of verdicts without their trials, so without failures and claims."""
    found = suite_totals.require_runs(verdicts)
    return _sum([_describe_verdict(verdict) for verdict in found], found)


def list_run_notes(verdict: Verdict) -> tuple[str, ...]:
    """List what a reader should know of a run beside its findings: its end, its guardrails."""
    guards = (finding_facts.word_guard(one) for one in verdict.guards if one.criterion is None)
    ended = (verdict.aborted,) if verdict.aborted else ()
    return (*ended, *guards, *suite_totals.list_plain_caveats(verdict))


def _describe_verdict(verdict: Verdict, record: RunRecord | None = None) -> results.RunResults:
    # Whatever else is shown would be read as a result of trials that never took place.
    unmeasured = verdict.stop in (StopReason.ERROR_RATE, StopReason.SERVICE)
    return results.RunResults(
        contract=verdict.contract,
        status=suite_totals.pick_status(verdict.decision),
        lines=describe_lines(verdict, record),
        level=finding_facts.find_usual_level(verdict),
        headings=tuple(_headings(verdict)),
        headline=verdict.aborted if unmeasured else "",
        attention=tuple(list_attention(verdict)),
        notes=list_run_notes(verdict),
        run_id=verdict.run_id,
        started_at=verdict.started_at,
        seconds=verdict.spending.seconds,
    )


def describe_run(record: RunRecord, *, location: str = "", file: str = "") -> results.RunResults:
    """Describe the results of one run.

    Args:
        record: The run.
        location: Where the record is kept.
        file: The suite file it was run from; empty where it came from Python.
    """
    verdict = record.verdict
    # The usual file is found without being named.
    suite = [] if file == "trialwise.yaml" else ["-s", quote(file)]
    return replace(
        _describe_verdict(verdict, record),
        contract=verdict.contract or record.plan.contract,
        facts=_run_facts(record, location),
        repeated=list_repeated_runs(record),
        run_id=record.run_id,
        seed=record.plan.seed,
        location=location,
        next_command=_find_command(record, "show", "--failures"),
        # A trial runs again by its suite file, so a run from Python has no such command.
        rerun_command=_find_command(record, "rerun", *suite, "--trial") if file else "",
    )


def _find_command(record: RunRecord, name: str, *options: str) -> str:
    """Find a command about the failing trials of a run that is kept."""
    if not record.run_id or not record.trials.failures:
        return ""
    return " ".join(("trialwise", name, quote(record.plan.contract), *options))


def _headings(verdict: Verdict) -> Iterator[str]:
    if verdict.intent is Intent.SMOKE:
        yield "smoke: a quick check, not evidence"
    if len(verdict.experiments) == 1:
        yield verdict.claim.about(verdict.experiments[0].inputs) + _word_asked(verdict)
    if verdict.analysis != RunOptions().analysis:
        yield ANALYSES[verdict.analysis]
    if verdict.horizon is not None:
        yield from _word_horizon(verdict, verdict.horizon)
    yield from _word_intervals(verdict)


def _word_intervals(verdict: Verdict) -> Iterator[str]:
    """Say the level of the intervals, and whether they are approximate."""
    level = finding_facts.find_usual_level(verdict)
    if level:
        intervals = map(finding_facts.pick_interval, verdict.findings)
        approximate = any(one.is_approximate for one in intervals if one is not None)
        yield f"{level} intervals{' (≈ approximate, by Wilson)' if approximate else ''}"


def _word_horizon(verdict: Verdict, horizon: int) -> Iterator[str]:
    """Say what all recurring runs together are worth."""
    runs, per_run = numbers.as_count(horizon, "run"), bound_verdicts([verdict], Decision.FAIL)
    if verdict.horizon_false_alarm is not None:
        chance = numbers.as_probability(verdict.horizon_false_alarm)
        yield f"over {runs}, any false alarm: at most {chance}"
    elif per_run is not None and per_run.raw is not None:
        # A bound above 1 says nothing about the chance of one; the expected number still does.
        yield f"over {runs}, at most {per_run.raw * horizon:.2g} false alarms on average"


def _word_asked(verdict: Verdict) -> str:
    """Say how many of the inputs were asked, if that is the same for every criterion."""
    covered = {one.coverage for one in verdict.findings if one.coverage is not None}
    asked = {(one.asked, one.inputs) for one in covered}
    if len(asked) == 1:
        some, inputs = asked.pop()
        if inputs > 1:
            return ", all asked" if some == inputs else f", {some:,} of {inputs:,} asked"
    return ""


def _run_facts(record: RunRecord, location: str) -> dict[str, results.Fact]:
    verdict, read = record.verdict, finding_facts.read_fields
    kinds = ("compliance", "degradation", "rejection", "acceptance")
    return {
        "decision": verdict.decision or "none: the design was refused",
        "run_id": record.run_id,
        "record": location or None,
        **read(verdict, "intent", "analysis"),
        **read(record.plan, "rule", "seed"),
        **read(verdict, "stop"),
        **read(verdict.spending, "trials", "attempts", "tokens", "usd"),
        **read(summarize_latencies(record), latency_mean_s="mean_s", latency_maximum_s="maximum_s"),
        **read(verdict.envelopes, *(f"false_{kind}_envelope" for kind in kinds)),
    }


def _sum(runs: Sequence[results.RunResults], verdicts: Sequence[Verdict]) -> results.SuiteResults:
    spent, status = suite_totals.sum_spending(verdicts), suite_totals.pick_suite_status(verdicts)
    outcome = (_sum_up(runs), *_list_policies(verdicts), *_list_spending(spent, verdicts))
    # Without a name of its own a suite is called by the tool, as CI servers group results by it.
    found = results.SuiteResults(name="trialwise", status=status, runs=tuple(runs))
    return replace(found, outcome=outcome, seconds=spent.seconds)


def _sum_up(runs: Sequence[results.RunResults]) -> str:
    """Say how many contracts did not pass, or requirements if there is only one contract."""
    # One contract is the usual case, in which its criteria say more than "1 of 1 contracts".
    statuses = [run.status for run in runs]
    nouns = ("contract", "contracts")
    if len(runs) == 1:
        quiet = (results.LineKind.INPUT, results.LineKind.REPORTED, results.LineKind.RUN)
        lines = [line for line in runs[0].lines if line.kind not in quiet]
        deciding = [line for line in lines if not line.advisory]
        if not deciding:
            # Numbers without limits are reported, too, and are no criteria.
            reported = sum(line.advisory for line in runs[0].reported)
            advising = sum(line.kind is results.LineKind.CRITERION for line in lines)
            return f"no verdict: {describe_left_out(advising, reported)}"
        statuses = [line.status for line in deciding]
        only_criteria = all(line.kind is results.LineKind.CRITERION for line in deciding)
        nouns = ("criterion", "criteria") if only_criteria else ("requirement", "requirements")
    found = (one for one in _NOT_PASSED if one[0] in statuses)
    counts = [(statuses.count(status), word, verbs) for status, word, verbs in found]
    if not counts:
        smoke = _count_smoke(runs)
        marked = f", {smoke} by a smoke check, which is not evidence" if smoke else ""
        return f"{numbers.as_all(len(statuses), *nouns)} passed{marked}"
    (count, word, verbs), *rest = counts
    if count == len(statuses):
        return f"{numbers.as_all(count, *nouns)} {verbs[count > 1]}{word}"
    first = f"{count} of {numbers.as_count(len(statuses), *nouns)} {word}"
    return ", ".join([first, *(f"{n} {word}" for n, word, _ in rest)])


#: What is said of those that did not pass, the worst first: the word, and its verb for one or more.
_NOT_PASSED = (
    (results.Status.FAIL, "failed", ("", "")),
    (results.Status.INCONCLUSIVE, "undecided", ("is ", "are ")),
    (results.Status.REFUSED, "refused", ("was ", "were ")),
)


def _list_policies(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Say what the exit code makes of INCONCLUSIVE, where a policy says so."""
    is_open = suite_totals.pick_suite_status(verdicts) is results.Status.INCONCLUSIVE
    if is_open and suite_totals.pick_exit_code(verdicts) == 1:
        # Else a red CI job beside the word INCONCLUSIVE looks like a mistake of the tool.
        yield "exit code 1 by the policy `inconclusive: fail`"


def _count_smoke(runs: Sequence[results.RunResults]) -> int:
    """Count the criteria of runs that are evidence otherwise."""
    intents = ((run, run.facts.get("intent", Intent.VERIFICATION)) for run in runs)
    lines = (one for run, intent in intents if intent == Intent.VERIFICATION for one in run.lines)
    kind = results.LineKind.CRITERION
    return sum(one.label == SMOKE_PASS and one.kind is kind for one in lines)


def _list_spending(spent: Spending, verdicts: Sequence[Verdict]) -> Iterator[str]:
    found = (one for verdict in verdicts for one in verdict.findings)
    most = max((one.all_trials.trials for one in found), default=0)
    # Verdicts without their run have no spending, and each criterion has counted its own trials.
    yield numbers.as_count(spent.trials or most, "trial")
    # Tokens stay out: they are paid for, and the line has no room for both.
    for term, value in suite_totals.list_spent(spent):
        if value is not None and term != "tokens":
            yield f"{value} {term.removeprefix('cost of ')}" if " of " in term else value


def list_attention(verdict: Verdict) -> list[str]:
    """Sentences about what stopped a run, what did not pass and why, and what qualifies the rest.

    A note that concerns several criteria is given once, with their names.
    """
    # A guardrail about the baseline says the same of every criterion that is held to it.
    named: dict[str, list[str]] = {}
    for name, note in _list_notes(verdict):
        names = named.setdefault(note.strip(), [])
        if name and name not in names:
            names.append(name)
    said = []
    for note, names in named.items():
        # A share of runs is each criterion's own, and not that of all of them together.
        each = " (each)" if len(names) > 1 and "of runs" in note else ""
        said += [f"{join_few(names)}{each}: {note}" if names else note] if note else []
    return said


def _list_notes(verdict: Verdict) -> Iterator[tuple[str, str]]:
    """(criterion or nothing, note), most urgent first."""
    if verdict.stop.is_premature or verdict.aborted:
        yield "", verdict.aborted or f"The run ended early: {STOPS[verdict.stop].label}."
    for finding in verdict.findings:
        if verdict.aborted and not finding.tally.trials:
            continue  # why nothing was measured is said already
        if finding.plan.standing.reported_at is not None and finding.tally.trials:
            continue  # it was to decide nothing
        # A smoke run that was too small to show its rate says so beside its PASS.
        is_small = finding.caution is Caution.FEASIBILITY_REFUSED
        if finding.decision is not Decision.PASS or is_small:
            # The line above the notes lists the inputs already.
            said = "" if finding.by_input else finding.statement
            yield finding.criterion, f"{said} {finding.advice}".strip()
    yield from _list_errors(verdict)
    for constraint in verdict.latency:
        if constraint.decision is not Decision.PASS:
            yield f"latency {constraint.constraint}", constraint.statement
    yield from _list_gate_notes(verdict)
    for guard in verdict.guards:
        yield guard.criterion or "", finding_facts.word_guard(guard)
    messages = {guard.message for guard in verdict.guards}
    for caveat in suite_totals.list_plain_caveats(verdict):
        yield "", caveat
    for finding in verdict.findings:
        for caveat in _list_qualifications(finding):
            if caveat not in messages:
                yield finding.criterion, caveat


def _list_gate_notes(verdict: Verdict) -> Iterator[tuple[str, str]]:
    if not verdict.gates:
        return
    # Few runs have gates, and every report comes through here.
    from trialwise.pages.gate_facts import explain_gate

    for gate in verdict.gates:
        if gate.decision not in (Decision.PASS, None):
            yield gate.gate, explain_gate(gate)
        for caveat in gate.caveats:
            yield gate.gate, caveat


def _list_errors(verdict: Verdict) -> Iterator[tuple[str, str]]:
    """List what the service said instead of a reply, if that may be why it did not pass."""
    for finding in verdict.findings:
        error = finding.breakdown.commonest_error if finding.breakdown is not None else ""
        # The reason of the abort quotes the error; its first letter may differ in case.
        if error and error[1:] in verdict.aborted:
            continue
        if error and finding.decision is not Decision.PASS:
            yield finding.criterion, f"Trials without a reply mostly said: {error}"


def _list_qualifications(finding: Finding) -> Iterator[str]:
    yield from finding.caveats
    yield finding_facts.list_unasked(finding)
    for part in finding.by_input:
        yield from part.caveats
    if finding.diagnostics is not None:
        yield from finding.diagnostics.warnings
    yield from _compare_denominators(finding)


def _compare_denominators(finding: Finding) -> Iterator[str]:
    """State the rate with and without the trials that were not measured, if they differ."""
    every, fair = finding.intent_to_treat or finding.tally, finding.per_protocol
    # Inputs that are decided one by one have both counts of their own.
    if fair is None or every.rate is None or fair.trials == every.trials or finding.by_input:
        return
    # Both rates stand in that note, and twice the same numbers make a reader compare them.
    if any(note.kind in (NoteKind.NOT_MEASURED, NoteKind.SILENCE) for note in finding.notes):
        return  # the note has both
    if not finding.tally.trials:
        return  # the statement says that none was measured
    all_rate = numbers.as_observed(every.rate)
    rate = "no trial" if fair.rate is None else numbers.as_observed(fair.rate)
    if rate == all_rate:
        return
    count = every.trials - fair.trials
    missing, verb = numbers.as_count(count, "trial"), "was" if count == 1 else "were"
    yield (
        f"per protocol {rate} ({fair.passed:,} of {fair.trials:,}), all trials {all_rate} "
        f"({every.passed:,} of {every.trials:,}): {missing} {verb} not measured"
    )
