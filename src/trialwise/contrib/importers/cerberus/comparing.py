"""How JavaScript compares: `===`, `<` and truthiness, for each kind of value against each other."""

from __future__ import annotations

import math
import re
from typing import Any

from trialwise.contrib.importers.cerberus.formulas import FALSE, TRUE, Atom, Constant, Needs, every
from trialwise.contrib.importers.cerberus.texts import TRIMMED, words_condition
from trialwise.contrib.importers.cerberus.tokens import UNDEFINED, NotCarried
from trialwise.contrib.importers.cerberus.values import (
    Amount,
    Condition,
    Const,
    Data,
    Scope,
    Size,
    Truth,
    TypeName,
    Value,
    Words,
    cel_literal,
    condition_of,
)

__all__ = ["compared", "is_number", "truthy"]

_FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
_OPPOSITE = {"==": "!=", "<": ">=", ">": "<=", "<=": ">", ">=": "<"}
_NATIVE = {"==": "equals", ">=": "minimum", "<=": "maximum"}
_TYPES = {
    "string": "type({0}) == string",
    "number": "type({0}) in [int, double]",
    "boolean": "type({0}) == bool",
    "object": "type({0}) in [map, list, null_type]",
}
_CONVERTS = "`==` converts types before it compares, which is not carried over; write `===`"
#: JavaScript counts UTF-16 units, CEL code points.
_LENGTHS = (
    "lengths of texts count characters here and UTF-16 units in JavaScript, where an emoji is two"
)
#: Comparisons with a length that only ask whether there is anything.
_IS_EMPTY = {("==", 0), ("<", 1), ("<=", 0)}
_IS_NOT_EMPTY = {(">", 0), (">=", 1)}


def truthy(value: Value, scope: Scope) -> Condition:
    """When a value counts as true."""
    return condition_of(value, scope, _truthy)


def _truthy(value: Value, scope: Scope) -> Condition:
    found = Condition(truth=TRUE)
    match value:
        case Const():
            found = Condition(truth=Constant(_is_truthy(value.value)))
        case Truth():
            found = value.condition
        case Data() if value.steps or not value.is_reply:
            facts = scope.facts
            parts = [*value.presence(facts), f"!({value.cel} in [null, false, 0, ''])"]
            found = Condition(truth=_atom(parts, value.needs), guard=value.guard(facts))
        case Words():
            found = words_condition("something", value, "", scope, 0)
        case Amount():
            found = _amount("==", value, 0).negated()
        case Size():
            found = _size(">", 0, value, scope, 0)
    return found


def _is_truthy(value: Any) -> bool:
    if isinstance(value, float) and math.isnan(value):
        return False
    return isinstance(value, list | dict) or (value is not UNDEFINED and bool(value))


def compared(operator: str, left: Value, right: Value, scope: Scope, at: int) -> Condition:
    """When a comparison holds.

    Args:
        operator: As JavaScript writes it.
        left: The one side.
        right: The other.
        scope: What is known here.
        at: Where it stands, for a refusal.
    """
    if operator in ("!==", "!="):
        return compared(operator.replace("!", "=", 1), left, right, scope, at).negated()

    def with_left(one: Value, known: Scope) -> Condition:
        def with_both(other: Value, known: Scope) -> Condition:
            return _compared(operator, one, other, known, at)

        return condition_of(right, known, with_both)

    return condition_of(left, scope, with_left)


def _compared(operator: str, left: Value, right: Value, scope: Scope, at: int) -> Condition:
    if isinstance(left, Const) and isinstance(right, Const):
        return Condition(truth=Constant(_constants(operator, left.value, right.value, at)))
    if isinstance(left, Const) or (isinstance(right, Data) and not isinstance(left, Data)):
        left, right = right, left
        operator = _FLIPPED.get(operator, operator)
    if isinstance(right, Const):
        return _with_constant(operator, left, right.value, scope, at)
    if isinstance(left, Amount) and isinstance(right, Amount):
        cel = f"{_double(left)} {_sign(operator)} {_double(right)}"
        guard = every(left.guard, right.guard)
        return Condition(truth=Atom(cel, max(left.needs, right.needs)), guard=guard)
    if isinstance(left, Data) and isinstance(right, Data | Amount):
        return _two_parts(operator, left, right, scope, at)
    raise NotCarried("this comparison of two parts of the reply is not carried over", at)


