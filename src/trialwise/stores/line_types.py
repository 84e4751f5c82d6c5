"""The types of what stands in a line of a journal.

A checksum says that a line is whole, not who wrote it: anybody can compute one. So a line is held
against the types that pages and procedures rely on. Keys that are not known are left alone, for a
later version may have written them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

#: More than any number of seconds, dollars or tokens of a trial; NaN and infinity are not below it.
_MOST = 1e15


def _is_text(value: Any) -> bool:
    return type(value) is str


def _is_amount(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < _MOST


def _is_moment(value: Any) -> bool:
    return type(value) in (int, float) and -_MOST < value < _MOST


def _is_integer(value: Any) -> bool:
    return type(value) is int and -_MOST < value < _MOST


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < _MOST


def _is_seed(value: Any) -> bool:
    return type(value) is int and -(2**64) < value < 2**64


def _is_list_of(accepts: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: type(value) is list and all(map(accepts, value))


def _is_usage(value: Any) -> bool:
    return type(value) is list and len(value) == 2 and all(map(_is_count, value))


def _is_failure(value: Any) -> bool:
    """A criterion's place, the reason, the check, what it said, evidence and perhaps a class."""
    return (
        type(value) is list
        and len(value) in (5, 6)
        and _is_count(value[0])
        and all(one is None or type(one) is str for one in value[1:3])
        and all(map(_is_text, value[3:]))
    )


def _is_other_check(value: Any) -> bool:
    """A criterion's place, the check, and what it said where it was asked."""
    return (
        type(value) is list
        and len(value) in (2, 5)
        and _is_count(value[0])
        and all(map(_is_text, value[1:]))
    )


def _is_message(value: Any) -> bool:
    return type(value) is list and len(value) == 2 and all(map(_is_text, value))


def _is_object(value: Any) -> bool:
    return type(value) is dict


def _is_shape(value: Any) -> bool:
    if type(value) is not list or len(value) != 5:
        return False
    *calls, lengths, tokens = value
    return (
        all(map(_is_count, calls))
        and _is_counts(lengths)
        and (tokens is None or _is_amount(tokens))
    )


_is_counts = _is_list_of(_is_count)

_TRIAL_TEXTS = frozenset(("in", "x", "ok", "class", "error", "reply", "ended", "raised"))
_TRIAL: Mapping[str, Callable[[Any], bool]] = {
    "i": _is_count,
    "seed": _is_seed,
    **dict.fromkeys(_TRIAL_TEXTS, _is_text),
    **dict.fromkeys(
        ("latency_s", "cost_usd", "setup_s", "setup_cost_usd", "judging_cost_usd"), _is_amount
    ),
    **dict.fromkeys(("usage", "setup_usage", "judging_usage"), _is_usage),
    "at": _is_moment,
    "attempts": _is_count,
    "attempt_errors": _is_list_of(_is_text),
    "exit": _is_integer,
    "failed": _is_list_of(_is_failure),
    "also": _is_list_of(_is_other_check),
    "messages": _is_list_of(_is_message),
    "tool_calls": _is_list_of(_is_object),
    "whole": _is_object,
    "shape": _is_shape,
}
_TEXT: Mapping[str, Callable[[Any], bool]] = dict.fromkeys(
    ("hash", "x", "in", "value", "traceback"), _is_text
)


def is_trial_line(line: Mapping[str, Any]) -> bool:
    """Return whether the values of a trial's line have the types that a trial has.

    >>> is_trial_line({"i": 0, "latency_s": 0.5}), is_trial_line({"i": 0, "latency_s": "0.5"})
    (True, False)
    """
    for name, value in line.items():
        # Most values are texts, and a run may have a million lines.
        if type(value) is not str or name not in _TRIAL_TEXTS:
            accepts = _TRIAL.get(name)
            if accepts is not None and not accepts(value):
                return False
    return True


def is_text_line(line: Mapping[str, Any]) -> bool:
    """Return whether the values of a text's line have the types that a text has."""
    expected = line.get("expected")
    return (expected is None or _is_text(expected)) and all(
        accepts(line[name]) for name, accepts in _TEXT.items() if name in line
    )
