"""One assertion of promptfoo as a check, a judge, or a function that is left to be written."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trialwise.contrib.importers.cerberus.assertion_idioms import read_assertion
from trialwise.contrib.importers.cerberus.assertion_patterns import translate_pattern
from trialwise.contrib.importers.cerberus.assertion_syntax import NotCarried
from trialwise.contrib.importers.import_notes import Notes
from trialwise.contrib.importers.named_files import NamedFile
from trialwise.contrib.importers.promptfoo.promptfoo_prompts import (
    TemplateNotCarried,
    fill_template,
    show_value,
)
from trialwise.contrib.importers.unwritten_functions import FunctionModule
from trialwise.contrib.importers.yaml_mappings import is_number, read_yaml_text
from trialwise.regular_files import FileUnreadable
from trialwise.suite.suite_problems import Problems
from trialwise.suite.yaml_reading import plain

__all__ = ["Assertion", "Reader", "assertion_from_text"]

_SIMILAR = 0.75
_DRAFTS = ("http://json-schema.org/draft-07/schema", "http://json-schema.org/draft-06/schema")
#: The types that a cell of a table may name; every other text is what the output must equal.
_CELL_TYPES = (
    *("answer-relevance", "bleu", "classifier", "contains-all", "contains-any", "contains-json"),
    *("contains-sql", "contains-xml", "contains-html", "contains", "context-faithfulness"),
    *("context-recall", "context-relevance", "conversation-relevance", "cost", "equals"),
    *("factuality", "finish-reason", "g-eval", "gleu", "guardrails", "icontains-all"),
    *("icontains-any", "icontains", "is-html", "is-json", "is-refusal", "is-sql"),
    *("is-valid-function-call", "is-valid-openai-function-call", "is-valid-openai-tools-call"),
    *("is-xml", "latency", "levenshtein", "meteor", "model-graded-closedqa"),
    *("model-graded-factuality", "moderation", "perplexity-score", "perplexity", "pi", "regex"),
    *("rouge-n", "ruby", "search-rubric", "similar", "starts-with", "webhook", "word-count"),
)
_CELL = re.compile(
    rf"(not-)?({'|'.join(_CELL_TYPES)})(?:\((\d+(?:\.\d+)?)\))?(?::(.*))?", re.DOTALL
)
_CELL_PREFIXES = {
    "javascript:": "javascript",
    "fn:": "javascript",
    "eval:": "javascript",
    "python:": "python",
    "grade:": "llm-rubric",
    "llm-rubric:": "llm-rubric",
}
#: Texts and patterns of JavaScript; a slash after a value divides, and is not carried over anyway.
_LITERAL = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`|/(?:[^/\\\n]|\\.)+/)""")
_FIELD = re.compile(r'\s*(?:"((?:[^"]|"")*)"|([^",][^,]*))\s*(?:,|$)')


@dataclass(frozen=True, slots=True, kw_only=True)
class Assertion:
    """An assertion as a suite says it: a check, or a rubric for a judge."""

    check: dict[str, Any] | None = None
    judge: dict[str, Any] | None = None
    weight: float = 1.0
    kind: str = ""
    comparison: tuple[str, str] | None = None
    """Whether it only compares with a text that may be the input's own: how, and the text."""


