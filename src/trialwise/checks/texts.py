"""Postconditions on the reply's text.

Lengths and positions count code points. `ignore_case` compares case-folded text. A reply that is
None has no text, which is a failure with reason `no-value`, never the text "None".
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from re import _parser  # type: ignore[attr-defined]
from typing import Any, ClassVar, Literal, TypeVar
from warnings import catch_warnings

from trialwise.checks import check_base
from trialwise.checks.check_base import Check, CountLimits, Limits, failed, label, preview
from trialwise.checks.reply_reading import text_of
from trialwise.checks.time_limits import call_limited
from trialwise.declarations.signatures import Natural, Positive
from trialwise.documents.numbers import as_count
from trialwise.errors import InvalidArgument
from trialwise.model import CheckResult, Reply
from trialwise.redaction import LOOKED_AT, redact_text

__all__ = ["Contains", "EndsWith", "Length", "Matches", "NotContains", "StartsWith"]
__all__ += ["contains", "ends_with", "length", "matches", "not_contains", "starts_with"]


@dataclass(frozen=True, slots=True)
class Contains(CountLimits, spelling="contains"):
    """Each given text occurs in the reply.

    Args:
        text: One text or several; all of them must occur (for one of several use `any_of`).
        ignore_case: Compare case-folded text.
        minimum: How often each must occur at least, without overlaps.
        maximum: How often each may occur at most.

    >>> contains("555").check(Reply(value="15 × 37 = 554")).explanation
    "'555' is not in the reply"
    """

    text: str | Sequence[str]
    _: KW_ONLY
    ignore_case: bool = False
    minimum: Natural = 1
    maximum: Natural | None = None

    @property
    def name(self) -> str:
        """The name in reports."""
        parts = " and ".join(map(label, self.text))
        return f"contains {parts}" + (f" {self.limits.times}" if self.limits != Limits(1) else "")

    def _examine(self, reply: Reply) -> CheckResult:
        text = text_of(reply)
        searched = text.casefold() if self.ignore_case else text
        for part in self.text:
            sought = part.casefold() if self.ignore_case else part
            # Without overlaps, as Python counts: "aa" occurs once in "aaa".
            count = searched.count(sought)
            if self.limits.hold(count):
                continue
            if count == 0:
                return failed(f"{label(part)} is not in the reply", preview(text))
            return failed(
                f"{label(part)} occurs {as_count(count, 'time')}, expected {self.limits}",
                check_base.around(searched, searched.find(sought), len(sought)),
            )
        return CheckResult.ok()


contains = Contains


@dataclass(frozen=True, slots=True)
class NotContains(Check, spelling="not_contains"):
    """No given text occurs in the reply.

    Args:
        text: One text or several, none of which may occur.
        ignore_case: Compare case-folded text.

    >>> not_contains("sorry", ignore_case=True).check(Reply(value="So sorry!")).evidence
    'so sorry!'
    """

    text: str | Sequence[str]
    _: KW_ONLY
    ignore_case: bool = False

    @property
    def name(self) -> str:
        """The name in reports."""
        return f"does not contain {' or '.join(map(label, self.text))}"

    def _examine(self, reply: Reply) -> CheckResult:
        text = text_of(reply)
        searched = text.casefold() if self.ignore_case else text
        for part in self.text:
            start = searched.find(part.casefold() if self.ignore_case else part)
            if start >= 0:
                where = f"{label(part)} occurs at position {start}"
                return failed(where, check_base.around(searched, start, len(part)))
        return CheckResult.ok()


not_contains = NotContains


@dataclass(frozen=True, slots=True)
class _TextAtEnd(Check):
    """The reply has a given text at one of its ends."""

    end: ClassVar[Literal["start", "end"]]

    text: str
    _: KW_ONLY
    ignore_case: bool = False

    def __post_init__(self) -> None:
        Check.__post_init__(self)
        check_base.check_texts("text", (self.text,))

    @property
    def name(self) -> str:
        """The name in reports."""
        return f"{self.end}s with {label(self.text)}"

    def _examine(self, reply: Reply) -> CheckResult:
        text = text_of(reply)
        both = text, self.text
        searched, sought = (one.casefold() for one in both) if self.ignore_case else both
        at_start, size = self.end == "start", len(self.text) + 20
        if searched.startswith(sought) if at_start else searched.endswith(sought):
            return CheckResult.ok()
        # Secrets go before the cut: half of one would not be recognised any more.
        near = (
            redact_text(text[:LOOKED_AT])[:size]
            if at_start
            else redact_text(text[-LOOKED_AT:])[-size:]
        )
        return failed(f"the reply does not {self.end} with {label(self.text)}", preview(near))


@dataclass(frozen=True, slots=True)
class StartsWith(_TextAtEnd, spelling="starts_with"):
    """The reply begins with a text, white space included.

    Args:
        text: The text.
        ignore_case: Compare case-folded text.

    >>> starts_with("Yes").check(Reply(value="No.")).passed
    False
    """

    end = "start"


starts_with = StartsWith


@dataclass(frozen=True, slots=True)
class EndsWith(_TextAtEnd, spelling="ends_with"):
    """The reply ends with a text, white space included.

    Args:
        text: The text.
        ignore_case: Compare case-folded text.

    >>> ends_with("Bye.").check(Reply(value="Bye.")).passed
    True
    """

    end = "end"


ends_with = EndsWith


@dataclass(frozen=True, slots=True, kw_only=True)
class Length(CountLimits, spelling="length"):
    """The reply has at least `minimum` and at most `maximum` code points.

    Args:
        minimum: The fewest characters that are allowed.
        maximum: The most characters that are allowed.

    >>> length(maximum=3).check(Reply(value="four")).explanation
    'the reply has 4 characters, expected at most 3'
    """

    minimum: Natural | None = None
    maximum: Natural | None = None

    @property
    def name(self) -> str:
        """The name in reports."""
        return f"length {self.limits}"

    def _examine(self, reply: Reply) -> CheckResult:
        text = text_of(reply)
        if self.limits.hold(len(text)):
            return CheckResult.ok()
        return failed(
            f"the reply has {len(text)} characters, expected {self.limits}", preview(text)
        )


length = Length


# Postconditions on the reply's text by regular expression.


T = TypeVar("T")

#: The longest pattern; compiling a longer one may take seconds.
MAX_PATTERN = 10_000
#: A search of at most this many steps takes a few tenths of a second.
_CHEAP_STEPS = 10_000_000


@dataclass(frozen=True, slots=True)
class Matches(Check, spelling="matches"):
    r"""The regular expression is found somewhere in the reply.

    Python's syntax, with search semantics: anchor with `^` and `$` (or `\A` and `\Z`), or ask for
    `whole`. A pattern such as `(a+)+$` may backtrack without end: after 1 s of processor time on
    one reply the check is broken, and the run stops. CEL's `matches` in an `expression` takes
    linear time on any reply.

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
        Check.__post_init__(self)

    @property
    def name(self) -> str:
        """The name in reports."""
        return f"matches {label(self.pattern)}"

    def _examine(self, reply: Reply) -> CheckResult:
        text = text_of(reply)
        # A reply of megabytes is wrong for other reasons, and each search of it would take seconds.
        if len(text) > self.max_length:
            limit = f"the reply has {len(text)} characters, matches reads at most {self.max_length}"
            return failed(limit, preview(text))
        if has_match(self.pattern, text, ignore_case=self.ignore_case, whole=self.whole):
            return CheckResult.ok()
        how = "is not matched as a whole by" if self.whole else "has no match for"
        return failed(f"the reply {how} {label(self.pattern)}", preview(text))


