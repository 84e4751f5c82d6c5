"""One grader of vally as a check, a judge, or a function that is left to be written."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trialwise.contrib.importers.cerberus.assertion_patterns import translate_pattern
from trialwise.contrib.importers.cerberus.assertion_syntax import NotCarried
from trialwise.contrib.importers.import_notes import Notes
from trialwise.contrib.importers.model_endpoints import ENDPOINTS, find_model_endpoint
from trialwise.contrib.importers.unwritten_functions import FunctionModule

__all__ = ["GraderRead", "Graders"]

_FLAGS = re.compile(r"\(\?([ims]+)\)")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_JUDGE = "claude-sonnet-4.6"


@dataclass(frozen=True, slots=True, kw_only=True)
class GraderRead:
    """A grader as a suite says it: a check, or a judge."""

    kind: str
    check: dict[str, Any] | None = None
    judge: dict[str, Any] | None = None


@dataclass(slots=True)
class Graders:
    """Reads the graders of a file."""

    notes: Notes
    functions: FunctionModule
    judge_model: str = _JUDGE
    _stubs: dict[str, str] = field(default_factory=dict)

    def read(self, given: Mapping[str, Any], rubric: Sequence[str], where: str) -> GraderRead:
        """Read one grader.

        Args:
            given: The grader.
            rubric: What the stimulus asks of a model that grades, beside the grader's own words.
            where: Its place.
        """
        kind = str(given.get("type", ""))
        found = given.get("config")
        config = dict(found) if isinstance(found, dict) else {}
        try:
            if "turn" in given:
                raise NotCarried("it looks at one turn of several")
            if kind == "prompt":
                return GraderRead(kind=kind, judge=self._judge(config, rubric, where))
            return GraderRead(kind=kind, check=_check(kind, config))
        except NotCarried as error:
            return GraderRead(kind=kind, check=self._leave_to_be_written(given, where, str(error)))

    def _judge(self, config: dict[str, Any], rubric: Sequence[str], where: str) -> dict[str, Any]:
        own = config.get("prompt")
        parts = [own.strip()] if isinstance(own, str) and own.strip() else []
        parts += [f"- {one}" for one in rubric]
        if not parts:
            raise NotCarried("it has neither a prompt nor a rubric")
        if config.get("scoring") not in (None, "binary") or "threshold" in config:
            self.notes.leave_out(
                "the scale of a `prompt` grader: a judge passes or does not", where
            )
        self.notes.add(
            "A `prompt` grader becomes a judge, in the words of trialwise. Until it is calibrated "
            "it advises and decides nothing: see `trialwise judge draw`",
            where,
        )
        model = config.get("model")
        model = model if isinstance(model, str) and model else self.judge_model
        endpoint = find_model_endpoint(model) or ENDPOINTS["openai"]
        return {"rubric": "\n".join(parts), "jurors": [endpoint.describe_chat(model)]}

    def _leave_to_be_written(
        self, given: Mapping[str, Any], where: str, reason: str
    ) -> dict[str, Any]:
        kind = str(given.get("type", "grader"))
        source = json.dumps(given, ensure_ascii=False, indent=2, default=str)
        if source not in self._stubs:
            self._stubs[source] = self.functions.add_stub(
                kind,
                "reply",
                "Return whether the reply passes; `reply.details` has what the service tells.",
                f"{where}:\n{source}",
            )
        self.notes.leave_out(
            f"`{kind[:60]}`: {reason}. Write its function in {self.functions.name}.py; until then "
            "the run stops with an error",
            where,
        )
        return {"python": self._stubs[source]}


def _check(kind: str, config: dict[str, Any]) -> dict[str, Any]:
    if kind == "completed":
        return {"length": {"minimum": 1}}
    if kind in ("output-contains", "output-not-contains"):
        text = config.get("substring")
        if not isinstance(text, str) or not text:
            raise NotCarried("its `substring` is not a text")
        return {"contains" if kind == "output-contains" else "not_contains": text}
    if kind in ("output-matches", "output-not-matches"):
        is_inverse = (kind == "output-not-matches") != (config.get("negate") is True)
        return _match(config.get("pattern"), is_inverse=is_inverse)
    limits = {"wall-time": "max_latency", "token-budget": "max_tokens", "turn-count": "max_turns"}
    if kind in limits and set(config) == {"max"}:
        return {limits[kind]: _read_limit(kind, config["max"])}
    if kind == "tool-call-count" and config and set(config) <= {"min", "max"}:
        names = {"min": "minimum", "max": "maximum"}
        given = {names[key]: value for key, value in config.items() if type(value) is int}
        if len(given) == len(config):
            return {"tool_call_count": given}
    if kind == "tool-calls":
        return _read_tool_calls(config)
    raise NotCarried("no check here asks the same")


def _match(pattern: Any, *, is_inverse: bool) -> dict[str, Any]:
    if not isinstance(pattern, str) or not pattern:
        raise NotCarried("its `pattern` is not a text")
    flags = _FLAGS.match(pattern)
    source = pattern[flags.end() :] if flags else pattern
    found = {"matches": translate_pattern(source, flags[1] if flags else "", 0)}
    return {"not": found} if is_inverse else found


def _read_limit(kind: str, value: Any) -> Any:
    if kind == "wall-time":
        if not isinstance(value, str) or not _DURATION.fullmatch(value.strip()):
            raise NotCarried("its limit is not a time such as 30s")
        return value.strip()
    if type(value) is not int or value < 0:
        raise NotCarried("its limit is not a whole number")
    return value


def _read_tool_calls(config: dict[str, Any]) -> dict[str, Any]:
    """Read tools that have to be called, or must not be, by their whole names."""
    if not config or not set(config) <= {"required", "disallowed"}:
        raise NotCarried("no check here asks the same")
    parts: list[dict[str, Any]] = []
    for key, name in (("required", "tool_called"), ("disallowed", "tool_not_called")):
        given = config.get(key, [])
        if not isinstance(given, list):
            raise NotCarried(f"`{key}` is not a list of tools")
        for one in given:
            tool = one if isinstance(one, str) else one.get("name") if isinstance(one, dict) else ""
            if isinstance(one, dict) and set(one) != {"name"}:
                raise NotCarried("it looks at the arguments of a call")
            match = re.fullmatch(r"\^([\w.-]+)\$", str(tool))
            if match is None:
                raise NotCarried("a tool is named by a pattern that may match a part of its name")
            parts.append({name: match[1]})
    if not parts:
        raise NotCarried("it names no tool")
    return parts[0] if len(parts) == 1 else {"all_of": parts}
