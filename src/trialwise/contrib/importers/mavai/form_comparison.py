"""The forms of a mavai check: what each compares, and what it says where it does not hold.

Numbers are compared as decimals, formatting aside; elements of sets by their JSON value, where 1200
never equals "1200" and true never equals 1.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from trialwise.checks.check_base import label, shown

__all__ = ["FORMS", "NUMBER", "Form", "Mismatch", "element", "present_floor"]

#: How a number is written in text.
NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,6})?")
#: A pattern is not searched in more.
_MAX_MATCHED = 100_000
_ORDER: dict[str, tuple[str, Callable[[Decimal, Decimal], bool]]] = {
    "eq": ("is not", lambda one, other: one == other),
    "ne": ("is", lambda one, other: one != other),
    "lt": ("is not less than", lambda one, other: one < other),
    "le": ("is greater than", lambda one, other: one <= other),
    "gt": ("is not greater than", lambda one, other: one > other),
    "ge": ("is less than", lambda one, other: one >= other),
}


class Mismatch(Exception):
    """A form does not hold, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How a form compares a subject with its operand."""

    compare: Callable[[Any, Any], None]
    """Raises `Mismatch` where it does not hold."""
    is_text: bool = False
    """Whether a selected number, true, false or null is compared by its JSON text."""
    is_collective: bool = False
    """Whether everything selected is compared at once."""

    def project(self, value: Any) -> Any:
        """A selected value as the form sees it."""
        if not self.is_text or isinstance(value, str):
            return value
        if isinstance(value, dict | list):
            raise Mismatch("selects a structure, which has no text")
        return json.dumps(value)


def _text(subject: Any) -> str:
    if not isinstance(subject, str):
        raise Mismatch(f"{shown(subject, 40)} is not a text")
    return subject


def _equals(subject: Any, operand: str) -> None:
    if _text(subject) != operand:
        raise Mismatch(f"expected {label(operand)}, found {label(subject)}")


def _one_of(subject: Any, operand: list[str]) -> None:
    if _text(subject) not in operand:
        raise Mismatch(f"{label(subject)} is none of {shown(operand, 60)}")


def _contains(subject: Any, operand: str) -> None:
    if operand not in _text(subject):
        raise Mismatch(f"{label(operand)} is not in {label(subject)}")


def _matches(subject: Any, operand: str) -> None:
    from trialwise.checks.texts import has_match

    text = _text(subject)
    if len(text) > _MAX_MATCHED:
        raise Mismatch(f"a text of {len(text)} characters is not searched")
    if not has_match(operand, text):
        raise Mismatch(f"{label(text)} has no match for {label(operand)}")


def _not_equals(subject: Any, operand: str) -> None:
    if _text(subject) == operand:
        raise Mismatch(f"{label(operand)} is what was not to be")


def _equals_ci(subject: Any, operand: str) -> None:
    if _fold_text(_text(subject)) != _fold_text(operand):
        raise Mismatch(f"expected {label(operand)} in whatever case, found {label(subject)}")


def _fold_text(text: str) -> str:
    """Case-folded, with single spaces."""
    return " ".join(text.casefold().split())


def _is_null(subject: Any, operand: bool) -> None:  # noqa: ARG001 - it is true, or there is none
    if subject is not None:
        raise Mismatch(f"expected null, found {shown(subject, 40)}")


def _is(subject: Any, operand: bool) -> None:
    if subject is not operand:
        raise Mismatch(f"expected {shown(operand)}, found {shown(subject, 40)}")


def _numeric(name: str) -> Callable[[Any, Any], None]:
    words, holds = _ORDER[name]

    def compare(subject: Any, operand: Any) -> None:
        found = _decimal(subject)
        if found is None:
            raise Mismatch(f"{shown(subject, 40)} is not a number")
        wanted = _decimal(operand)
        if wanted is None or not holds(found, wanted):
            raise Mismatch(f"{shown(subject, 40)} {words} {operand}")

    return compare


def _decimal(value: Any) -> Decimal | None:
    """A number, or the text of one, as a decimal."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = value.strip() if isinstance(value, str) else repr(value)
    return Decimal(text) if len(text) <= 1_000 and NUMBER.fullmatch(text) else None


def element(value: Any) -> object:
    """A JSON value as something that equals just the same value."""
    if isinstance(value, bool) or value is None:
        return ("word", value)
    if isinstance(value, int | float):
        return ("number", _decimal(value))
    return ("text", value) if isinstance(value, str) else ("other", id(value))


def _equals_set(subject: list[Any], operand: list[Any]) -> None:
    found, wanted = Counter(map(element, subject)), Counter(map(element, operand))
    if found != wanted:
        raise Mismatch(f"selects {shown(subject, 60)}, expected {shown(operand, 60)} in any order")


def _contains_set(subject: list[Any], operand: list[Any]) -> None:
    missing = Counter(map(element, operand)) - Counter(map(element, subject))
    if missing:
        lost = [one for one in operand if element(one) in missing]
        raise Mismatch(f"selects no {shown(lost, 60)}")


def _count_equals(subject: list[Any], operand: int) -> None:
    if len(subject) != operand:
        raise Mismatch(f"selects {len(subject)} values, expected {operand}")


def _set_of(subject: list[Any], operand: dict[str, Any]) -> None:
    required = {element(one): one for one in operand.get("required", ())}
    optional = {element(one): one for one in operand["optional"]}
    found = {element(one): one for one in subject}
    lost = [one for key, one in required.items() if key not in found]
    if lost:
        raise Mismatch(f"lacks {shown(lost, 60)}")
    present = sum(key in found for key in optional)
    floor = present_floor(operand.get("min-present", 0), len(optional))
    if present < floor:
        raise Mismatch(f"holds {present} of the optional members, at least {floor} are needed")
    extras = [one for key, one in found.items() if key not in required and key not in optional]
    if extras and operand.get("refuse-extras", True):
        raise Mismatch(f"holds {shown(extras, 60)}, which is not listed")


def present_floor(given: int | str, optional: int) -> int:
    """How many distinct optional members are needed; a percentage is rounded down."""
    if isinstance(given, int):
        return given
    return int(Decimal(given.rstrip("%")) * optional / 100)


FORMS: dict[str, Form] = {
    "equals": Form(compare=_equals, is_text=True),
    "one-of": Form(compare=_one_of, is_text=True),
    "contains": Form(compare=_contains, is_text=True),
    "matches": Form(compare=_matches, is_text=True),
    **{name: Form(compare=_numeric(name)) for name in _ORDER},
    "not-equals": Form(compare=_not_equals),
    "equals-ci": Form(compare=_equals_ci),
    "is-null": Form(compare=_is_null),
    "is": Form(compare=_is),
    "equals-set": Form(compare=_equals_set, is_collective=True),
    "contains-set": Form(compare=_contains_set, is_collective=True),
    "count-equals": Form(compare=_count_equals, is_collective=True),
    "set-of": Form(compare=_set_of, is_collective=True),
}
