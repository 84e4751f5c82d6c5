"""The checks of a contract file as they are written: one form each, with its view and its path."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trialwise.contrib.importers.mavai.form_comparison import FORMS, NUMBER, element, present_floor
from trialwise.contrib.importers.mavai.reply_views import STOCK, check_selection
from trialwise.contrib.importers.yaml_mappings import Keys, is_number
from trialwise.declarations.written import Node
from trialwise.declarations.written import show_value as shown
from trialwise.errors import InvalidArgument
from trialwise.suite.suite_problems import Problems
from trialwise.suite.yaml_reading import plain

__all__ = ["DIRECT", "Check", "read_check", "read_direct", "resolve_check"]

_TEXT = ("equals", "contains", "matches", "not-equals", "equals-ci")
_NUMERIC = ("eq", "ne", "lt", "le", "gt", "ge")
_SETS = ("equals-set", "contains-set", "count-equals", "set-of")
_ALL = ("parses", "satisfies", *FORMS)
#: Those that may stand on a criterion itself, which then checks the raw reply.
DIRECT = tuple(name for name in _ALL if name not in _SETS)
_PERCENTAGE = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?%")
_MEANT = {
    True: "a truth value is compared with `is`",
    False: "a truth value is compared with `is`",
    None: "null is compared with `is-null: true`",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check."""

    form: str
    operand: Any
    view: str | None
    """None until the view that a path goes with by default is known."""
    path: str | None = None
    is_optional: bool = False
    node: Node

    @property
    def spec(self) -> dict[str, Any]:
        """Return the form that `reply_checks.criterion` takes."""
        spec: dict[str, Any] = {}
        if self.view not in (None, "raw") and self.form != "parses":
            spec["in"] = self.view
        if self.path is not None:
            spec["path"] = self.path
        spec[self.form] = self.operand
        return {**spec, "optional": True} if self.is_optional else spec


def read_direct(keys: Keys, views: Mapping[str, str]) -> list[Check]:
    """The checks that stand on a criterion itself."""
    found: list[Check] = []
    for form in DIRECT:
        if form in keys:
            node = keys.at(form)
            if _check_operand(form, node, keys.problems, views):
                found.append(Check(form=form, operand=plain(node), view="raw", node=node))
    return found


def read_check(
    node: Node,
    problems: Problems,
    *,
    views: Mapping[str, str],
    what: str,
    without: Sequence[str] = (),
) -> Check | None:
    """A check, or None once it is said what is wrong with it.

    Args:
        node: The mapping.
        problems: Where to say so.
        views: The views of the contract, by name.
        what: How a message calls it.
        without: Forms that it may not have.
    """
    gone = dict.fromkeys(without, "is a form of a criterion, not of what one input expects")
    known = ("in", "path", "optional", *_ALL)
    keys = Keys(node, problems, what=what, known=known, gone=gone)
    forms = [name for name in _ALL if name in keys and name not in without]
    if not keys.is_mapping or any(name in node.entries for name in without):
        return None
    if len(forms) != 1:
        found = ", ".join(f"`{name}`" for name in forms) or "none"
        problems.add(node, f"{what} must hold exactly one form, it holds {found}")
        return None
    form = forms[0]
    before = len(problems)
    view = _view(keys, form, views)
    path = keys.text("path", "a JSONPath or an XPath")
    if "optional" in keys:
        _check_optional(keys, form)
    _check_operand(form, keys.at(form), problems, views)
    _check_path(keys, form, view)
    if len(problems) > before:
        return None
    return Check(
        form=form,
        operand=plain(keys.at(form)),
        view=view,
        path=path,
        is_optional="optional" in keys,
        node=node,
    )


def _view(keys: Keys, form: str, views: Mapping[str, str]) -> str | None:
    if "in" not in keys:
        return None if "path" in keys else "raw"
    name = keys.text("in", "the name of a view")
    if form == "parses":
        keys.refuse("in", "`parses` names its view itself and takes no `in`")
    elif name is not None and name != "raw" and name not in views:
        known = ", ".join(f"`{one}`" for one in views) or "none"
        keys.refuse("in", f"`in` names the view `{name}`, which is not declared; there are {known}")
    elif name == "raw" and "path" in keys:
        keys.refuse("in", "a `path` needs structure: `raw` is the text of the reply")
    return name


def _check_optional(keys: Keys, form: str) -> None:
    if keys.at("optional").value is not True:
        keys.refuse("optional", "`optional` must be true: without it a check is required")
    elif form == "parses":
        message = "`optional` on `parses` would do nothing: what cannot be read always fails"
        keys.refuse("optional", message)


def _check_path(keys: Keys, form: str, view: str | None) -> None:
    if form in _SETS and "path" not in keys:
        message = (
            f"`{form}` compares what a path selects: it needs `path` and a view to select from"
        )
        keys.problems.add(keys.node, message)
    if form in ("parses", "satisfies") and "path" in keys:
        keys.refuse("path", f"`path` does not go with `{form}`")
    if form in _SETS and view == "raw" and "path" in keys:
        keys.refuse("path", f"`{form}` needs a view to select from")


