"""Arithmetic: of constants at once, of the reply's numbers in CEL, always in double precision."""

from __future__ import annotations

import math
from typing import Any

from trialwise.contrib.importers.cerberus.comparing import is_number
from trialwise.contrib.importers.cerberus.formulas import every
from trialwise.contrib.importers.cerberus.tokens import UNDEFINED, NotCarried
from trialwise.contrib.importers.cerberus.values import (
    Amount,
    Const,
    Data,
    Scope,
    Value,
    cel_literal,
)

__all__ = ["calculated", "negative"]


def negative(value: Value, operator: str, at: int) -> Value:
    """`-value`."""
    if operator == "-" and isinstance(value, Const) and is_number(value.value):
        return Const(-value.value)
    if operator == "-" and isinstance(value, Amount):
        return Amount(f"-({value.cel})", value.is_whole, value.needs, value.guard)
    raise NotCarried(f"`{operator}` before this value is not carried over", at)


def calculated(operator: str, left: Value, right: Value, scope: Scope, at: int) -> Value:
    """`left operator right`."""
    if isinstance(left, Const) and isinstance(right, Const):
        return Const(_of_constants(operator, left.value, right.value, at))
    if operator == "%":
        return _remainder(left, right, scope, at)
    if operator == "+" and (isinstance(left, Data) or isinstance(right, Data)):
        raise NotCarried("`+` of a part of the reply may join texts; it is not carried over", at)
    one, other = _as_double(left, scope, at), _as_double(right, scope, at)
    return Amount(
        f"({one.cel} {operator} {other.cel})",
        False,
        max(one.needs, other.needs),
        every(one.guard, other.guard),
    )


def _of_constants(operator: str, left: Any, right: Any, at: int) -> Any:
    if operator == "+" and isinstance(left, str) and isinstance(right, str):
        return left + right
    if left is UNDEFINED or right is UNDEFINED:
        return math.nan
    if not is_number(left) or not is_number(right):
        raise NotCarried(f"`{operator}` of these values is not carried over", at)
    if operator in "/%" and right == 0:
        raise NotCarried("a division by zero is not carried over", at)
    one, other = float(left), float(right)
    result = {
        "+": one + other,
        "-": one - other,
        "*": one * other,
        "/": one / other if other else math.nan,
        "%": math.fmod(one, other) if other else math.nan,
    }[operator]
    if not math.isfinite(result):
        raise NotCarried("a number too large for a double is not carried over", at)
    return int(result) if result == int(result) and abs(result) < 2**53 else result


def _as_double(value: Value, scope: Scope, at: int) -> Amount:
    match value:
        case Const() if is_number(value.value):
            return Amount(cel_literal(float(value.value)), False)
        case Data() if value.steps or not value.is_reply:
            return Amount(f"double({value.cel})", False, value.needs, value.guard(scope.facts))
        case Amount():
            cel = f"double({value.cel})" if value.is_whole else value.cel
            return Amount(cel, False, value.needs, value.guard)
    raise NotCarried("arithmetic with this value is not carried over", at)


def _remainder(left: Value, right: Value, scope: Scope, at: int) -> Value:
    if isinstance(right, Const) and type(right.value) is int and right.value > 0:
        if isinstance(left, Data) and left.steps:
            guard = left.guard(scope.facts)
            return Amount(f"{left.cel} % {right.value}", True, left.needs, guard)
        if isinstance(left, Amount) and left.is_whole:
            return Amount(f"{left.cel} % {right.value}", True, left.needs, left.guard)
    raise NotCarried("`%` is carried over for a part of the reply and a whole number only", at)
