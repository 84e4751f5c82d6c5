"""Prompts of promptfoo, and the variables in them.

promptfoo fills prompts and assertions by Nunjucks. `{{ name }}` and `{{ name.field }}` are carried
over; filters, conditions and loops are not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trialwise.contrib.importers.import_notes import Notes
from trialwise.contrib.importers.named_files import NamedFile, find_named_files
from trialwise.contrib.importers.yaml_mappings import read_yaml_text
from trialwise.declarations.written import Node
from trialwise.regular_files import FileUnreadable
from trialwise.suite.suite_problems import Problems
from trialwise.suite.yaml_reading import plain

__all__ = ["Prompt", "TemplateNotCarried", "fill_template", "find_variables", "read_prompts"]

_SLOT = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_][\w]*(?:\.[A-Za-z_][\w]*)*")
_LOGIC = re.compile(r"\{%|\{#")
_TEXT_FILES = (".txt", ".md", ".json", ".yaml", ".yml", ".j2", ".jinja", ".prompt")
_CODE_FILES = (".js", ".mjs", ".cjs", ".ts", ".mts", ".py")
_SEPARATOR = re.compile(r"^---\s*$", re.MULTILINE)


class TemplateNotCarried(Exception):
    """A text uses Nunjucks beyond variables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A prompt, as text and as messages where it is a conversation."""

    label: str
    text: str
    messages: tuple[Mapping[str, Any], ...] = ()
    where: str = ""

    @property
    def variables(self) -> list[str]:
        """The names of the variables, in order."""
        return find_variables(self.text)


def find_variables(text: str) -> list[str]:
    """Return the names that a text has slots for, without their fields.

    Raises:
        TemplateNotCarried: The text has more than variables.

    >>> find_variables("Translate {{ text }} to {{to.language}}")
    ['text', 'to']
    """
    if _LOGIC.search(text):
        raise TemplateNotCarried("conditions, loops and comments of Nunjucks")
    for slot in _SLOT.findall(text):
        if not _NAME.fullmatch(slot):
            raise TemplateNotCarried(f"{{{{ {slot[:60]} }}}}: only names of variables")
    return list(dict.fromkeys(slot.split(".")[0] for slot in _SLOT.findall(text)))


def fill_template(text: str, variables: Mapping[str, Any]) -> str:
    """Fill a text; what is not there is nothing, as in promptfoo.

    Raises:
        TemplateNotCarried: The text has more than variables.

    >>> fill_template("{{ a }} is {{ b.c }}{{ d }}", {"a": True, "b": {"c": 5}})
    'true is 5'
    """
    find_variables(text)
    return _SLOT.sub(lambda match: _find(match[1], variables), text)


def rename_variables(text: str) -> str:
    """Return a template of promptfoo as a prompt of a `chat` service, whose input has fields.

    >>> rename_variables("Say {{hello}}")
    'Say {{ input.hello }}'
    """
    find_variables(text)
    return _SLOT.sub(lambda match: f"{{{{ input.{match[1]} }}}}", text)


def _find(slot: str, variables: Mapping[str, Any]) -> str:
    value: Any = variables
    for name in slot.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return show_value(value)


def show_value(value: Any) -> str:
    """Return a value as promptfoo writes it into a text."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value)


def read_prompts(node: Node | None, folder: Path, notes: Notes, problems: Problems) -> list[Prompt]:
    """Read the prompts of a file; without any, the variable `prompt` is the prompt."""
    if node is None:
        return [Prompt(label="prompt", text="{{prompt}}")]
    items = list(node.items()) if node.is_list else [node]
    reader = _Reader(folder, notes, problems)
    found = [prompt for item in items for prompt in reader.read(item)]
    kept = []
    for prompt in found:
        try:
            find_variables(prompt.text)
        except TemplateNotCarried as error:
            notes.leave_out(f"a prompt with {error}", prompt.where)
        else:
            kept.append(prompt)
    return kept


@dataclass(frozen=True, slots=True)
class _Reader:
    folder: Path
    notes: Notes
    problems: Problems

    def read(self, node: Node) -> Iterator[Prompt]:
        """Read one entry of `prompts`, which may stand for several prompts."""
        where = f"line {node.line + 1}"
        label = None
        text: Any = plain(node)
        if isinstance(text, dict):
            label = text.get("label")
            text = text.get("raw") or text.get("content") or text.get("id")
        if not isinstance(text, str) or not text.strip():
            self.problems.add(node, "a prompt must be a text or a mapping with `raw` or `id`")
            return
        if not text.startswith("file://") and not _looks_like_file(text, self.folder):
            yield _make_prompt(text, str(label) if label else "", where)
            return
        yield from self._read_files(node, text.removeprefix("file://"), label, where)

    def _read_files(self, node: Node, name: str, label: Any, where: str) -> Iterator[Prompt]:
        bare = name.rsplit(":", 1)[0] if re.search(r"\.\w+:\w+$", name) else name
        if bare.endswith(_CODE_FILES):
            self.notes.leave_out(f"the prompt {name}, which is a function", where)
            return
        try:
            names = find_named_files(self.folder, bare)
        except FileUnreadable as error:
            self.problems.add(node, f"the prompt {bare} {error.reason}")
            return
        for one in names:
            file = NamedFile(self.folder, one)
            try:
                text = file.read()
            except FileUnreadable as error:
                self.problems.add(node, f"the prompt {one} {error.reason}")
                continue
            parts = _SEPARATOR.split(text) if one.endswith(".txt") else [text]
            texts = [part.strip() for part in parts if part.strip()]
            if one.endswith((".yaml", ".yml")):
                texts = [_yaml_as_json(text, file.path)]
            for place, part in enumerate(texts):
                number = f": {place + 1}" if len(texts) > 1 else ""
                yield _make_prompt(part, f"{label or one}{number}", where)


def _make_prompt(text: str, label: str, where: str) -> Prompt:
    """Make a prompt; JSON that is a list of messages is a conversation."""
    return Prompt(
        label=label or " ".join(text.split())[:60],
        text=text,
        messages=tuple(_messages(text)),
        where=where,
    )


def _messages(text: str) -> Sequence[Mapping[str, Any]]:
    if not text.lstrip().startswith("["):
        return ()
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return ()
    is_conversation = isinstance(found, list) and all(
        isinstance(one, dict)
        and isinstance(one.get("role"), str)
        and isinstance(one.get("content"), str)
        for one in found
    )
    return found if is_conversation else ()


def _yaml_as_json(text: str, path: Path) -> str:
    """Return a prompt in YAML as promptfoo sends it: as JSON; other texts as they are."""
    problems = Problems()
    root = read_yaml_text(path, text, problems)
    if root is None or root.is_scalar or len(problems):
        return text
    return json.dumps(plain(root), ensure_ascii=False)


def _looks_like_file(text: str, folder: Path) -> bool:
    """Whether a prompt without `file://` names a file that is there."""
    if "\n" in text or len(text) > 200 or not text.endswith((*_TEXT_FILES, *_CODE_FILES)):
        return False
    try:
        return (folder / text).is_file()
    except (OSError, ValueError):
        return False
