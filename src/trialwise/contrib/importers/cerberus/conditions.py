"""What an assertion means for a reply: JavaScript's rules, carried into formulas.

Exact for values of the types that the assertion expects, for what is missing and for null. Where
JavaScript would convert (the text "5" to a number), CEL ends in an error and the trial fails: never
more lenient than the original.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from trialwise.contrib.importers.cerberus import javascript as js
from trialwise.contrib.importers.cerberus.arithmetic import calculated, negative
from trialwise.contrib.importers.cerberus.comparing import compared, truthy
from trialwise.contrib.importers.cerberus.formulas import Constant
from trialwise.contrib.importers.cerberus.methods import call_function, call_method, member
from trialwise.contrib.importers.cerberus.regexes import to_re2
from trialwise.contrib.importers.cerberus.tokens import UNDEFINED, NotCarried
from trialwise.contrib.importers.cerberus.values import (
    Amount,
    Condition,
    Const,
    Data,
    Facts,
    Options,
    Regex,
    Scope,
    Truth,
    TypeName,
    Value,
    Way,
    Words,
    value_of,
)

__all__ = ["Meaning"]

_COMPARISONS = ("===", "!==", "==", "!=", "<", "<=", ">", ">=")
_NOTHING: Facts = frozenset()
_STDERR = "standard error is not known to a postcondition here"


class Meaning:
    """The names that an assertion may use, for one kind of output.

    Args:
        scenario: What the study's scenario holds.
        is_object: Whether the output is taken to be a JSON object; else `output.parsed` is empty.
        variables: Names that stand for elements of lists.
    """

    def __init__(
        self,
        scenario: Mapping[str, Any],
        *,
        is_object: bool,
        variables: Mapping[str, Data] | None = None,
    ) -> None:
        self._scenario = scenario
        self._is_object = is_object
        self._variables = dict(variables or {})

    @property
    def taken(self) -> tuple[str, ...]:
        """The variables of comprehensions around this one."""
        return tuple(data.root for data in self._variables.values())

    def with_variable(self, name: str, root: str) -> Meaning:
        """The same, within a function of one parameter."""
        variables = {**self._variables, name: Data(root)}
        return Meaning(self._scenario, is_object=self._is_object, variables=variables)

    # --- Conditions ---------------------------------------------------------------------------

    def condition(self, node: js.Node, scope: Scope) -> Condition:
        """When an expression counts as true."""
        scope.report.step()
        match node:
            case js.Unary(operator="!"):
                return self.condition(node.operand, scope).negated()
            case js.Binary(operator="&&"):
                right = scope.knowing(self.implied(node.left, True, scope))
                return self.condition(node.left, scope).and_then(self.condition(node.right, right))
            case js.Binary(operator="||"):
                right = scope.knowing(self.implied(node.left, False, scope))
                return self.condition(node.left, scope).or_else(self.condition(node.right, right))
            case js.Choice():
                then = scope.knowing(self.implied(node.condition, True, scope))
                otherwise = scope.knowing(self.implied(node.condition, False, scope))
                return self.condition(node.condition, scope).choosing(
                    self.condition(node.then, then), self.condition(node.otherwise, otherwise)
                )
        return truthy(self.value(node, scope), scope)

    def implied(self, node: js.Node, holds: bool, scope: Scope) -> Facts:
        """What is neither missing nor null once an expression is known to be true, or false."""
        scope.report.step()
        found = _NOTHING
        match node:
            case js.Unary(operator="!"):
                found = self.implied(node.operand, not holds, scope)
            case js.Binary(operator="&&" | "||") if (node.operator == "&&") is holds:
                left = self.implied(node.left, holds, scope)
                found = left | self.implied(node.right, holds, scope.knowing(left))
            case js.Binary(operator="===" | "!=="):
                is_equal = (node.operator == "===") is holds
                found = self._from_equality(node, scope, is_equal=is_equal)
            case js.Binary(operator="==" | "!=", right=js.Literal(value=None)):
                itself = (node.operator == "!=") is holds
                found = self._path_facts(node.left, scope, itself=itself)
            case js.Call(function=js.Member(of=js.Name(name="Array"), key="isArray")):
                for argument in node.arguments[:1]:
                    found = self._path_facts(argument, scope, itself=holds)
            case js.Member() | js.Name() | js.Group():
                found = self._path_facts(node, scope, itself=holds)
        return found

    def _from_equality(self, node: js.Binary, scope: Scope, *, is_equal: bool) -> Facts:
        found = _NOTHING
        for one, other in ((node.left, node.right), (node.right, node.left)):
            constant = other.value if isinstance(other, js.Literal) else UNDEFINED
            itself = is_equal and constant is not None and constant is not UNDEFINED
            if isinstance(one, js.Unary) and one.operator == "typeof":
                itself = itself and constant not in ("undefined", "object")
                found |= self._path_facts(one.operand, scope, itself=itself)
            else:
                found |= self._path_facts(one, scope, itself=itself)
        return found

    def _path_facts(self, node: js.Node, scope: Scope, *, itself: bool) -> Facts:
        if not isinstance(node, js.Member | js.Name | js.Group):
            return _NOTHING
        try:
            value = self.value(node, scope)
        except NotCarried:
            return _NOTHING
        if not isinstance(value, Data):
            return _NOTHING
        is_sure = itself or not any(step.is_optional for step in value.steps)
        prefixes = [one for one in value.prefixes if one.steps or not one.is_reply]
        reached = [one.cel for one in prefixes] if is_sure else []
        return frozenset([*reached, value.cel] if itself else reached)

    # --- Values -------------------------------------------------------------------------------

    def value(self, node: js.Node, scope: Scope) -> Value:
        """What an expression stands for."""
        scope.report.step()
        if isinstance(node, js.Literal):
            return Const(_finite(node.value, node.at))
        if isinstance(node, js.Pattern):
            return Regex(to_re2(node.source, node.flags, node.at))
        if isinstance(node, js.Array):
            return Const([self._constant(item, scope) for item in node.items])
        readers: dict[type[js.Node], Callable[[Any, Scope], Value]] = {
            js.Name: self._name,
            js.Group: lambda group, known: self.value(group.inside, known),
            js.Member: self._member,
            js.Call: self._call,
            js.Unary: self._unary,
            js.Binary: self._binary,
            js.Choice: self._ways,
        }
        if type(node) not in readers:
            raise NotCarried("a function stands here where a value is expected", node.at)
        return readers[type(node)](node, scope)

    def _ways(self, node: js.Choice, scope: Scope) -> Value:
        test = self.condition(node.condition, scope)
        then = scope.knowing(self.implied(node.condition, True, scope))
        otherwise = scope.knowing(self.implied(node.condition, False, scope))
        return Options(
            (
                Way(test, self.value(node.then, then), then.facts),
                Way(test.negated(), self.value(node.otherwise, otherwise), otherwise.facts),
            )
        )

    def _constant(self, node: js.Node, scope: Scope) -> Any:
        value = self.value(node, scope)
        if not isinstance(value, Const):
            raise NotCarried("a list of constants is carried over only", node.at)
        return value.value

    def _name(self, node: js.Name, scope: Scope) -> Value:  # noqa: ARG002 - as its siblings
        if node.name in self._variables:
            return self._variables[node.name]
        if node.name == "scenario":
            return Const(dict(self._scenario))
        what = "cannot be used as a whole" if node.name == "output" else "is not known"
        raise NotCarried(f"`{node.name}` {what}", node.at)

    def _member(self, node: js.Member, scope: Scope) -> Value:
        if (special := self._output(node)) is not None:
            return special
        key = self._key(node, scope)
        if isinstance(node.of, js.Group):
            raise NotCarried("a member of a chain in parentheses is not carried over", node.at)

        def of_one(of: Value, known: Scope) -> Value:
            if node.is_optional and key == "length" and isinstance(of, Data):
                return _if_there(of, known, lambda there: self._of(of, key, node, there))
            return self._of(of, key, node, known)

        return value_of(self.value(node.of, scope), scope, of_one)

    def _of(self, of: Value, key: str | int, node: js.Member, scope: Scope) -> Value:
        return member(of, key, is_optional=node.is_optional, at=node.at, scope=scope)

    def _key(self, node: js.Member, scope: Scope) -> str | int:
        if isinstance(node.key, str):
            return node.key
        value = self._constant(node.key, scope)
        if isinstance(value, str) or (type(value) is int and 0 <= value < 2**31):
            return value
        raise NotCarried("a member is carried over by a text or a number only", node.at)

    def _output(self, node: js.Member) -> Value | None:
        """A member of `output`, or of its `meta`."""
        of = node.of
        if isinstance(of, js.Name) and of.name == "output":
            if node.key == "meta":
                raise NotCarried("`output.meta` cannot be used as a whole", node.at)
            whole = Data("value") if self._is_object else Const({})
            return whole if node.key == "parsed" else Const(UNDEFINED)
        match of:
            case js.Member(of=js.Name(name="output"), key="meta"):
                return self._meta(node)
        return None

    def _meta(self, node: js.Member) -> Value:
        if node.key == "stderr":
            raise NotCarried(f"`output.meta.stderr`: {_STDERR}", node.at)
        known: dict[str, Value] = {
            "raw": Words(None),
            "exitCode": Amount("exit_code", True, is_exit_code=True),
            "durationMs": Amount("latency_s * 1000.0", False),
            "jsonParsed": Truth(Condition(truth=Constant(self._is_object))),
        }
        if not isinstance(node.key, str):
            raise NotCarried("`output.meta` cannot be used as a whole", node.at)
        return known.get(node.key, Const(UNDEFINED))

    def _call(self, node: js.Call, scope: Scope) -> Value:
        function = node.function
        if isinstance(function, js.Name):
            if function.name == "Boolean" and len(node.arguments) == 1:
                return Truth(self.condition(node.arguments[0], scope))
            raise NotCarried(f"`{function.name}` is not carried over", node.at)
        if not isinstance(function, js.Member) or not isinstance(function.key, str):
            raise NotCarried("this call is not carried over", node.at)
        if isinstance(function.of, js.Name) and function.of.name[:1].isupper():
            name = f"{function.of.name}.{function.key}"
            return call_function(name, node.arguments, self, scope, node.at)
        if isinstance(function.of, js.Group):
            raise NotCarried("a method of a chain in parentheses is not carried over", node.at)

        def method(of: Value, known: Scope) -> Value:
            return self._method(of, function, node, known)

        return value_of(self.value(function.of, scope), scope, method)

    def _method(self, of: Value, function: js.Member, node: js.Call, scope: Scope) -> Value:
        name = str(function.key)
        if isinstance(of, Const) and (of.value is None or of.value is UNDEFINED):
            return self._of(of, name, function, scope)

        def called(known: Scope) -> Value:
            return call_method(of, name, node.arguments, meaning=self, scope=known, at=node.at)

        if function.is_optional and isinstance(of, Data):
            return _if_there(of, scope, called)
        return called(scope)

    def _unary(self, node: js.Unary, scope: Scope) -> Value:
        if node.operator == "!":
            return Truth(self.condition(node, scope))
        change = _type_of if node.operator == "typeof" else negative
        operand = self.value(node.operand, scope)
        return value_of(operand, scope, lambda one, _: change(one, node.operator, node.at))

    def _binary(self, node: js.Binary, scope: Scope) -> Value:
        operator = node.operator
        if operator in ("&&", "||"):
            return self._one_side(node, scope)
        if operator == "??":
            return self._default(node, scope)
        left, right = self.value(node.left, scope), self.value(node.right, scope)
        if operator in _COMPARISONS:
            return Truth(compared(operator, left, right, scope, node.at))
        if operator == "in":
            return self._in(left, right, scope, node.at)

        def with_left(one: Value, known: Scope) -> Value:
            def with_both(other: Value, known: Scope) -> Value:
                return calculated(operator, one, other, known, node.at)

            return value_of(right, known, with_both)

        return value_of(left, scope, with_left)

    def _one_side(self, node: js.Binary, scope: Scope) -> Value:
        """`left && right` or `left || right` as a value: the one side or the other."""
        test = self.condition(node.left, scope)
        when_true = scope.knowing(self.implied(node.left, True, scope))
        when_false = scope.knowing(self.implied(node.left, False, scope))
        is_and = node.operator == "&&"
        then, otherwise = (node.right, node.left) if is_and else (node.left, node.right)
        return Options(
            (
                Way(test, self.value(then, when_true), when_true.facts),
                Way(test.negated(), self.value(otherwise, when_false), when_false.facts),
            )
        )

    def _default(self, node: js.Binary, scope: Scope) -> Value:
        right = self.value(node.right, scope)

        def default(one: Value, known: Scope) -> Value:
            if isinstance(one, Const):
                return right if one.value is None or one.value is UNDEFINED else one
            if not isinstance(one, Data):
                return one
            return _if_there(one, known, lambda _: one, right)

        return value_of(self.value(node.left, scope), scope, default)

    def _in(self, key: Value, of: Value, scope: Scope, at: int) -> Value:
        name = key.value if isinstance(key, Const) else None
        if isinstance(name, str) and name != "length" and isinstance(of, Data | Const):
            found = member(of, name, is_optional=False, at=at, scope=scope)
            return Truth(compared("!==", found, Const(UNDEFINED), scope, at))
        raise NotCarried("`in` is carried over for the keys of the reply's objects only", at)


def _if_there(
    data: Data,
    scope: Scope,
    found: Callable[[Scope], Value],
    otherwise: Value = Const(UNDEFINED),  # noqa: B008 - frozen
) -> Value:
    """A value where a part of the reply is neither missing nor null, and another where it is."""
    there = Condition(truth=data.there(scope.facts), guard=data.guard(scope.facts))
    facts = frozenset([data.cel])
    value = found(scope.knowing(facts))
    return Options((Way(there, value, facts), Way(there.negated(), otherwise)))


def _type_of(value: Value, operator: str, at: int) -> Value:
    names = {str: "string", bool: "boolean", int: "number", float: "number"}
    match value:
        case Data():
            return TypeName(value)
        case Const():
            nothing = value.value is UNDEFINED
            return Const("undefined" if nothing else names.get(type(value.value), "object"))
        case Words():
            return Const("string")
        case Amount():
            return Const("number")
    raise NotCarried(f"`{operator}` of this value is not carried over", at)


def _finite(value: Any, at: int) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        raise NotCarried("a number too large for a double is not carried over", at)
    return value
