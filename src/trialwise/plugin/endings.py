"""How a trial's body ended, in the model's words.

An assertion is a failure; whatever else was raised is an error with its class. A trial that was
skipped, or whose fixtures could not be set up, never reached the service: it counts as not passed
like every other trial, and the rate without such trials is printed beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from trialwise.engine.ports import ServiceError
from trialwise.model.outcome import CheckResult, ErrorClass, FailReason

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["PASSED", "Ending", "ending_of"]

#: Frames below these folders are not the user's own.
_FOREIGN = frozenset({"site-packages", "dist-packages"})
_OK = CheckResult.ok()
#: What an explanation is cut at: its first line is what tells failures apart.
_LONGEST = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What became of one body."""

    result: CheckResult = _OK
    error_class: ErrorClass = ErrorClass.NONE
    where: str | None = None
    """The place it happened at, as `file:line`."""
    skipped: str | None = None
    """Why it was skipped, if it was."""

    @property
    def passed(self) -> bool:
        """Whether the body ended as it should."""
        return self.result.passed


PASSED = Ending()


def ending_of(
    excinfo: pytest.ExceptionInfo[BaseException], *, when: str, root: Path, file: Path
) -> Ending:
    """The ending that an exception means.

    Args:
        excinfo: What was raised.
        when: "setup" for a fixture's exception, "call" for the body's own.
        root: The folder that places are given below.
        file: The test's own.
    """
    error = _innermost(excinfo.value)
    where = _place(_entries(error) or _entries(excinfo.value), root, file)
    if isinstance(error, pytest.skip.Exception):
        why = str(error.msg)
        result = CheckResult.fail(_line(f"skipped: {why}"), reason=FailReason.NO_VALUE)
        return Ending(
            result=result, error_class=ErrorClass.PRE_VALIDATION, where=where, skipped=why
        )
    if when == "setup":
        said = _line(f"a fixture failed: {_describe_error(error)}")
        result = CheckResult.fail(said, reason=FailReason.NO_VALUE)
        return Ending(result=result, error_class=ErrorClass.PRE_VALIDATION, where=where)
    if isinstance(error, pytest.xfail.Exception):
        return Ending(result=CheckResult.fail(_line(f"xfail: {error.msg}")), where=where)
    error_class = _class(error)
    failed = isinstance(error, AssertionError | pytest.fail.Exception)
    reason = FailReason.NO_VALUE
    if failed and error_class is ErrorClass.NONE:
        reason = FailReason.CONDITION
    result = CheckResult.fail(_line(_describe_error(error)), reason=reason)
    return Ending(result=result, error_class=error_class, where=where)


def _class(error: BaseException) -> ErrorClass:
    if isinstance(error, ServiceError):
        return error.error_class
    if isinstance(error, TimeoutError) or _is_from_timeout_plugin(error):
        return ErrorClass.TIMEOUT
    return ErrorClass.INFRASTRUCTURE if isinstance(error, ConnectionError) else ErrorClass.NONE


def _is_from_timeout_plugin(error: BaseException) -> bool:
    """pytest-timeout fails a test like anybody else does; only the place tells."""
    if not isinstance(error, pytest.fail.Exception):
        return False
    names = [entry.tb_frame.f_globals.get("__name__") for entry in _entries(error)]
    return "pytest_timeout" in names


def _entries(error: BaseException) -> list[Any]:
    """The entries of an exception's traceback, outermost first."""
    entries, entry = [], error.__traceback__
    while entry is not None:
        entries.append(entry)
        entry = entry.tb_next
    return entries


def _place(entries: Iterable[Any], root: Path, file: Path) -> str | None:
    """The innermost place in the user's own code; in a library's where there is none."""
    own = last = None
    for entry in entries:
        path = Path(entry.tb_frame.f_code.co_filename)
        last = (path, entry.tb_lineno)
        inside = path == file or (path.is_relative_to(root) and not _FOREIGN & set(path.parts))
        own = last if inside else own
    found = own or last
    if found is None:
        return None
    path, line = found
    shown = path.relative_to(root) if path.is_relative_to(root) else Path(path.name)
    return f"{shown.as_posix()}:{line}"


def _innermost(error: BaseException) -> BaseException:
    """The one exception of a group: a body may have run its call in a task group."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _describe_error(error: BaseException) -> str:
    """What an exception says; a plain assertion without saying that it is one."""
    try:
        said = str(error)
    except Exception:  # its own __str__ may raise anything
        said = ""
    if isinstance(error, AssertionError | pytest.fail.Exception):
        return said or type(error).__name__
    return ": ".join(filter(None, (type(error).__name__, said)))


def _line(text: str) -> str:
    first = text.strip().partition("\n")[0]
    return first if len(first) <= _LONGEST else first[: _LONGEST - 1] + "…"