def _two_parts(operator: str, left: Data, right: Data | Amount, scope: Scope, at: int) -> Condition:
    if operator == "==":
        raise NotCarried(_CONVERTS, at)
    facts = scope.facts
    if isinstance(right, Amount):
        present, guard = [], right.guard
    else:
        if operator == "===":
            raise NotCarried("`===` of two parts of the reply is not carried over", at)
        present, guard = right.presence(facts), right.guard(facts)
    parts = [*left.presence(facts), *present, f"{left.cel} {_sign(operator)} {right.cel}"]
    truth = _atom(parts, max(left.needs, right.needs))
    return Condition(truth=truth, guard=every(left.guard(facts), guard))


def _with_constant(operator: str, left: Value, value: Any, scope: Scope, at: int) -> Condition:
    found = None
    if isinstance(left, Data):
        found = _data(operator, left, value, scope, at)
    elif isinstance(left, Amount) and is_number(value):
        found = _amount(_sign(operator), left, value)
    elif isinstance(left, Size) and is_number(value):
        found = _size(_sign(operator), value, left, scope, at)
    elif operator in ("===", "=="):
        found = _equal(left, value, is_strict=operator == "===", scope=scope, at=at)
    if found is None:
        raise NotCarried("this comparison converts types, which is not carried over", at)
    return found


def _equal(left: Value, value: Any, *, is_strict: bool, scope: Scope, at: int) -> Condition | None:
    """Whether a text, a truth value or the name of a type equals a constant."""
    if isinstance(left, Words) and isinstance(value, str):
        return words_condition("equals", left, value, scope, at)
    if isinstance(left, Truth) and isinstance(value, bool):
        return left.condition if value else left.condition.negated()
    if isinstance(left, TypeName) and isinstance(value, str):
        return _type_name(left.of, value, scope)
    if is_strict or value is None or value is UNDEFINED:
        # Of different types for certain; what it takes to get there still has to be there.
        return Condition(truth=FALSE, guard=truthy(left, scope).guard)
    return None


def _data(operator: str, data: Data, value: Any, scope: Scope, at: int) -> Condition:
    if value is UNDEFINED or value is None:
        return _with_nothing(operator, data, value, scope, at)
    if operator == "==":
        raise NotCarried(_CONVERTS, at)
    sign = _sign(operator)
    is_whole_reply = data.is_reply and not data.steps
    if sign == "==" and (is_whole_reply or isinstance(value, list | dict)):
        # An object equals nothing but itself.
        return Condition(truth=FALSE, guard=data.guard(scope.facts))
    if isinstance(value, list | dict | bool) and sign != "==":
        raise NotCarried("this comparison converts types, which is not carried over", at)
    if is_whole_reply:
        raise NotCarried("the whole reply cannot be compared so", at)
    if isinstance(value, float) and math.isnan(value):
        return Condition(truth=FALSE, guard=data.guard(scope.facts))
    facts = scope.facts
    parts = [*data.presence(facts), f"{data.cel} {sign} {cel_literal(value)}"]
    atom = _atom(parts, data.needs, native=_native(data, sign, value))
    return Condition(truth=atom, guard=data.guard(facts))


def _native(data: Data, sign: str, value: Any) -> dict[str, Any] | None:
    is_limit = sign in (">=", "<=")
    if data.json_path is None or sign not in _NATIVE or (is_limit and not is_number(value)):
        return None
    return {"json_path": {"path": data.json_path, _NATIVE[sign]: value}}


def _with_nothing(operator: str, data: Data, value: Any, scope: Scope, at: int) -> Condition:
    """Compared with undefined or null."""
    facts = scope.facts
    guard = data.guard(facts)
    if operator not in ("===", "=="):
        raise NotCarried("a comparison with null or undefined converts types", at)
    if data.is_reply and not data.steps:
        return Condition(truth=FALSE)
    if operator == "==":
        return Condition(truth=data.there(facts), guard=guard).negated()
    if value is UNDEFINED:
        return _is_missing(data, scope)
    path = data.json_path
    native = None if path is None else {"json_path": {"path": path, "equals": None}}
    parts = [*data.presence(facts), f"{data.cel} == null"]
    return Condition(truth=_atom(parts, data.needs, native=native), guard=guard)


def _is_missing(data: Data, scope: Scope) -> Condition:
    presence, guard = data.presence(scope.facts), data.guard(scope.facts)
    if not presence:
        return Condition(truth=FALSE, guard=guard)
    native = None if data.json_path is None else {"json_path": data.json_path}
    return Condition(truth=_atom(presence, data.needs, native=native), guard=guard).negated()


