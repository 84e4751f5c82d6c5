"""Running reference cases through the production path, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trialwise.contrib.conformance.field_comparison import (
    MISSING,
    Difference,
    compare,
    largest_deviation,
)
from trialwise.contrib.conformance.reference_cases import (
    Case,
    Folder,
    Suite,
    find_folders,
    read_folder,
)
from trialwise.stats.result_types import Rule

__all__ = ["CaseResult", "FolderResult", "SuiteResult", "run_conformance"]

Answer = Mapping[str, Any]
Adapter = Callable[[Case], Answer]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """One case: matched, or where it was not."""

    case: str
    differences: tuple[Difference, ...]
    """Departures in binding fields; any makes the case a mismatch."""
    informational: tuple[Difference, ...]
    """Departures in fields that are report values; shown, not failed."""
    deviation: float

    @property
    def matched(self) -> bool:
        """Whether every binding field agreed."""
        return not self.differences


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteResult:
    """One suite: every case of it, or the fact that nothing here answers it."""

    suite: str
    rule: Rule
    cases: tuple[CaseResult, ...]
    count: int
    binding: tuple[str, ...]
    tolerance: float
    known: bool
    mandatory: bool

    @property
    def matched(self) -> int:
        """How many cases matched."""
        return sum(case.matched for case in self.cases)

    @property
    def deviation(self) -> float:
        """The largest numerical deviation seen, binding or not."""
        return max((case.deviation for case in self.cases), default=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderResult:
    """A folder of suites and the status it earns (companion §10.6)."""

    path: Path
    version: str
    suites: tuple[SuiteResult, ...]
    absent: tuple[str, ...]
    absent_mandatory: tuple[str, ...]

    @property
    def mismatches(self) -> list[tuple[SuiteResult, CaseResult]]:
        """Every case that did not match, with its suite."""
        return [(s, case) for s in self.suites for case in s.cases if not case.matched]

    @property
    def unknown(self) -> list[SuiteResult]:
        """Suites that nothing here answers."""
        return [suite for suite in self.suites if not suite.known]

    @property
    def checked(self) -> bool:
        """Whether any case was run at all; a folder of which nothing was has shown nothing."""
        return any(suite.cases for suite in self.suites)

    @property
    def passed(self) -> bool:
        """No mismatch, and no mandatory suite unanswered."""
        return not self.mismatches and not any(suite.mandatory for suite in self.unknown)

    @property
    def conformance_status(self) -> dict[str, object]:
        """The companion's block: what has been shown, and that calibration is not claimed by it."""
        if not self.passed:
            formula = "failed"
        elif self.unknown or self.absent_mandatory or not self.checked:
            formula = "partial"
        else:
            formula = "passed"
        return {
            "formulaValueFixtures": formula,
            "calibrationFixtures": "not-published",
            "calibrationClaimPermitted": False,
        }


def run_conformance(path: Path) -> list[FolderResult]:
    """Run every reference case below `path`.

    Args:
        path: A folder of suites, or a folder of such folders.

    Raises:
        ReferenceDataError: The folder cannot be read as reference cases.
    """
    return [_run_folder(read_folder(folder)) for folder in find_folders(path)]


def _run_folder(folder: Folder) -> FolderResult:
    return FolderResult(
        path=folder.path,
        version=folder.version,
        suites=tuple(_run_suite(suite) for suite in folder.suites),
        absent=folder.absent,
        absent_mandatory=folder.absent_mandatory,
    )


def _run_suite(suite: Suite) -> SuiteResult:
    from trialwise.contrib.conformance.adapters import ADAPTERS

    adapter = ADAPTERS.get((suite.name, suite.rule))
    return SuiteResult(
        suite=suite.name,
        rule=suite.rule,
        cases=tuple(_run_case(suite, case, adapter) for case in suite.cases) if adapter else (),
        count=len(suite.cases),
        binding=tuple(sorted(suite.binding)),
        tolerance=suite.tolerance,
        known=adapter is not None,
        mandatory=suite.mandatory,
    )


def _run_case(suite: Suite, case: Case, adapter: Adapter) -> CaseResult:
    try:
        answer = adapter(case)
    except Exception as error:  # a case we cannot answer is a finding, not a crash
        problem = f"{type(error).__name__}: {error}"
        failure = Difference(field="(case)", expected="an answer", got=problem)
        return CaseResult(case=case.name, differences=(failure,), informational=(), deviation=0.0)
    binding: list[Difference] = []
    informational: list[Difference] = []
    for field, expected in case.expected.items():
        got = answer.get(field, MISSING)
        target = binding if field in suite.binding else informational
        target.extend(compare(field, expected, got, suite.tolerance))
    binding.extend(answer.get("(inconsistent)", ()))
    return CaseResult(
        case=case.name,
        differences=tuple(binding),
        informational=tuple(informational),
        deviation=largest_deviation(case.expected, answer),
    )
