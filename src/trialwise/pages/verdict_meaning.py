"""What the verdict of a run means and what it does not, in plain sentences.

Statements about single criteria are the procedures' own. Here is what holds for the run: whom it
speaks of, what a PASS of its kind never claims, and what the run took in a few numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from trialwise.documents import blocks
from trialwise.documents.numbers import as_count, as_level, as_probability, is_within, join_few
from trialwise.documents.results import Status
from trialwise.model.claim import Intent
from trialwise.model.run import RunRecord
from trialwise.model.verdict import Caution, Decision, Dimension, Finding, Verdict
from trialwise.pages import judge_facts
from trialwise.pages.suite_totals import bound_suite_errors, list_error_sentences, list_spent
from trialwise.procedures.chances import characterize
from trialwise.procedures.characteristic import RuleError
from trialwise.procedures.registry import procedure_of

#: Notes that stand open; the others take a click.
MOST_NOTES = 4


MEASURED = "MEASURED"
"""What a run is called that decided nothing on purpose."""


ANALYSES: Mapping[str, str] = {
    "measured": "measured: what never reached the service is asked again and not counted",
    "intent-to-treat": "intent-to-treat: every trial counts",
    "per-protocol": "per-protocol: trials that were not measured are left out",
}
"""Which trials count."""


def is_measured(record: RunRecord) -> bool:
    """Return whether the run measured a baseline and decided nothing."""
    return record.plan.purpose == "measure"


def make_badge(decision: Decision | None, label: str = "", *, soft: bool = False) -> blocks.Badge:
    """Make a badge of a decision.

    Args:
        decision: None where nothing was decided.
        label: What to say instead of the decision.
        soft: Whether a PASS says less than it seems to.
    """
    word = label or ("REFUSED" if decision is None else decision.value)
    softened = decision is Decision.PASS and (soft or word != decision.value)
    # A refusal has a tone of its own.
    tone = "plain" if decision is None else Status(decision).tone
    return blocks.Badge(word=word, tone=tone, soft=softened)


def make_finding_badge(record: RunRecord, finding: Finding) -> blocks.Badge:
    """Make the badge of a criterion; one that only advises is soft."""
    if is_measured(record):
        return make_badge(None, MEASURED)
    soft = bool(finding.advisory) or record.plan.intent_of(finding.plan) is Intent.SMOKE
    return make_badge(finding.decision, finding.label, soft=soft)


def make_run_badge(record: RunRecord) -> blocks.Badge:
    """Make the badge of the whole run, which criteria that only advise have no part in."""
    badge = make_summary_badge(_drop_advisory(record))
    return replace(badge, note="smoke run") if record.verdict.intent is Intent.SMOKE else badge


def make_summary_badge(record: RunRecord) -> blocks.Badge:
    """Make the badge of one run among several."""
    if is_measured(record):
        return make_badge(None, MEASURED)
    verdict = record.verdict
    labels = {finding.label for finding in verdict.findings}
    # Where every criterion is softened the same way, so is the whole.
    # Only a PASS is softened: a FAIL under a milder word could be overlooked.
    is_alike = verdict.decision is Decision.PASS and len(labels) == 1
    label = labels.pop() if is_alike else ""
    return make_badge(verdict.decision, label, soft=verdict.intent is Intent.SMOKE)


def explain_verdict(record: RunRecord) -> str:
    """Explain what the verdict means, and how many criteria have no part in it."""
    verdict = record.verdict
    if is_measured(record):
        trials = as_count(len(record.trials), "trial")
        return f"{trials} were run to measure a baseline. Nothing was decided."
    if nothing := judge_facts.explain_advisory_run(verdict):
        return f"{nothing} This is neither a PASS nor a FAIL."
    counting = _drop_advisory(record).verdict
    said = _explain_decision(counting, smoke=verdict.intent is Intent.SMOKE)
    left_out = _count_parts(verdict) - _count_parts(counting)
    if not left_out:
        return said
    reported = judge_facts.count_reported(verdict)
    told = judge_facts.describe_left_out(left_out - reported, reported, kind="further")
    return f"{said} {told}."


def _count_parts(verdict: Verdict) -> int:
    return len(verdict.findings) + len(verdict.latency)


def _explain_decision(verdict: Verdict, *, smoke: bool) -> str:
    """Explain what the word means, in a sentence or two."""
    match verdict.decision:
        # A refusal is no verdict: nothing was seen, so nothing may be read into it.
        case None:
            return (
                "The design could not support its claim, whatever the trials would have shown, so "
                "nothing was run and nothing is decided."
            )
        case Decision.PASS:
            return _explain_pass(verdict, smoke=smoke)
        case Decision.FAIL:
            triggers = _name_triggers(verdict)
            if smoke:
                return f"What was observed is inconsistent with the target: {triggers}."
            found = _list_parts(verdict)
            left = [name for name, decision in found if decision is Decision.INCONCLUSIVE]
            more = f" {len(left)} could not be decided: {join_few(left)}." if left else ""
            return f"{_count_triggers(verdict)} failed: {triggers}.{more}"
        case Decision.INCONCLUSIVE:
            count = _count_triggers(verdict)
            # That nothing failed says something only where something was decided.
            decided = any(one in (Decision.PASS, Decision.FAIL) for _, one in _list_parts(verdict))
            said = f"Nothing failed, but {count}" if decided else count
            return (
                f"{said[:1].upper()}{said[1:]} could not be decided: {_name_triggers(verdict)}. "
                "This is neither a PASS nor a FAIL."
            )


def _explain_pass(verdict: Verdict, *, smoke: bool) -> str:
    total = _count_parts(verdict)
    if not verdict.findings:
        return "All that counts passed."  # latencies or gates: there is no criterion to speak of
    if not any(procedure_of(one).claims_rate for one in verdict.findings):
        trials = max(one.tally.trials for one in verdict.findings)
        return f"No failure was observed in {as_count(trials, 'trial')}. That is all it says."
    if smoke:
        return (
            "What was observed is consistent with the targets. This is a smoke run: a first look, "
            "not evidence."
        )
    # "All 1 criteria" is what a machine would say.
    few = {1: "The criterion passed", 2: "Both criteria passed"}
    said = few.get(total, f"All {total} criteria passed")
    gated = any(gate.decision is not None for gate in verdict.gates)
    return f"{said}, and so did every gate." if gated else f"{said}."


def _count_triggers(verdict: Verdict) -> str:
    gates = [gate for gate in verdict.gates if gate.decision is not None]
    total = _count_parts(verdict) + len(gates)
    if total == 1:
        return "the criterion" if verdict.decision is Decision.INCONCLUSIVE else "The criterion"
    return f"{len(verdict.triggers)} of {total} criteria{' and gates' if gates else ''}"


def _list_parts(verdict: Verdict) -> Iterator[tuple[str, Decision | None]]:
    """List the name and the decision of everything that decides."""
    yield from ((one.criterion, one.decision) for one in verdict.findings)
    yield from ((f"latency {one.constraint}", one.decision) for one in verdict.latency)
    gates = (one for one in verdict.gates if one.decision is not None)
    yield from ((f"gate {one.gate}", one.decision) for one in gates)


def _name_triggers(verdict: Verdict) -> str:
    """Name what decided, and on which inputs where each is decided on its own."""
    parts, names = {one.criterion: one.by_input for one in verdict.findings}, []
    for one in verdict.triggers:
        named = f"{one.kind} {one.name}" if one.kind in ("latency", "gate") else one.name
        # The verdict is that of the criterion, and the inputs with the same one are why.
        inputs = () if named != one.name else parts.get(one.name, ())
        worst = [part.input_id or "" for part in inputs if part.decision is verdict.decision]
        names.append(f"{named} on {join_few(worst)}" if worst else named)
    return join_few(names)


def _drop_advisory(record: RunRecord) -> RunRecord:
    """Return the run without what only advises: it takes no part in the verdict."""
    verdict = record.verdict
    # Sentences about the verdict must not count what has no part in it.
    counting = tuple(one for one in verdict.findings if not one.advisory)
    latency = () if Dimension.LATENCY in verdict.advisory else verdict.latency
    if (len(counting), len(latency)) == (len(verdict.findings), len(verdict.latency)):
        return record
    return replace(record, verdict=replace(verdict, findings=counting, latency=latency))


def list_figures(record: RunRecord) -> Iterator[tuple[str, blocks.Cell | None]]:
    """List the run in a few numbers."""
    verdict = record.verdict
    judging = (one for one in verdict.findings if one.plan.standing.reported_at is None)
    decided = [(one.decision, bool(one.advisory)) for one in judging]
    advises = Dimension.LATENCY in verdict.advisory
    decided += [(one.decision, advises) for one in verdict.latency]
    reported = judge_facts.count_reported(verdict)
    if not is_measured(record):
        for label, kind in (("criteria passed", False), ("advisory, passed", True)):
            found = [decision for decision, advisory in decided if advisory is kind]
            if found:
                yield label, f"{found.count(Decision.PASS)} of {len(found)}"
        if reported:
            yield "only reported", f"{reported:,}"
    # Gates without limits report numbers; they passed nothing.
    gates = [one.decision for one in verdict.gates if one.decision is not None]
    if gates:
        yield "gates passed", f"{gates.count(Decision.PASS)} of {len(gates)}"
    yield "trials", f"{len(record.trials):,}"
    if verdict.experiments:
        yield "inputs", f"{sum(one.inputs for one in verdict.experiments):,}"
    yield from list_spent(verdict.spending)


def build_meaning_section(record: RunRecord) -> blocks.Section:
    """Return what the verdict claims and what not, and how often its rules err."""
    says, says_not = tuple(_list_claims(record)), tuple(_list_disclaimers(record))
    lists = (("What it says", says), ("What it does not say", says_not))
    claims = blocks.Columns(blocks=tuple(blocks.Items(heading=x, items=y) for x, y in lists))
    errors = _list_error_blocks(_drop_advisory(record))
    return blocks.Section(heading="What the verdict means", blocks=(claims, *errors))


def _list_claims(record: RunRecord) -> Iterator[str]:
    """List whom the verdict speaks of, what counted, and what it was run for."""
    verdict = record.verdict
    if verdict.decision is None:
        yield "Nothing was run, so nothing is claimed."
        return
    for one in verdict.experiments:
        about = verdict.claim.about(one.inputs)
        which = f"On {one.identifier}: this is" if len(verdict.experiments) > 1 else "This is"
        yield f"{which} {about}."
    if verdict.claim.representativeness:
        yield f"They are taken to represent it: {verdict.claim.representativeness}"
    yield f"{ANALYSES[record.plan.analysis].capitalize()}."
    if verdict.intent is Intent.VERIFICATION and not is_measured(record):
        yield "It was run as evidence: a design too small for its claim is refused before it runs."
    if verdict.horizon is not None and verdict.horizon_false_alarm is not None:
        yield (
            f"Over {as_count(verdict.horizon, 'run')} like this one, a false alarm in any of "
            f"them has a probability of at most {as_level(verdict.horizon_false_alarm)}."
        )


def _list_disclaimers(record: RunRecord) -> Iterator[str]:
    """List what a reader might take the verdict for, and should not."""
    verdict = record.verdict
    findings = verdict.findings
    passed = [procedure_of(one) for one in findings if one.decision is Decision.PASS]
    if verdict.decision is None:
        yield "A refusal says nothing about the service; it is about the design."
        return
    if is_measured(record):
        yield "A baseline is an observation: what it means is decided when a test is held to it."
        return
    if verdict.intent is Intent.SMOKE:
        yield (
            "A smoke run verifies nothing: a PASS is a direction, not a determination of "
            "compliance; a FAIL is to be taken seriously."
        )
    if any(one.error_family == "false-degradation" for one in passed):
        yield "No degradation signal is not proof of equivalence with the baseline."
    if not all(one.claims_rate for one in passed):
        yield "No failure observed makes no claim about how often failures happen."
    if any(one.caution is Caution.STRANDS_DISAGREE for one in findings):
        yield "A FAIL although the observed rate is high enough means not shown, not disproved."
    if findings and all(one.advisory for one in findings):
        yield "Nothing was shown: all that was looked at only advises."
    # Read as "almost passed", an open verdict would be a PASS without evidence.
    elif verdict.decision is Decision.INCONCLUSIVE:
        yield "INCONCLUSIVE is not a weak PASS: with more trials it may turn out either way."
    if any(gate.decision is not None for gate in verdict.gates):
        yield (
            "A gate that passes shows nothing at any confidence: it holds a number of this run "
            "against a limit, and has no error rate."
        )
    # The usual misreading of a level: it is a property of the rule, not of this verdict.
    if any(one.alpha is not None for one in findings):
        yield (
            "No error rate here is the probability that this verdict is wrong; each says how often "
            "the rule errs in the long run, for independent and stationary trials."
        )


def _list_error_blocks(record: RunRecord) -> Iterator[blocks.Block]:
    """List the error rates in a table, with those over all criteria; nothing if there are none."""
    found = (one for one in record.verdict.findings if one.alpha is not None and one.decision)
    known = ((one, characterize(one.plan, record.plan.intent_of(one.plan))) for one in found)
    # A level says what was allowed and the rule what it does: counts are whole, so they differ.
    rates = [(one, error) for one, characteristic in known for error in characteristic.errors]
    if not rates:
        return
    said = list_error_sentences(bound_suite_errors([record.verdict]))
    heading = "How often the rules err"
    table = blocks.build_table(
        heading,
        rates,
        (
            "criterion",
            lambda one: blocks.Name(one[0].criterion + ", each input" * bool(one[0].by_input)),
        ),
        ("error", lambda one: one[1].event),
        ("allowed", lambda one: "–" if one[1].allowed is None else as_level(one[1].allowed)),
        ("actual", lambda one: _write_exact(*one)),
        words=(0, 1),
        is_headed=False,
    )
    together = f"For the whole contract: {' '.join(said)}"
    notes = (blocks.Prose(paragraphs=(together,), tone="quiet"),) if said else ()
    yield blocks.Section(heading=heading, blocks=(table, *notes))


def _write_exact(finding: Finding, error: RuleError) -> blocks.Cell:
    """Write how often a rule errs, or what is known of it after a correction."""
    # With a judge's errors the chance depends on rates that nobody knows exactly.
    if any(part.judged is not None for part in (finding, *finding.by_input)):
        return "no more, by the corrected rate"
    if error.actual is None:
        return "–"
    exact = as_probability(error.actual)
    if error.allowed is None or is_within(error.actual, error.allowed):
        return exact
    return blocks.Value(text=f"{exact}, more than allowed", tone="broken")
