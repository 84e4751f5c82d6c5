"""Members and methods: what JavaScript's dots and calls give for each kind of value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trialwise.contrib.importers.cerberus.formulas import (
    FALSE,
    TRUE,
    Atom,
    Constant,
    Needs,
    every,
    to_cel,
)
from trialwise.contrib.importers.cerberus.javascript import Arrow, Node
from trialwise.contrib.importers.cerberus.texts import is_found, matching, words_condition
from trialwise.contrib.importers.cerberus.tokens import UNDEFINED, NotCarried
from trialwise.contrib.importers.cerberus.values import (
    Amount,
    Condition,
    Const,
    Data,
    Listed,
    Regex,
    Scope,
    Size,
    Step,
    Thrown,
    Truth,
    Value,
    Words,
    cel_literal,
    is_plain_name,
    value_of,
)

if TYPE_CHECKING:
    from trialwise.contrib.importers.cerberus.conditions import Meaning

__all__ = ["call_function", "call_method", "member"]

_TEXT_TESTS = {"includes": "contains", "startsWith": "starts_with", "endsWith": "ends_with"}
_VARIABLES = ("output", "value", "input", "latency_s", "cost_usd", "tokens", "exit_code")


def member(of: Value, key: str | int, *, is_optional: bool, at: int, scope: Scope) -> Value:
    """`of.key`."""
    match of:
        case Const():
            return _constant_member(of.value, key, is_optional=is_optional)
        case Data() if key == "length" and (of.steps or not of.is_reply):
            return _length(of, scope)
        case Data():
            # The reply is an object, whose keys are texts.
            own = key if of.steps or not of.is_reply else str(key)
            return Data(of.root, (*of.steps, Step(own, is_optional)))
        case Words() if key == "length":
            return Size(of.cel, of.needs, TRUE, of)
        case Listed() if key == "length":
            return Size(of.cel, of.needs, of.guard, None, of.is_listed, may_be_text=False)
    raise NotCarried(f"the member `{key}` is not carried over", at)


def _length(data: Data, scope: Scope) -> Size:
    """Of a list or a text; an object has none, a number neither."""
    facts = scope.facts
    guard = every(data.guard(facts), data.there(facts))
    kinds = f"type({data.cel}) in [list, string]"
    return Size(data.cel, data.needs, guard, None, kinds)


def _constant_member(value: Any, key: str | int, *, is_optional: bool) -> Value:
    if value is None or value is UNDEFINED:
        return Const(UNDEFINED) if is_optional else Thrown()
    if isinstance(value, str | list) and key == "length":
        length = len(value) if isinstance(value, list) else len(value.encode("utf-16-le")) // 2
        return Const(length)
    if isinstance(value, list) and isinstance(key, int):
        return Const(value[key] if 0 <= key < len(value) else UNDEFINED)
    if isinstance(value, dict):
        return Const(value.get(str(key), UNDEFINED))
    return Const(UNDEFINED)


def call_method(
    of: Value,
    name: str,
    arguments: tuple[Node, ...],
    *,
    meaning: Meaning,
    scope: Scope,
    at: int,
) -> Value:
    """`of.name(arguments)`."""
    if isinstance(of, Data | Const) and name in ("some", "every", "filter"):
        function = _only(name, arguments, at)
        return _over_elements(of, name, function, meaning=meaning, scope=scope, at=at)
    if isinstance(of, Regex) and name == "test":
        argument = meaning.value(_only(name, arguments, at), scope)
        return value_of(argument, scope, lambda one, known: _found(one, of, known, at))
    if name in ("trim", "toLowerCase") and not arguments:
        return _changed(of, name, at)
    if name == "match" and isinstance(of, Words | Data):
        pattern = meaning.value(_only(name, arguments, at), scope)
        if isinstance(pattern, Regex):
            return _found(of if isinstance(of, Words) else Words(of), pattern, scope, at)
    if name in _TEXT_TESTS:
        argument = meaning.value(_only(name, arguments, at), scope)
        return value_of(argument, scope, lambda one, known: _text_test(of, name, one, known, at))
    raise NotCarried(f"the method `{name}` is not carried over", at)


def _only(name: str, arguments: tuple[Node, ...], at: int) -> Node:
    if len(arguments) != 1:
        raise NotCarried(f"`{name}` is carried over with one argument only", at)
    return arguments[0]


def _changed(of: Value, name: str, at: int) -> Value:
    words = of if isinstance(of, Words) else Words(of) if isinstance(of, Data) else None
    if words is None:
        if isinstance(of, Const) and isinstance(of.value, str) and name == "toLowerCase":
            return Const(of.value.lower())
        raise NotCarried(f"`{name}` of this value is not carried over", at)
    return Words(
        words.of,
        is_trimmed=words.is_trimmed or name == "trim",
        is_lower=words.is_lower or name == "toLowerCase",
    )


def _found(of: Value, pattern: Regex, scope: Scope, at: int) -> Value:
    """Whether a pattern is found."""
    if isinstance(of, Data):
        # Nothing is turned into a text first, so that the CEL of another value ends in an error.
        truth = matching(of.cel, pattern.re2, of.needs)
        return Truth(Condition(truth=truth, guard=of.guard(scope.facts)))
    if isinstance(of, Words) and not of.is_trimmed and not of.is_lower:
        truth = matching(of.cel, pattern.re2, of.needs)
        return Truth(Condition(truth=truth, guard=of.guard(scope.facts)))
    if isinstance(of, Const) and not isinstance(of.value, list | dict | float):
        return Truth(Condition(truth=is_found(_shown(of.value), pattern.re2)))
    raise NotCarried("a pattern is carried over for the output and parts of the reply only", at)


def _text_test(of: Value, name: str, argument: Value, scope: Scope, at: int) -> Value:
    if isinstance(of, Const) and isinstance(of.value, list) and name == "includes":
        return _one_of(of.value, argument, scope, at)
    if isinstance(of, Const) and isinstance(argument, Const):
        return _constant_test(of.value, name, argument.value, at)
    if not isinstance(argument, Const):
        raise NotCarried(f"`{name}` with a part of the reply is not carried over", at)
    wanted = argument.value
    if isinstance(of, Words):
        if not isinstance(wanted, str):
            raise NotCarried(f"`{name}` of a text is carried over with a text only", at)
        return Truth(words_condition(_TEXT_TESTS[name], of, wanted, scope, at))
    if not isinstance(of, Data):
        raise NotCarried(f"`{name}` of this value is not carried over", at)
    if name != "includes":
        if not isinstance(wanted, str):
            raise NotCarried(f"`{name}` is carried over with a text only", at)
        return Truth(words_condition(_TEXT_TESTS[name], Words(of), wanted, scope, at))
    return _data_includes(of, wanted, scope, at)


def _data_includes(data: Data, wanted: Any, scope: Scope, at: int) -> Value:
    """Of a text or a list, whichever the reply has there."""
    if isinstance(wanted, list | dict) or wanted is UNDEFINED:
        raise NotCarried(
            "`includes` is carried over with a text, a number, true, false or null", at
        )
    facts = scope.facts
    literal = cel_literal(wanted)
    as_text = cel_literal(wanted if isinstance(wanted, str) else _shown(wanted))
    cel = f"type({data.cel}) == list ? {literal} in {data.cel} : {data.cel}.contains({as_text})"
    kinds = [*data.presence(facts), f"type({data.cel}) in [list, string]"]
    guard = every(data.guard(facts), Atom(" && ".join(kinds), data.needs))
    return Truth(Condition(truth=Atom(cel, data.needs, is_choice=True), guard=guard))


def _shown(value: Any) -> str:
    """A constant as JavaScript writes it."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