matches = Matches


def has_match(pattern: str, text: str, *, ignore_case: bool = False, whole: bool = False) -> bool:
    """Return whether a regular expression matches a text, within a limit on its time.

    Args:
        pattern: The regular expression.
        text: Where it is searched.
        ignore_case: As `re.IGNORECASE`.
        whole: The whole text has to match.

    Raises:
        BrokenCheck: It takes too long.
    """
    return _apply(search_text, pattern, text, ignore_case, whole, doing="matches")


def _apply(function: Callable[..., T], pattern: str, text: str, *more: object, doing: str) -> T:
    """Apply a pattern to a text, with a limit on the time that it takes where it may be long."""
    # A timer costs more than most searches.
    if (len(text) + 1) ** (count_choices(pattern) + 1) <= _CHEAP_STEPS:
        return function(pattern, text, *more)
    named, subject = f"{doing} {label(pattern)}", f"a text of {len(text)} characters"
    return call_limited(function, pattern, text, *more, check=named, subject=subject)


def search_text(pattern: str, text: str, ignore_case: bool, whole: bool) -> bool:
    """Return whether a regular expression matches a text, however long that takes."""
    expression = compiled(pattern, ignore_case)
    find = expression.fullmatch if whole else expression.search
    return find(text) is not None


def replace_matches(pattern: str, text: str, replacement: str) -> str:
    """Replace the matches of a regular expression, within the time limit of patterns.

    Args:
        pattern: The regular expression.
        text: Where it is searched.
        replacement: What takes the place of each match.

    Raises:
        BrokenCheck: It takes too long.
    """
    return _apply(substitute_text, pattern, text, replacement, doing="redact")


