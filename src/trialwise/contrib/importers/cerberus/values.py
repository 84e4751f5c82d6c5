"""What a JavaScript expression may be before the trial is run: constants, and parts of the reply.

Values that depend on the reply are kept as the CEL that looks them up, together with what has to be
there for JavaScript not to throw.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from trialwise.contrib.importers.cerberus.formulas import (
    FALSE,
    TRUE,
    Atom,
    Formula,
    Needs,
    Not,
    every,
    negation,
    some,
)
from trialwise.contrib.importers.cerberus.tokens import NotCarried

__all__ = [
    "Amount",
    "Condition",
    "Const",
    "Data",
    "Facts",
    "Listed",
    "Options",
    "Regex",
    "Report",
    "Scope",
    "Size",
    "Step",
    "Thrown",
    "Truth",
    "TypeName",
    "Value",
    "Way",
    "Words",
    "cel_literal",
    "condition_of",
    "either",
    "is_plain_name",
    "value_of",
]

Facts: TypeAlias = frozenset[str]
"""Parts of the reply that are known to be neither missing nor null, by their CEL."""

#: Words that CEL keeps for itself.
_RESERVED = (
    *("as", "break", "const", "continue", "else", "false", "for", "function", "if", "import"),
    *("in", "let", "loop", "package", "namespace", "null", "return", "true", "var", "void"),
    "while",
)
#: Far beyond what a person writes, done in a moment.
_MOST_STEPS = 20_000
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """When an expression is truthy, and when it throws instead."""

    truth: Formula
    guard: Formula = TRUE
    """What keeps JavaScript from throwing."""
    is_checked: bool = True
    """Whether the CEL of the truth ends in an error wherever the guard fails, so that the guard
    need not be asked for; not once conditions are put together."""

    def negated(self) -> Condition:
        """The opposite."""
        return Condition(truth=negation(self.truth), guard=self.guard, is_checked=self.is_checked)

    def and_then(self, other: Condition) -> Condition:
        """`this && other`: the other is looked at only where this holds."""
        guard = every(self.guard, some(negation(self.truth), other.guard))
        return Condition(truth=every(self.truth, other.truth), guard=guard, is_checked=False)

    def or_else(self, other: Condition) -> Condition:
        """`this || other`: the other is looked at only where this does not hold."""
        guard = every(self.guard, some(self.truth, other.guard))
        return Condition(truth=some(self.truth, other.truth), guard=guard, is_checked=False)

    def choosing(self, then: Condition, otherwise: Condition) -> Condition:
        """`this ? then : otherwise`: what each way needs is asked for on that way only."""
        return either(self.and_then(then), self.negated().and_then(otherwise))

    @property
    def formula(self) -> Formula:
        """The truth, with the guard where an error could be passed over."""
        truth = self.truth
        match truth:
            case Atom(hides_when_true=False) if self.is_checked:
                return truth
            case Not(of=Atom(hides_when_false=False)) if self.is_checked:
                return truth
        return every(self.guard, truth)


def either(*ways: Condition) -> Condition:
    """Ways that exclude one another, each with a guard for itself."""
    truth, guard = some(*(way.truth for way in ways)), every(*(way.guard for way in ways))
    return Condition(truth=truth, guard=guard, is_checked=False)


@dataclass(frozen=True, slots=True)
class Const:
    """A value that is known: a literal, or a part of the scenario."""

    value: Any


@dataclass(frozen=True, slots=True)
class Thrown:
    """What throws whatever the reply is."""


@dataclass(frozen=True, slots=True)
class Step:
    """One member of a path."""

    key: str | int
    is_optional: bool = False
    """Whether it is reached by `?.`."""


@dataclass(frozen=True, slots=True)
class Data:
    """A part of the reply's JSON, or of an element of one of its lists."""

    root: str
    """`value`, or the variable of a comprehension."""
    steps: tuple[Step, ...] = ()

    @property
    def cel(self) -> str:
        """The CEL that looks it up."""
        return self.root + "".join(_selector(step.key) for step in self.steps)

    @property
    def is_reply(self) -> bool:
        """Whether it begins at the reply, not at an element."""
        return self.root == "value"

    @property
    def needs(self) -> Needs:
        """What the reply has to be for this to be looked up."""
        if not self.is_reply:
            return Needs.NOTHING
        first = self.steps[0].key if self.steps else 0
        is_plain = isinstance(first, str) and is_plain_name(first)
        return Needs.OBJECT if is_plain else Needs.JSON

    @property
    def prefixes(self) -> list[Data]:
        """What it is a member of, from the root down."""
        return [Data(self.root, self.steps[:length]) for length in range(len(self.steps))]

    @property
    def json_path(self) -> str | None:
        """As a JSONPath from the reply."""
        if not self.is_reply:
            return None
        return "$" + "".join(_path_selector(step.key) for step in self.steps)

    def presence(self, facts: Facts) -> list[str]:
        """What has to be true in CEL for it to be defined."""
        found: list[str] = []
        for prefix, step in zip(self.prefixes, self.steps, strict=True):
            if step.is_optional and prefix.cel not in facts:
                found += [*prefix._own_presence(), f"{prefix.cel} != null"]
        return [*found, *([] if self.cel in facts else self._own_presence())]

    def guard(self, facts: Facts) -> Formula:
        """What has to be there for JavaScript to get this far."""
        found: list[Formula] = []
        alive: list[Formula] = []
        for prefix, step in zip(self.prefixes, self.steps, strict=True):
            if prefix.cel in facts or (prefix.is_reply and not prefix.steps):
                continue
            there = prefix.there(facts)
            if step.is_optional:
                alive.append(there)
            else:
                found.append(some(negation(every(*alive)), there))
        return every(*found)

    def there(self, facts: Facts) -> Formula:
        """Whether it is neither missing nor null."""
        if self.cel in facts:
            return TRUE
        parts = [*self.presence(facts), f"{self.cel} != null"]
        return Atom(" && ".join(parts), self.needs)

    def _own_presence(self) -> list[str]:
        if not self.steps:
            return []
        prefix, key = self.prefixes[-1].cel, self.steps[-1].key
        if isinstance(key, int):
            return [f"(type({prefix}) == list ? size({prefix}) > {key} : '{key}' in {prefix})"]
        if is_plain_name(key):
            return [f"has({self.cel})"]
        return [f"{cel_literal(key)} in {prefix}"]


