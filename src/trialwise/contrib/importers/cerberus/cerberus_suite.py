"""Convert cerberus.yaml into a suite: the adapter, the studies, and how they are run."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trialwise.contrib.importers.cerberus.cerberus_criteria import read_criterion
from trialwise.contrib.importers.cerberus.cerberus_judges import Panel
from trialwise.contrib.importers.import_refusal import check
from trialwise.contrib.importers.imported_suite import Imported, Place
from trialwise.contrib.importers.named_files import is_below
from trialwise.contrib.importers.suite_importer import ImportRequest, SuiteImporter
from trialwise.contrib.importers.yaml_mappings import Keys, read_yaml
from trialwise.declarations.written import Node
from trialwise.regular_files import FileUnreadable, read_bytes
from trialwise.suite.suite_problems import Problems
from trialwise.suite.yaml_reading import MAX_BYTES, plain

__all__ = ["IMPORTER", "import_cerberus"]

#: What cerberus splits a command at.
_SPACE = re.compile(r"[\s\ufeff]+")
_PLACEHOLDER = "{{scenario}}"
#: What our own command service replaces in an argument.
_OURS = re.compile(r"\{(?:input|index|seed|scenario_file)\}")
#: Trials before which cerberus does not give up a study.
_ABORT_AFTER = 5
_TIMEOUT_MS = 30_000
_MOST_MS = 10**9

#: What holds for every import.
_TYPES = (
    "An assertion is carried over exactly for values of the types it expects, for what is missing "
    "and for null. Where JavaScript would convert, as the text 5 to a number, the trial FAILs."
)
_JSON = (
    "JSON is read strictly: output with a repeated key, or a number beyond a double, is not JSON."
)
_NO_REPLY = (
    "A trial that cannot be started, runs out of time or writes more than 1 MiB FAILs every "
    "criterion. cerberus takes it for one that ended with code 1, and evaluates its assertions."
)
_ABORT = (
    "A study is given up, as FAIL, where more than `max_error_rate` of its trials cannot be "
    "started or end with another exit code than 0."
)
_FOLDER = "The command runs in the suite's folder; cerberus runs it where it is called from."
_NOTES = (_TYPES, _JSON, _NO_REPLY, _ABORT, _FOLDER)


def import_cerberus(path: Path) -> Imported:
    """The suite that a cerberus file describes, deciding as cerberus does: by Wald's test.

    Every contract is decided sequentially between its threshold and ten points below, at alpha
    1 − confidence and beta 0.20, with its trials as the cap; what is undecided there is
    INCONCLUSIVE.

    Args:
        path: Usually cerberus.yaml; scenarios are read from beside it.

    Raises:
        ImportRefused: Something in it has no counterpart; every such thing is listed.
    """
    problems = Problems()
    root = read_yaml(path, problems)
    reader = _Reader(path, problems)
    suite = None if root is None else reader.suite(root)
    check(problems)
    assert suite is not None
    return Imported(
        format="cerberus",
        sources=(str(path),),
        suite=suite,
        notes=(*_NOTES, *reader.notes),
        files=reader.files,
        comments=reader.comments,
    )


@dataclass(slots=True)
class _Reader:
    """One cerberus file being read."""

    path: Path
    problems: Problems
    notes: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    comments: dict[Place, str] = field(default_factory=dict)

    def suite(self, root: Node) -> dict[str, Any]:
        """The suite, as far as it could be read."""
        keys = Keys(
            root,
            self.problems,
            what="a cerberus file",
            known=("adapter", "judges", "studies", "correction"),
            required=("adapter", "studies"),
        )
        adapter = _Adapter.read(keys, self.problems)
        panel = Panel.read(keys, self.problems, self.path.parent)
        self._correction(keys)
        studies = keys.items("studies", "a list of studies")
        contracts = [self._study(node, adapter, panel) for node in studies]
        self._check_names(contracts, studies)
        return self._assemble_suite(adapter, contracts)

    def _assemble_suite(self, adapter: _Adapter, contracts: list[dict[str, Any]]) -> dict[str, Any]:
        """One contract as a whole suite, several with what they share above them."""
        self.comments[("service",)] = f"`adapter`, line {adapter.line}"
        if len(contracts) == 1:
            self.comments |= {
                place[2:]: text
                for place, text in self.comments.items()
                if place[:1] == ("contracts",)
            }
            return contracts[0]
        shared = {"service": adapter.service(None), "timeout": adapter.timeout}
        for contract in contracts:
            for key, value in shared.items():
                if contract.get(key) == value:
                    del contract[key]
        return {**shared, "contracts": contracts}

    def _correction(self, keys: Keys) -> None:
        if "correction" in keys:
            keys.choice("correction", "bh", "bonferroni", "none")
            self.notes.append(
                f"`correction` (line {keys.line('correction')}) is left out: cerberus prints "
                "corrected levels and decides without them."
            )

    def _study(self, node: Node, adapter: _Adapter, panel: Panel) -> dict[str, Any]:
        keys = Keys(
            node,
            self.problems,
            what="a study",
            known=("name", "scenario", "contracts", "max_error_rate"),
            required=("name", "scenario", "contracts"),
        )
        name = keys.text("name", "the study's name") or "?"
        scenario = self._scenario(keys)
        rate = keys.number("max_error_rate", 0, 1)
        place: Place = ("contracts", len([p for p in self.comments if len(p) == 2]))
        self.comments[place] = f"study `{name}`, line {keys.line()}"
        criteria: list[dict[str, Any]] = []
        intents: set[str] = set()
        for one in keys.items("contracts", "a list of contracts"):
            read = read_criterion(one, scenario, panel, self.problems)
            self.comments[(*place, "criteria", len(criteria))] = read.comment
            self.notes += [note for note in read.notes if note not in self.notes]
            criteria.append(read.criterion)
            intents |= {"smoke"} if read.is_smoke else set()
        self._check_criteria(keys, criteria)
        return {
            "name": name,
            **({"intent": "smoke"} if intents else {}),
            "service": adapter.service(self._scenario_file(name, scenario)),
            "timeout": adapter.timeout,
            "analysis": "intent-to-treat",
            "retries": 0,
            "keep_going": True,
            "abort": {
                "max_error_rate": 0.2 if rate is None else rate,
                "after": _ABORT_AFTER,
                "to": "fail",
                "exit_codes": True,
            },
            "inputs": [scenario.get("input", "?")],
            "criteria": criteria,
        }

    def _scenario(self, keys: Keys) -> dict[str, Any]:
        """What the study's scenario holds, or nothing once it is said why."""
        name = keys.text("scenario", "the path of a YAML file")
        if name is None:
            return {}
        path = self.path.parent / name
        if not is_below(path, self.path.parent):
            keys.refuse("scenario", f"`scenario`: {name} is not below the folder of this file")
            return {}
        if (reason := _unreadable(path)) is not None:
            keys.refuse("scenario", f"`scenario`: {path} {reason}")
            return {}
        root = read_yaml(path, self.problems)
        return {} if root is None else self._scenario_keys(root, name)

    def _scenario_keys(self, root: Node, file: str) -> dict[str, Any]:
        known = ("input", "metadata")
        if root.is_mapping:
            for extra in [name for name in root.entries if name not in known]:
                key, _ = root.entries.pop(extra)
                self.notes.append(
                    f"{file}, line {key.line + 1}: `{extra}` is left out, as cerberus leaves it "
                    "out of what the command is given."
                )
        keys = Keys(root, self.problems, what="a scenario", known=known, required=("input",))
        text = keys.text("input", "the text that the command is given")
        scenario: dict[str, Any] = {} if text is None else {"input": text}
        if "metadata" in keys:
            if keys.at("metadata").is_mapping:
                scenario["metadata"] = plain(keys.at("metadata"))
            else:
                keys.refuse("metadata", "`metadata` must be a mapping")
        return scenario

    def _scenario_file(self, study: str, scenario: dict[str, Any]) -> str | None:
        """The file for a scenario that our own scenario file could not hold."""
        if "metadata" not in scenario:
            return None
        import json

        name = f"{_slug(study)}.scenario.json"
        self.files[name] = json.dumps(scenario, ensure_ascii=False, separators=(",", ":")) + "\n"
        self.notes.append(f"{name} holds the scenario of `{study}` with its metadata.")
        return name

    def _check_names(self, contracts: list[dict[str, Any]], nodes: list[Node]) -> None:
        seen: set[str] = set()
        for contract, node in zip(contracts, nodes, strict=True):
            slug = _slug(contract["name"])
            if contract["name"] in seen or slug in seen:
                message = f"two studies are called `{contract['name']}`, or nearly so: rename one"
                self.problems.add(node, message)
            seen |= {contract["name"], slug}

    def _check_criteria(self, keys: Keys, criteria: list[dict[str, Any]]) -> None:
        names = [one["name"] for one in criteria]
        for name in sorted({one for one in names if names.count(one) > 1}):
            message = f"two contracts of a study are called `{name}`: cerberus keeps the last only"
            keys.refuse("contracts", message)