def _one_of(allowed: list[Any], argument: Value, scope: Scope, at: int) -> Value:
    if any(isinstance(one, list | dict) or one is UNDEFINED for one in allowed):
        raise NotCarried("a list of texts, numbers, true, false and null is carried over only", at)
    match argument:
        case Const():
            return Truth(
                Condition(truth=Constant(any(_same(one, argument.value) for one in allowed)))
            )
        case Data():
            parts = [*argument.presence(scope.facts), f"{argument.cel} in {cel_literal(allowed)}"]
            guard = argument.guard(scope.facts)
            return Truth(Condition(truth=Atom(" && ".join(parts), argument.needs), guard=guard))
        case Words() if not argument.is_trimmed and not argument.is_lower:
            cel = (
                f"{argument.cel} in {cel_literal([one for one in allowed if isinstance(one, str)])}"
            )
            guard = argument.guard(scope.facts)
            return Truth(Condition(truth=Atom(cel, argument.needs), guard=guard))
        case Amount() if argument.is_whole and all(type(one) is int for one in allowed):
            cel = f"{argument.cel} in {cel_literal(allowed)}"
            native = {"exit_code": allowed} if argument.is_exit_code and allowed else None
            atom = Atom(cel, argument.needs, native=native)
            return Truth(Condition(truth=atom, guard=argument.guard))
    raise NotCarried("`includes` with this value is not carried over", at)


def _same(left: Any, right: Any) -> bool:
    return isinstance(left, bool) is isinstance(right, bool) and left == right


def _constant_test(of: Any, name: str, wanted: Any, at: int) -> Value:
    if not isinstance(of, str) or not isinstance(wanted, str):
        raise NotCarried(f"`{name}` of this value is not carried over", at)
    tests = {
        "includes": wanted in of,
        "startsWith": of.startswith(wanted),
        "endsWith": of.endswith(wanted),
    }
    return Truth(Condition(truth=Constant(tests[name])))


