"""What was run before, as pages: lists of runs, single trials, and records that are decided again.

Terminals print these pages, so each is one table or a few, whose last column may wrap.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from trialwise.documents.blocks import Badge, Cell, Document, Message, Table, Tone, list_rows
from trialwise.documents.numbers import as_count, as_duration, as_money
from trialwise.documents.printable import make_visible
from trialwise.model.run import RunRecord, RunTexts
from trialwise.model.trial import ErrorClass, Outcome, Trial
from trialwise.pages import trial_cards
from trialwise.pages.finding_facts import ASKED, read_fields

TRIALS_SCHEMA = "trialwise.trials/1"
#: How a session ends that needs no word about it.
_ANSWERED = "answer"
#: Fields of a trial that JSON shows under their own names.
_FIELDS = (
    *("experiment", "seed", "passed", "error_class", "error", "attempts", "attempt_errors"),
    *("latency_s", "cost_usd", "exit_code", "ended", "reply"),
)
Rows = Iterable[tuple[Cell, str]]


# --- Single trials --------------------------------------------------------------------------------


def choose_trials(record: RunRecord, *, limit: int | None, failing: bool) -> list[Trial]:
    """Return the first trials of a run in the order of inputs, or those that failed a criterion."""
    return list(islice(record.trials.failing() if failing else record.trials, limit))


def build_trials_page(record: RunRecord, *, limit: int | None, failing: bool) -> Document:
    """Build the trials of a run as a page, each with what its criteria say and what came back.

    Args:
        record: The run.
        limit: How many are shown at most.
        failing: Whether only failures are.
    """
    trials = choose_trials(record, limit=limit, failing=failing)
    # How many failed is of the whole run, also where only the first of them are shown.
    failed, all_trials = record.trials.failures, as_count(len(record.trials), "trial")
    said = f"{failed} of {all_trials} failed"
    if failing and len(trials) < failed:
        said += f"; the {'first is' if len(trials) == 1 else f'first {len(trials)} are'} shown"
    elif not failing and len(trials) < len(record.trials):
        said = f"{'first trial' if len(trials) == 1 else f'first {len(trials)}'} of {all_trials}"
    shown = tuple(build_trial(one, record.texts) for one in trials)
    return Document(kind="Trials", title=f"{record.plan.contract}: {said}", blocks=shown)


def build_trial(trial: Trial, texts: RunTexts, *, before: str = "", checks: Rows = ()) -> Table:
    """Build one trial: what its criteria say, what was asked, what was done and what came back.

    Args:
        trial: Passing or failing.
        texts: What the trials of its run asked.
        before: What is said of an earlier run of it.
        checks: How each check came out, where that is wanted.
    """
    word: tuple[str, Tone] = ("passed", "pass") if trial.passed else ("FAILED", "fail")
    badge = Badge(word=word[0], tone=word[1])
    facts = [f"trial {trial.index}", f"input {trial.input_id}", f"seed {trial.seed}"]
    facts += [] if trial.latency_s is None else [as_duration(trial.latency_s)]
    facts += [] if trial.cost_usd is None else [as_money(trial.cost_usd)]
    facts += [f"{trial.attempts} attempts"] if trial.attempts > 1 else []
    facts += [before] if before else []
    found: list[tuple[Cell, str]] = [(badge, " · ".join(map(make_visible, facts)))]
    found += [(f"  {label}", text) for label, text in _list_texts(trial, texts)]
    return list_rows([*found, *((f"  {label}", text) for label, text in checks)])


def _list_texts(trial: Trial, texts: RunTexts) -> Iterator[tuple[str, str]]:
    """List what is known of a trial, each under its label."""
    for number, error in enumerate(trial.attempt_errors, 1):
        yield f"attempt {number}", error
    if trial.error:
        kind = "" if trial.error_class is ErrorClass.NONE else f"{trial.error_class} "
        yield f"{kind}error", trial.error
    for outcome in trial.outcomes:
        yield from _list_outcome(outcome, trial)
    asked = texts.find_input(trial)
    if asked is not None:
        yield "input", asked.value or "(empty)"
        if asked.expected is not None:
            yield "expected", asked.expected or "(empty)"
        if asked.metadata is not None:
            yield "metadata", asked.metadata
    yield from _list_session(trial)
    if trial.ended is not None and trial.ended != _ANSWERED:
        yield "session ended", trial.ended
    if trial.reply is not None:
        yield "reply", trial.reply or "(empty)"
    if raised := texts.find_traceback(trial):
        yield "traceback", raised


def _list_outcome(outcome: Outcome, trial: Trial) -> Iterator[tuple[str, str]]:
    result = outcome.result
    # Where there was no reply, every criterion would only repeat the error.
    if result.passed or (trial.error and result.explanation == trial.error):
        return
    yield outcome.criterion, result.explanation or str(result.reason)
    # A check may quote a reply with other quotation marks; the whole reply is shown anyway.
    whole = (trial.reply or "").replace("'", '"')
    if result.evidence and result.evidence.replace("'", '"') != whole:
        yield "  evidence", result.evidence
    for name, other in outcome.failed_checks[1:]:
        yield outcome.criterion, f"{name}: {other.explanation or other.reason}"


def _list_session(trial: Trial) -> Iterator[tuple[str, str]]:
    """List messages and tool calls in order; the input and the reply are shown beside them."""
    session = trial_cards.build_timeline(trial, trial_cards.PLAIN)
    steps = [] if session is None else [*session.steps]
    # The reply is shown below the session, so that its last message would stand there twice.
    if trial.reply and trial_cards.shows_last(session, trial.reply):
        steps.pop()
    for step in steps:
        if isinstance(step, str):
            yield "", step
        elif isinstance(step, Message):
            yield step.speaker, step.text.text
        else:
            given = "".join(f": {one.text}" for one in step.texts if not one.label)
            called = " · ".join(filter(None, [f"{step.name}{step.about}", step.when]))
            yield "called", make_visible(f"{called}{given}")
            yield from ((f"  {one.label}", one.text) for one in step.texts if one.label)


def list_checks(outcome: Outcome, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """List every check of a criterion, and whether it held.

    Args:
        outcome: What the criterion said of a trial.
        names: Those of its checks.
    """
    failed = {name for name, _ in outcome.failed_checks}
    unasked = {one.postcondition for one in outcome.others if one.result is None}
    # Without a reply no check was asked, and what was not asked did not hold either.
    is_silent = not outcome.passed and outcome.postcondition is None
    for name in names:
        if is_silent or name in unasked:
            yield name, "not asked"
        else:
            yield name, "failed" if name in failed else "passed"


def list_trials_data(
    records: Sequence[RunRecord], *, limit: int | None, failing: bool
) -> dict[str, Any]:
    """Return trials as plain values.

    Args:
        records: The runs.
        limit: How many trials of each are shown at most.
        failing: Whether only failures are.
    """
    runs = []
    for record in records:
        chosen = choose_trials(record, limit=limit, failing=failing)
        runs.append(
            {
                "contract": record.plan.contract,
                "run_id": record.run_id,
                "trials": len(record.trials),
                "failed": record.trials.failures,
                "shown": [describe_trial(trial, record.texts) for trial in chosen],
            }
        )
    return {"schema": TRIALS_SCHEMA, "runs": runs}


def describe_trial(trial: Trial, texts: RunTexts) -> dict[str, Any]:
    """Return one trial as plain values."""
    return {
        "trial": trial.index,
        "input": trial.input_id,
        **read_fields(texts.find_input(trial), **ASKED),
        **read_fields(trial, *_FIELDS),
        **read_fields(trial.usage, "input_tokens", "output_tokens"),
        "criteria": {one.criterion: _describe_outcome(one) for one in trial.outcomes},
        "traceback": texts.find_traceback(trial) or None,
        "messages": [{"role": role, "text": text} for role, text in trial.messages],
        "tool_calls": [dict(call) for call in trial.tool_calls],
    }


def _describe_outcome(one: Outcome) -> dict[str, Any]:
    # The order of these keys is part of the format: people compare such files line by line.
    return {
        **read_fields(one.result, "passed", "reason"),
        "postcondition": one.postcondition,
        **read_fields(one.result, "explanation", "evidence"),
        "failed": [name for name, _ in one.failed_checks],
    }


# --- Records that are decided again ---------------------------------------------------------------


_CHECKED: dict[str, Tone] = {"VERIFIED": "pass", "DIFFERS": "fail", "DAMAGED": "fail"}


def build_checked_page(found: Iterable[tuple[str, str, Sequence[str]]]) -> Document:
    """Build what deciding records again came to: a line each, and what differs below it.

    Args:
        found: VERIFIED, DIFFERS or DAMAGED, the name of the run, and what is said of it.
    """
    rows = []
    for word, name, (first, *more) in found:
        said = "\n".join(map(make_visible, (f"{name}: {first}", *more)))
        rows.append((Badge(word=word, tone=_CHECKED[word]), said))
    return Document(kind="Verification", title="", blocks=(list_rows(rows),))


# --- Lists of runs --------------------------------------------------------------------------------


def build_runs_page(
    shown: Sequence[Mapping[str, Any]], compared: Mapping[str, Mapping[str, Any]], older: int
) -> Document:
    """Build a line for each run, the arms of a comparison together below it.

    Args:
        shown: The runs, the newest first.
        compared: The comparisons that some of them are arms of, by name.
        older: How many more there are.
    """
    rows = []
    for result, one, size, name in _order_runs(shown, compared):
        rows.append((result, (one["started_at"] or "")[:16].replace("T", " "), size, name))
    notes = (f"{older:,} older; -n shows more",) if older else ()
    table = list_rows(rows, ("", "", "", ""), words=(0, 1, 3), notes=notes)
    return Document(kind="Runs", title="", blocks=(table,))


def _order_runs(
    shown: Sequence[Mapping[str, Any]], compared: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, Mapping[str, Any], str, str]]:
    """List each run or comparison with its result, its size and its name."""
    listed: set[str] = set()
    for one in shown:
        comparison = compared.get(one.get("comparison", ""))
        if comparison is None:
            yield one["result"], one, _count_trials(one), one["run_id"]
        elif comparison["comparison"] not in listed:
            listed.add(comparison["comparison"])
            arms = comparison["arms"]
            count = as_count(len(arms), "arm")
            yield comparison["result"], comparison, count, comparison["comparison"]
            # An arm may be older than what is shown: its comparison is listed without it.
            mine = {each["run_id"]: each for each in shown if each["run_id"] in arms}
            for name, label in arms.items():
                if name in mine:
                    yield "  arm", mine[name], _count_trials(mine[name]), f"{name}  {label}"


def _count_trials(one: Mapping[str, Any]) -> str:
    return "" if one["trials"] is None else as_count(one["trials"], "trial")


def build_measured_page(measured: Sequence[Mapping[str, Any]]) -> Document:
    """Build what measurements of baselines counted: a line each, and whether one is unfinished."""
    table = list_rows([(_word_measured(one),) for one in measured], ("",))
    return Document(kind="Measurements", title="", blocks=(table,))


def _word_measured(found: Mapping[str, Any]) -> str:
    tallies = found["criteria"].items()
    counts = ", ".join(f"{name} {one['passed']} of {one['trials']}" for name, one in tallies)
    text = make_visible(f"{found['contract']}: measured, nothing decided: {counts}")
    if found["trials"] < found["planned"]:
        text += (
            f"\n  {as_count(found['planned'], 'trial')} were planned: it is still going on, or "
            "it was stopped. `trialwise measure --resume` continues it."
        )
    return text