def _check_operand(form: str, node: Node, problems: Problems, views: Mapping[str, str]) -> bool:
    """Say what is wrong with an operand; whether nothing is."""
    expected = _operand_problem(form, node, views)
    if not expected:
        return True
    value = node.value if node.is_scalar else ""
    meant = f"; {_MEANT[value]}" if form == "equals" and value in (True, False, None) else ""
    empty = "an empty list" if node.is_list and not node.value else shown(node)
    got = f"the text {empty}" if isinstance(value, str) and node.is_scalar else empty
    problems.add(node, f"`{form}` must be {expected}, got {got}{meant}")
    return False


def _operand_problem(form: str, node: Node, views: Mapping[str, str]) -> str:
    value = plain(node)
    problem = ""
    if form in _TEXT:
        problem = "" if isinstance(value, str) else "text"
        if form == "matches" and not problem:
            problem = _pattern_problem(value)
    elif form in _NUMERIC:
        is_text = isinstance(value, str) and NUMBER.fullmatch(value)
        problem = "" if is_number(value) or is_text else "a number, or the text of one"
    elif form == "one-of":
        fits = isinstance(value, list) and value and all(isinstance(one, str) for one in value)
        problem = "" if fits else "a list of at least one text"
    elif form == "parses":
        known = ", ".join(f"`{one}`" for one in views) or "none"
        problem = "" if value in views else f"the name of a declared view (there are {known})"
    elif form == "satisfies":
        problem = "" if isinstance(value, str) and value else "the name of a check"
    elif form == "is":
        problem = "" if isinstance(value, bool) else "true or false"
    elif form == "is-null":
        problem = "" if value is True else "true: its opposite is not offered"
    else:
        problem = _set_problem(form, value)
    return problem


def _pattern_problem(pattern: str) -> str:
    from trialwise.checks.texts import check_pattern

    try:
        check_pattern("matches", pattern)
    except InvalidArgument as error:
        return error.allowed.removeprefix("be ")
    return ""


def _set_problem(form: str, value: Any) -> str:
    if form == "count-equals":
        return "" if type(value) is int and value >= 0 else "a whole number of at least 0"
    if form != "set-of":
        return "" if _is_set(value) else _SET_EXPECTED
    return _set_of_problem(value)


_SET_EXPECTED = (
    "a list of at least one text, number, true, false or null (nothing selected is "
    "`count-equals: 0`)"
)


def _is_set(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and not any(isinstance(one, dict | list) for one in value)
    )


def _set_of_problem(value: Any) -> str:
    known = {"required", "optional", "min-present", "refuse-extras"}
    if not isinstance(value, dict) or not set(value) <= known:
        return "a mapping of `required`, `optional`, `min-present` and `refuse-extras`"
    if "optional" not in value:
        sharper = "contains-set" if value.get("refuse-extras") is False else "equals-set"
        return f"given with `optional`: without it, it is `{sharper}`"
    if not all(_is_set(value[name]) for name in ("required", "optional") if name in value):
        return f"made of lists, each {_SET_EXPECTED}"
    if not isinstance(value.get("refuse-extras", True), bool):
        return "given with `refuse-extras` true or false"
    return _members_problem(value)


def _members_problem(value: dict[str, Any]) -> str:
    required = {element(one) for one in value.get("required", ())}
    optional = {element(one) for one in value["optional"]}
    if required & optional:
        return "made of lists that do not overlap"
    floor = value.get("min-present", 0)
    is_count = type(floor) is int and floor >= 0
    if not is_count and not (isinstance(floor, str) and _PERCENTAGE.fullmatch(floor)):
        return "given with `min-present` as a whole number, or a percentage such as 66%"
    return _floor_problem(present_floor(floor, len(optional)), len(optional))


def _floor_problem(floor: int, members: int) -> str:
    if floor > members:
        return f"given with a `min-present` of at most {members - 1}: there are {members} members"
    if floor == members:
        return "given with a smaller `min-present`: if all are needed, they are `required`"
    return ""


def resolve_check(
    check: Check, anchor: str | None, views: Mapping[str, str], problems: Problems
) -> Check:
    """A check with the view its path goes with, and that path looked at.

    Args:
        check: Which.
        anchor: The view that a path without `in` means here, if there is one.
        views: The views of the contract, by name.
        problems: Where to say what is wrong.
    """
    if check.path is None:
        return check
    view = anchor if check.view is None else check.view
    if view is None:
        message = (
            f"`path` without `in`, and no view it could mean: say `in`, or `parses` on the "
            f"criterion (views: {', '.join(views) or 'none'})"
        )
        problems.add(check.node, message)
        return check
    kind = views[view] if views[view] in STOCK else "function"
    problem = check_selection(check.path, kind)
    if problem:
        node = check.node.entries["path"][1]
        problems.add(node, f"`path` {problem}, got {shown(node)}")
    return replace(check, view=view)
