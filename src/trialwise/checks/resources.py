"""Postconditions on what one reply took: tokens, money and time.

A reply whose usage or cost is not known fails with reason `no-value`: unknown is not free.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from trialwise.checks.check_base import Check, Unreadable
from trialwise.checks.quoting import failed, preview
from trialwise.declarations.signatures import Dollars, Natural, Seconds
from trialwise.errors import InvalidArgument
from trialwise.model.reply import Reply
from trialwise.model.trial import CheckResult, FailReason
from trialwise.validation import require_count, require_integer, require_real

__all__ = [
    "ExitCode",
    "MaxCost",
    "MaxLatency",
    "MaxTokens",
    "exit_code",
    "max_cost",
    "max_latency",
    "max_tokens",
]


@dataclass(frozen=True, slots=True)
class MaxTokens(Check, spelling="max_tokens"):
    """The reply took at most so many tokens, input and output together.

    Args:
        tokens: The most tokens that are allowed.

    >>> max_tokens(100).check(Reply(value="")).reason
    <FailReason.NO_VALUE: 'no-value'>
    """

    tokens: Natural

    def __post_init__(self) -> None:
        require_count("tokens", self.tokens)

    @property
    def name(self) -> str:
        """The name in reports."""
        return f"at most {self.tokens} tokens"

    def _examine(self, reply: Reply) -> CheckResult:
        if reply.usage is None:
            raise Unreadable("the reply's tokens are not known", reason=FailReason.NO_VALUE)
        total = reply.usage.total_tokens
        if total <= self.tokens:
            return CheckResult.ok()
        both = f"{reply.usage.input_tokens} in, {reply.usage.output_tokens} out"
        return failed(f"{total} tokens, expected at most {self.tokens}", both)


max_tokens = MaxTokens


@dataclass(frozen=True, slots=True)
class MaxCost(Check, spelling="max_cost"):
    """The reply cost at most so much, in US dollars.

    Args:
        usd: The most money that is allowed.

    >>> max_cost(0.01).check(Reply(value="", cost_usd=0.02)).evidence
    '$0.02'
    """

    usd: Dollars

    def __post_init__(self) -> None:
        _check_amount("usd", self.usd)

    @property
    def name(self) -> str:
        """The name in reports."""
        return f"costs at most ${self.usd:g}"

    def _examine(self, reply: Reply) -> CheckResult:
        if reply.cost_usd is None:
            raise Unreadable("the reply's cost is not known", reason=FailReason.NO_VALUE)
        if reply.cost_usd <= self.usd:
            return CheckResult.ok()
        return failed(f"expected at most ${self.usd:g}", f"${reply.cost_usd:g}")


max_cost = MaxCost


@dataclass(frozen=True, slots=True)
class MaxLatency(Check, spelling="max_latency"):
    """The reply took at most so long.

    Args:
        seconds: The longest time that is allowed.

    >>> max_latency(2).check(Reply(value="", latency_s=2.5)).evidence
    '2.5 s'
    """

    seconds: Seconds

    def __post_init__(self) -> None:
        _check_amount("seconds", self.seconds)

    @property
    def name(self) -> str:
        """The name in reports."""
        return f"takes at most {self.seconds:g} s"

    def _examine(self, reply: Reply) -> CheckResult:
        if reply.latency_s <= self.seconds:
            return CheckResult.ok()
        return failed(f"expected at most {self.seconds:g} s", f"{reply.latency_s:g} s")


max_latency = MaxLatency


def _check_amount(argument: str, value: float) -> None:
    if require_real(argument, value) < 0:
        raise InvalidArgument(argument, value, "be at least 0")


@dataclass(frozen=True, slots=True)
class ExitCode(Check, spelling="exit_code"):
    """The subprocess ended with this exit code, or with one of several.

    A reply without an exit code fails with reason `no-value`.

    Args:
        code: The code, or several.

    >>> exit_code(0).check(Reply(value="", exit_code=3)).explanation
    'exit code 3, expected 0'
    """

    code: int | Sequence[int] = 0

    def __post_init__(self) -> None:
        self._keep(code=tuple(self.code) if isinstance(self.code, (list, tuple)) else (self.code,))
        if not self._codes:
            raise InvalidArgument("code", [], "hold at least one exit code")
        for code in self._codes:
            require_integer("code", code)

    @property
    def name(self) -> str:
        """The name in reports."""
        return f"exit code {' or '.join(map(str, self._codes))}"

    @property
    def _codes(self) -> tuple[int, ...]:
        return cast("tuple[int, ...]", self.code)

    def _examine(self, reply: Reply) -> CheckResult:
        if reply.exit_code is None:
            raise Unreadable("the reply has no exit code", reason=FailReason.NO_VALUE)
        if reply.exit_code in self._codes:
            return CheckResult.ok()
        expected = " or ".join(map(str, self._codes))
        return failed(f"exit code {reply.exit_code}, expected {expected}", _last_error(reply))


exit_code = ExitCode


def _last_error(reply: Reply) -> str:
    """Return the last line of standard error, where one was kept."""
    stderr: Any = reply.details.get("stderr")
    lines = stderr[-2000:].split("\n") if isinstance(stderr, str) else []
    return next((preview(line.strip()) for line in reversed(lines) if line.strip()), "")
