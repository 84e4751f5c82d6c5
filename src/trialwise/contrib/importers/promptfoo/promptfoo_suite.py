"""Convert promptfooconfig.yaml into a suite: each prompt with each provider is a contract.

Tests with the same assertions are a sampling, and their assertions one criterion: it FAILs with the
first test that fails, as promptfoo does, and PASSes once every test has passed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trialwise.contrib.importers.import_refusal import check
from trialwise.contrib.importers.imported_suite import Imported, Place
from trialwise.contrib.importers.promptfoo.assertion_scores import (
    MOST_WEIGHED,
    combine_checks,
    find_passing_sets,
)
from trialwise.contrib.importers.promptfoo.promptfoo_assertions import Assertion, Reader
from trialwise.contrib.importers.promptfoo.promptfoo_cases import Case, read_cases
from trialwise.contrib.importers.promptfoo.promptfoo_notes import Notes
from trialwise.contrib.importers.promptfoo.promptfoo_prompts import (
    Prompt,
    fill_template,
    read_prompts,
    show_value,
)
from trialwise.contrib.importers.promptfoo.promptfoo_providers import Form, Provider, Providers
from trialwise.contrib.importers.suite_importer import ImportRequest, SuiteImporter
from trialwise.contrib.importers.unwritten_functions import FunctionModule
from trialwise.contrib.importers.yaml_mappings import is_number, read_yaml
from trialwise.suite.suite_problems import Problems
from trialwise.suite.yaml_reading import Node, plain

__all__ = ["IMPORTER", "import_promptfoo"]

_MODULE = "promptfoo_functions"
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
    problems = Problems()
    root = read_yaml(path, problems)
    converter = _Converter(path, problems, at_least)
    suite = None if root is None else converter.convert(root)
    check(problems)
    assert suite is not None
    files = converter.files
    if converter.functions.is_needed:
        files = {**files, f"{_MODULE}.py": converter.functions.text}
    return Imported(
        format="promptfoo",
        sources=(str(path),),
        suite=suite,
        notes=converter.notes.texts,
        files=files,
        comments=converter.comments,
    )


@dataclass(frozen=True, slots=True)
class _Group:
    """Tests that assert the same of their outputs."""

    cases: tuple[Case, ...]
    checks: tuple[dict[str, Any], ...]
    judges: tuple[dict[str, Any], ...]
    expected: tuple[str, ...] = ()
    """What each test compares with, where only that is different."""

    @property
    def title(self) -> str:
        """What a person calls it: the description of its test, or its place."""
        descriptions = dict.fromkeys(one.description for one in self.cases if one.description)
        if len(descriptions) == 1:
            return " ".join(next(iter(descriptions)).split())[:80]
        return f"tests of {self.cases[0].where}" if len(self.cases) > 1 else self.cases[0].where


@dataclass(slots=True)
class _Converter:
    """One file of promptfoo being read."""

    path: Path
    problems: Problems
    at_least: float | None
    notes: Notes = field(default_factory=Notes)
    files: dict[str, str] = field(default_factory=dict)
    comments: dict[Place, str] = field(default_factory=dict)
    functions: FunctionModule = field(init=False)

    def __post_init__(self) -> None:
        self.functions = FunctionModule(_MODULE, self.path.name)

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
        groups = self._group(cases, reader)
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

    def _group(self, cases: Sequence[Case], reader: Reader) -> list[_Group]:
        """Put tests together that assert the same, or the same but for one text."""
        shapes: dict[str, list[tuple[Case, list[Assertion], str | None]]] = {}
        for case in cases:
            assertions = [
                assertion
                for given, where in case.assertions
                for assertion in self._read_assertion(given, case, where, reader)
            ]
            if not assertions:
                self.notes.leave_out("a test without an assertion: it always passes", case.where)
                continue
            shape, text = _find_shape(assertions, case.threshold)
            shapes.setdefault(shape, []).append((case, assertions, text))
        return [group for members in shapes.values() for group in self._make_groups(members)]

    def _read_assertion(
        self, given: Mapping[str, Any], case: Case, where: str, reader: Reader
    ) -> Iterator[Assertion]:
        """Read an assertion; a set of assertions is one check."""
        if given.get("weight") == 0:
            self.notes.leave_out("an assertion of weight 0, which decides nothing", where)
            return
        if given["type"] != "assert-set":
            changed = case.is_changed
            options = case.options.get("provider")
            one = {**given, "provider": given.get("provider") or options} if options else given
            yield reader.read(one, case.variables, where, changed=changed)
            return
        parts = [
            assertion
            for one in given.get("assert") or []
            if isinstance(one, dict) and isinstance(one.get("type"), str)
            for assertion in self._read_assertion(one, case, where, reader)
        ]
        threshold = given.get("threshold")
        limit = float(threshold) if isinstance(threshold, int | float) else None
        checks, judges = self._combine(parts, limit, where)
        weight = given.get("weight", 1)
        weight = float(weight) if is_number(weight) else 1.0
        if checks:
            joined = checks[0] if len(checks) == 1 else {"all_of": list(checks)}
            yield Assertion(check=joined, weight=weight, kind="assert-set")
        for judge in judges:
            yield Assertion(judge=judge, weight=weight, kind="assert-set")

    def _make_groups(
        self, members: list[tuple[Case, list[Assertion], str | None]]
    ) -> Iterator[_Group]:
        texts = [text for _, _, text in members]
        cases = tuple(case for case, _, _ in members)
        _, assertions, first = members[0]
        if first is None or len(set(texts)) == 1:
            yield self._make_group(cases, assertions, ())
            return
        compared = [
            Assertion(
                check=_compare_expected(one.comparison[0]) if one.comparison else one.check,
                judge=one.judge,
                weight=one.weight,
                kind=one.kind,
            )
            for one in assertions
        ]
        yield self._make_group(cases, compared, tuple(text or "" for text in texts))

    def _make_group(
        self, cases: tuple[Case, ...], assertions: list[Assertion], expected: tuple[str, ...]
    ) -> _Group:
        checks, judges = self._combine(assertions, cases[0].threshold, cases[0].where)
        return _Group(cases, tuple(checks), tuple(judges), expected)

    def _combine(
        self, assertions: list[Assertion], threshold: float | None, where: str
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return the checks that all have to hold, and the judges beside them."""
        checks = [one for one in assertions if one.check is not None]
        judges = [one for one in assertions if one.judge is not None]
        found = [one.check for one in checks if one.check is not None]
        rubrics = [one.judge for one in judges if one.judge is not None]
        if threshold is None or not assertions:
            return found, rubrics
        if judges:
            self.notes.add(
                "A score with a `threshold` counts a rubric as failed here, since its judge "
                "decides apart",
                where,
            )
        sets: list[tuple[int, ...]] = []
        if len(checks) <= MOST_WEIGHED and all(one.weight > 0 for one in assertions):
            sets = find_passing_sets(
                [one.weight for one in checks], threshold, given=sum(one.weight for one in judges)
            )
        if not sets:
            self.notes.leave_out(
                f"a `threshold` of {threshold:g} over {len(assertions)} assertions: every one has "
                "to pass here",
                where,
            )
            return found, rubrics
        joined = combine_checks(found, sets)
        if joined is None:
            self.notes.add(f"A `threshold` of {threshold:g} is always reached", where)
        return ([] if joined is None else [joined]), rubrics

    def _assemble(
        self, root: Node, providers: list[Provider], prompts: list[Prompt], groups: list[_Group]
    ) -> dict[str, Any]:
        self.notes.add(_ERRORS)
        if self.at_least is None:
            self.notes.add(_RULE)
        title = plain(root.entries["description"][1]) if "description" in root.entries else None
        name = " ".join(str(title or self.path.stem).split())[:80] or "promptfoo"
        repeat = self._find_repeat(root)
        columns = [
            (provider, prompt)
            for provider in providers
            for prompt in prompts
            if not provider.prompts or prompt.label in provider.prompts
        ]
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
        self, provider: Provider, prompt: Prompt, groups: list[_Group], repeat: int
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
        return {**given, "keep_going": True, "criteria": criteria}

    def _criteria(self, group: _Group, trials: int, taken: set[str]) -> Iterator[dict[str, Any]]:
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


def _find_shape(assertions: Sequence[Assertion], threshold: float | None) -> tuple[str, str | None]:
    """Return what an assertion list asks, without the one text that may be the input's own."""
    compared = [one for one in assertions if one.comparison is not None]
    only = compared[0] if len(compared) == 1 else None
    parts = [
        [one.comparison[0], one.weight]
        if one is only and one.comparison is not None
        else [one.check, one.judge, one.weight]
        for one in assertions
    ]
    shape = json.dumps([parts, threshold], sort_keys=True, default=str)
    return shape, None if only is None or only.comparison is None else only.comparison[1]


def _compare_expected(how: str) -> dict[str, Any]:
    if how == "equals":
        return {"as_expected": "equals"}
    if how == "contains":
        return {"as_expected": "contains"}
    return {"as_expected": {"how": "contains", "ignore_case": True}}


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
