"""Convert promptfooconfig.yaml into a suite: each prompt with each provider is a contract.

Tests with the same assertions are a sampling, and their assertions one criterion: it FAILs with the
first test that fails, as promptfoo does, and PASSes once every test has passed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from trialwise.contrib.importers.import_refusal import check
from trialwise.contrib.importers.imported_suite import Imported
from trialwise.contrib.importers.promptfoo.promptfoo_assertions import Reader
from trialwise.contrib.importers.promptfoo.promptfoo_cases import Case, read_cases
from trialwise.contrib.importers.promptfoo.promptfoo_groups import Group, Groups
from trialwise.contrib.importers.promptfoo.promptfoo_prompts import (
    Prompt,
    fill_template,
    read_prompts,
    show_value,
)
from trialwise.contrib.importers.promptfoo.promptfoo_providers import Form, Provider, Providers
from trialwise.contrib.importers.suite_converter import SuiteConverter
from trialwise.contrib.importers.suite_importer import ImportRequest, SuiteImporter
from trialwise.declarations.written import Node
from trialwise.suite.yaml_reading import plain

__all__ = ["IMPORTER", "import_promptfoo"]

#: Inputs that stand in the suite itself; more are written into a file of their own.
_MOST_INLINE = 50
_READ = (
    *("description", "prompts", "providers", "targets", "tests", "defaultTest"),
    *("assertionTemplates", "evaluateOptions", "commandLineOptions", "$schema"),
)
#: What says nothing about results.
_SILENT = (
    *("outputPath", "sharing", "writeLatestResults", "tags", "metadata", "env", "nunjucksFilters"),
)
_RULE = (
    "As in promptfoo, every test has to pass every time it is asked: the first failure is a FAIL. "
    "To require a rate instead, give `--at-least` to `import`, or replace `never_fails` by it"
)
_ERRORS = (
    "A call that never reached the provider is asked again and is not a failure; promptfoo counts "
    "it as an error"
)


def import_promptfoo(path: Path, *, at_least: float | None = None) -> Imported:
    """Convert a file of promptfoo, deciding as promptfoo does: each test has to pass.

    Args:
        path: Usually promptfooconfig.yaml; files are read from its folder.
        at_least: The rate that each criterion requires instead.

    Raises:
        ImportRefused: The file is wrong, or has no test that can be carried over.
    """
    return _Converter(path, at_least).import_file()


class _Converter(SuiteConverter):
    """One file of promptfoo being read."""

    tool = "promptfoo"

    def convert(self, root: Node) -> dict[str, Any] | None:
        """Convert the file, as far as it could be read."""
        if not root.is_mapping:
            self.problems.add(root, "a promptfoo file must be a mapping")
            return None
        self._note_rest(root)
        folder = self.path.parent
        providers = Providers(folder, self.notes, self.functions, self.problems)
        key = "providers" if "providers" in root.entries else "targets"
        if key not in root.entries:
            self.problems.add(root, "a promptfoo file needs `providers`")
            return None
        found = providers.read(root.entries[key][1])
        prompts_node = root.entries["prompts"][1] if "prompts" in root.entries else None
        prompts = read_prompts(prompts_node, folder, self.notes, self.problems)
        cases = read_cases(root, folder, self.notes, self.problems)
        check(self.problems)
        reader = Reader(folder, self.notes, self.functions, providers.find_juror)
        groups = Groups(self.notes, reader).make(cases)
        if not groups or not prompts or not found:
            self._refuse_nothing(root, found, prompts)
            return None
        return self._assemble(root, found, prompts, groups)

    def _note_rest(self, root: Node) -> None:
        for name, (key, _) in root.entries.items():
            if name not in (*_READ, *_SILENT):
                where = f"line {key.line + 1}"
                if name == "redteam":
                    self.notes.leave_out(
                        "`redteam`: let promptfoo generate the tests, and decide its results with "
                        "`trialwise score`",
                        where,
                    )
                else:
                    self.notes.leave_out(f"`{name[:60]}`", where)

    def _refuse_nothing(self, root: Node, providers: list[Provider], prompts: list[Prompt]) -> None:
        missing = (
            "provider" if not providers else "prompt" if not prompts else "test with an assertion"
        )
        advice = (
            "run promptfoo with `-o results.json` and decide on its results with `trialwise score "
            "results.json`"
        )
        notes = "; ".join(self.notes.texts[:5])
        self.problems.add(
            root, f"no {missing} can be carried over{': ' if notes else ''}{notes}; {advice}"
        )

    def _assemble(
        self, root: Node, providers: list[Provider], prompts: list[Prompt], groups: list[Group]
    ) -> dict[str, Any]:
        self.notes.add(_ERRORS)
        if self.at_least is None:
            self.notes.add(_RULE)
        title = plain(root.entries["description"][1]) if "description" in root.entries else None
        name = " ".join(str(title or self.path.stem).split())[:80] or "promptfoo"
        repeat = self._find_repeat(root)
        columns = [(one, two) for one in providers for two in prompts if one.is_asked(two)]
        if not columns:
            self.problems.add(root, "no provider names a prompt that can be carried over")
            return {}
        contracts = [
            self._contract(provider, prompt, groups, repeat) for provider, prompt in columns
        ]
        names = _name_columns(columns, name)
        named = [{"name": one, **two} for one, two in zip(names, contracts, strict=True)]
        if len(named) == 1:
            return named[0]
        shared = {
            key: value
            for key, value in named[0].items()
            if key != "name" and all(one.get(key) == value for one in named)
        }
        own = [{key: v for key, v in one.items() if key not in shared} for one in named]
        return {**shared, "contracts": own}

    def _find_repeat(self, root: Node) -> int:
        for key in ("evaluateOptions", "commandLineOptions"):
            options = plain(root.entries[key][1]) if key in root.entries else {}
            repeat = options.get("repeat") if isinstance(options, dict) else None
            if isinstance(repeat, int) and not isinstance(repeat, bool) and 1 < repeat <= 10_000:
                return repeat
        return 1

    def _contract(
        self, provider: Provider, prompt: Prompt, groups: list[Group], repeat: int
    ) -> dict[str, Any]:
        """Return a prompt asked of a provider, as a contract without its name."""
        samplings: dict[str, Any] = {}
        criteria: list[dict[str, Any]] = []
        taken: set[str] = set()
        for number, group in enumerate(groups, start=1):
            sampling = f"tests-{number}"
            inputs = [
                self._input(case, provider, prompt, group.expected[place : place + 1])
                for place, case in enumerate(group.cases)
            ]
            samplings[sampling] = self._write_inputs(inputs)
            for criterion in self._criteria(group, len(inputs) * repeat, taken):
                several = {"sampling": sampling} if len(groups) > 1 else {}
                criteria.append({**criterion, **several})
        given: dict[str, Any] = {"service": provider.describe_service(prompt)}
        if len(groups) == 1:
            given["inputs"] = next(iter(samplings.values()))
        else:
            given["samplings"] = {
                name: inputs if isinstance(inputs, list) else {"inputs": inputs}
                for name, inputs in samplings.items()
            }
        return {**given, "keep_going": True, "curtail": False, "criteria": criteria}

    def _criteria(self, group: Group, trials: int, taken: set[str]) -> Iterator[dict[str, Any]]:
        rule: dict[str, Any] = {"never_fails": True, "trials": trials}
        if self.at_least is not None:
            rule = {"at_least": self.at_least}
        title = group.title
        if group.checks:
            asked: dict[str, Any] = {"postconditions": list(group.checks)}
            if len(group.checks) == 1:
                asked = dict(group.checks[0])
            yield {"name": _unique(title, taken), **asked, **rule}
        for judge in group.judges:
            yield {"name": _unique(f"{title}: rubric", taken), "judge": judge, **rule}

    def _input(
        self, case: Case, provider: Provider, prompt: Prompt, expected: tuple[str, ...]
    ) -> Any:
        value: Any
        if provider.form is Form.VARIABLES:
            value = {**dict.fromkeys(prompt.variables, ""), **case.variables}
        elif provider.form is Form.VARIABLE:
            value = show_value(case.variables.get(provider.variable))
        else:
            value = fill_template(prompt.text, case.variables)
            if provider.form is Form.NOTHING_KNOWN:
                value = {"prompt": value, "vars": case.variables}
        if expected:
            return {"value": value, "expected": expected[0]}
        return value if isinstance(value, str) else {"value": value}

    def _write_inputs(self, inputs: list[Any]) -> Any:
        """Return inputs as a list, or many of them as a file."""
        if len(inputs) <= _MOST_INLINE:
            return inputs
        lines = [
            json.dumps(one if isinstance(one, dict) else {"value": one}, ensure_ascii=False)
            for one in inputs
        ]
        text = "\n".join(lines) + "\n"
        for name, content in self.files.items():
            if content == text:
                return {"jsonl": name}
        name = f"promptfoo-inputs-{len(self.files) + 1}.jsonl"
        self.files[name] = text
        return {"jsonl": name}


def _name_columns(columns: Sequence[tuple[Provider, Prompt]], name: str) -> list[str]:
    """Name contracts after what differs between them."""
    if len(columns) == 1:
        return [name]
    providers = {provider.label for provider, _ in columns}
    prompts = {prompt.label for _, prompt in columns}
    taken: set[str] = set()
    names = []
    for provider, prompt in columns:
        parts = [provider.label] if len(providers) > 1 else []
        parts += [prompt.label] if len(prompts) > 1 else []
        names.append(_unique(" · ".join(parts) or name, taken))
    return names


def _unique(name: str, taken: set[str]) -> str:
    """Return a name that nothing else has, as names of a suite have to be."""
    plain_name = re.sub(r"\s+", " ", name).strip()[:80] or "tests"
    found, number = plain_name, 2
    while found.casefold() in taken:
        found, number = f"{plain_name} {number}", number + 1
    taken.add(found.casefold())
    return found


def _find_role(root: Node) -> str | None:
    keys = set(root.entries)
    has_providers = bool(keys & {"providers", "targets"})
    has_rest = bool(keys & {"prompts", "tests", "defaultTest", "scenarios", "redteam"})
    return "suite" if has_providers and has_rest and "format" not in keys else None


def _import_files(request: ImportRequest) -> Imported:
    return import_promptfoo(request.files["suite"], at_least=request.at_least)


IMPORTER = SuiteImporter(
    name="promptfoo",
    signs="has `providers` with `prompts` or `tests`",
    find_role=_find_role,
    import_files=_import_files,
)
