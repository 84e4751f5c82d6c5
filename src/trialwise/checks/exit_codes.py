"""The postcondition on how a subprocess ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from trialwise.checks.check_base import Check, Unreadable
from trialwise.checks.quoting import failed, preview
from trialwise.errors import InvalidArgument
from trialwise.model.reply import Reply
from trialwise.model.trial import CheckResult, FailReason
from trialwise.validation import require_integer

__all__ = ["ExitCode", "exit_code"]


@dataclass(frozen=True, slots=True)
class ExitCode(Check):
    """The subprocess ended with one of some codes."""

    spelling: ClassVar[str] = "exit_code"

    code: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.code:
            raise InvalidArgument("code", [], "hold at least one exit code")
        for code in self.code:
            require_integer("code", code)

    @property
    def name(self) -> str:
        """The name in reports."""
        return f"exit code {' or '.join(map(str, self.code))}"

    def _examine(self, reply: Reply) -> CheckResult:
        if reply.exit_code is None:
            raise Unreadable("the reply has no exit code", reason=FailReason.NO_VALUE)
        if reply.exit_code in self.code:
            return CheckResult.ok()
        expected = " or ".join(map(str, self.code))
        return failed(f"exit code {reply.exit_code}, expected {expected}", _last_error(reply))


def exit_code(code: int | Sequence[int] = 0) -> ExitCode:
    """The subprocess ended with this exit code, or with one of several.

    A reply without an exit code fails with reason `no-value`.

    Args:
        code: The code, or several.

    >>> exit_code(0).check(Reply(value="", exit_code=3)).explanation
    'exit code 3, expected 0'
    """
    return ExitCode(tuple(code) if isinstance(code, (list, tuple)) else (code,))  # type: ignore[arg-type]


def _last_error(reply: Reply) -> str:
    """The last line of standard error, where one was kept."""
    stderr: Any = reply.details.get("stderr")
    lines = stderr[-2000:].split("\n") if isinstance(stderr, str) else []
    return next((preview(line.strip()) for line in reversed(lines) if line.strip()), "")