@dataclass(frozen=True, slots=True)
class Words:
    """A text: the output, or a part of the reply that a method for texts was called on."""

    of: Data | None
    """None for the output."""
    is_trimmed: bool = False
    is_lower: bool = False

    @property
    def cel(self) -> str:
        """The CEL that looks it up, before any change."""
        return "output" if self.of is None else self.of.cel

    @property
    def needs(self) -> Needs:
        """What the reply has to be for this to be looked up."""
        return Needs.NOTHING if self.of is None else self.of.needs

    def guard(self, facts: Facts) -> Formula:
        """That it is a text at all; another value has no such method."""
        if self.of is None:
            return TRUE
        parts = [*self.of.presence(facts), f"type({self.of.cel}) == string"]
        return every(self.of.guard(facts), Atom(" && ".join(parts), self.of.needs))


@dataclass(frozen=True, slots=True)
class Amount:
    """A number that depends on the reply."""

    cel: str
    is_whole: bool
    """Whether CEL has it as an integer."""
    needs: Needs = Needs.NOTHING
    guard: Formula = TRUE
    is_exit_code: bool = False


@dataclass(frozen=True, slots=True)
class Listed:
    """A list that is made of a part of the reply: its keys, or some of its elements."""

    cel: str
    needs: Needs
    guard: Formula
    is_listed: str
    """What has to be true in CEL for it to be a list."""


