"""Tests of promptfoo: their variables, their assertions, and what `defaultTest` adds to them.

Tests stand in the file, in files of YAML or JSON, in lines of JSON, or in tables. A variable that
is a list makes a test of each of its items.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from trialwise.contrib.importers.import_notes import Notes
from trialwise.contrib.importers.named_files import NamedFile, find_named_files
from trialwise.contrib.importers.promptfoo.promptfoo_assertions import assertion_from_text
from trialwise.contrib.importers.yaml_mappings import read_yaml_text
from trialwise.declarations.written import Node
from trialwise.regular_files import FileUnreadable
from trialwise.suite.suite_problems import Problems
from trialwise.suite.yaml_reading import plain

__all__ = ["Case", "read_cases"]

#: Combinations of variables that are lists.
_MOST_COMBINATIONS = 10_000
_KNOWN = ("vars", "assert", "description", "options", "threshold", "metadata")
_CODE = (".js", ".mjs", ".cjs", ".ts", ".mts", ".py")
#: What `options` may change about the output or about the prompt.
_TRANSFORMS = ("transform", "postprocess")
_FRAMES = ("prefix", "suffix")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One test: a set of variables and what is asserted of the output."""

    description: str
    variables: dict[str, Any]
    assertions: tuple[tuple[Mapping[str, Any], str], ...]
    """Each with its place."""
    options: Mapping[str, Any]
    threshold: float | None
    where: str

    @property
    def is_changed(self) -> bool:
        """Whether a function transforms the output before it is looked at."""
        return any(self.options.get(one) for one in _TRANSFORMS)


def read_cases(root: Node, folder: Path, notes: Notes, problems: Problems) -> list[Case]:
    """Read the tests of a file, each with what all tests share."""
    entries = root.entries
    reader = _Reader(folder, notes, problems, entries.get("assertionTemplates", (None, None))[1])
    shared = _Written({}, "")
    if "defaultTest" in entries:
        node = entries["defaultTest"][1]
        shared = reader.read_shared(node)
    tests = entries["tests"][1] if "tests" in entries else None
    written = [] if tests is None else list(reader.read_several(tests))
    return [case for one in written for case in reader.expand(one, shared)]


@dataclass(frozen=True, slots=True)
class _Written:
    """A test as it is written, and where."""

    content: Mapping[str, Any]
    where: str
    lines: tuple[int, ...] = ()
    """Of its assertions, where they stand in a file of YAML."""


