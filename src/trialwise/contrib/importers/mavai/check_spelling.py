"""Convert mavai checks into checks of a suite that hold for the same replies.

The rest is left to a function of `reply_checks`: numbers as decimals, sets, texts of either case,
XML and YAML, and the text of a number where a form compares texts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from trialwise.contrib.importers.mavai.check_forms import Check
from trialwise.contrib.importers.mavai.form_comparison import element

__all__ = ["spell_check"]

#: What the JSON text of a number, of true, false or null may be made of.
_NUMBER_PART = re.compile(r"[0-9eE+.-]*")
_WORDS = ("true", "false", "null")


def spell_check(check: Check, views: Mapping[str, str]) -> list[dict[str, Any]] | None:
    """The postconditions that together say the same as a check, or None where none do.

    Args:
        check: Which, with its view resolved.
        views: What each view is, by name.
    """
    if check.form == "parses":
        kind = views.get(str(check.operand))
        return [{"parses": kind}] if kind in ("json", "xml") else None
    if check.view == "raw":
        return _of_text(check.form, check.operand)
    if check.path is not None and views.get(str(check.view)) == "json":
        return _of_json(check.form, check.operand, check.path)
    return None


def _of_text(form: str, operand: Any) -> list[dict[str, Any]] | None:
    match form:
        case "equals":
            return [{"equals": operand}]
        case "one-of":
            ways = [{"equals": one} for one in operand]
            return ways if len(ways) == 1 else [{"any_of": ways}]
        case "contains":
            return [{"contains": operand}] if operand else None
        case "matches":
            return [{"matches": operand}] if operand else None
        case "not-equals":
            return [{"not": {"equals": operand}}]
    return None


def _of_json(form: str, operand: Any, path: str) -> list[dict[str, Any]] | None:
    found: list[dict[str, Any]] | None = None
    match form:
        case "is":
            found = [{"json_path": {"path": path, "equals": operand}}]
        case "is-null":
            missing = {"json_path": {"path": path, "exists": False}}
            found = [{"any_of": [missing, {"json_path": {"path": path, "equals": None}}]}]
        case "count-equals":
            found = [{"json_path": {"path": path, "count": operand}}]
        case "equals" if not _may_be_scalar(operand):
            found = [{"json_path": {"path": path, "equals": operand}}]
        case "one-of" if not any(map(_may_be_scalar, operand)):
            pattern = rf"\A(?:{'|'.join(map(re.escape, operand))})\Z"
            found = [{"json_path": {"path": path, "matches": pattern}}]
        case "contains" if not _may_be_in_scalar(operand):
            found = [{"json_path": {"path": path, "matches": re.escape(operand)}}]
        case "contains-set" if len({element(one) for one in operand}) == len(operand):
            found = [
                {"json_path": {"path": path, "equals": one, "require": "any"}} for one in operand
            ]
    return found


def _may_be_scalar(text: str) -> bool:
    """Whether a text is how JSON writes a number, true, false or null."""
    try:
        return not isinstance(json.loads(text), str | list | dict)
    except (ValueError, RecursionError):
        return False


def _may_be_in_scalar(text: str) -> bool:
    return bool(_NUMBER_PART.fullmatch(text)) or any(text in word for word in _WORDS)
