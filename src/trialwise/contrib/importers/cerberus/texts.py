"""Conditions on texts: equal, contained, at either end, or matched by a pattern.

A text that was trimmed or put into lower case is searched with a pattern instead of being changed:
CEL has neither function.
"""

from __future__ import annotations

from trialwise.contrib.importers.cerberus.formulas import TRUE, Atom, Constant, Formula, Needs
from trialwise.contrib.importers.cerberus.regexes import WHITE_SPACE, folded_text, quoted
from trialwise.contrib.importers.cerberus.tokens import NotCarried
from trialwise.contrib.importers.cerberus.values import Condition, Scope, Words, cel_literal

__all__ = ["TRIMMED", "is_found", "matching", "words_condition"]

#: What JavaScript's `trim` takes away; `WHITE_SPACE` as characters.
TRIMMED = "\t\n\v\f\r \xa0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(
    map(chr, range(0x2000, 0x200B))
)


def words_condition(what: str, words: Words, text: str, scope: Scope, at: int) -> Condition:
    """When a text equals, contains, begins or ends with another, or has anything in it.

    Args:
        what: `equals`, `contains`, `starts_with`, `ends_with` or `something`.
        words: The text, perhaps changed.
        text: The other.
        scope: What is known here.
        at: Where it stands, for a refusal.
    """
    guard = words.guard(scope.facts)
    if not text and what not in ("equals", "something"):
        return Condition(truth=TRUE, guard=guard)
    if not words.is_trimmed and not words.is_lower:
        return Condition(truth=_unchanged(what, words, text), guard=guard)
    if words.is_trimmed and text.strip(TRIMMED) != text:
        raise NotCarried("a trimmed text is compared with one that has white space around it", at)
    inside = folded_text(text, at) if words.is_lower else quoted(text)
    gap = f"[{WHITE_SPACE}]*" if words.is_trimmed else ""
    pattern = {
        "equals": f"^{gap}{inside}{gap}$",
        "contains": inside,
        "starts_with": f"^{gap}{inside}",
        "ends_with": f"{inside}{gap}$",
        "something": f"[^{WHITE_SPACE}]" if words.is_trimmed else "(?s:.)",
    }[what]
    return Condition(truth=matching(words.cel, pattern, words.needs), guard=guard)


def _unchanged(what: str, words: Words, text: str) -> Formula:
    literal = cel_literal(text)
    cel = {
        "equals": f"{words.cel} == {literal}",
        "contains": f"{words.cel}.contains({literal})",
        "starts_with": f"{words.cel}.startsWith({literal})",
        "ends_with": f"{words.cel}.endsWith({literal})",
        "something": f"size({words.cel}) > 0",
    }[what]
    is_call = what not in ("equals", "something")
    native = None
    if words.of is None:
        native = {"length": {"minimum": 1}} if what == "something" else {what: text}
    return Atom(cel, words.needs, is_simple=is_call, native=native)


def matching(cel: str, pattern: str, needs: Needs) -> Formula:
    """That a pattern is found in a text."""
    return Atom(f"{cel}.matches({_pattern_literal(pattern)})", needs, is_simple=True)


def is_found(text: str, pattern: str) -> Formula:
    """Whether a pattern is found in a text that is known."""
    from trialwise.checks.expressions import expression
    from trialwise.model.reply import Reply

    check = expression(f"{cel_literal(text)}.matches({_pattern_literal(pattern)})")
    return Constant(check.check(Reply(value="")).passed)


def _pattern_literal(pattern: str) -> str:
    """A pattern as a raw text where that reads better."""
    for quote in "'\"":
        if quote not in pattern and pattern.isprintable() and not pattern.endswith("\\"):
            return f"r{quote}{pattern}{quote}" if "\\" in pattern else f"{quote}{pattern}{quote}"
    return cel_literal(pattern)