def _type_name(data: Data, name: str, scope: Scope) -> Condition:
    if data.is_reply and not data.steps:
        return Condition(truth=Constant(name == "object"))
    if name == "undefined":
        return _is_missing(data, scope)
    guard = data.guard(scope.facts)
    if name not in _TYPES:
        return Condition(truth=FALSE, guard=guard)
    parts = [*data.presence(scope.facts), _TYPES[name].format(data.cel)]
    return Condition(truth=_atom(parts, data.needs), guard=guard)


def _amount(sign: str, amount: Amount, value: float) -> Condition:
    if math.isnan(value):
        return Condition(truth=FALSE, guard=amount.guard)
    fits = amount.is_whole and isinstance(value, int)
    cel = amount.cel if fits else _double(amount)
    literal = cel_literal(value if fits else float(value))
    is_code = amount.is_exit_code and fits and sign == "=="
    native = {"exit_code": value} if is_code else None
    # Without NaN the opposite of a comparison is a comparison; a conversion may give one.
    opposite = f"{cel} {_OPPOSITE[sign]} {literal}" if amount.is_whole else None
    atom = Atom(f"{cel} {sign} {literal}", amount.needs, native=native, opposite=opposite)
    return Condition(truth=atom, guard=amount.guard)


def _size(sign: str, value: float, size: Size, scope: Scope, at: int) -> Condition:
    words = size.words
    if words is not None and (words.is_trimmed or words.is_lower):
        if (sign, value) in _IS_NOT_EMPTY:
            return words_condition("something", words, "", scope, at)
        if (sign, value) in _IS_EMPTY:
            return words_condition("something", words, "", scope, at).negated()
        raise NotCarried("the length of a changed text is carried over only as empty or not", at)
    if size.may_be_text and (sign, value) not in _IS_EMPTY | _IS_NOT_EMPTY:
        scope.report.notes.add(_LENGTHS)
    cel = f"size({size.cel})" if isinstance(value, int) else f"double(size({size.cel}))"
    parts = [*([size.has_size] if size.has_size else []), f"{cel} {sign} {cel_literal(value)}"]
    guard = every(size.guard, TRUE if words is None else words.guard(scope.facts))
    atom = Atom(" && ".join(parts), size.needs, hides_when_false=bool(size.has_size))
    return Condition(truth=atom, guard=guard)


def _constants(operator: str, left: Any, right: Any, at: int) -> bool:
    """A comparison of two values that are known."""
    nothing = [one is None or one is UNDEFINED for one in (left, right)]
    if operator == "==" and any(nothing):
        return all(nothing)
    same_type = _kind(left) == _kind(right)
    if operator in ("===", "=="):
        if isinstance(left, list | dict) and isinstance(right, list | dict):
            raise NotCarried("lists and objects are compared by identity", at)
        if not same_type and operator == "==":
            raise NotCarried(_CONVERTS, at)
        return bool(same_type and left == right)
    if isinstance(left, str) and isinstance(right, str):
        left, right = left.encode("utf-16-be"), right.encode("utf-16-be")
    else:
        left, right = _as_number(left, at), _as_number(right, at)
    signs = {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}
    return bool(signs[operator])


def _as_number(value: Any, at: int) -> float:
    """What JavaScript converts a constant to."""
    if isinstance(value, list | dict):
        raise NotCarried("a list or an object is converted to a number", at)
    if value is UNDEFINED:
        return math.nan
    if not isinstance(value, str):
        return float(value or 0)
    text = value.strip(TRIMMED)
    if text[:2].lower() in ("0x", "0o", "0b"):
        raise NotCarried("a text is converted to a number", at)
    is_decimal = re.fullmatch(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,9})?", text, re.ASCII)
    return float(text) if is_decimal else math.nan if text else 0.0


def _kind(value: Any) -> str:
    return "number" if is_number(value) else type(value).__name__


def is_number(value: object) -> bool:
    """Whether a constant is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _sign(operator: str) -> str:
    return "==" if operator in ("===", "==") else operator


def _double(amount: Amount) -> str:
    return f"double({amount.cel})" if amount.is_whole else amount.cel


def _atom(parts: list[str], needs: Needs, *, native: dict[str, Any] | None = None) -> Atom:
    is_simple = len(parts) == 1 and parts[0].startswith("has(")
    return Atom(" && ".join(parts), needs, is_simple=is_simple, native=native)