@dataclass(slots=True)
class Reader:
    """Reads the assertions of a file."""

    folder: Path
    notes: Notes
    functions: FunctionModule
    find_juror: Callable[[Any, str], dict[str, Any]]
    """Returns the service that grades by a rubric, of what the assertion says of it."""
    _stubs: dict[str, str] = field(default_factory=dict)

    def read(
        self, given: Mapping[str, Any], variables: Mapping[str, Any], where: str, *, changed: bool
    ) -> Assertion:
        """Read one assertion about the outputs for some variables.

        Args:
            given: The assertion.
            variables: What it may refer to.
            where: Its place.
            changed: Whether promptfoo transforms the output before it is looked at.
        """
        kind = str(given.get("type", ""))
        weight = given.get("weight", 1)
        weight = float(weight) if is_number(weight) else 1.0
        is_inverse = kind.startswith("not-")
        base = kind.removeprefix("not-")
        try:
            if changed or given.get("transform"):
                raise NotCarried("it looks at an output that a function transforms")
            value = self._render(given.get("value"), variables)
            if base in ("llm-rubric", "model-graded-closedqa") and not is_inverse:
                judge = self._judge(given, value, where)
                return Assertion(judge=judge, weight=weight, kind=kind)
            check = self._check(base, value, given, where, is_inverse=is_inverse)
        except (NotCarried, TemplateNotCarried) as error:
            return Assertion(
                check=self._leave_to_be_written(kind, given, where, str(error)),
                weight=weight,
                kind=kind,
            )
        comparison = None
        if base in ("equals", "contains", "icontains") and not is_inverse and _is_text(value):
            comparison = (base, show_value(value))
        return Assertion(check=check, weight=weight, kind=kind, comparison=comparison)

    def _check(
        self, base: str, value: Any, given: Mapping[str, Any], where: str, *, is_inverse: bool
    ) -> dict[str, Any]:
        checks = _TEXT_CHECKS.get(base)
        if checks is not None:
            return checks(value, is_inverse)
        if base == "is-json":
            return self._json(value, is_inverse=is_inverse)
        if base == "contains-json" and not is_inverse:
            return self._embedded_json(value, where)
        if base == "javascript" and "threshold" not in given:
            if is_inverse and "JSON" in str(value):
                # What raises an error passes neither an assertion nor its opposite.
                raise NotCarried("its opposite also fails where the output is not as expected")
            return _invert(self._javascript(value, where), is_inverse)
        if base in ("latency", "cost"):
            return _invert(self._limit(base, given, where), is_inverse)
        if base == "similar":
            self.notes.add(
                "`similar` compares by another model than promptfoo: look at its values again, and "
                "choose the `minimum` by them",
                where,
            )
            limit = given.get("threshold", _SIMILAR)
            texts = [show_value(one) for one in value] if isinstance(value, list) else value
            if not texts or not is_number(limit) or isinstance(texts, dict):
                raise NotCarried("it needs a text and a threshold")
            minimum = float(limit)
            return _invert({"similar": {"text": texts, "minimum": minimum}}, is_inverse)
        raise NotCarried("no check here asks the same")

    def _javascript(self, value: Any, where: str) -> dict[str, Any]:
        """Read an expression of comparisons about the output, such as `output.length < 280`."""
        if not isinstance(value, str):
            raise NotCarried("its value is not an expression")
        read = read_assertion(_rename_output(value.strip().rstrip(";")), {})
        for note in read.notes:
            self.notes.add(f"`javascript`: {note}", where)
        self.notes.add(
            "A `javascript` expression is carried over for values of the types it expects; where "
            "JavaScript would convert a value, the trial fails",
            where,
        )
        checks = read.postconditions
        return checks[0] if len(checks) == 1 else {"all_of": checks}

    def _json(self, value: Any, *, is_inverse: bool) -> dict[str, Any]:
        schema = self._schema(value)
        if schema is None:
            return _invert({"parses": "json"}, is_inverse)
        if is_inverse:
            return {"any_of": [{"not": {"parses": "json"}}, {"not": {"json_schema": schema}}]}
        return {"json_schema": schema}

    def _embedded_json(self, value: Any, where: str) -> dict[str, Any]:
        schema = self._schema(value)
        self.notes.add(
            "`contains-json` finds objects in strict JSON only; promptfoo also takes what is "
            "nearly JSON, such as with comments or without quotes",
            where,
        )
        written = "" if schema is None else repr(schema)
        module = "trialwise.contrib.importers.promptfoo.embedded_json"
        function = self.functions.add_value(
            "contains_json", f"contains_json({written})", f"from {module} import contains_json"
        )
        return {"python": function}

    def _schema(self, value: Any) -> dict[str, Any] | None:
        """Read a JSON Schema: a mapping, or YAML in a text."""
        from trialwise.checks.whole_reply import check_schema
        from trialwise.errors import InvalidArgument

        if value in (None, ""):
            return None
        if isinstance(value, str):
            problems = Problems()
            root = read_yaml_text(self.folder / "schema", value, problems)
            value = None if root is None or len(problems) else plain(root)
        if not isinstance(value, dict):
            raise NotCarried("its schema is not an object")
        schema = dict(value)
        if str(schema.get("$schema", "")).rstrip("#") in _DRAFTS:
            del schema["$schema"]
        try:
            check_schema("schema", schema)
        except InvalidArgument as error:
            raise NotCarried(f"its schema cannot be used: it must {error.allowed}") from None
        return schema

    def _limit(self, base: str, given: Mapping[str, Any], where: str) -> dict[str, Any]:
        limit = given.get("threshold")
        if not isinstance(limit, int | float) or not math.isfinite(limit) or not limit > 0:
            raise NotCarried("it needs a `threshold` above 0")
        if base == "latency":
            return {"max_latency": f"{_plain_number(limit)}ms"}
        self.notes.add(
            "`cost` needs the price of tokens, which promptfoo knows by the model: write `prices` "
            "into the `chat` service",
            where,
        )
        return {"max_cost": float(limit)}

    def _judge(self, given: Mapping[str, Any], value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, str) or not value.strip():
            raise NotCarried("its rubric is not a text")
        if "threshold" in given:
            self.notes.leave_out(
                "the `threshold` of a rubric: a judge passes a reply or does not", where
            )
        self.notes.add(
            "A rubric becomes a judge, in the words of trialwise. Until it is calibrated it "
            "advises and decides nothing: see `trialwise judge draw`",
            where,
        )
        juror = self.find_juror(given.get("provider"), where)
        return {"rubric": value.strip(), "jurors": [juror], "shows_input": False}

    def _render(self, value: Any, variables: Mapping[str, Any]) -> Any:
        """Fill the variables of a value, and read the file that it names."""
        if isinstance(value, str) and value.startswith("file://"):
            name = value.removeprefix("file://")
            if re.search(r"\.(?:[cm]?[jt]s|py|rb)(?::\w+)?$", name):
                raise NotCarried("a function computes its value")
            try:
                text = NamedFile(self.folder, name).read()
            except FileUnreadable as error:
                raise NotCarried(f"the file {name} {error.reason}") from None
            return text if not name.endswith((".json", ".yaml", ".yml")) else _parse(text, name)
        if isinstance(value, str):
            return fill_template(value, variables)
        if isinstance(value, list):
            return [fill_template(one, variables) if isinstance(one, str) else one for one in value]
        return value

    def _leave_to_be_written(
        self, kind: str, given: Mapping[str, Any], where: str, reason: str
    ) -> dict[str, Any]:
        """Name a function for an assertion that no check can say; the same one for the same."""
        shown = {key: one for key, one in given.items() if key not in ("weight", "metric")}
        source = json.dumps(shown, ensure_ascii=False, indent=2, default=str)
        if source not in self._stubs:
            self._stubs[source] = self.functions.add_stub(
                kind or "assertion",
                "text, input",
                "Return whether the reply passes; `input` is what the service got.",
                f"{where}:\n{source}",
            )
        self.notes.leave_out(
            f"`{kind[:60]}`: {reason}. Write its function in {self.functions.name}.py; until then "
            "the run stops with an error",
            where,
        )
        return {"python": self._stubs[source]}