@dataclass(frozen=True, slots=True)
class _Adapter:
    """How the agent is started."""

    words: tuple[str, ...]
    place: int
    """Which word holds the placeholder."""
    timeout: str
    line: int

    @classmethod
    def read(cls, top: Keys, problems: Problems) -> _Adapter:
        """The adapter, or one that stands for it once it is said what is wrong."""
        nothing = cls((_PLACEHOLDER,), 0, "30s", top.line("adapter"))
        if "adapter" not in top:
            return nothing
        keys = Keys(
            top.at("adapter"),
            problems,
            what="`adapter`",
            known=("command", "timeout"),
            required=("command",),
        )
        ms = keys.whole("timeout", 1, _MOST_MS) or _TIMEOUT_MS
        command = keys.text("command", "a command with {{scenario}} in it")
        if command is None:
            return nothing
        words = tuple(word for word in _SPACE.split(command) if word)
        place = next((n for n, word in enumerate(words) if n and _PLACEHOLDER in word), 0)
        if not place:
            keys.refuse("command", f"`command` must hold {_PLACEHOLDER} in one of its arguments")
            return nothing
        for word in words:
            if match := _OURS.search(word):
                message = f"`command` holds {match[0]}, which means something else in a suite"
                keys.refuse("command", message)
        timeout = f"{ms // 1000}s" if ms % 1000 == 0 else f"{ms}ms"
        return cls(words, place, timeout, top.line("adapter"))

    def service(self, file: str | None) -> dict[str, Any]:
        """The command, given our own scenario file or one that is there already."""
        words = [word.replace("${", "$${") for word in self.words]
        given = "{scenario_file}" if file is None else file
        words[self.place] = words[self.place].replace(_PLACEHOLDER, given, 1)
        # What was printed is checked up to the last line end.
        command: dict[str, Any] = {"run": words, "strip_newline": False}
        if file is not None:
            command["input_via"] = "environment"
        return {"command": command}


def _unreadable(path: Path) -> str | None:
    """Why a file cannot be read, if it cannot: that is said where it is named."""
    try:
        read_bytes(path, limit=MAX_BYTES)
    except FileUnreadable as error:
        return error.reason
    return None


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60] or "study"


def _find_role(root: Node) -> str | None:
    keys = set(root.entries)
    return "suite" if keys & {"adapter", "studies"} and "format" not in keys else None


def _import_files(request: ImportRequest) -> Imported:
    return import_cerberus(request.files["suite"])


IMPORTER = SuiteImporter(
    name="cerberus",
    signs="has `adapter` and `studies`",
    find_role=_find_role,
    import_files=_import_files,
)
