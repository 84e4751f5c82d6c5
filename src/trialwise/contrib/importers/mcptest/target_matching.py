"""Checks of an agent's session at a target, as mcptest writes them.

A target is a path into the session: `tool_calls[0].args.city`, `conversation.tokens.total`. A
matcher says what has to stand there. A session that does not tell its calls passes no matcher.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from trialwise.checks.reply_reading import same
from trialwise.checks.tools import tool_call_count
from trialwise.checks.whole_reply import check_schema, find_problem
from trialwise.model.reply import Reply
from trialwise.model.trial import CheckResult

__all__ = ["MATCHERS", "TARGETS", "expect"]

#: The matchers that are carried over.
MATCHERS = ("exact", "contains", "regex", "schema", "not", "all_of", "any_of")
#: How targets of a session begin that are carried over.
TARGETS = ("tool_calls", "conversation", "final_text")
_STEP = re.compile(r"\.?([A-Za-z_$][\w$-]*)|\[(\d+)\]")


def expect(target: str, matcher: Mapping[str, Any]) -> Callable[[Reply], CheckResult]:
    """Return a check of what stands at a target of a session.

    >>> check = expect("tool_calls[0].name", {"exact": "search"})
    >>> check(Reply(value="", details={"tool_calls": [{"name": "search", "args": {}}]})).passed
    True
    """
    schemas = _compile(matcher)

    def check_session(reply: Reply) -> CheckResult:
        told = tool_call_count(minimum=0).check(reply)
        if not told.passed:
            return told
        found, is_there = _find(_read_session(reply), target)
        if not is_there:
            return CheckResult.fail(f"there is nothing at {target}")
        if _matches(found, matcher, schemas):
            return CheckResult.ok()
        return CheckResult.fail(f"{target} is not as expected", evidence=repr(found)[:200])

    check_session.__name__ = "expect"
    return check_session


def _read_session(reply: Reply) -> dict[str, Any]:
    trace = reply.details.get("trace")
    envelope = dict(trace) if isinstance(trace, Mapping) else {}
    conversation = envelope.get("conversation")
    known = dict(conversation) if isinstance(conversation, Mapping) else {}
    if "tokens" not in known and reply.usage is not None:
        known["tokens"] = {"total": reply.usage.input_tokens + reply.usage.output_tokens}
    return {
        **envelope,
        "conversation": known,
        "tool_calls": reply.details["tool_calls"],
        "final_text": reply.text,
    }


def _find(session: Any, target: str) -> tuple[Any, bool]:
    """Return what stands at a target, and whether anything does."""
    value, place = session, 0
    while place < len(target):
        match = _STEP.match(target, place)
        if match is None:
            return None, False
        place = match.end()
        if match[2] is not None:
            index = int(match[2])
            if not isinstance(value, list | tuple) or index >= len(value):
                return None, False
            value = value[index]
        elif isinstance(value, Mapping) and match[1] in value:
            value = value[match[1]]
        else:
            return None, False
    return value, True


def _compile(matcher: Mapping[str, Any]) -> dict[int, str]:
    """Return the schemas of a matcher and of those within it, each as text."""
    schemas: dict[int, str] = {}
    for name, given in matcher.items():
        if name == "schema":
            schemas[id(given)] = check_schema("schema", given)
        elif name == "not":
            schemas |= _compile(given)
        elif name in ("all_of", "any_of"):
            for one in given:
                schemas |= _compile(one)
        elif name == "regex":
            re.compile(given)
    return schemas


def _matches(value: Any, matcher: Mapping[str, Any], schemas: Mapping[int, str]) -> bool:
    """Return whether a value meets every condition of a matcher."""
    text = value if isinstance(value, str) else str(value)
    tests: dict[str, Callable[[Any], bool]] = {
        "exact": lambda given: same(value, given),
        "contains": lambda given: str(given) in text,
        "regex": lambda given: re.search(given, text) is not None,
        "schema": lambda given: find_problem(schemas[id(given)], value) == ("", ""),
        "not": lambda given: not _matches(value, given, schemas),
        "all_of": lambda given: all(_matches(value, one, schemas) for one in given),
        "any_of": lambda given: any(_matches(value, one, schemas) for one in given),
    }
    return all(tests[name](given) for name, given in matcher.items())
