"""What pytest shows of a verdict: a failure with its numbers, its rule and its few reasons.

Written with pytest's own representations, so that `--tb`, colour, JUnit and the workers of
pytest-xdist treat it as they treat any failure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from textwrap import wrap
from typing import Any

import pytest
from _pytest._code import code
from _pytest.outcomes import Failed

from trialwise.documents.numbers import as_count, as_observed
from trialwise.documents.printable import cut_middle, make_visible
from trialwise.documents.results import LineKind
from trialwise.model import Decision, Finding, Outcome, RunRecord, Trial, Verdict
from trialwise.pages import finding_facts as facts
from trialwise.pages.result_lines import describe_lines
from trialwise.pages.results import list_attention
from trialwise.plugin.reasons import Reason, Reasons
from trialwise.plugin.session import BODY
from trialwise.procedures.chances import forecast
from trialwise.procedures.registry import procedure_of
from trialwise.runtime.answers import Comparison

#: Reasons that a failure shows; the rest is counted.
_SHOWN = 3
_WIDTH = 88
#: Characters of an input or a reply.
_LONGEST_TEXT = 300
#: The facts of a criterion that its test's properties hold.
_PROPERTIES = (
    *("decision", "label", "trials", "passed", "rate", "interval_low", "interval_high"),
    *("required_rate", "rule", "stop"),
)


class Judged(Failed):
    """A verdict other than PASS, on its way to pytest's report.

    Args:
        text: The verdict in a line.
        shown: The whole of it, as pytest shows failures.
    """

    def __init__(self, text: str, shown: code.ExceptionChainRepr) -> None:
        super().__init__(text, pytrace=False)
        self.shown = shown


def comparison_repr(comparison: Comparison, text: str, item: pytest.Item, path: str) -> Any:
    """Return the failure of a test whose comparison did not pass.

    Args:
        comparison: What was compared.
        text: The verdict in a line.
        item: The test.
        path: Where the comparison is kept.
    """
    said = [
        f"{one.decision.value}  {one.criterion}, {one.arm} against {one.against}: {one.statement}"
        for one in comparison.findings
    ]
    said += [*comparison.verdict.caveats, f"kept in {path}"]
    return code.ExceptionChainRepr([(_make_traceback(text, said), _locate(item, text), None)])


def verdict_repr(record: RunRecord, reasons: Reasons, item: pytest.Item, path: str) -> Any:
    """Return the failure of a decided test.

    Args:
        record: What was run.
        reasons: Why its trials failed, with their tracebacks.
        item: The test.
        path: Where the run is kept.
    """
    failures = [*_list_failures(record, measured=True)]
    unmeasured = [*_list_failures(record, measured=False)]
    ranked = [(one, as_count(len(failures), "failed trial")) for one in reasons.rank(failures)]
    # They are no failures of what is tested, and their tracebacks say what to repair.
    missing = as_count(len(unmeasured), "trial")
    ranked += [(one, f"{missing} not measured") for one in reasons.rank(unmeasured)]
    head = _make_traceback(headline(record.verdict), [*_list_facts(record, path)])
    parts: list[tuple[Any, Any, str | None]] = [(head, None, None)]
    for reason, among in ranked[:_SHOWN]:
        how_many = f"{reason.count} of {among}"
        error = "" if reason.error_class == "none" else f" ({reason.error_class})"
        said = f"{how_many}{error}, here trial {reason.trial}: {make_visible(reason.explanation)}"
        said = "\n".join([said, *_list_exchange(reason, record)])
        parts[-1] = (*parts[-1][:2], said)
        parts += _make_parts(reason)
    if len(ranked) > _SHOWN:
        rest = sum(one.count for one, _ in ranked[_SHOWN:])
        others = as_count(len(ranked) - _SHOWN, "other kind")
        parts[-1] = (*parts[-1][:2], f"and {as_count(rest, 'failure')} of {others}")
    parts[-1] = (parts[-1][0], _locate(item, headline(record.verdict)), parts[-1][2])
    return code.ExceptionChainRepr(parts)


def _locate(item: pytest.Item, text: str) -> code.ReprFileLocation:
    file, line, _ = item.location
    return code.ReprFileLocation(file, (line or 0) + 1, text)


def _list_failures(record: RunRecord, *, measured: bool) -> Iterator[tuple[Trial, list[Outcome]]]:
    """Return the failing trials of every criterion that did not pass.

    Args:
        record: What was run.
        measured: Whether to list those that count as failures, or those that were not measured.
    """
    plan = record.verdict.plan
    analyses = {
        one.criterion: plan.analysis_of(one.plan)
        for one in record.verdict.findings
        if plan is not None and one.decision is not Decision.PASS
    }
    for trial in record.trials.failing():
        failed = [
            one
            for one in trial.outcomes
            if not one.passed
            and (analysis := analyses.get(one.criterion)) is not None
            and measured
            is not (analysis.leaves_out(trial.error_class) or analysis.leaves_out(one.error_class))
        ]
        if failed:
            yield trial, failed


def headline(verdict: Verdict) -> str:
    """Return a verdict in a line: the decision, and what the deciding criteria came to."""
    word = verdict.decision.value if verdict.decision else "REFUSED"
    deciding = [one for one in verdict.findings if one.decision is verdict.decision]
    several = len(verdict.findings) > 1
    outcomes = "; ".join(
        f"{one.criterion}: {outcome_text(one)}" if several else outcome_text(one)
        for one in deciding
    )
    latency = [
        f"latency {one.constraint}" for one in verdict.latency if one.decision is verdict.decision
    ]
    gates = [
        f"{line.name}: {line.sentence}"
        for line in describe_lines(verdict)
        if line.kind is LineKind.GATE and line.is_red
    ]
    said = "; ".join(filter(None, (outcomes, ", ".join(latency), "; ".join(gates))))
    return f"{word}: {said}" if said else word


def outcome_text(finding: Finding) -> str:
    """Return what a criterion came to: counts, rate, interval, and what they are held against."""
    tally = facts.pick_tally(finding)
    if not tally.trials:
        return f"no trial was run; asked: {_word_requirement(finding)}"
    if finding.by_input:
        passing = sum(one.decision is Decision.PASS for one in finding.by_input)
        inputs = as_count(len(finding.by_input), "input")
        return f"{passing} of {inputs} pass; asked of each: {_word_requirement(finding)}"
    rate, interval = facts.pick_rate(finding), facts.write_interval(finding, "")
    shown = [f"{tally.passed} of {as_count(tally.trials, 'trial')} passed"]
    is_mean = procedure_of(finding).decides_mean
    if rate is not None:
        said = facts.write_rate(finding) if is_mean else as_observed(rate)
        shown.append(f"{said} {interval}".rstrip())
    if finding.scores is not None and not is_mean:
        shown.append(facts.sum_up_scores(finding))
    asked = f"{', '.join(shown)}; asked: {_word_requirement(finding)}"
    return "; ".join((asked, *facts.list_below(finding)))


def _word_requirement(finding: Finding) -> str:
    threshold = finding.threshold
    by = f" ({threshold.origin.value})" if threshold.origin.is_normative else ""
    if threshold.baseline is not None:
        reference = threshold.baseline
        measured = f"{reference.passed} of {reference.trials}"
        return f"no worse than the baseline's {measured}{by}"
    if threshold.required_rate is not None:
        return f"at least {100 * threshold.required_rate:g} %{by}"
    if procedure_of(finding).decides_mean:
        return f"a mean score of at least {facts.find_required(finding):g}{by}"
    return f"no failure{by}"


def _list_facts(record: RunRecord, path: str) -> Iterator[str]:
    """List what a reader needs beside the headline."""
    verdict, several = record.verdict, len(record.verdict.findings) > 1
    rules = {one.criterion: one.rule for one in forecast(record.plan)}
    for finding in verdict.findings:
        name = f" of {finding.criterion}" if several else ""
        if several:
            yield f"{finding.criterion}: {facts.pick_badge(finding)}, {outcome_text(finding)}"
        rule = f" ({finding.decision_rule})" if finding.decision_rule else ""
        yield f"rule{name}: {rules.get(finding.criterion, 'none')}{rule}"
        interval = facts.pick_interval(finding)
        if interval is not None and interval.confidence is not None:
            yield f"interval{name}: {100 * interval.confidence:g} %, {interval.method}"
    for note in list_attention(verdict):
        yield note.removeprefix(f"{BODY}: ")
    inputs = len(record.plan.experiments[0].input_ids)
    about = f"{verdict.claim.about(inputs)}; " if inputs > 1 else ""
    yield f"{about}seed {record.plan.seed}; run {path}"


def _list_exchange(reason: Reason, record: RunRecord) -> Iterator[str]:
    """Return the input, the answer and the seed of the trial that a traceback is from."""
    trial = next((one for one in record.trials if one.index == reason.trial), None)
    if trial is None:
        return
    yield f"  input {make_visible(trial.input_id)}, seed {trial.seed}"
    asked = record.texts.find_input(trial)
    if asked is not None:
        yield f"  asked: {_shorten(asked.value)}"
        if asked.expected is not None:
            yield f"  expected: {_shorten(asked.expected)}"
    if trial.reply is not None:
        yield f"  reply: {_shorten(trial.reply)}"


def _shorten(text: str) -> str:
    return cut_middle(make_visible(" ".join(text.split())), _LONGEST_TEXT)


def _make_parts(reason: Reason) -> list[tuple[Any, Any, str | None]]:
    """Make a traceback as parts of a chain."""
    known = reason.traceback
    if known is None:  # no body of this session's: its title says what there is to say
        return [(code.ReprTraceback([], None, "native"), None, None)]
    if hasattr(known, "chain"):
        return [(one, None, said) for one, _, said in known.chain]
    if hasattr(known, "reprtraceback"):
        return [(known.reprtraceback, None, None)]
    lines = [f"{line}\n" for line in str(known).splitlines()]
    return [(code.ReprTraceback([code.ReprEntryNative(lines)], None, "native"), None, None)]


def _make_traceback(first: str, others: Sequence[str]) -> code.ReprTraceback:
    """Text where pytest expects a traceback: a red line, and what explains it."""
    lines = [f"E   {line}" for line in wrap(first, _WIDTH)]
    # A path is never broken.
    whole: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
    texts = [wrap(make_visible(fact), _WIDTH, subsequent_indent="  ", **whole) for fact in others]
    rest = [f"    {line}\n" for text in texts for line in text]
    entries: list[code.ReprEntry | code.ReprEntryNative] = [
        code.ReprEntry(lines, None, None, None, "short"),
        code.ReprEntryNative(rest),
    ]
    return code.ReprTraceback(entries, None, "short")


def properties_of(record: RunRecord, path: str, *, prefix: str = "") -> list[tuple[str, object]]:
    """Return a verdict as properties of a test, which pytest writes into its JUnit file.

    Args:
        record: What was run.
        path: Where it is kept.
        prefix: Tells the runs of one test apart.
    """
    verdict = record.verdict
    found: dict[str, object] = {
        "decision": verdict.decision or "REFUSED",
        "trials": verdict.spending.trials,
        "seed": record.plan.seed,
        "run": path,
        "usd": verdict.spending.usd,
    }
    for line in describe_lines(verdict):
        if line.kind is LineKind.CRITERION:
            found |= {f"{line.name}.{name}": line.facts[name] for name in _PROPERTIES}
    start = f"trialwise.{prefix}." if prefix else "trialwise."
    return [(f"{start}{name}", _plain(value)) for name, value in found.items() if value is not None]


def _plain(value: object) -> object:
    """Return a value that workers of pytest-xdist can send."""
    if isinstance(value, Enum):
        return value.value
    return round(value, 6) if isinstance(value, float) else value
