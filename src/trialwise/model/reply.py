"""What came back from the service in one trial."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from trialwise.errors import InvalidArgument
from trialwise.validation import require_amount, require_count, require_given

_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens a reply cost."""

    input_tokens: int = 0
    output_tokens: int = 0

    def __post_init__(self) -> None:
        require_count("input_tokens", self.input_tokens)
        require_count("output_tokens", self.output_tokens)

    @property
    def total_tokens(self) -> int:
        """Both directions together."""
        return self.input_tokens + self.output_tokens


def sum_usages(usages: Sequence[Usage | None]) -> Usage | None:
    """Sum up all tokens; None where some are not known, since a part would look like the whole.

    >>> sum_usages([Usage(input_tokens=3), Usage(output_tokens=2)])
    Usage(input_tokens=3, output_tokens=2)
    >>> sum_usages([Usage(input_tokens=3), None]) is None
    True
    """
    known = [one for one in usages if one is not None]
    if not known or len(known) < len(usages):
        return None
    return Usage(
        input_tokens=sum(one.input_tokens for one in known),
        output_tokens=sum(one.output_tokens for one in known),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What preparing a trial took: kept apart, since comparing services is about the work alone.

    >>> Reply(value="555", setup=Setup(seconds=1.5, cost_usd=0.02)).setup.cost_usd
    0.02
    """

    seconds: float = 0.0
    usage: Usage | None = None
    cost_usd: float | None = None

    def __post_init__(self) -> None:
        require_amount("seconds", self.seconds)
        require_given(self, "cost_usd", require_amount)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A response with what it took to get it.

    >>> Reply(value="555", latency_s=0.2).text
    '555'
    """

    value: Any
    """What the service said: text, or whatever a Python callable returned."""
    latency_s: float = 0.0
    usage: Usage | None = None
    cost_usd: float | None = None
    exit_code: int | None = None
    """How a subprocess ended; None for every other service."""
    details: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    """What else is known, such as tool calls, standard error or an HTTP status."""
    setup: Setup | None = None
    """Preparation, not part of the latency, usage and cost above."""

    def __post_init__(self) -> None:
        _check_amount("latency_s", self.latency_s)
        if self.cost_usd is not None:
            _check_amount("cost_usd", self.cost_usd)
        # A service of the user's makes these, and the engine must be able to rely on them.
        if self.usage is not None and not isinstance(self.usage, Usage):
            raise InvalidArgument("usage", self.usage, "be a Usage")
        if self.setup is not None and not isinstance(self.setup, Setup):
            raise InvalidArgument("setup", self.setup, "be a Setup")
        if self.details is not _NOTHING and not isinstance(self.details, Mapping):
            raise InvalidArgument("details", self.details, "be a mapping")
        if self.exit_code is not None and not isinstance(self.exit_code, int):
            raise InvalidArgument("exit_code", self.exit_code, "be a whole number")

    @property
    def text(self) -> str:
        """The value as text; what is not text is shown as Python would."""
        return self.value if isinstance(self.value, str) else str(self.value)

    def with_input(self, given: Any, expected: Any = None) -> Reply:
        """Return the reply as postconditions see it: the trial's input is among its details.

        >>> Reply(value="555").with_input("What is 15 * 37?").details["input"]
        'What is 15 * 37?'

        Args:
            given: What the service was given.
            expected: The input's expected answer, which it was not given; None where there is none.
        """
        details = {**self.details, "input": given} if self.details else {"input": given}
        if expected is not None:
            details["expected"] = expected
        if type(self) is not Reply:
            return replace(self, details=details)
        return make_reply(
            self.value,
            self.latency_s,
            details,
            (self.usage, self.cost_usd, self.exit_code, self.setup),
        )


class _OpenReply:
    """A reply that is being made, whose class is changed when it is.

    Setting the fields of a frozen class, and checking again what was checked, takes five times as
    long, and every trial makes two replies.
    """

    __slots__ = Reply.__slots__


def make_reply(
    value: Any,
    latency_s: float,
    details: Mapping[str, Any] = _NOTHING,
    others: tuple[Usage | None, float | None, int | None, Setup | None] = (None, None, None, None),
) -> Reply:
    """Return a reply without checking its parts.

    >>> make_reply("555", 0.2) == Reply(value="555", latency_s=0.2)
    True

    Args:
        value: What the service said.
        latency_s: How long it took, which is not negative.
        details: What else is known.
        others: Its usage, its cost, its exit code and its preparation.
    """
    made: Any = _OpenReply()
    made.value, made.latency_s, made.details = value, latency_s, details
    made.usage, made.cost_usd, made.exit_code, made.setup = others
    made.__class__ = Reply
    reply: Reply = made
    return reply


def write_reply(reply: Reply) -> dict[str, Any]:
    """Write a reply as the plain values that `read_reply` reads; JSON must be able to carry them.

    >>> reply = Reply(value="555", cost_usd=0.1)
    >>> read_reply(write_reply(reply)) == reply
    True
    """
    fields: dict[str, Any] = {
        name: getattr(reply, name) for name in ("value", "latency_s", "cost_usd", "exit_code")
    }
    setup = reply.setup
    if setup is not None:
        told = {"seconds": setup.seconds, "cost_usd": setup.cost_usd}
        fields["setup"] = told | {"usage": _write_usage(setup.usage)}
    return fields | {"usage": _write_usage(reply.usage), "details": dict(reply.details)}


def read_reply(fields: Mapping[str, Any]) -> Reply:
    """Read the reply that `write_reply` wrote; what is left out is as usual."""
    setup = fields.get("setup")
    if setup is not None:
        setup = Setup(**{**setup, "usage": _read_usage(setup["usage"])})
    return Reply(**{**fields, "usage": _read_usage(fields.get("usage")), "setup": setup})


def _write_usage(usage: Usage | None) -> dict[str, int] | None:
    if usage is None:
        return None
    return {"input": usage.input_tokens, "output": usage.output_tokens}


def _read_usage(fields: Mapping[str, int] | None) -> Usage | None:
    if fields is None:
        return None
    return Usage(input_tokens=fields["input"], output_tokens=fields["output"])


def _check_amount(argument: str, value: float) -> None:
    # The plain case first: this runs once a trial.
    if type(value) is float and 0.0 <= value < math.inf:
        return
    require_amount(argument, value)