@dataclass(frozen=True, slots=True)
class Size:
    """The length of a text or list, or the number of keys of an object."""

    cel: str
    """The CEL of what is measured."""
    needs: Needs
    guard: Formula = TRUE
    words: Words | None = None
    """The text that is measured, if it is certain to be one."""
    has_size: str = ""
    """What has to be true in CEL for there to be a length."""
    may_be_text: bool = True


@dataclass(frozen=True, slots=True)
class Truth:
    """True or false, as the reply is."""

    condition: Condition


@dataclass(frozen=True, slots=True)
class TypeName:
    """What `typeof` says of a value."""

    of: Data


@dataclass(frozen=True, slots=True)
class Regex:
    """A regular expression, in RE2's syntax."""

    re2: str


@dataclass(frozen=True, slots=True)
class Way:
    """A value that is taken under a condition, and what is known there."""

    when: Condition
    value: Value
    facts: Facts = frozenset()


@dataclass(frozen=True, slots=True)
class Options:
    """One of several values, by conditions that exclude one another."""

    ways: tuple[Way, ...]


Value: TypeAlias = (
    Const | Thrown | Data | Words | Amount | Listed | Size | Truth | TypeName | Regex | Options
)


class Report:
    """What the reader of an assertion has to be told, and how much work it has been."""

    def __init__(self) -> None:
        self.notes: set[str] = set()
        self._steps = 0

    def step(self) -> None:
        """Count one step; values that choose between values make more and more of them."""
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise NotCarried("the assertion is too involved", 0)


@dataclass(frozen=True, slots=True)
class Scope:
    """What is known where an expression stands."""

    facts: Facts
    report: Report

    def knowing(self, facts: Facts) -> Scope:
        """The same with further facts."""
        return Scope(self.facts | facts, self.report)


def condition_of(
    value: Value, scope: Scope, judge: Callable[[Value, Scope], Condition]
) -> Condition:
    """A condition on a value, on each of its options where it has some."""
    scope.report.step()
    if isinstance(value, Thrown):
        return Condition(truth=FALSE, guard=FALSE)
    if not isinstance(value, Options):
        return judge(value, scope)
    return either(
        *(
            way.when.and_then(condition_of(way.value, scope.knowing(way.facts), judge))
            for way in value.ways
        )
    )


def value_of(value: Value, scope: Scope, change: Callable[[Value, Scope], Value]) -> Value:
    """What becomes of a value, of each of its options where it has some."""
    scope.report.step()
    if isinstance(value, Thrown):
        return value
    if not isinstance(value, Options):
        return change(value, scope)
    return Options(
        tuple(
            Way(way.when, value_of(way.value, scope.knowing(way.facts), change), way.facts)
            for way in value.ways
        )
    )


def is_plain_name(key: str) -> bool:
    """Whether CEL takes a key behind a dot."""
    return bool(_IDENTIFIER.fullmatch(key)) and key not in _RESERVED


def cel_literal(value: Any) -> str:
    """A constant in CEL.

    >>> cel_literal("it's"), cel_literal(5), cel_literal(0.5), cel_literal([None, True])
    ("'it\\\\'s'", '5', '0.5', '[null, true]')
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value) if isinstance(value, int) else repr(value)
    if isinstance(value, list):
        return f"[{', '.join(map(cel_literal, value))}]"
    return "'" + "".join(map(_escaped, str(value))) + "'"


def _escaped(one: str) -> str:
    if one in "\\'":
        return f"\\{one}"
    if one.isprintable():
        return one
    return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(one, f"\\U{ord(one):08x}")


def _selector(key: str | int) -> str:
    if isinstance(key, int):
        return f"[{key}]"
    return f".{key}" if is_plain_name(key) else f"[{cel_literal(key)}]"


def _path_selector(key: str | int) -> str:
    if isinstance(key, int):
        return f"[{key}]"
    if _IDENTIFIER.fullmatch(key):
        return f".{key}"
    import json

    inside = json.dumps(key)[1:-1].replace('\\"', '"').replace("'", "\\'")
    return f"['{inside}']"
