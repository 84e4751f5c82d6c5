"""What a decision rests on: each procedure's own numbers, the trials behind them, and notes.

A procedure returns an `Evidence` of its own kind. Records know each kind by the name of its class,
so a procedure of another distribution stores its evidence by subclassing `Evidence`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from trialwise.model.evidence import Breakdown
from trialwise.model.tally import Tally
from trialwise.stats.result_types import Interval

if TYPE_CHECKING:
    # A run is decided by one or two of these methods and must not load them all; `codec` finds
    # each by its name, once there is a value of it.
    from trialwise.stats import (
        ClusterEstimate,
        ComplianceCutoff,
        ExactCorpusRate,
        FiniteCorpusCutoff,
        GuardrailBound,
        JudgedDecision,
        RegressionCutoff,
        ResidualHarm,
        StratifiedContainment,
        StratifiedEstimate,
    )

__all__ = [
    "CutoffEvidence",
    "EstimatedEvidence",
    "Evidence",
    "Note",
    "NoteKind",
    "PValue",
    "SequentialEvidence",
    "TrialCounts",
]


class NoteKind(StrEnum):
    """What a note is about."""

    QUALIFICATION = "qualification"
    """Something that limits what the decision says."""
    RETRIES = "retries"
    """Trials that passed only after a retry."""
    SILENCE = "silence"
    """Trials on which a judge gave no verdict."""
    CORRECTION = "correction"
    """The rate, corrected for a judge's errors."""
    GUARDRAIL = "guardrail"
    """What a challenge sampling does not say about its guardrail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A sentence that qualifies a decision without changing it."""

    kind: NoteKind
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PValue:
    """A tail probability with the null, the tail and the method it belongs to (companion §7.1)."""

    value: float
    method: str
    tail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialCounts:
    """All counted trials of a criterion, whichever of them decided."""

    intent_to_treat: Tally
    """Every counted trial."""
    per_protocol: Tally
    """The counts without excused trials."""
    breakdown: Breakdown


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What any decision may rest on: a judge's corrected rate, and bounds on a guardrail."""

    #: Every kind by the name of its class, which is what a record calls it.
    kinds: ClassVar[dict[str, type[Evidence]]] = {}

    judged: JudgedDecision | None = None
    """The rate corrected for a judge's errors, where they were measured."""
    judged_otherwise: JudgedDecision | None = None
    """The same by the other correction, which has to agree; None where only one was made."""
    containment: GuardrailBound | None = None
    """What a challenge sampling says of a guardrail, where its claim reaches that far (§1.4.5b)."""
    containment_strata: StratifiedContainment | None = None
    residual: ResidualHarm | None = None

    def __init_subclass__(cls) -> None:
        # `dataclass(slots=True)` makes the class a second time; the last one is the one in use.
        Evidence.kinds[cls.__name__] = cls


Evidence.kinds["Evidence"] = Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class CutoffEvidence(Evidence):
    """The numbers of a fixed design: a cutoff, a p-value and bounds on the rate."""

    design: ComplianceCutoff | RegressionCutoff | FiniteCorpusCutoff | ExactCorpusRate | None = None
    """The design at the number of trials that count, where that is not the planned one."""
    p_value: PValue | None = None
    lower_bound: float | None = None
    """One-sided lower confidence bound on the rate, at the criterion's own alpha."""
    interval: Interval | None = None
    """Two-sided, for the rate; its method says how far it may be trusted."""
    power: float | None = None
    """The exact chance of not passing at the alternative rate, where there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SequentialEvidence(Evidence):
    """The numbers of a design that may stop at any trial, which account for the stopping."""

    interval: Interval | None = None
    estimate: float | None = None
    power: float | None = None
    """The exact chance of not passing at the alternative rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatedEvidence(Evidence):
    """The numbers of an estimator that is matched to a declared claim."""

    estimator: ClusterEstimate | StratifiedEstimate
    estimate: float
    lower_bound: float
    interval: Interval
