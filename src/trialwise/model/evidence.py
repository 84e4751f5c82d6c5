"""What a decision rests on, and what a report needs beside it: thresholds, failures, spending.

A procedure returns an `Evidence` of its own kind. Records know each kind by the name of its class,
so a procedure of another distribution stores its evidence by subclassing `Evidence`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import ClassVar

from trialwise import model, stats
from trialwise.errors import InvalidArgument
from trialwise.model.criterion import Origin
from trialwise.stats.result_types import Interval, Rule
from trialwise.validation import require_count

#: Marks a field that groups others. Records hold these side by side, as all versions have done, so
#: that a plan keeps its hash.
FLAT: Mapping[str, bool] = MappingProxyType({"flat": True})


class StopReason(StrEnum):
    """Why no further trial was counted."""

    DECIDED = "decided"
    """A sequential design reached a boundary."""
    CURTAILED = "curtailed"
    """A fixed design's verdict could no longer change."""
    COMPLETE = "complete"
    """All planned trials were run."""
    TRIALS_BUDGET = "trials-budget"
    TIME_BUDGET = "time-budget"
    TOKEN_BUDGET = "token-budget"
    MONEY_BUDGET = "money-budget"
    ERROR_RATE = "error-rate"
    """Too many trials never reached the service, or a judge never answered."""
    SETTLED = "settled"
    """A FAIL decided the contract's verdict, so the run stopped."""
    INTERRUPTED = "interrupted"
    SERVICE = "service-unusable"
    """The service, its recording or the store could not go on."""

    @property
    def is_premature(self) -> bool:
        """Whether the run ended before its plan did."""
        return self not in (StopReason.DECIDED, StopReason.CURTAILED, StopReason.COMPLETE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """What a criterion is held against, and who says so (§7.4)."""

    origin: Origin = Origin.UNSPECIFIED
    contract_ref: str = ""
    required_rate: float | None = None
    alternative_rate: float | None = None
    """The rate at which a sequential PASS is rare, or that a test should detect."""
    baseline: model.BaselineReference | None = None
    context: model.BaselineReference | None = None
    """What was measured before, where the threshold does not come from it (§1.5.4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown:
    """The failures of a criterion by reason, and its trials by error class (§1.4.5a)."""

    condition: int = 0
    transform: int = 0
    no_value: int = 0
    errors: Mapping[str, int] = field(default_factory=dict)
    """Trials by error class, the plain ones left out."""
    retried: int = 0
    """Trials that needed more than one attempt and then passed."""
    commonest_error: str = ""
    """What most of the trials without a reply said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostics:
    """Signs that the trials were not independent, or not of one kind (§8.2, §8.3)."""

    autocorrelation: float | None = None
    autocorrelation_p: float | None = None
    """The p-value of the exact runs test: small where neighbours are more alike than chance."""
    first_half_rate: float | None = None
    second_half_rate: float | None = None
    drift_p: float | None = None
    """The p-value of Fisher's exact test between the two halves."""
    untestable_share: float | None = None
    """Trials whose replies could not be checked."""
    effective_trials: float | None = None
    """Independent trials that say as much, if each depends on the one before: n (1−r)/(1+r)."""
    warnings: tuple[str, ...] = ()


class Severity(StrEnum):
    """How much a guardrail's violation costs the comparison (§8.4.5)."""

    HARD = "hard-invalidator"
    """The comparison does not exist: refused under verification."""
    MAJOR = "major-caveat"
    """Refused under verification unless overridden, and then recorded."""
    MINOR = "minor-caveat"
    """A warning in either intent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """One violated guardrail."""

    code: str
    """Its name, by which an override admits it."""
    severity: Severity
    message: str
    criterion: str | None = None
    """None: it concerns the whole run."""
    overridden: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentSummary:
    """One sampling as it was run (§1.4.7, §8.2.1)."""

    name: str
    identifier: str
    version: str = ""
    role: str = "unspecified"
    description: str = ""
    fingerprint: str = ""
    inputs: int
    """Inputs as they are listed."""
    distinct: int | None = None
    """Different values among them, where some are listed several times."""
    clusters: int | None = None
    """Clusters of inputs, where some inputs belong together."""
    trials: int
    """Counted: every one of them is in the journal."""
    planned: int
    draw: str
    sampling_mode: str
    stop: StopReason
    repetitions: Mapping[str, int] = field(default_factory=dict)
    """How many inputs were tried this many times."""


# Not frozen: listeners are told one after every trial, and freezing would triple what that takes.
@dataclass(slots=True, kw_only=True, unsafe_hash=True)
class Spending:
    """What a run took; setup is kept apart from the trials."""

    trials: int = 0
    attempts: int = 0
    seconds: float = 0.0
    """Wall time, by the monotonic clock."""
    tokens: int = 0
    usd: float | None = None
    """None where no trial said what it cost."""
    setup_s: float = 0.0
    setup_tokens: int = 0
    setup_usd: float | None = None
    judging_tokens: int = 0
    """What judges took, apart from what the service took."""
    judging_usd: float | None = None
    abandoned: int = 0
    """Trials started and not waited for, once the verdict was certain."""
    abandoned_tokens: int = 0
    """What those took, as far as they told; a request that was under way told nothing."""
    abandoned_usd: float | None = None

    @property
    def paid_usd(self) -> float | None:
        """All of it together; None where nothing said what it cost."""
        paid = (self.usd, self.setup_usd, self.judging_usd, self.abandoned_usd)
        # What is not known is left out: a part of the costs is still a bound from below.
        known = [one for one in paid if one is not None]
        return sum(known) if known else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproducibility:
    """The numerical ingredients that vary between implementations (§10.2)."""

    reference_data_version: str = "none consumed"
    formula_value_fixtures: str = "not checked in this run"
    """What this release of trialwise gave on the reference cases of the rule set (§10.6)."""
    quantile_source: str = "Python statistics.NormalDist.inv_cdf (AS 241)"
    interval_implementation: str = "closed-form score inversion, anchored at 0 and 1"
    sort_stable: bool = True
    tie_policy: str = "largest-tied-position-for-upper-bound-ranks"
    exact_boundary: str = "within 1e-9 of alpha, rationals with numbers read as written"
    tool_version: str = ""
    python_version: str = ""
    seed: int | None = None
    plan_hash: str = ""


class NoteKind(StrEnum):
    """What a note is about."""

    QUALIFICATION = "qualification"
    """Something that limits what the decision says."""
    RETRIES = "retries"
    """Trials that passed only after a retry."""
    NOT_MEASURED = "not-measured"
    """Trials that never reached the service, and the rate that includes them."""
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
class InputCoverage:
    """How many of the inputs a criterion was tried on."""

    inputs: int
    asked: int
    """Inputs with a trial that measured something."""
    unasked: tuple[str, ...] = ()
    """The names of inputs that were not asked, at most 20."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialCounts:
    """All trials of a criterion that ran, also those after its decision."""

    intent_to_treat: Tally
    """Every trial."""
    per_protocol: Tally
    """The counts without excused trials."""
    breakdown: Breakdown
    counted: Tally | None = None
    """Every trial that the analysis counts."""
    decided_at: int | None = None
    """The trial that decided, from 1, where others ran after it."""
    later: Tally | None = None
    """The trials after the decision that can withdraw it: in issue order, up to the first gap."""
    coverage: InputCoverage | None = None
    """How many inputs were asked; None if the finding is about a single input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreSummary:
    """The scores of a criterion that grades replies, over all trials that count."""

    mean: float
    interval: Interval | None
    """Bounds on the mean; None where nothing beyond the trials is claimed."""
    trials: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelopes:
    """How often the criteria of one kind are wrong together.

    All four are of achieved errors, and None where no criterion can err so or nothing is bounded.
    """

    false_compliance_envelope: float | None = None
    """The largest chance of a PASS of one fixed compliance criterion although its rate is bad."""
    false_degradation_envelope: float | None = None
    """The sum over regression criteria: some FAIL although nothing has changed."""
    false_rejection_envelope: float | None = None
    """The sum over sequential criteria: some FAIL although every rate is as required."""
    false_acceptance_envelope: float | None = None
    """The largest over sequential criteria: all PASS although one rate is bad."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What any decision may rest on: a judge's corrected rate, and bounds on a guardrail."""

    #: Every kind by the name of its class, which is what a record calls it.
    kinds: ClassVar[dict[str, type[Evidence]]] = {}

    judged: stats.JudgedDecision | None = None
    """The rate corrected for a judge's errors, where they were measured."""
    judged_otherwise: stats.JudgedDecision | None = None
    """The same by the other correction, which has to agree; None where only one was made."""
    containment: stats.GuardrailBound | None = None
    """What a challenge sampling says of a guardrail, where its claim reaches that far (§1.4.5b)."""
    containment_strata: stats.StratifiedContainment | None = None
    residual: stats.ResidualHarm | None = None

    def __init_subclass__(cls) -> None:
        # `dataclass(slots=True)` makes the class a second time; the last one is the one in use.
        Evidence.kinds[cls.__name__] = cls


Evidence.kinds["Evidence"] = Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class CutoffEvidence(Evidence):
    """The numbers of a fixed design: a cutoff, a p-value and bounds on the rate."""

    ground: str | None = None
    """Why a required rate was not passed: "shown below" it, or "not shown" to be above it."""

    design: (
        stats.ComplianceCutoff
        | stats.RegressionCutoff
        | stats.FiniteCorpusCutoff
        | stats.ExactCorpusRate
        | None
    ) = None
    """The design at the number of trials that count, where that is not the planned one."""
    p_value: PValue | None = None
    lower_bound: float | None = None
    """One-sided lower confidence bound on the rate, at the criterion's own alpha."""
    interval: Interval | None = None
    """Two-sided, for the rate; its method says how far it may be trusted."""
    power: float | None = None
    """The exact chance of not passing at the alternative rate, where there is one."""
    difference: Interval | None = None
    """Bounds on the rate minus the baseline's: its upper end is below 0 exactly after a FAIL."""

    @classmethod
    def of(cls, evidence: Evidence) -> CutoffEvidence:
        """Return evidence as that of a cutoff; where nothing was weighed, it has no number yet."""
        return evidence if isinstance(evidence, cls) else cls()


@dataclass(frozen=True, slots=True, kw_only=True)
class SequentialEvidence(Evidence):
    """The numbers of a design that may stop at any trial, which account for the stopping."""

    interval: Interval | None = None
    estimate: float | None = None
    power: float | None = None
    """The exact chance of not passing at the alternative rate."""
    log_ratio: float | None = None
    """The log-likelihood ratio of the two rates at the stop; None where they are one rate."""
    stopped_p_value: PValue | None = None
    """Exact over all ways in which the design can end, against what the decision rules out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanEvidence(Evidence):
    """The numbers of a mean score."""

    ground: str | None = None
    """Why the required mean was not passed: a lower one is "shown below" it, or "not shown"."""
    estimate: float
    """The observed mean."""
    interval: Interval
    """Bounds on the mean: PASS exactly where its low end reaches the required one."""
    p_value: PValue | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatedEvidence(Evidence):
    """The numbers of an estimator that is matched to a declared claim."""

    estimator: stats.ClusterEstimate | stats.StratifiedEstimate
    estimate: float
    lower_bound: float
    interval: Interval
    ground: str | None = None
    """Why it FAILed, as of a cutoff; None otherwise and in records of earlier versions."""


# --- Counts: the sufficient statistics of one criterion's stream ----------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How many trials there were, how many passed, and how many could be evaluated at all.

    Every trial counts: one that yielded nothing to test is a failure with a reason, never left
    out of `trials` (companion §1.4.5a).
    """

    trials: int
    passed: int
    evaluable: int | None = None
    """Trials that produced a testable value; None means all of them."""

    def __post_init__(self) -> None:
        if require_count("passed", self.passed) > require_count("trials", self.trials):
            raise InvalidArgument("passed", self.passed, f"lie between 0 and {self.trials}")
        if self.evaluable is None:
            return
        # What could not be evaluated has not passed (companion §1.4.5a).
        if not self.passed <= require_count("evaluable", self.evaluable) <= self.trials:
            allowed = f"lie between passed ({self.passed}) and trials ({self.trials})"
            raise InvalidArgument("evaluable", self.evaluable, allowed)

    @property
    def failed(self) -> int:
        """Trials that did not pass, whatever the reason."""
        return self.trials - self.passed

    @property
    def rate(self) -> float | None:
        """The observed rate, or None without trials."""
        return self.passed / self.trials if self.trials else None


# --- How many of the published reference cases this release of trialwise passes (§10.6) -----------
#
# A test runs the cases wherever they are beside the checkout, and compares this table with what
# comes of them.


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceRelease:
    """A published set of formula values, and how many of its cases this release matches."""

    version: str
    """The release of the mavai reference data."""
    cases: int
    matched: int

    @property
    def status(self) -> str:
        """What a report says of it."""
        outcome = "passed" if self.matched == self.cases else "failed"
        return f"{outcome} by this release of trialwise ({self.matched} of {self.cases} cases)"


#: By rule set. None is published for `exact`, which is our own.
REFERENCE_RELEASES: dict[Rule, ReferenceRelease] = {
    "wilson": ReferenceRelease(version="mavai-R 0.10.13", cases=80, matched=80),
    "fisher": ReferenceRelease(version="mavai-R 0.12.0", cases=174, matched=174),
}

#: What a report says where no cases are published for the rule set.
NOT_PUBLISHED = "none are published for this rule set"