def assertion_from_text(text: str) -> dict[str, Any]:
    """Read an assertion as a cell of a table writes it, such as `contains:555`.

    >>> assertion_from_text("similar(0.8):hello"), assertion_from_text("hello")
    ({'type': 'similar', 'value': 'hello', 'threshold': 0.8}, {'type': 'equals', 'value': 'hello'})
    """
    for prefix, kind in _CELL_PREFIXES.items():
        if text.startswith(prefix):
            return {"type": kind, "value": text.removeprefix(prefix).strip()}
    match = _CELL.fullmatch(text)
    if match is None:
        return {"type": "equals", "value": text}
    inverse, kind, threshold, value = match.groups()
    found: dict[str, Any] = {"type": f"{inverse or ''}{kind}"}
    if value is not None:
        found["value"] = value if kind.endswith(("-json", "-all", "-any")) else value.strip()
    if threshold is not None:
        found["threshold"] = float(threshold)
    elif kind in ("latency", "cost", "similar"):
        found["threshold"] = _SIMILAR
    return found


def _rename_output(source: str) -> str:
    """Return an expression about an output that is text, as cerberus would write it.

    >>> _rename_output("JSON.parse(output).n > 1 && output.includes('output')")
    "output.parsed.n > 1 && output.meta.raw.includes('output')"
    """
    parts = _LITERAL.split(source)
    # Every second part is a text or a pattern, whose words are no names.
    for place in range(0, len(parts), 2):
        if re.search(r"\boutput\s*\??\.\s*(?:meta|parsed)\b", parts[place]):
            raise NotCarried("it looks at an output that is not a text")
        renamed = re.sub(r"JSON\.parse\(\s*output\s*\)", "\0", parts[place])
        renamed = re.sub(r"(?<![\w.$])output(?![\w$])", "output.meta.raw", renamed)
        parts[place] = renamed.replace("\0", "output.parsed")
    return "".join(parts)


