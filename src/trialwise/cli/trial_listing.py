"""Single trials, for people who want to see what the service really said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trialwise.model.kept_texts import RunTexts
    from trialwise.model.run import RunRecord
    from trialwise.model.trial import Trial
    from trialwise.renderers.capabilities import Capabilities


SCHEMA = "trialwise.trials/1"
#: How a session ends that needs no word about it.
_ANSWERED = "answer"
#: Fields of a trial that JSON shows under their own names.
_FIELDS = (
    *("experiment", "seed", "passed", "error_class", "error", "attempts", "attempt_errors"),
    *("latency_s", "cost_usd", "exit_code", "ended", "reply"),
)
#: How many messages and calls of one trial are shown, from its beginning and from its end.
_FIRST_STEPS, _LAST_STEPS = 30, 10
#: Lines that the arguments of a call, or what it returned, may take.
_CALL_LINES = 3


def chosen_trials(record: RunRecord, *, limit: int | None, failing: bool) -> list[Trial]:
    """Return the first trials of a run in the order of inputs, or those that failed a criterion."""
    return list(islice(record.trials.failing() if failing else record.trials, limit))


def trials_data(
    records: Sequence[RunRecord], *, limit: int | None, failing: bool
) -> dict[str, Any]:
    """Trials as plain values."""
    return {
        "schema": SCHEMA,
        "runs": [
            {
                "contract": record.plan.contract,
                "run_id": record.run_id,
                "trials": len(record.trials),
                "failed": record.trials.failures,
                "shown": [
                    describe_trial(trial, record.texts)
                    for trial in chosen_trials(record, limit=limit, failing=failing)
                ],
            }
            for record in records
        ],
    }


def render_trials(
    record: RunRecord, trials: Sequence[Trial], able: Capabilities, *, failing: bool
) -> str:
    """Trials as text, each with what its criteria say and what came back.

    Args:
        record: The run.
        trials: Those to show.
        able: What the stream can do.
        failing: Whether only failures were asked for.
    """
    from trialwise.documents.numbers import as_count
    from trialwise.renderers.capabilities import Style

    failed = record.trials.failures
    name = able.paint(able.show(record.plan.contract), Style.STRONG)
    whole = f"{failed} of {as_count(len(record.trials), 'trial')} failed"
    if failing:
        first = "first is" if len(trials) == 1 else f"first {len(trials)} are"
        shown = f"; the {first} shown" if len(trials) < failed else ""
        lines = [f"{name}: {whole}{shown}"]
    elif len(trials) < len(record.trials):
        first = "first trial" if len(trials) == 1 else f"first {len(trials)}"
        lines = [f"{name}: {first} of {as_count(len(record.trials), 'trial')}"]
    else:
        lines = [f"{name}: {whole}"]
    for trial in trials:
        lines += ["", *list_trial_lines(trial, able, record.texts)]
    return "\n".join(lines)


def list_trial_lines(trial: Trial, able: Capabilities, texts: RunTexts) -> Iterator[str]:
    """List a trial with what its criteria say, what was asked and what came back."""
    from trialwise.documents.numbers import as_duration, as_money
    from trialwise.model.trial import ErrorClass
    from trialwise.renderers.capabilities import Style

    mark = able.paint(*(("passed", Style.GOOD) if trial.passed else ("FAILED", Style.BAD)))
    facts = [f"trial {trial.index}", f"input {trial.input_id}", f"seed {trial.seed}"]
    facts += [] if trial.latency_s is None else [as_duration(trial.latency_s)]
    facts += [] if trial.cost_usd is None else [as_money(trial.cost_usd)]
    facts += [f"{trial.attempts} attempts"] if trial.attempts > 1 else []
    yield f"{mark}  {able.show(able.dot.join(facts))}"
    for number, error in enumerate(trial.attempt_errors, 1):
        yield from _block(f"attempt {number}", error, able)
    if trial.error:
        kind = "" if trial.error_class is ErrorClass.NONE else f"{trial.error_class} "
        yield from _block(f"{kind}error", trial.error, able)
    for outcome in trial.outcomes:
        result = outcome.result
        # Where there was no reply, every criterion would only repeat the error.
        if not result.passed and not (trial.error and result.explanation == trial.error):
            why = result.explanation or str(result.reason)
            yield f"  {able.show(outcome.criterion)}: {able.show(why)}"
            whole = (trial.reply or "").replace("'", '"')
            if result.evidence and result.evidence.replace("'", '"') != whole:
                yield from _block("  evidence", result.evidence, able)
            for name, other in outcome.failed_checks[1:]:
                said = f"{name}: {other.explanation or other.reason}"
                yield f"  {able.show(outcome.criterion)}: {able.show(said)}"
    asked = texts.find_input(trial)
    if asked is not None:
        yield from _block("input", asked.value or "(empty)", able)
        if asked.expected is not None:
            yield from _block("expected", asked.expected or "(empty)", able)
        if asked.metadata is not None:
            yield from _block("metadata", asked.metadata, able)
    yield from _list_session(trial, able)
    if trial.ended is not None and trial.ended != _ANSWERED:
        yield from _block("session ended", trial.ended, able)
    if trial.reply is not None:
        yield from _block("reply", trial.reply or "(empty)", able)
    if raised := texts.find_traceback(trial):
        yield from (f"  {able.show(line)}".rstrip() for line in raised.splitlines())


def _list_session(trial: Trial, able: Capabilities) -> Iterator[str]:
    """List messages and tool calls in order; the input and the reply are shown beside them."""
    from trialwise.model.trial import MODEL
    from trialwise.pages.session_steps import count_steps, list_steps

    steps = [*list_steps(trial)]
    if steps and steps[-1] == (MODEL, trial.reply):
        steps.pop()
    end = len(steps) - _LAST_STEPS
    for place, step in enumerate(steps):
        if place == _FIRST_STEPS < end:
            yield f"  {count_steps(steps[place:end])} left out; --json shows them all"
        if end > _FIRST_STEPS and _FIRST_STEPS <= place < end:
            continue
        if isinstance(step, int):
            yield from _call_lines(trial.tool_calls[step], able)
        else:
            role, text = step
            yield from _paragraph("  ", "model" if role == MODEL else role, text, able)


def _call_lines(recorded: Mapping[str, Any], able: Capabilities) -> Iterator[str]:
    import json

    from trialwise.documents.numbers import as_duration
    from trialwise.model.trace import ToolCall

    call = ToolCall.from_dict(recorded)
    turn = recorded.get("turn")
    facts = [call.name if call.name is not None else "a tool without a name"]
    facts[0] += f" on {call.server}" if call.server is not None else ""
    facts += [f"turn {turn}"] if type(turn) is int else []
    facts += [as_duration(call.duration_s)] if call.duration_s is not None else []
    given = call.args
    if given is not None and not isinstance(given, str):
        given = json.dumps(given, ensure_ascii=False)
    yield from _paragraph("  ", f"called {', '.join(facts)}", given or "", able)
    if call.error is not None:
        yield from _paragraph("    ", "failed", call.error, able)
    elif call.result is not None:
        yield from _paragraph("    ", "returned", call.result, able)


def _paragraph(indent: str, label: str, text: str, able: Capabilities) -> Iterator[str]:
    """Yield a text in a few lines of the stream's width; a long one loses its middle."""
    from trialwise.documents.printable import wrap_text

    width = max(20, able.width - 6)
    # Line breaks of a result are those of its JSON more often than anybody's.
    shown = able.show(" ".join(text.split()), _CALL_LINES * width)
    whole = f"{able.show(label)}: {shown}" if shown else able.show(label)
    first, *more = wrap_text(whole, width)
    yield f"{indent}{first}"
    yield from (f"      {line}" for line in more)


