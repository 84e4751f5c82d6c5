"""Four heuristics of how steady one agent session was, folded across runs.

The sub-scores of the mcptest stability report: shapes of the trace, not its meaning. A low score
says "look here"; it is no test, has no error rate, and proves no regression. Known to be harsh: a
healthy session of two calls to two tools has a tool usage stability of 0, so a sub-score can be
left out.

A trace comes from elsewhere, so reading one never raises: what is missing or malformed is read as
absent, except that every entry of `tool_calls` is a call, so that a loop cannot hide in a
malformed one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from trialwise.errors import InvalidArgument
from trialwise.validation import require_choice, require_positive, require_rate

T = TypeVar("T")

#: Below half, a dimension is more degraded than stable: the floor of every sub-score and the
#: default gate on the weakest one. A convention of the report, not a calibrated threshold.
DEFAULT_MINIMUM: Final = 0.5

SUB_SCORES = ("tool_usage_stability", "response_consistency", "redundancy", "cost_per_progress")


@dataclass(frozen=True, slots=True, kw_only=True)
class StabilityReport:
    """The four sub-scores of one run, each from 0 to 1, higher is steadier."""

    tool_usage_stability: float
    response_consistency: float
    redundancy: float
    """The share of calls that are *not* repeats, whatever the name suggests."""
    cost_per_progress: float
    shape: TraceShape | None = None
    """What was counted; None for a report made from scores alone."""

    def __post_init__(self) -> None:
        _check_rates(self)

    @property
    def weakest_score(self) -> float:
        """The lowest of the four."""
        return self.weakest_score_without(())

    def weakest_score_without(self, excluding: Collection[str]) -> float:
        """The lowest of the sub-scores not named; at least one must remain.

        >>> report = StabilityReport(tool_usage_stability=0.0, response_consistency=0.9,
        ...                          redundancy=1.0, cost_per_progress=0.8)
        >>> report.weakest_score_without(["tool_usage_stability"])
        0.8
        """
        if isinstance(excluding, str):
            raise InvalidArgument("excluding", excluding, "be a collection of names")
        left_out = [require_choice("excluding", name, SUB_SCORES) for name in excluding]
        scores: list[float] = [getattr(self, name) for name in SUB_SCORES if name not in left_out]
        if not scores:
            raise InvalidArgument("excluding", excluding, "leave at least one sub-score")
        return min(scores)

    def summary(self) -> str:
        """All four and the weakest on one line."""
        scores = " ".join(f"{name}={getattr(self, name):.3f}" for name in SUB_SCORES)
        return f"{scores} weakest_score={self.weakest_score:.3f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StabilityFloors:
    """The score below which each dimension counts as drifted; 0 never flags."""

    tool_usage_stability: float = DEFAULT_MINIMUM
    response_consistency: float = DEFAULT_MINIMUM
    redundancy: float = DEFAULT_MINIMUM
    cost_per_progress: float = DEFAULT_MINIMUM

    def __post_init__(self) -> None:
        _check_rates(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class StabilityGate:
    """A target that must be at least `minimum`."""

    target: str
    minimum: float


#: What a stability block asks for when it asks for nothing in particular.
DEFAULT_GATE: Final = StabilityGate(target="stability.weakest_score", minimum=DEFAULT_MINIMUM)


def stability_of_shape(shape: TraceShape, *, tokens_per_call: float = 2000) -> StabilityReport:
    """The four sub-scores of a trace, from its counts.

    A trace with at most one assistant turn and at most one tool call has no progression to
    measure, and all four are 1. Otherwise, with n calls, d of them distinct:

    - tool_usage_stability: 1 − (tools − 1)/(n − 1), a tool being (name, server); 1 below 2 calls
    - response_consistency: 1 − min(1, σ/μ) of the assistant turns' lengths in code points, σ the
      population one; 1 below 2 turns or when all are empty
    - redundancy: d/n, a call being (name, server, canonical arguments); 1 without calls
    - cost_per_progress: target / max(target, tokens/d); 1 without tokens, 0 with tokens and no call

    Canonical arguments ignore the order of keys at every depth and tell 1 from true but not from
    1.0; the order of lists counts. Missing arguments are empty ones.

    Parameters
    ----------
    shape : TraceShape
        Of one run.
    tokens_per_call : float
        Above 0: the tokens per distinct call from which cost_per_progress falls. An anchor, not a
        price.

    Examples
    --------
    >>> shape = TraceShape(total_calls=5, distinct_calls=5, distinct_tools=3,
    ...                    assistant_lengths=(100, 300), tokens=10_000.0)
    >>> report = stability_of_shape(shape)
    >>> report.tool_usage_stability, report.response_consistency, report.cost_per_progress
    (0.5, 0.5, 1.0)
    """
    target = require_positive("tokens_per_call", tokens_per_call)
    if is_short(shape):
        scores = [1.0] * 4
    else:
        scores = [
            _tool_usage_stability(shape),
            _response_consistency(shape.assistant_lengths),
            shape.distinct_calls / shape.total_calls if shape.total_calls else 1.0,
            _cost_per_progress(shape, target),
        ]
    return StabilityReport(**dict(zip(SUB_SCORES, scores, strict=True)), shape=shape)


def is_short(shape: TraceShape) -> bool:
    """Whether a trace has no progression to measure, so that every sub-score is 1."""
    return shape.total_calls <= 1 and len(shape.assistant_lengths) <= 1


def drift_flags(report: StabilityReport, floors: StabilityFloors | None = None) -> tuple[str, ...]:
    """The names of the sub-scores strictly below their floor, in the report's order.

    Parameters
    ----------
    report : StabilityReport
        One run's sub-scores.
    floors : StabilityFloors, optional
        `DEFAULT_MINIMUM` on each when omitted.

    Examples
    --------
    >>> report = StabilityReport(tool_usage_stability=0.5, response_consistency=0.9,
    ...                          redundancy=0.25, cost_per_progress=0.8)
    >>> drift_flags(report)
    ('redundancy',)
    """
    limits = StabilityFloors() if floors is None else floors
    return tuple(name for name in SUB_SCORES if getattr(report, name) < getattr(limits, name))


def _check_rates(scores: StabilityReport | StabilityFloors) -> None:
    for name in SUB_SCORES:
        require_rate(name, getattr(scores, name))


def _tool_usage_stability(shape: TraceShape) -> float:
    if shape.total_calls < 2:
        return 1.0
    return (shape.total_calls - shape.distinct_tools) / (shape.total_calls - 1)


def _response_consistency(lengths: tuple[int, ...]) -> float:
    total = sum(lengths)
    if len(lengths) < 2 or total == 0:
        return 1.0
    # σ/μ = √(n Σx² − (Σx)²) / Σx, whole numbers up to the root.
    spread = len(lengths) * sum(length * length for length in lengths) - total * total
    return 1 - min(1.0, math.sqrt(spread) / total)


def _cost_per_progress(shape: TraceShape, target: float) -> float:
    if shape.tokens == 0:
        return 1.0
    if shape.distinct_calls == 0:
        return 0.0
    return target / max(target, shape.tokens / shape.distinct_calls)


# --- Reading an agent's trace: counts from JSON that somebody else wrote --------------------------
#
# Nothing here raises: what is missing or malformed is read as absent, except that every entry of
# `tool_calls` is a call, so that a loop cannot hide in a malformed one.

#: Parts of one argument bag that are compared; beyond them two bags count as equal. A bound is
#: needed because a value that contains itself has no end.
_MAX_PARTS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceShape:
    """The counts the sub-scores are made of."""

    total_calls: int
    distinct_calls: int
    distinct_tools: int
    assistant_lengths: tuple[int, ...]
    """Unicode code points of each assistant turn."""
    tokens: float


def read_trace(envelope: object) -> TraceShape:
    """Count the calls, answers and tokens in the envelope of a trace."""
    trace = _fields(envelope)
    conversation = _fields(trace.get("conversation"))
    turns = [_fields(turn) for turn in _items(conversation.get("turns"))]
    keys = [_call_key(call) for call in _items(trace.get("tool_calls"))]
    return TraceShape(
        total_calls=len(keys),
        distinct_calls=len(set(keys)),
        distinct_tools=len({tool for tool, _ in keys}),
        assistant_lengths=tuple(
            len(_text(turn.get("content")))
            for turn in turns
            if _text(turn.get("role")) == "assistant"
        ),
        tokens=_tokens(_fields(conversation.get("tokens")).get("total")),
    )


def _call_key(call: object) -> tuple[str, str]:
    """What tells one tool from another, and what else tells one call from another."""
    fields = _fields(call)
    if not fields:
        return _canonical(call), ""
    args = fields.get("args")
    tool = _canonical([fields.get("name"), fields.get("server")])
    return tool, _canonical({} if args is None else args)


def _attempt(read: Callable[[], T], otherwise: T) -> T:
    """What a foreign object tells, which may fail in any way at all; then it tells nothing."""
    try:
        return read()
    except Exception:
        return otherwise


def _fields(value: object) -> dict[str, object]:
    return {key: member for key, member in _entries(value) or () if type(key) is str}


def _entries(value: object) -> list[tuple[object, object]] | None:
    return _attempt(lambda: list(dict(value).items()) if isinstance(value, Mapping) else None, None)


def _items(value: object) -> list[object]:
    return _attempt(lambda: list(value) if isinstance(value, list | tuple) else [], [])


def _text(value: object) -> str:
    return _attempt(lambda: str.__str__(value) if isinstance(value, str) else "", "")


def _tokens(value: object) -> float:
    try:
        number = value if isinstance(value, int | float) and not isinstance(value, bool) else 0
        return float(number) if number > 0 else 0.0
    except OverflowError:  # too many for a double is still too many, not none
        return math.inf
    except Exception:
        return 0.0


def _canonical(value: object) -> str:
    """One text for equal JSON values and different texts for different ones.

    Every part is marked with its kind and its length or end, so that no two values are spelled
    alike. Without recursion: a trace may be nested deeper than the interpreter's stack.
    """
    parts: list[str] = []
    pending = [value]
    room = _MAX_PARTS
    while pending and room > 0:
        item = pending.pop()
        entries = _entries(item)
        if entries is not None:
            entries.sort(key=lambda entry: _scalar(entry[0]))
            parts.append(f"{{{len(entries)};")
            for key, member in entries:
                pending += (member, key)
            room -= 2 * len(entries)
        elif type(item) in (list, tuple):
            members = _items(item)
            parts.append(f"[{len(members)};")
            pending += reversed(members)
            room -= len(members)
        else:
            parts.append(_scalar(item))
    return "".join(parts)


def _scalar(value: object) -> str:
    return _attempt(lambda: _spell_value(value), "o0;")


def _spell_value(value: object) -> str:
    match value:
        case None | bool():
            return f"{value};"
        case float() if not value.is_integer():
            return f"f{value.hex()};"
        case int() | float():
            return f"n{int(value):x};"
        case str():
            return f"s{len(value)};{str.__str__(value)}"
    # What JSON cannot spell, by its own text if its class has one, else by its class.
    kind = type(value)
    text = "" if kind.__repr__ is object.__repr__ else repr(value)
    return f"o{len(text)};{text}{kind.__module__}.{kind.__qualname__};"