def _parse(text: str, name: str) -> Any:
    problems = Problems()
    root = read_yaml_text(Path(name), text, problems)
    if root is None or len(problems):
        raise NotCarried(f"the file {name} is not YAML")
    return plain(root)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) or is_number(value)


def _plain_number(value: Any) -> str:
    return str(int(value)) if float(value).is_integer() else str(value)


def _invert(check: dict[str, Any], is_inverse: bool) -> dict[str, Any]:
    return {"not": check} if is_inverse else check


def _equals(value: Any, is_inverse: bool) -> dict[str, Any]:
    if not isinstance(value, dict | list):
        return _invert({"equals": show_value(value)}, is_inverse)
    check = {"equals": {"expected": value} if isinstance(value, dict) else value}
    # What is not JSON is not equal either.
    return {"any_of": [{"not": {"parses": "json"}}, {"not": check}]} if is_inverse else check


def _contains(value: Any, is_inverse: bool, *, ignore_case: bool = False) -> dict[str, Any]:
    if not _is_text(value) or value == "":
        raise NotCarried("its value is neither a text nor a number")
    return _find_texts([show_value(value)], is_inverse, ignore_case=ignore_case)


def _contains_any(value: Any, is_inverse: bool, *, ignore_case: bool = False) -> dict[str, Any]:
    texts = _several(value)
    if is_inverse:
        return _find_texts(texts, True, ignore_case=ignore_case)
    parts = [_find_texts([one], False, ignore_case=ignore_case) for one in texts]
    return parts[0] if len(parts) == 1 else {"any_of": parts}


def _contains_all(value: Any, is_inverse: bool, *, ignore_case: bool = False) -> dict[str, Any]:
    return _invert(_find_texts(_several(value), False, ignore_case=ignore_case), is_inverse)


def _find_texts(texts: list[str], is_inverse: bool, *, ignore_case: bool) -> dict[str, Any]:
    name = "not_contains" if is_inverse else "contains"
    given: Any = texts[0] if len(texts) == 1 else texts
    return {name: {"text": given, "ignore_case": True} if ignore_case else given}


def _several(value: Any) -> list[str]:
    """Read a list of texts, or the fields of a text that are separated by commas."""
    if isinstance(value, str):
        fields = [match[1] or match[2] for match in _FIELD.finditer(value.strip())]
        value = [one.replace('""', '"').strip() for one in fields if one]
    if not isinstance(value, list) or not value or not all(map(_is_text, value)):
        raise NotCarried("its value is not a list of texts")
    texts = [show_value(one) for one in value]
    if not all(texts):
        raise NotCarried("it looks for an empty text")
    return texts


def _starts_with(value: Any, is_inverse: bool) -> dict[str, Any]:
    if not isinstance(value, str) or not value:
        raise NotCarried("its value is not a text")
    return _invert({"starts_with": value}, is_inverse)


def _regex(value: Any, is_inverse: bool) -> dict[str, Any]:
    if not isinstance(value, str) or not value:
        raise NotCarried("its pattern is not a text")
    return _invert({"matches": translate_pattern(value, "", 0)}, is_inverse)


_TEXT_CHECKS: dict[str, Callable[[Any, bool], dict[str, Any]]] = {
    "equals": _equals,
    "contains": _contains,
    "icontains": lambda value, inverse: _contains(value, inverse, ignore_case=True),
    "contains-any": _contains_any,
    "icontains-any": lambda value, inverse: _contains_any(value, inverse, ignore_case=True),
    "contains-all": _contains_all,
    "icontains-all": lambda value, inverse: _contains_all(value, inverse, ignore_case=True),
    "starts-with": _starts_with,
    "regex": _regex,
}
