"""Reading a folder of reference cases in the oracle's format.

A folder holds one JSON file per suite and a `manifest.json` that says which fields bind. The
files come from R, so a list of one is written as a scalar and an empty mapping as `{}` or `[]`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trialwise.errors import ReferenceDataError
from trialwise.stats.result_types import Rule

__all__ = ["Case", "Folder", "Suite", "find_folders", "read_folder"]

#: The methodology release whose exact rules replaced the Wilson ones.
_FISHER_SINCE = (1, 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One reference case: what goes in, and what a conformant implementation gives."""

    name: str
    inputs: Mapping[str, Any]
    expected: Mapping[str, Any]
    approach: str | None = None
    procedure: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A file of cases with one tolerance."""

    name: str
    rule: Rule
    cases: tuple[Case, ...]
    tolerance: float
    binding: frozenset[str]
    """Fields that must agree; every other field is informational."""
    mandatory: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A published set of suites."""

    path: Path
    version: str
    suites: tuple[Suite, ...]
    absent: tuple[str, ...]
    """Suites the manifest lists that the folder does not hold."""
    absent_mandatory: tuple[str, ...]


def find_folders(path: Path) -> list[Path]:
    """The folder itself, or the folders directly below it, that hold reference cases."""
    if not path.is_dir():
        raise ReferenceDataError(f"{path} is not a folder: give the folder that holds the cases")
    if any(path.glob("*.json")):
        return [path]
    below = sorted(
        child for child in path.iterdir() if child.is_dir() and any(child.glob("*.json"))
    )
    if not below:
        raise ReferenceDataError(f"{path} holds no *.json file, and neither does a folder in it")
    return below


def read_folder(path: Path) -> Folder:
    """Read every suite of a folder; a manifest is used where there is one."""
    manifest_file = path / "manifest.json"
    manifest = _load(manifest_file) if manifest_file.is_file() else {}
    listed = _read_suites(manifest_file, manifest.get("suites") or {})
    mandatory = frozenset(_strings(manifest.get("familyMandatory")))
    files = sorted(file for file in path.glob("*.json") if file != manifest_file)
    suites = tuple(_read_suite(file, manifest, listed, mandatory) for file in files)
    absent = tuple(sorted(set(listed) - {suite.name for suite in suites}))
    return Folder(
        path=path,
        version=str(manifest.get("fixtureVersion", "unversioned")),
        suites=suites,
        absent=absent,
        absent_mandatory=tuple(name for name in absent if name in mandatory),
    )


def _read_suite(
    file: Path,
    manifest: Mapping[str, Any],
    listed: Mapping[str, Mapping[str, Any]],
    mandatory: frozenset[str],
) -> Suite:
    body = _load(file)
    raw = body.get("cases")
    if not isinstance(raw, list):
        raise ReferenceDataError(f"{file}: expected a list under the key 'cases'")
    name = str(body.get("suite", file.stem))
    cases = tuple(_read_case(file, index, case) for index, case in enumerate(raw))
    entry = listed.get(name, {})
    informational = frozenset(_strings(entry.get("informationalFields")))
    given = frozenset(field for case in cases for field in case.expected)
    # A field that the manifest forgets to classify binds: silence must not excuse a difference.
    binding = frozenset(_strings(entry.get("bindingFields"))) | (given - informational)
    return Suite(
        name=name,
        rule=_rule(body.get("methodologyVersion") or manifest.get("methodologyVersion")),
        cases=cases,
        tolerance=_tolerance(file, body.get("tolerance", entry.get("tolerance", 0))),
        binding=binding,
        mandatory=name in mandatory,
    )


def _read_case(file: Path, index: int, raw: object) -> Case:
    if not isinstance(raw, dict) or not isinstance(raw.get("inputs"), dict):
        raise ReferenceDataError(f"{file}: case {index} has no 'inputs' mapping")
    expected = raw.get("expected")
    # R writes an empty mapping as []; anything else that is not a mapping expects nothing.
    if expected != [] and not isinstance(expected, dict):
        raise ReferenceDataError(f"{file}: case {index} has no 'expected' mapping")
    return Case(
        name=str(raw.get("name", f"case {index}")),
        inputs=raw["inputs"],
        expected=expected or {},
        approach=raw.get("approach"),
        procedure=raw.get("procedure"),
    )


def _read_suites(file: Path, suites: object) -> Mapping[str, Mapping[str, Any]]:
    if isinstance(suites, dict) and all(isinstance(entry, dict) for entry in suites.values()):
        return suites
    raise ReferenceDataError(f"{file}: 'suites' must map each suite's name to its description")


def _tolerance(file: Path, value: object) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < math.inf:
        return float(value)
    raise ReferenceDataError(
        f"{file}: 'tolerance' must be a finite number of at least 0, got {value!r}"
    )


def _load(file: Path) -> dict[str, Any]:
    try:
        body = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ReferenceDataError(f"{file}: {error.strerror or error}") from error
    except ValueError as error:
        raise ReferenceDataError(f"{file}: not valid JSON ({error})") from error
    if not isinstance(body, dict):
        raise ReferenceDataError(f"{file}: expected a JSON object at the top")
    return body


def _strings(value: object) -> Sequence[str]:
    """A list of strings that R may have unboxed to one string or emptied to `{}`."""
    if isinstance(value, str):
        return [value]
    return [str(item) for item in value] if isinstance(value, list) else []


def _rule(version: object) -> Rule:
    """Which rule set a release speaks of; the first releases did not say."""
    if not isinstance(version, (str, int, float)):
        return "wilson"
    written = str(version).lstrip("vV").split(".")
    parts = tuple(int(part) for part in written[:2] if part.isdigit())
    return "fisher" if parts >= _FISHER_SINCE else "wilson"
