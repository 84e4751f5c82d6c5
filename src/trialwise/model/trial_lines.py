"""How a trial is spelled in a line of a journal, and read back: one table for both directions.

A checksum says that a line is whole, not who wrote it: anybody can compute one. So a line is held
against the types that pages and procedures rely on. Keys that are not known are left alone, for a
later version may have written them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from json.encoder import encode_basestring_ascii as _quote
from operator import attrgetter
from sys import intern
from typing import Any, NamedTuple, cast

from trialwise import stats
from trialwise.model.plain_json import spell_record
from trialwise.model.reply import Usage
from trialwise.model.trial import (
    CheckResult,
    ErrorClass,
    FailReason,
    OtherCheck,
    Outcome,
    Trial,
    grade_outcome,
)

Accepts = Callable[[Any], bool]

# --- Which values stand in a line -------------------------------------------------------------

#: More than any number of seconds, dollars or tokens of a trial; NaN and infinity are not below it.
_MOST = 1e15


def _is_text(value: Any) -> bool:
    return type(value) is str


def _is_number(low: float, high: float, *kinds: type) -> Accepts:
    return lambda value: type(value) in kinds and low <= value < high


def _is_list(accepts: Accepts) -> Accepts:
    return lambda value: type(value) is list and all(map(accepts, value))


def _is_row(*accepts: Accepts, lengths: Collection[int] = ()) -> Accepts:
    """Accept a list of several kinds of values, the last of which may be absent."""
    return lambda value: (
        type(value) is list
        and len(value) in (lengths or (len(accepts),))
        and all(accept(one) for accept, one in zip(accepts, value, strict=False))
    )


def _is_none_or(accepts: Accepts) -> Accepts:
    return lambda value: value is None or accepts(value)


_is_count = _is_number(0, _MOST, int)
_is_amount = _is_number(0, _MOST, int, float)


def _is_object(value: Any) -> bool:
    return type(value) is dict


_is_none_or_text = _is_none_or(_is_text)
#: A criterion's place, the reason, the check, what it said, evidence and perhaps a class.
_is_failure = _is_row(
    _is_count, _is_none_or_text, _is_none_or_text, _is_text, _is_text, _is_text, lengths=(5, 6)
)
#: A criterion's place, the check, and what it said where it was asked.
_is_other_check = _is_row(_is_count, _is_text, _is_text, _is_text, _is_text, lengths=(2, 5))
_is_shape = _is_row(_is_count, _is_count, _is_count, _is_list(_is_count), _is_none_or(_is_amount))


# --- The table --------------------------------------------------------------------------------


def _write_usage(usage: Usage) -> list[int]:
    return [usage.input_tokens, usage.output_tokens]


def _read_usage(pair: list[int]) -> Usage:
    return Usage(input_tokens=pair[0], output_tokens=pair[1])


def _write_shape(shape: stats.TraceShape) -> list[Any]:
    calls = (shape.total_calls, shape.distinct_calls, shape.distinct_tools)
    return [*calls, list(shape.assistant_lengths), shape.tokens]


def _read_shape(counts: list[Any]) -> stats.TraceShape:
    *calls, lengths, tokens = counts
    names = ("total_calls", "distinct_calls", "distinct_tools")
    told = dict(zip(names, calls, strict=True))
    return stats.TraceShape(**told, assistant_lengths=tuple(lengths), tokens=tokens)


class _Part(NamedTuple):
    """One field of a trial in a line."""

    key: str
    field: str
    accepts: Accepts
    usual: Any = None
    """What is left out, since most trials have it: a journal may hold a million of them."""
    write: Callable[[Any], Any] | None = None
    read: Callable[[Any], Any] | None = None


def _make_expense(name: str) -> _Part:
    if name.endswith("usage"):
        return _Part(name, name, _is_row(_is_count, _is_count), None, _write_usage, _read_usage)
    return _Part(name, name, _is_amount)


_HEAD = (
    _Part("i", "index", _is_count),
    _Part("in", "input_id", _is_text, read=intern),  # one text for all trials of an input
    # Seeds have 64 bits at most; a larger one is not ours.
    _Part("seed", "seed", _is_number(-(2**64), 2**64, int)),
)
#: In the order in which a line has them.
_PARTS = (
    _Part("latency_s", "latency_s", _is_amount),
    _Part("at", "started_s", _is_number(-_MOST, _MOST, int, float), 0.0),
    _Part("reply", "reply", _is_text),
    _Part("whole", "whole", _is_object, None, dict),
    _Part("class", "error_class", _is_text, ErrorClass.NONE, str, ErrorClass),
    _Part("attempts", "attempts", _is_count, 1),
    _Part("attempt_errors", "attempt_errors", _is_list(_is_text), (), list, tuple),
    *map(_make_expense, ("usage", "cost_usd", "setup_s", "setup_usage", "setup_cost_usd")),
    *map(_make_expense, ("judging_usage", "judging_cost_usd")),
    _Part("error", "error", _is_text, ""),
    _Part("tool_calls", "tool_calls", _is_list(_is_object), (), lambda c: [*map(dict, c)], tuple),
    _Part(
        "messages",
        "messages",
        _is_list(_is_row(_is_text, _is_text)),
        (),
        lambda messages: [*map(list, messages)],
        lambda messages: tuple((role, text) for role, text in messages),
    ),
    _Part("shape", "shape", _is_shape, None, _write_shape, _read_shape),
    _Part("ended", "ended", _is_text),
    _Part("exit", "exit_code", _is_number(-_MOST, _MOST, int)),
    _Part("raised", "traceback", _is_text, ""),
)
_get_parts = attrgetter(*(part.field for part in _PARTS))
_BY_KEY = {part.key: part for part in (*_HEAD, *_PARTS)}
#: What a line says of the criteria, which are read together.
_OF_CRITERIA: Mapping[str, Accepts] = {
    "x": _is_text,
    "ok": _is_text,
    "failed": _is_list(_is_failure),
    "also": _is_list(_is_other_check),
}


def write_trial(trial: Trial) -> dict[str, Any]:
    """Return the trial as plain values for a journal line: what is usual is left out.

    >>> trial = Trial(experiment="inputs", index=0, input_id="1", seed=7, outcomes=())
    >>> read_trial(write_trial(trial), experiment="inputs", criteria=()) == trial
    True
    """
    outcomes = trial.outcomes
    line: dict[str, Any] = {part.key: getattr(trial, part.field) for part in _HEAD}
    # One character a criterion: most trials pass, and a journal may hold 100,000 of them.
    line["ok"] = "".join(["1" if one.result.passed else "0" for one in outcomes])
    if "0" in line["ok"]:
        line["failed"] = [
            [
                k,
                str(one.result.reason),
                one.postcondition,
                one.result.explanation,
                one.result.evidence,
                # A judge's trouble is its criterion's own; all else is the trial's.
                *(() if one.error_class is trial.error_class else (one.error_class.value,)),
            ]
            for k, one in enumerate(outcomes)
            if not one.result.passed
        ]
        line |= _other_entries(outcomes)
    scores = [
        [k, one.result.score, *one.marks]
        for k, one in enumerate(outcomes)
        if one.result.score is not None
    ]
    if scores:
        line["scores"] = scores
    for (key, _, _, usual, write, _), value in zip(_PARTS, _get_parts(trial), strict=True):
        if value != usual:
            line[key] = value if write is None else write(value)
    return line


def read_trial(line: Mapping[str, Any], *, experiment: str, criteria: tuple[str, ...]) -> Trial:
    """Return the trial that `write_trial` wrote.

    Args:
        line: The plain values.
        experiment: The experiment it belongs to.
        criteria: The experiment's criteria, in the contract's order.

    Raises:
        ValueError: A value is not of the type that a trial has.
    """
    given: dict[str, Any] = {}
    for key, value in line.items():
        part = _BY_KEY.get(key)
        accepts = _OF_CRITERIA.get(key) if part is None else part.accepts
        if accepts is not None and not accepts(value):
            raise ValueError(f"{key!r} of a trial cannot be {value!r}")
        if part is not None:
            given[part.field] = value if part.read is None else part.read(value)
    error_class = given.get("error_class", ErrorClass.NONE)
    outcomes = _read_outcomes(line, criteria, error_class)
    # One text for all trials of an experiment.
    return Trial(experiment=intern(experiment), outcomes=outcomes, **given)


#: What the line of a trial holds that says more of its criteria than that they passed.
_TOLD = frozenset({"failed", "also", "scores"})


def _other_entries(outcomes: tuple[Outcome, ...]) -> dict[str, Any]:
    """Return what the postconditions after the first that failed said, where there are any."""
    found = [
        [place, other.postcondition]
        if (said := other.result) is None
        else [place, other.postcondition, str(said.reason), said.explanation, said.evidence]
        for place, outcome in enumerate(outcomes)
        for other in outcome.others
    ]
    return {"also": found} if found else {}


def _other(
    postcondition: str, reason: str | None = None, explanation: str = "", evidence: str = ""
) -> OtherCheck:
    result = None
    if reason is not None:
        result = CheckResult.fail(explanation, evidence=evidence, reason=FailReason(reason))
    return OtherCheck(postcondition=postcondition, result=result)


def _read_outcomes(
    line: Mapping[str, Any], criteria: tuple[str, ...], error_class: ErrorClass
) -> tuple[Outcome, ...]:
    if not line.keys() & _TOLD:
        return _all_passed(criteria, error_class)
    failures = {entry[0]: entry[1:] for entry in line.get("failed", ())}
    also: dict[int, list[OtherCheck]] = {}
    for place, *entry in line.get("also", ()):
        also.setdefault(place, []).append(_other(*entry))
    outcomes = [
        _outcome(name, failures.get(k), error_class, tuple(also.get(k, ())))
        for k, name in enumerate(criteria)
    ]
    for place, score, *marks in line.get("scores", ()):
        outcomes[place] = grade_outcome(outcomes[place], float(score), tuple(map(float, marks)))
    return tuple(outcomes)


@lru_cache(maxsize=32)
def _all_passed(criteria: tuple[str, ...], error_class: ErrorClass) -> tuple[Outcome, ...]:
    """Return the outcomes of a trial that passed: one tuple serves all of an experiment."""
    return tuple(_outcome(name, None, error_class, ()) for name in criteria)


def _outcome(
    criterion: str, failure: Any, error_class: ErrorClass, others: tuple[OtherCheck, ...]
) -> Outcome:
    if failure is None:
        return Outcome(criterion=criterion, result=CheckResult.ok(), error_class=error_class)
    reason, postcondition, explanation, evidence, *own = failure
    result = CheckResult.fail(explanation, evidence=evidence, reason=FailReason(reason))
    return Outcome(
        criterion=criterion,
        result=result,
        postcondition=postcondition,
        error_class=ErrorClass(own[0]) if own else error_class,
        others=others,
    )


def spell_trial(trial: Trial) -> str:
    """Return the JSON of a trial with the name of its experiment.

    It is `write_trial` in JSON. A plain trial, as nearly all of a quick service are, is spelled
    here without it: that takes a tenth of the time, and is half of what a trial takes.

    >>> trial = Trial(experiment="inputs", index=0, input_id="1", seed=7, outcomes=())
    >>> spell_trial(trial)
    '{"i":0,"in":"1","seed":7,"ok":"","x":"inputs"}'
    """
    if trial.is_plain:
        reply = cast("str", trial.reply)
        return (
            f'{{"i":{trial.index},"in":{_quote(trial.input_id)},"seed":{trial.seed}'
            f',"ok":"{"1" * len(trial.outcomes)}","latency_s":{trial.latency_s!r}'
            f',"at":{trial.started_s!r},"reply":{_quote(reply)},"x":{_quote(trial.experiment)}}}'
        )
    record = write_trial(trial)
    record["x"] = trial.experiment
    return spell_record(record)
