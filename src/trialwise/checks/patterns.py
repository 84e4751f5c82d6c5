"""Postconditions on the reply's text by regular expression."""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache

from trialwise.checks.check_base import Check, check_flags
from trialwise.checks.quoting import failed, label, preview
from trialwise.checks.reply_reading import text_of
from trialwise.declarations.signatures import Positive
from trialwise.errors import InvalidArgument
from trialwise.model.reply import Reply
from trialwise.model.trial import CheckResult
from trialwise.validation import require_count

__all__ = ["Matches", "matches"]


@dataclass(frozen=True, slots=True)
class Matches(Check, spelling="matches"):
    r"""The regular expression is found somewhere in the reply.

    Python's syntax, with search semantics: anchor with `^` and `$` (or `\A` and `\Z`), or ask for
    `whole`. Nothing stops a pattern that backtracks for ever, such as `(a+)+$`; use CEL's `matches`
    in an `expression`, which takes linear time, where replies are hostile.

    Args:
        pattern: The regular expression.
        ignore_case: As `re.IGNORECASE`.
        whole: The whole reply has to match.
        max_length: A longer reply fails unread, in code points.

    >>> matches(r"\b\d{3}\b").check(Reply(value="It is 555.")).passed
    True
    """

    pattern: str
    _: KW_ONLY
    ignore_case: bool = False
    whole: bool = False
    max_length: Positive = 100_000

    def __post_init__(self) -> None:
        check_pattern("pattern", self.pattern)
        check_flags(ignore_case=self.ignore_case, whole=self.whole)
        require_count("max_length", self.max_length, minimum=1)

    @property
    def name(self) -> str:
        """The name in reports."""
        return f"matches {label(self.pattern)}"

    def _examine(self, reply: Reply) -> CheckResult:
        text = text_of(reply)
        if len(text) > self.max_length:
            limit = f"the reply has {len(text)} characters, matches reads at most {self.max_length}"
            return failed(limit, preview(text))
        pattern = compiled(self.pattern, self.ignore_case)
        if pattern.fullmatch(text) if self.whole else pattern.search(text):
            return CheckResult.ok()
        how = "is not matched as a whole by" if self.whole else "has no match for"
        return failed(f"the reply {how} {label(self.pattern)}", preview(text))


matches = Matches


@lru_cache(maxsize=256)
def compiled(pattern: str, ignore_case: bool = False) -> re.Pattern[str]:
    """Return a regular expression, compiled once for all the checks that hold it."""
    return re.compile(pattern, re.IGNORECASE if ignore_case else 0)


def check_pattern(argument: str, pattern: object) -> None:
    """A regular expression that compiles, or `InvalidArgument` with the position."""
    if not isinstance(pattern, str):
        raise InvalidArgument(argument, pattern, "be a regular expression as text")
    try:
        compiled(pattern)
    except re.error as error:
        where = "" if error.pos is None else f" at position {error.pos}"
        allowed = f"be a regular expression ({error.msg}{where})"
        raise InvalidArgument(argument, pattern, allowed) from None
    except (RecursionError, OverflowError) as error:
        allowed = f"be a simpler regular expression ({error})"
        raise InvalidArgument(argument, pattern, allowed) from None