def _over_elements(
    of: Data | Const, name: str, argument: Node, *, meaning: Meaning, scope: Scope, at: int
) -> Value:
    """A list's elements, each with a condition of its own."""
    if not isinstance(argument, Arrow):
        raise NotCarried(f"`{name}` is carried over with a function of one parameter only", at)
    if isinstance(of, Const):
        if of.value == [] and name != "filter":
            return Truth(Condition(truth=Constant(name == "every")))
        if of.value == []:
            return Const([])
        raise NotCarried(f"`{name}` of a list that is not the reply's is not carried over", at)
    if of.is_reply and not of.steps:
        return Thrown()
    variable = _variable(argument.parameter, meaning)
    inner = meaning.with_variable(argument.parameter, variable)
    each = inner.condition(argument.body, scope)
    is_list = f"type({of.cel}) == list"
    # Behind brackets the library does not see that anything may be a list.
    elements = f"dyn({of.cel})" if of.cel.endswith("]") else of.cel
    safe = each.guard
    if safe != TRUE:
        safe = Atom(f"{is_list} && {elements}.all({variable}, {to_cel(safe)})", of.needs)
    guard = every(of.guard(scope.facts), Atom(is_list, of.needs), safe)
    truth = to_cel(each.truth)
    if name == "filter":
        return Listed(f"{elements}.filter({variable}, {truth})", of.needs, guard, is_list)
    macro = "exists" if name == "some" else "all"
    # A true element ends `exists` and a false one `all`, whatever the others are.
    atom = Atom(
        f"{is_list} && {elements}.{macro}({variable}, {truth})",
        of.needs,
        hides_when_true=name == "some" and each.guard != TRUE,
        hides_when_false=True,
    )
    return Truth(Condition(truth=atom, guard=guard))


def _variable(name: str, meaning: Meaning) -> str:
    taken = (*_VARIABLES, *meaning.taken)
    if is_plain_name(name) and name not in taken:
        return name
    return next(f"item{n}" for n in range(100) if f"item{n}" not in taken)


def call_function(
    name: str, arguments: tuple[Node, ...], meaning: Meaning, scope: Scope, at: int
) -> Value:
    """A function of JavaScript's own, such as `Array.isArray`."""
    if name not in _FUNCTIONS:
        raise NotCarried(f"`{name}` is not carried over", at)
    value = meaning.value(_only(name, arguments, at), scope)
    function = _FUNCTIONS[name]
    return value_of(value, scope, lambda one, known: function(one, known, at))


def _is_array(value: Value, scope: Scope, at: int) -> Value:
    if isinstance(value, Const):
        return Truth(Condition(truth=Constant(isinstance(value.value, list))))
    return _of_type(value, "type({0}) == list", scope, at)


def _is_integer(value: Value, scope: Scope, at: int) -> Value:
    whole = "(type({0}) == int || type({0}) == double && {0} == double(int({0})))"
    return _of_type(value, whole, scope, at)


def _is_finite(value: Value, scope: Scope, at: int) -> Value:
    return _of_type(value, "type({0}) in [int, double]", scope, at)


def _of_type(value: Value, test: str, scope: Scope, at: int) -> Value:
    if isinstance(value, Const) and (value.value is UNDEFINED or value.value is None):
        return Truth(Condition(truth=FALSE))
    if not isinstance(value, Data):
        raise NotCarried("this is carried over for parts of the reply only", at)
    if value.is_reply and not value.steps:
        return Truth(Condition(truth=FALSE))
    parts = [*value.presence(scope.facts), test.format(value.cel)]
    truth = Atom(" && ".join(parts), value.needs)
    return Truth(Condition(truth=truth, guard=value.guard(scope.facts)))


def _keys(value: Value, scope: Scope, at: int) -> Value:
    """`Object.keys`, of which only the number is of use."""
    if isinstance(value, Const) and isinstance(value.value, dict):
        return Const(list(value.value))
    if not isinstance(value, Data):
        raise NotCarried("`Object.keys` is carried over for parts of the reply only", at)
    facts = scope.facts
    if value.is_reply and not value.steps:
        return Listed(value.cel, Needs.JSON, TRUE, f"type({value.cel}) == map")
    guard = every(value.guard(facts), value.there(facts))
    return Listed(value.cel, value.needs, guard, f"type({value.cel}) in [map, list]")


def _absolute(value: Value, scope: Scope, at: int) -> Value:  # noqa: ARG001
    if isinstance(value, Const) and isinstance(value.value, int | float):
        return Const(abs(value.value))
    if not isinstance(value, Amount):
        raise NotCarried("`Math.abs` is carried over for differences and the like only", at)
    zero = "0" if value.is_whole else "0.0"
    cel = f"({value.cel} < {zero} ? -({value.cel}) : {value.cel})"
    return Amount(cel, value.is_whole, value.needs, value.guard)


_FUNCTIONS = {
    "Array.isArray": _is_array,
    "Number.isInteger": _is_integer,
    "Number.isFinite": _is_finite,
    "Object.keys": _keys,
    "Math.abs": _absolute,
}