@dataclass(frozen=True, slots=True)
class _Reader:
    folder: Path
    notes: Notes
    problems: Problems
    templates: Node | None

    def read_shared(self, node: Node) -> _Written:
        """Read `defaultTest`, which may stand in a file of its own."""
        if node.is_scalar and isinstance(node.value, str):
            found = list(self._read_file(node, node.value.removeprefix("file://"), "defaultTest"))
            return found[0] if found else _Written({}, "")
        return self._read_mapping(node, "") or _Written({}, "")

    def read_several(self, node: Node) -> Iterator[_Written]:
        """Read a list of tests, a test, or the name of a file of tests."""
        if node.is_list:
            for item in node.items():
                yield from self.read_several(item)
        elif node.is_mapping:
            found = self._read_mapping(node, "")
            if found is not None:
                yield found
        elif isinstance(node.value, str) and node.value.strip():
            yield from self._read_files(node, node.value.strip().removeprefix("file://"))
        else:
            self.problems.add(node, "`tests` must be a list of tests, or name files of them")

    def expand(self, one: _Written, shared: _Written) -> Iterator[Case]:
        """Yield the tests that one stands for: one for each combination of its variables."""
        content = one.content
        for key in content:
            if key not in _KNOWN:
                self.notes.leave_out(f"`{key[:60]}` of a test", one.where)
        options = {**_mapping(shared.content.get("options")), **_mapping(content.get("options"))}
        if any(options.get(name) for name in _FRAMES):
            self.notes.leave_out("a test with a `prefix` or `suffix` of the prompt", one.where)
            return
        own = list(self._assertions(content.get("assert"), one.where, one.lines))
        if not options.get("disableDefaultAsserts"):
            own = [
                *self._assertions(shared.content.get("assert"), shared.where, shared.lines),
                *own,
            ]
        threshold = content.get("threshold", shared.content.get("threshold"))
        variables = {**_mapping(shared.content.get("vars")), **_mapping(content.get("vars"))}
        read = {name: self._variable(value, one.where) for name, value in variables.items()}
        if any(value is _NOTHING for value in read.values()):
            return
        for chosen in self._combine(read, one.where):
            yield Case(
                description=str(content.get("description") or ""),
                variables=chosen,
                assertions=tuple(own),
                options=options,
                threshold=_number(threshold),
                where=one.where,
            )

    def _combine(self, variables: dict[str, Any], where: str) -> Iterator[dict[str, Any]]:
        lists = {name: value for name, value in variables.items() if isinstance(value, list)}
        count = 1
        for value in lists.values():
            count *= len(value)
        if count > _MOST_COMBINATIONS:
            self.notes.leave_out(f"a test of {count:,} combinations of variables", where)
            return
        for chosen in product(*lists.values()):
            yield {**variables, **dict(zip(lists, chosen, strict=True))}

    def _variable(self, value: Any, where: str) -> Any:
        """Read a variable, which may be the content of a file."""
        if not isinstance(value, str) or not value.startswith("file://"):
            return value
        name = value.removeprefix("file://")
        if name.endswith(_CODE):
            self.notes.leave_out(f"a test whose variable is computed by {name}", where)
            return _NOTHING
        try:
            text = NamedFile(self.folder, name).read()
        except FileUnreadable as error:
            self.notes.leave_out(
                f"a test whose variable is the file {name}: it {error.reason}", where
            )
            return _NOTHING
        return text.strip() if not name.endswith((".yaml", ".yml", ".json")) else text

    def _read_mapping(self, node: Node, file: str) -> _Written | None:
        where = f"{file}line {node.line + 1}"
        content = plain(node)
        if not isinstance(content, dict):
            self.problems.add(node, "a test must be a mapping with `vars` and `assert`")
            return None
        lines: tuple[int, ...] = ()
        if "assert" in node.entries and node.entries["assert"][1].is_list:
            lines = tuple(one.line + 1 for one in node.entries["assert"][1].items())
        return _Written(content, where, lines)

    def _assertions(
        self, given: Any, where: str, lines: tuple[int, ...]
    ) -> Iterator[tuple[Mapping[str, Any], str]]:
        for place, one in enumerate(given if isinstance(given, list) else []):
            found = self._resolve(one)
            at = where
            if place < len(lines):
                file = where.partition("line ")[0]
                at = f"{file}line {lines[place]}"
            if isinstance(found, dict) and isinstance(found.get("type"), str):
                yield found, at
            else:
                self.notes.leave_out("an assertion without a `type`", at)

    def _resolve(self, given: Any) -> Any:
        """Follow `$ref: "#/assertionTemplates/name"`; keys beside it win over the template's."""
        reference = given.get("$ref") if isinstance(given, dict) else None
        if not isinstance(reference, str):
            return given
        name = reference.removeprefix("#/assertionTemplates/")
        if self.templates is None or not self.templates.is_mapping:
            return None
        found = self.templates.entries.get(name)
        if found is None:
            return None
        return {**_mapping(plain(found[1])), **{k: v for k, v in given.items() if k != "$ref"}}

    def _read_files(self, node: Node, name: str) -> Iterator[_Written]:
        if name.startswith(("http://", "https://", "huggingface://", "az://", "s3://", "gs://")):
            self.notes.leave_out(
                f"the tests at {name}: save them as a file", f"line {node.line + 1}"
            )
            return
        bare = name.rsplit(":", 1)[0] if name.partition(".py:")[1] else name
        if bare.endswith(_CODE):
            self.notes.leave_out(f"tests that {name} makes", f"line {node.line + 1}")
            return
        try:
            names = find_named_files(self.folder, name)
        except FileUnreadable as error:
            self.problems.add(node, f"the tests {name} {error.reason}")
            return
        for one in names:
            yield from self._read_file(node, one, "tests")

    def _read_file(self, node: Node, name: str, what: str) -> Iterator[_Written]:
        file = NamedFile(self.folder, name)
        try:
            text = file.read()
        except FileUnreadable as error:
            self.problems.add(node, f"`{what}`: the file {name} {error.reason}")
            return
        if name.endswith(".csv"):
            yield from self._read_table(node, name, text)
        elif name.endswith(".jsonl"):
            yield from self._read_lines(node, name, text)
        else:
            root = read_yaml_text(file.path, text, self.problems)
            for one in [] if root is None else list(root.items()) if root.is_list else [root]:
                found = self._read_mapping(one, f"{name}, ")
                if found is not None:
                    yield found

    def _read_lines(self, node: Node, name: str, text: str) -> Iterator[_Written]:
        for number, line in enumerate(text.split("\n"), 1):
            if not line.strip():
                continue
            try:
                content = json.loads(line)
            except (ValueError, RecursionError):
                content = None
            if not isinstance(content, dict):
                self.problems.add(node, f"{name}, line {number}: an object in JSON is expected")
                return
            yield _Written(content, f"{name}, line {number}")

    def _read_table(self, node: Node, name: str, text: str) -> Iterator[_Written]:
        rows = csv.DictReader(io.StringIO(text, newline=""))
        try:
            for row in rows:
                yield _Written(
                    self._read_row(row, f"{name}, line {rows.line_num}"),
                    f"{name}, line {rows.line_num}",
                )
        except csv.Error as error:
            self.problems.add(node, f"{name}, line {rows.line_num}: {error}")

    def _read_row(self, row: Mapping[Any, Any], where: str) -> dict[str, Any]:
        """Read a row of a table: columns that begin with `__` are not variables."""
        content: dict[str, Any] = {}
        variables: dict[str, Any] = {}
        assertions: list[dict[str, Any]] = []
        options: dict[str, Any] = {}
        for column, cell in row.items():
            if column is None or cell is None:
                continue
            key, value = str(column).strip(), str(cell)
            if key.startswith("__expected"):
                if value.strip():
                    assertions.append(assertion_from_text(value.strip()))
            elif key == "__description":
                content["description"] = value
            elif key == "__threshold":
                content["threshold"] = _number(value)
            elif key in ("__prefix", "__suffix"):
                options[key.removeprefix("__")] = value
            elif key == "__metric" or key.startswith("__metadata"):
                continue
            elif key.startswith("__"):
                self.notes.leave_out(f"the column `{key[:60]}`", where.partition(",")[0])
            else:
                variables[key] = value
        return {**content, "vars": variables, "assert": assertions, "options": options}


#: Stands for a variable that cannot be read.
_NOTHING = object()


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) and not isinstance(value, bool) else None