def _block(label: str, text: str, able: Capabilities) -> Iterator[str]:
    """Yield a text with its line breaks; whatever else could move a cursor is spelled out."""
    lines = text.splitlines() or [""]
    if len(lines) == 1:
        yield f"  {label}: {able.show(lines[0])}"
        return
    yield f"  {label}:"
    yield from (f"    {able.show(line)}".rstrip() for line in lines)


def describe_trial(trial: Trial, texts: RunTexts) -> dict[str, Any]:
    """One trial as plain values."""
    usage, asked = trial.usage, texts.find_input(trial)
    return {
        "trial": trial.index,
        "input": trial.input_id,
        "asked": None if asked is None else asked.value,
        "expected": None if asked is None else asked.expected,
        "metadata": None if asked is None else asked.metadata,
        **{name: getattr(trial, name) for name in _FIELDS},
        "input_tokens": None if usage is None else usage.input_tokens,
        "output_tokens": None if usage is None else usage.output_tokens,
        "criteria": {
            one.criterion: {
                "passed": one.passed,
                "reason": None if one.result.reason is None else one.result.reason.value,
                "postcondition": one.postcondition,
                "explanation": one.result.explanation,
                "evidence": one.result.evidence,
                "failed": [name for name, _ in one.failed_checks],
            }
            for one in trial.outcomes
        },
        "traceback": texts.find_traceback(trial) or None,
        "messages": [{"role": role, "text": text} for role, text in trial.messages],
        "tool_calls": [dict(call) for call in trial.tool_calls],
    }
