"""A resolved design: what will be run, by which rule it is decided, and the seed of it all.

Made before the first trial and never changed: the record of a run is its plan, its trials and
nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, cast

from trialwise import model, stats
from trialwise.model.claim import Claim, Estimator, Intent, SamplingMode
from trialwise.model.contract import Prevalence
from trialwise.model.evidence import FLAT, Guard, Threshold
from trialwise.model.options import RunOptions
from trialwise.model.trial import Analysis
from trialwise.model.verdict import Decision, Design
from trialwise.stats import judged_looks, sequential
from trialwise.stats.multiplicity import FamilyCorrection
from trialwise.stats.result_types import Rule
from trialwise.stats.sequential.concurrency import Draw


@dataclass(frozen=True, slots=True)
class Limits:
    """When a stream of trials is decided, as failures after n trials: every procedure's shape.

    A fixed design with cutoff c of N trials PASSes once c successes are in and FAILs once more
    than N − c have failed; an observational one is that with c = N; a design that only the last
    trial can decide has neither.
    """

    cap: int
    cutoff: int | None = None
    """Successes that PASS a fixed design; None: nothing is decided before the end."""
    design: sequential.SequentialDesign | None = None
    curtailed: bool = True
    most_failing: int | None = None
    """Successes that FAIL a fixed design at most; None: whatever does not PASS."""
    ends_open: bool = False
    """Whether a fixed design also ends as soon as neither PASS nor FAIL can be reached."""
    looks: tuple[judged_looks.JudgedLook, ...] = ()
    """The counts that decide a judged rate before all trials are in."""

    def decide_look(self, trials: int, failures: int) -> Decision | None:
        """Return the verdict of the look after this many trials, if there is one."""
        look = next((one for one in self.looks if one.trials == trials), None)
        if look is None or look.accept < failures < look.reject:
            return None
        return Decision.PASS if failures <= look.accept else Decision.FAIL

    def decide(self, trials: int, failures: int) -> Decision | None:
        """Return the verdict that is certain after some trials, or None to go on.

        >>> limits = Limits(cap=50, cutoff=46)
        >>> limits.decide(46, 0), limits.decide(40, 5), limits.decide(40, 4)
        (<Decision.PASS: 'PASS'>, <Decision.FAIL: 'FAIL'>, None)
        """
        if self.design is not None:
            from trialwise.stats.sequential.walks import decision_at

            return decision_at(self.design, trials, failures)
        if self.cutoff is None or not (self.curtailed or trials == self.cap):
            return None
        # A verdict that no further trial can change is that of all trials: to stop here leaves the
        # error rates of the fixed design as they are.
        if trials - failures >= self.cutoff:
            return Decision.PASS
        most = self.cutoff - 1 if self.most_failing is None else self.most_failing
        # Even if all that is left passed, the successes would be too few.
        if failures >= self.cap - most:
            return Decision.FAIL
        is_open = failures > self.cap - self.cutoff and trials - failures > most
        is_over = trials == self.cap or (is_open and self.ends_open)
        return Decision.INCONCLUSIVE if is_over else None

    def next_look(self, trials: int, failures: int) -> int:
        """Return after how many trials there may be a verdict, where there is none yet.

        >>> limits = Limits(cap=50, cutoff=46)
        >>> limits.next_look(0, 0), limits.next_look(40, 4)
        (5, 41)
        """
        if self.design is not None or self.looks:
            return trials + 1
        if self.cutoff is None or not self.curtailed:
            return self.cap
        most = self.cutoff - 1 if self.most_failing is None else self.most_failing
        # If all that follow pass, or if all fail.
        soonest = min(self.cap, self.cutoff + failures, trials + self.cap - most - failures)
        if not self.ends_open:
            return soonest
        missing = max(0, self.cap - self.cutoff + 1 - failures)
        return min(soonest, trials + missing + max(0, most + 1 - (trials - failures)))


@dataclass(frozen=True, slots=True, kw_only=True)
class JointErrors:
    """How often a criterion is decided wrongly by this run or by those before that left it open.

    Each run is made only because all before it were INCONCLUSIVE, and the one that decides counts.
    """

    runs: tuple[str, ...]
    """The earlier runs, newest first."""
    wrong_pass: float | None = None
    """PASS in any of the runs at a rate that a PASS rules out; None where no run limits that."""
    wrong_fail: float | None = None
    """FAIL in any of the runs although the rate is as required."""
    is_exact: bool = False
    """Whether both numbers are exact. Otherwise they are bounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """The decisions that a criterion is corrected together with, a PASS as well as a FAIL."""

    correction: FamilyCorrection
    decisions: int
    """How many there are, those of other contracts included."""
    wrong_pass: float
    """The level of a wrong PASS, undivided; each decision gets a share of it."""
    wrong_fail: float
    fails_open: bool = False
    """Whether what is not shown is a FAIL, as `undecided: fail` asks."""
    keeps_boundaries: bool = False
    """Whether a decision at the boundaries of its design holds whatever the others decide."""

    @property
    def least_share(self) -> float:
        """The share of its level at which a decision holds whatever the others decide."""
        # Benjamini and Yekutieli (2001): the harmonic sum pays for any dependence among decisions.
        # The other corrections divide by their number at most, as Bonferroni does.
        harmonic = sum(1 / place for place in range(1, self.decisions + 1))
        return 1 / (self.decisions * (harmonic if self.correction == "by" else 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a plan takes over from its criterion as it is."""

    category: str = ""
    categorical: bool = False
    """Whether it is a prohibition, which no number of trials shows."""
    discharged_by: str = ""
    """What keeps the prohibition; empty where nothing is named."""
    analysis: Analysis | None = None
    """Whose trials decide it; None where it is the run's."""
    intent: Intent | None = None
    """Verification or smoke; None if it has the intent of the run."""
    pass_at: float | None = None
    """The score from which a reply passes; None where replies are not graded."""
    graders: tuple[tuple[str, float], ...] = ()
    """The name and the weight of each check that gives a part of the score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counting:
    """Which trials count for a criterion, and when counting may end."""

    each_input: bool = False
    rides_along: bool = False
    """Whether it is scored on whatever trials the other criteria need, and asks for none."""
    asks_every_input: bool = False
    """Whether it cannot PASS before every input was tried."""
    counts_every_trial: bool = False
    """Whether any failure in the run decides it, whichever criterion needed the trial."""
    shared_by: int = 1
    """How many criteria share the trials, where its design was chosen for the longest of them."""
    min_probes: int | None = None
    curtailed: bool = True
    stops_early: bool = False
    """Whether the boundaries of its design may decide after any trial."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """What FAILs by a fixed number of trials, where what shows neither side is INCONCLUSIVE."""

    most_failing: int | None = None
    """The most successes that FAIL, where a count says so; else None."""
    fail_alpha: float | None = None
    """The largest probability of a wrong FAIL; None: FAIL is the lack of PASS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """What is known of the errors of a criterion's judge, and what is made of it."""

    errors: stats.Confusion | None = None
    """How often its judge is wrong, where it is a judge's and that was measured."""
    corrected_by: tuple[str, ...] = ()
    """The exact tests that have to agree on a judged rate; empty in plans from before 0.2."""
    looks: tuple[judged_looks.JudgedLook, ...] = ()
    """The counts that decide a judged rate before all trials are in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Why a criterion has no part in the verdict; nothing where it has one."""

    advisory: tuple[str, ...] = ()
    """Why it can only advise, where it rests on a judge whose errors are not known well enough."""
    reported_at: float | None = None
    """The confidence of its interval, where it is only reported; None where it is decided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Others:
    """What else bears on a decision: other decisions, earlier runs and later trials."""

    uncorrected: Design | None = None
    """What it would be decided by on its own, in corrected plans from before `family`."""
    family: Family | None = None
    """What it is corrected together with; None where it is decided on its own."""
    together: JointErrors | None = None
    """What this run is worth together with those before that were INCONCLUSIVE on it."""
    withdrawn_by: float | None = None
    """The level at which trials after the decision withdraw it; None where none can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionPlan:
    """How one criterion will be decided."""

    criterion: str
    experiment: str = ""
    """Empty where counts are decided without a run."""
    procedure: str
    """The name of the procedure that decides it."""
    rule: Rule | None = None
    decision_rule: str | None = None
    alpha: float | None = None
    beta: float | None = None
    trials: int
    """N, or the most trials of a sequential decision; of each input with `each_input`."""
    cutoff: int | None = None
    """The fewest successes that PASS, for a fixed design."""
    failing: Failing = field(default_factory=Failing, metadata=FLAT)
    design: Design | None = None
    threshold: Threshold = field(default_factory=Threshold)
    estimator: Estimator | None = None
    terms: Terms = field(default_factory=Terms, metadata=FLAT)
    counting: Counting = field(default_factory=Counting, metadata=FLAT)
    judging: Judging = field(default_factory=Judging, metadata=FLAT)
    standing: Standing = field(default_factory=Standing, metadata=FLAT)
    others: Others = field(default_factory=Others, metadata=FLAT)
    caveats: tuple[str, ...] = ()

    def change(self, **given: Any) -> CriterionPlan:
        """Return the plan with other values of its fields, or of the fields that it groups."""
        groups = {
            one.name: {name: given.pop(name) for name in inner.__slots__ if name in given}
            for one in fields(self)
            if one.metadata and (inner := getattr(self, one.name))
        }
        changed = {
            name: replace(getattr(self, name), **inner) for name, inner in groups.items() if inner
        }
        return replace(self, **given, **changed)

    def count_trials(self, inputs: int) -> int:
        """Return its trials over all inputs together."""
        return self.trials * (inputs if self.counting.each_input else 1)

    @property
    def limits(self) -> Limits:
        """When its stream is decided."""
        # A staged design against a baseline has boundaries, too, although it is no sequential one.
        has_stages = bool(getattr(self.design, "accept", ()))
        boundaries = self.design if self.counting.stops_early or has_stages else None
        return Limits(
            self.trials,
            self.cutoff,
            cast("sequential.SequentialDesign | None", boundaries),
            self.counting.curtailed,
            self.failing.most_failing,
            self.failing.fail_alpha is not None,
            self.judging.looks,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentPlan:
    """One sampling: how many trials at most, and how their inputs are drawn."""

    name: str
    identifier: str
    version: str = ""
    role: str = "unspecified"
    description: str = ""
    fingerprint: str
    """The fingerprint of the inputs' contents. Resuming with other inputs is refused."""
    input_ids: tuple[str, ...]
    repetitions: tuple[int, ...]
    """The repetitions of each input."""
    weights: tuple[float, ...] = ()
    """The weights of each input, where the estimand is weighted."""
    strata: tuple[str | None, ...] = ()
    copies: tuple[int, ...] = ()
    """For each input the place of the first one with the same value; empty where all differ."""
    clusters: tuple[str | None, ...] = ()
    """For each input its cluster, where any input has one."""
    trials: int
    """The most trials of the experiment, all inputs together."""
    further: int = 0
    """How many of them are kept for inputs that no draw has given, where each must be tried."""
    draw: Draw
    sampling_mode: SamplingMode

    @property
    def distinct_inputs(self) -> int:
        """How many different values are asked; a row that repeats one asks the same again."""
        return len(set(self.copies)) if self.copies else len(self.input_ids)

    def find_units(self) -> Sequence[int]:
        """Return for each input the place of the first that it is no independent draw beside.

        Inputs with the same value, and those of one cluster, are one unit.
        """
        first: dict[str, int] = {}
        clusters = (
            (place, first.setdefault(cluster, place))
            for place, cluster in enumerate(self.clusters)
            if cluster is not None
        )
        return join_linked(len(self.input_ids), [*enumerate(self.copies), *clusters])


def join_linked(size: int, links: Iterable[tuple[int, int]]) -> list[int]:
    """Return for each place the first of those that links join it with, over others too.

    >>> join_linked(4, [(1, 3), (3, 2)])
    [0, 1, 1, 1]
    """
    units = list(range(size))

    def find_first(place: int) -> int:
        while units[place] != place:
            # Shortened on the way: a chain may be as long as the list.
            units[place] = place = units[units[place]]
        return place

    for one, other in links:
        low, high = sorted((find_first(one), find_first(other)))
        units[high] = low
    return list(map(find_first, units))


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyPlan:
    """One percentile's rule."""

    percentile: str
    level: float
    experiment: str = ""
    alpha: float = 0.05
    limit_s: float | None = None
    baseline_latencies_s: tuple[float, ...] | None = None
    """The latencies of the baseline, where it gives the limit."""
    baseline_run_trials: int | None = None
    enforced: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A whole run, resolved."""

    contract: str
    seed: int
    intent: Intent
    rule: Rule
    analysis: Analysis
    claim: Claim
    options: RunOptions
    experiments: tuple[ExperimentPlan, ...]
    criteria: tuple[CriterionPlan, ...]
    latency: tuple[LatencyPlan, ...] = ()
    gates: tuple[model.Reliability | model.Stability | model.Metrics, ...] = ()
    """Each with the sampling it is about."""
    structure: Mapping[str, str] = field(default_factory=dict)
    """The fingerprint of each criterion's postconditions."""
    covariates: Mapping[str, str] = field(default_factory=dict)
    factors: Mapping[str, str] = field(default_factory=dict)
    guards: tuple[Guard, ...] = ()
    prevalence: Prevalence | None = None
    correction: FamilyCorrection = "none"
    """How its decisions, and those of other contracts of the family, are corrected together."""
    family_size: int = 1
    """How many decisions the family has."""
    purpose: str = "test"
    """"test", or "measure" for a baseline."""

    def __repr__(self) -> str:
        names = ", ".join(one.criterion for one in self.criteria)
        size = f"at most {self.max_trials:,} trials, seed {self.seed}"
        return f"<{type(self).__name__} {self.contract!r}: {names}; {size}>"

    def criteria_of(self, experiment: str) -> Sequence[CriterionPlan]:
        """Return the criteria that share an experiment's trials, in the contract's order."""
        return [one for one in self.criteria if one.experiment == experiment]

    def experiment_of(self, criterion: CriterionPlan) -> ExperimentPlan:
        """Return the experiment whose trials decide a criterion."""
        return next(one for one in self.experiments if one.name == criterion.experiment)

    @property
    def reported(self) -> frozenset[str]:
        """The criteria that are measured and shown, and have no part in anything else."""
        return frozenset(
            one.criterion for one in self.criteria if one.standing.reported_at is not None
        )

    def analysis_of(self, criterion: CriterionPlan) -> Analysis:
        """Return whose trials decide a criterion."""
        return criterion.terms.analysis or self.analysis

    def intent_of(self, criterion: CriterionPlan) -> Intent:
        """Return the intent of a criterion: its own, or else that of the run."""
        return criterion.terms.intent or self.intent

    def is_smoke(self, criterion: CriterionPlan) -> bool:
        """Return whether a criterion is a quick check in a run that is evidence otherwise."""
        return self.intent_of(criterion) is Intent.SMOKE and self.intent is not Intent.SMOKE

    @property
    def max_trials(self) -> int:
        """The most trials the run can take."""
        return sum(one.trials for one in self.experiments)
