"""A suite as it is once it is read: contracts to run, and where their records and reports go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from trialwise.model.contract import Contract
from trialwise.model.options import RunOptions
from trialwise.suite.environment import Redaction

if TYPE_CHECKING:
    from trialwise.judges.preference import Pairwise


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteContract:
    """A contract with how it is to be run."""

    contract: Contract
    options: RunOptions
    tags: tuple[str, ...] = ()
    line: int = 0
    """Where it begins in the suite's file, from 1."""
    service: str = ""
    """The kind of its service and a hash of what the suite says of it, such as `chat:3f9c…`."""
    arm: str = ""
    """The name of the arm, where it is one of another contract."""
    arms: tuple[SuiteContract, ...] = ()
    """Variants to compare it with; none where the suite was loaded without them."""
    places: Mapping[str, str] = field(default_factory=dict)
    """Where each criterion and each gate stands, as file:line, by name.

    With `.` before it each key of the contract, and alone the contract.
    """

    @property
    def name(self) -> str:
        """The contract's name."""
        return self.contract.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A report to write after a run."""

    format: str
    """html, json, junit, md or tap."""
    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareSection:
    """What a suite says about its comparison; None where it says nothing."""

    control: str | None = None
    candidates: tuple[str, ...] = ()
    question: str | None = None
    margin: float | None = None
    guardrails: Mapping[str, float] = field(default_factory=dict)
    expect: tuple[float, float] | None = None
    trials: int | None = None
    max_trials: int | None = None
    confidence: float | None = None
    correction: str | None = None
    all_pairs: bool = False
    preference: Pairwise | None = None
    """The judge that prefers one of two replies, made by `judges.pairwise`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """Everything that a suite file says."""

    path: Path
    contracts: tuple[SuiteContract, ...]
    compare: CompareSection = field(default_factory=CompareSection)
    reports: tuple[Report, ...] = ()
    runs_folder: Path
    """Where runs and journals are kept."""
    baselines_folder: Path
    redaction: Redaction = field(default_factory=Redaction)
    """What is taken out of every text before it is stored or shown."""
    files: tuple[Path, ...] = ()
    """The suite and the files it includes."""

    @property
    def folder(self) -> Path:
        """The folder that the suite's paths start from."""
        return self.path.parent
