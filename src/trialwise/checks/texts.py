"""Postconditions on the reply's text.

Lengths and positions count code points. `ignore_case` compares case-folded text. A reply that is
None has no text, which is a failure with reason `no-value`, never the text "None".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Literal

from trialwise.checks.check_base import Check, CountLimits, Limits, check_flags, check_texts
from trialwise.checks.quoting import around, failed, label, preview
from trialwise.checks.reply_reading import text_of
from trialwise.declarations.signatures import Natural
from trialwise.documents.numbers import as_count
from trialwise.model.reply import Reply
from trialwise.model.trial import CheckResult
from trialwise.redaction import LOOKED_AT, redact_text
from trialwise.validation import require_count

__all__ = [
    "Contains",
    "EndsWith",
    "Length",
    "NotContains",
    "StartsWith",
    "contains",
    "ends_with",
    "length",
    "not_contains",
    "starts_with",
]


@dataclass(frozen=True, slots=True)
class Contains(Check, spelling="contains"):
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

    def __post_init__(self) -> None:
        check_flags(ignore_case=self.ignore_case)
        self._keep(text=check_texts("text", self.text))
        require_count("minimum", self.minimum)
        if self.maximum is not None:
            require_count("maximum", self.maximum, minimum=self.minimum)

    @property
    def name(self) -> str:
        """The name in reports."""
        parts = " and ".join(map(label, self.text))
        if (self.minimum, self.maximum) == (1, None):
            return f"contains {parts}"
        return f"contains {parts} {Limits(self.minimum, self.maximum).times}"

    def _examine(self, reply: Reply) -> CheckResult:
        text = text_of(reply)
        searched = text.casefold() if self.ignore_case else text
        for part in self.text:
            sought = part.casefold() if self.ignore_case else part
            count = searched.count(sought)
            if self.minimum <= count and (self.maximum is None or count <= self.maximum):
                continue
            if count == 0:
                return failed(f"{label(part)} is not in the reply", preview(text))
            return failed(
                f"{label(part)} occurs {as_count(count, 'time')}, "
                f"expected {Limits(self.minimum, self.maximum)}",
                around(searched, searched.find(sought), len(sought)),
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

    def __post_init__(self) -> None:
        check_flags(ignore_case=self.ignore_case)
        self._keep(text=check_texts("text", self.text))

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
                return failed(where, around(searched, start, len(part)))
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
        check_flags(ignore_case=self.ignore_case)
        check_texts("text", (self.text,))

    @property
    def name(self) -> str:
        """The name in reports."""
        return f"{self.end}s with {label(self.text)}"

    def _examine(self, reply: Reply) -> CheckResult:
        text = text_of(reply)
        searched, sought = text, self.text
        if self.ignore_case:
            searched, sought = searched.casefold(), sought.casefold()
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