def substitute_text(pattern: str, text: str, replacement: str) -> str:
    """Replace the matches of a regular expression, without a time limit."""
    return compiled(pattern).sub(lambda _: replacement, text)


@lru_cache(maxsize=256)
def count_choices(pattern: str) -> float:
    """Count the places where a search may have to go back; infinite where such places nest.

    A search of n characters takes at most about n ** (choices + 1) steps.

    >>> count_choices("total: [0-9]"), count_choices("^.*total.*$"), count_choices("(a+)+$")
    (0, 2, inf)
    """
    # The parser of the library itself, so that nothing is counted otherwise than it is searched.
    with catch_warnings(action="ignore", category=FutureWarning):
        return _count_parsed(_parser.parse(pattern), is_repeated=False)


def _count_parsed(parsed: Any, *, is_repeated: bool) -> float:
    choices: float = 0
    for kind, argument in parsed:
        name = str(kind)
        repeats = name in {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}
        varies = repeats and argument[0] != argument[1]
        if is_repeated and (varies or name in {"BRANCH", "GROUPREF", "GROUPREF_EXISTS"}):
            return math.inf
        # Every choice may be tried at every position, so that a search takes up to length to the
        # power of choices + 1 steps (Davis et al., ESEC/FSE 2018).
        choices += varies
        # Choices within a repetition multiply with each round of it.
        many = is_repeated or (repeats and argument[1] > 1)
        for part in _parts(argument):
            choices += _count_parsed(part, is_repeated=many)
    return choices


def _parts(argument: Any) -> Iterator[Any]:
    """Yield the patterns inside of a parsed element."""
    if isinstance(argument, _parser.SubPattern):
        yield argument
    elif isinstance(argument, tuple | list):
        for one in argument:
            yield from _parts(one)


@lru_cache(maxsize=256)
def compiled(pattern: str, ignore_case: bool = False) -> re.Pattern[str]:
    """Return a regular expression, compiled once for all the checks that hold it."""
    with catch_warnings(action="ignore", category=FutureWarning):
        return re.compile(pattern, re.IGNORECASE if ignore_case else 0)


def check_pattern(argument: str, pattern: object) -> None:
    """A regular expression that compiles, or `InvalidArgument` with the position."""
    if not isinstance(pattern, str):
        raise InvalidArgument(argument, pattern, "be a regular expression as text")
    if len(pattern) > MAX_PATTERN:
        allowed = f"be a regular expression of at most {MAX_PATTERN:,} characters"
        raise InvalidArgument(argument, f"one of {len(pattern):,}", allowed)
    try:
        compiled(pattern)
    except re.error as error:
        where = "" if error.pos is None else f" at position {error.pos}"
        allowed = f"be a regular expression ({error.msg}{where})"
        raise InvalidArgument(argument, pattern, allowed) from None
    except (RecursionError, OverflowError) as error:
        allowed = f"be a simpler regular expression ({error})"
        raise InvalidArgument(argument, pattern, allowed) from None
