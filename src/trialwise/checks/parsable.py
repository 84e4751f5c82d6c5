"""Postconditions on what the reply can be read as: a format, or a number within limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from trialwise.checks import strict_parsing
from trialwise.checks.check_base import Check, Limits, Unreadable
from trialwise.checks.json_paths import JsonPath, check_path
from trialwise.checks.quoting import failed, preview, shown
from trialwise.checks.reply_reading import json_of, number_of, text_of
from trialwise.model.reply import Reply
from trialwise.model.trial import CheckResult
from trialwise.validation import require_choice, require_real

__all__ = ["Format", "NumericRange", "Parses", "numeric_range", "parses"]

Format = Literal["json", "yaml", "xml", "number"]


@dataclass(frozen=True, slots=True)
class Parses(Check, spelling="parses"):
    """The reply is one document of a format, and nothing else.

    - `json`: RFC 8259, strictly: no NaN, no repeated key, finite numbers.
    - `yaml`: one YAML 1.2 document of standard types. Most plain sentences are YAML, too.
    - `xml`: well-formed, namespaces included; a document that declares entities fails.
    - `number`: one finite decimal number, as `-1.5e3`.

    A reply that is not text is no document, but may be JSON or a number as it is. What cannot be
    read is a failure of the reason `transform`: no value could be made of it.

    Documents are bounded: 200 levels, a million values (YAML 10,000, as if each alias were a
    copy), 10 million characters (YAML 100,000; a number 1,000).

    Args:
        format: The format.

    >>> parses("json").check(Reply(value='{"a": 1, "a": 2}')).explanation
    "the reply is not JSON with unique keys: 'a' is repeated"
    """

    asks_to_read: ClassVar[bool] = True

    format: Format

    def __post_init__(self) -> None:
        require_choice("format", self.format, get_args(Format))

    @property
    def name(self) -> str:
        """The name in reports."""
        return f"parses as {self.format if self.format == 'number' else self.format.upper()}"

    def _examine(self, reply: Reply) -> CheckResult:
        if reply.value is not None and not isinstance(reply.value, str):
            return self._examine_object(reply)
        text = text_of(reply)
        try:
            getattr(strict_parsing, f"parse_{self.format}")(text)
        except ValueError as error:
            raise Unreadable(f"the reply is not {error}", preview(text)) from None
        return CheckResult.ok()

    def _examine_object(self, reply: Reply) -> CheckResult:
        """What is no text may be a JSON value or a number; it is no document."""
        if self.format == "number":
            number_of(reply)
        elif self.format == "json":
            json_of(reply)
        else:
            kind = type(reply.value).__name__
            raise Unreadable(f"the reply is not text but of type {kind}", shown(reply.value))
        return CheckResult.ok()


parses = Parses


@dataclass(frozen=True, slots=True, kw_only=True)
class NumericRange(Check, spelling="numeric_range"):
    """The reply is a number within limits, both of which belong to the range.

    Args:
        minimum: The least number allowed.
        maximum: The greatest number allowed.
        path: A JSONPath (RFC 9535); then every value it selects, and at least one, must be such a
            number.

    >>> numeric_range(minimum=0, maximum=1).check(Reply(value="1.5")).explanation
    'expected a number 0 to 1'
    """

    minimum: float | None = None
    maximum: float | None = None
    path: str | None = None

    def __post_init__(self) -> None:
        Limits(self.minimum, self.maximum).check(require_real)
        if self.path is not None:
            check_path("path", self.path)

    @property
    def name(self) -> str:
        """The name in reports."""
        what = "number" if self.path is None else self.path
        return f"{what} {Limits(self.minimum, self.maximum)}"

    def _examine(self, reply: Reply) -> CheckResult:
        if self.path is not None:
            return JsonPath(self.path, minimum=self.minimum, maximum=self.maximum).check(reply)
        number, limits = number_of(reply), Limits(self.minimum, self.maximum)
        if limits.hold(number):
            return CheckResult.ok()
        return failed(f"expected a number {limits}", shown(number))


numeric_range = NumericRange
