"""Checks on the whole reply: one given text or JSON value, or what the input expects.

`as_expected` has no value of its own: what it compares with belongs to the trial's input, which
the service was sent without it.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal, get_args

from trialwise.checks.check_base import Check, Unreadable, check_flags
from trialwise.checks.quoting import around, failed, label, shown
from trialwise.checks.reply_reading import check_json, expected_of, json_of, same, text_of
from trialwise.checks.texts import contains
from trialwise.declarations.scalars import is_number
from trialwise.errors import InvalidArgument
from trialwise.model.reply import Reply
from trialwise.model.trial import CheckResult
from trialwise.validation import require_choice

__all__ = ["AsExpected", "Comparison", "Equals", "as_expected", "equals"]


@dataclass(frozen=True, slots=True)
class Equals(Check, spelling="equals"):
    """The whole reply is `expected`.

    Text is compared with the reply's text; any other JSON value with the reply read as JSON, where
    1 equals 1.0 and no number equals true.

    Args:
        expected: Text, or a JSON value.
        ignore_case: Compare case-folded text.
        trim: Leave out white space at both ends.

    >>> equals(555).check(Reply(value="555.0")).passed
    True
    """

    # Lists and objects have no hash; equal checks still hash alike without it.
    expected: Any = field(hash=False)
    _: KW_ONLY
    ignore_case: bool = False
    trim: bool = False

    def __post_init__(self) -> None:
        check_flags(ignore_case=self.ignore_case, trim=self.trim)
        if not isinstance(self.expected, str):
            if self.ignore_case or self.trim:
                raise InvalidArgument("expected", self.expected, "be text for ignore_case or trim")
            self._keep(expected=check_json("expected", self.expected))

    @property
    def name(self) -> str:
        """The name in reports."""
        return f"equals {label(self.expected)}"

    def to_dict(self) -> dict[str, Any]:
        """Return the check as a suite file spells it."""
        if isinstance(self.expected, str):
            return Check.to_dict(self)
        # An object of the user's could look like the arguments, so it is always named.
        nested = isinstance(self.expected, dict)
        return {self.spelling: {"expected": self.expected} if nested else self.expected}

    def _examine(self, reply: Reply) -> CheckResult:
        if not isinstance(self.expected, str):
            found = json_of(reply)
            if same(found, self.expected):
                return CheckResult.ok()
            return failed(f"expected {shown(self.expected)}", shown(found))
        text = text_of(reply)
        actual, expected = text, self.expected
        if self.trim:
            actual, expected = actual.strip(), expected.strip()
        if self.ignore_case:
            actual, expected = actual.casefold(), expected.casefold()
        if actual == expected:
            return CheckResult.ok()
        return _difference(actual, expected)


equals = Equals


def _difference(actual: str, expected: str) -> CheckResult:
    """Return where two unequal texts part."""
    pairs = enumerate(zip(actual, expected, strict=False))
    ended = min(len(actual), len(expected))
    position = next((index for index, (one, other) in pairs if one != other), ended)
    explanation = f"expected {label(expected)}, it differs at position {position}"
    return failed(explanation, around(actual, position, 1))


Comparison = Literal["equals", "contains"]


@dataclass(frozen=True, slots=True)
class AsExpected(Check, spelling="as_expected"):
    """The reply is what its input expects (`Input.expected`), or contains it.

    It compares as `equals` or `contains` do. With `contains`, a number is looked for as it is
    written, and of several texts each must occur.

    Args:
        how: Whether the whole reply is the expected answer, or contains it.
        ignore_case: Compare case-folded text.
        trim: Leave out white space at both ends, for `equals`.

    >>> reply = Reply(value="It is 555.").with_input("What is 15 * 37?", "555")
    >>> as_expected("contains").check(reply).passed, as_expected().check(reply).passed
    (True, False)
    """

    how: Comparison = "equals"
    _: KW_ONLY
    ignore_case: bool = False
    trim: bool = False

    def __post_init__(self) -> None:
        require_choice("how", self.how, get_args(Comparison))
        check_flags(ignore_case=self.ignore_case, trim=self.trim)
        if self.trim and self.how != "equals":
            raise InvalidArgument("trim", self.trim, "be left out for contains")

    @property
    def name(self) -> str:
        """The name in reports."""
        return f"{self.how} what is expected"

    def to_dict(self) -> dict[str, Any]:
        """Return the check as a suite file spells it."""
        flags = {name: True for name in ("ignore_case", "trim") if getattr(self, name)}
        return {self.spelling: {"how": self.how, **flags} if flags else self.how}

    def _examine(self, reply: Reply) -> CheckResult:
        expected = expected_of(reply)
        if self.how == "contains":
            return contains(_texts(expected), ignore_case=self.ignore_case).check(reply)
        if isinstance(expected, str):
            return equals(expected, ignore_case=self.ignore_case, trim=self.trim).check(reply)
        return equals(expected).check(reply)


as_expected = AsExpected


def _texts(expected: Any) -> list[str]:
    given = expected if isinstance(expected, list | tuple) else [expected]
    texts = [str(one) if is_number(one) else one for one in given]
    if not texts or not all(isinstance(one, str) and one for one in texts):
        raise Unreadable(
            "the expected answer is not text, so no reply can contain it", shown(expected)
        )
    return texts
