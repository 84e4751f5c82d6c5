"""Conditions on a reply as formulas of propositional logic, and how a suite spells them.

An atom is a piece of CEL that may end in an error where JavaScript would convert types. Errors pass
through `&&` and `||` as the unknown of a three-valued logic, so that what is true is true whatever
JavaScript would have made of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from trialwise.contrib.importers.cerberus.tokens import NotCarried

__all__ = [
    "FALSE",
    "TRUE",
    "Atom",
    "Constant",
    "Every",
    "Formula",
    "Needs",
    "Not",
    "Some",
    "certain",
    "every",
    "needs_json",
    "negation",
    "some",
    "to_cel",
]


#: No expression of CEL that may be written holds more atoms; choices within choices double them.
_LARGEST = 1_000


class Needs(IntEnum):
    """What the reply has to be for an atom not to end in an error."""

    NOTHING = 0
    JSON = 1
    OBJECT = 2
    """A JSON object."""


@dataclass(frozen=True, slots=True)
class Formula:
    """A condition that is true, false, or unknown where its CEL ends in an error."""


@dataclass(frozen=True, slots=True)
class Constant(Formula):
    """Always true or always false."""

    holds: bool


@dataclass(frozen=True, slots=True)
class Atom(Formula):
    """A condition in CEL."""

    cel: str
    needs: Needs
    is_simple: bool = False
    """Whether it needs no parentheses beside `&&`, `||` and `!`."""
    is_choice: bool = False
    """Whether it is one of the ternary operator's."""
    native: dict[str, Any] | None = field(default=None, compare=False, hash=False)
    """The same as a postcondition, for a whole reply; an error there is a failure here, too."""
    opposite: str | None = None
    """The negation in CEL, where there is a shorter one than `!(…)`."""
    hides_when_true: bool = False
    """Whether it may be true although JavaScript throws."""
    hides_when_false: bool = False
    """Whether it may be false although JavaScript throws."""


@dataclass(frozen=True, slots=True)
class Not(Formula):
    """The opposite."""

    of: Formula


@dataclass(frozen=True, slots=True)
class _Several(Formula):
    """Formulas put together, not too many of them."""

    parts: tuple[Formula, ...]
    size: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        size = sum(map(_size, self.parts))
        if size > _LARGEST:
            raise NotCarried("the assertion is too involved", 0)
        object.__setattr__(self, "size", size)


@dataclass(frozen=True, slots=True)
class Every(_Several):
    """All of some."""


@dataclass(frozen=True, slots=True)
class Some(_Several):
    """At least one of some."""


TRUE, FALSE = Constant(True), Constant(False)


def _size(formula: Formula) -> int:
    """How many atoms are in it, each as often as it stands there."""
    while isinstance(formula, Not):
        formula = formula.of
    return formula.size if isinstance(formula, _Several) else 1


def negation(formula: Formula) -> Formula:
    """The opposite of a formula."""
    if isinstance(formula, Constant):
        return FALSE if formula.holds else TRUE
    return formula.of if isinstance(formula, Not) else Not(formula)


def every(*formulas: Formula) -> Formula:
    """All of some formulas, each once."""
    parts = _flat(formulas, Every, drop=TRUE)
    if FALSE in parts:
        return FALSE
    return Every(tuple(parts)) if len(parts) > 1 else parts[0] if parts else TRUE


def some(*formulas: Formula) -> Formula:
    """At least one of some formulas, each once."""
    parts = _flat(formulas, Some, drop=FALSE)
    if TRUE in parts:
        return TRUE
    return Some(tuple(parts)) if len(parts) > 1 else parts[0] if parts else FALSE


def _flat(
    formulas: tuple[Formula, ...], kind: type[Every] | type[Some], *, drop: Formula
) -> list[Formula]:
    found: dict[Formula, None] = {}
    for one in formulas:
        for part in one.parts if isinstance(one, kind) else (one,):
            if part != drop:
                found.setdefault(part)
    return list(found)


def needs_json(formula: Formula) -> bool:
    """Whether any part looks at the reply as JSON."""
    match formula:
        case Atom():
            return formula.needs > Needs.NOTHING
        case Not():
            return needs_json(formula.of)
        case Every() | Some():
            return any(map(needs_json, formula.parts))
    return False


def certain(formula: Formula, without: Needs, *, holds: bool = True) -> Formula:
    """When a formula is known to hold, or known not to, although some of its atoms fail.

    Args:
        formula: Which.
        without: What the reply is not: `JSON`, or if so, no `OBJECT`.
        holds: Whether it is to hold.
    """
    match formula:
        case Constant():
            return formula if holds else negation(formula)
        case Atom():
            fails = formula.needs >= without
            return FALSE if fails else formula if holds else negation(formula)
        case Not():
            return certain(formula.of, without, holds=not holds)
        case Every() | Some():
            parts = [certain(one, without, holds=holds) for one in formula.parts]
            return every(*parts) if isinstance(formula, Every) is holds else some(*parts)
    return FALSE


def to_cel(formula: Formula) -> str:
    """A formula in CEL.

    >>> to_cel(some(Not(Atom("exit_code == 0", Needs.NOTHING)), FALSE))
    '!(exit_code == 0)'
    """
    match formula:
        case Constant():
            return "true" if formula.holds else "false"
        case Atom():
            return formula.cel
        case Not(of=Atom() as atom) if atom.opposite is not None:
            return atom.opposite
        case Not():
            return f"!{_enclosed(formula.of)}"
        case Every():
            return " && ".join(map(_beside_and, formula.parts))
        case Some():
            return " || ".join(map(_beside_or, formula.parts))
    raise TypeError(formula)


def _beside_or(formula: Formula) -> str:
    """CEL binds `||` closer than the ternary operator."""
    is_choice = isinstance(formula, Atom) and formula.is_choice
    return f"({to_cel(formula)})" if is_choice else to_cel(formula)


def _beside_and(formula: Formula) -> str:
    """It binds `&&` closer still."""
    return f"({to_cel(formula)})" if isinstance(formula, Some) else _beside_or(formula)


def _enclosed(formula: Formula) -> str:
    text = to_cel(formula)
    return text if isinstance(formula, Atom) and formula.is_simple else f"({text})"
