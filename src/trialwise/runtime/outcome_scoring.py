"""Verdicts and metrics from outcomes that somebody else produced, and baselines made of them.

Nothing is run. The design that would have led to the outcomes is planned, the rows become its
trials, and it is judged like any other run, so that a record of it can be decided again.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TextIO, TypeAlias

from trialwise.documents.numbers import as_count
from trialwise.engine.criterion_progress import combine_stops
from trialwise.engine.excerpts import Excerpts
from trialwise.engine.ports import SystemClock
from trialwise.engine.run_state import RunOutcome
from trialwise.errors import BaselineError, InvalidArgument
from trialwise.model import Analysis, Baseline, Claim, Criterion, Intent, Latency, RunOptions, Trial
from trialwise.model.evidence import Spending, StopReason
from trialwise.model.plan import CriterionPlan, Plan
from trialwise.model.run import AskedInput, RunRecord, RunTexts, Trials
from trialwise.outcomes import outcome_plans as plans
from trialwise.outcomes.outcome_rows import Outcomes
from trialwise.outcomes.outcome_trials import Metrics, Order, metrics_of
from trialwise.procedures.criterion_rows import Stream
from trialwise.runtime.chosen_baselines import BaselineSearch
from trialwise.runtime.measuring import Measurement, write_baseline
from trialwise.runtime.result import Result
from trialwise.runtime.workspace import decide_and_keep
from trialwise.stats.result_types import Decision, Rule
from trialwise.stores.baselines import FileDesignCache
from trialwise.validation import require_choice

_UNUSED = "{trials} of the file come after the ones that decide this criterion and are not used."

Source: TypeAlias = "Outcomes | str | PathLike[str] | Sequence[str | PathLike[str]]"
"""Outcomes, or the files that hold them."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A verdict on somebody else's outcomes, with the metrics of them."""

    result: Result
    metrics: Metrics
    outcomes: Outcomes
    unused: int = 0
    """Trials of the file that come after the decision, or beyond the number declared."""

    @property
    def decision(self) -> Decision:
        """PASS, FAIL or INCONCLUSIVE."""
        return self.result.decision

    @property
    def passed(self) -> bool:
        """Whether every criterion passed."""
        return self.result.passed

    def show(self, *, transparent: bool = False, stream: TextIO | None = None) -> None:
        """Print the summary, or the full statistical analysis."""
        self.result.show(transparent=transparent, stream=stream)

    def to_dict(self) -> dict[str, Any]:
        """Verdict and metrics as plain values, fit for JSON."""
        return {
            "source": self.outcomes.source,
            "format": self.outcomes.format,
            "notes": list(self.outcomes.notes),
            "unused": self.unused,
            "verdict": self.result.to_dict(),
            "metrics": self.metrics.to_dict(),
        }


def score(
    outcomes: Source,
    *,
    at_least: float | Mapping[str, float] | None = None,
    no_worse_than: str | Baseline | None = None,
    never_fails: bool = False,
    mean_at_least: float | None = None,
    criteria: Sequence[Criterion] | None = None,
    contract: str | None = None,
    trials: int | None = None,
    design: Literal["fixed", "sequential"] = "fixed",
    max_trials: int | None = None,
    margin: float | None = None,
    confidence: float = 0.95,
    power: float | None = None,
    undecided: str | None = None,
    rule: Rule = "exact",
    intent: Intent | str = Intent.VERIFICATION,
    analysis: Analysis | str = Analysis.INTENT_TO_TREAT,
    claim: Claim | None = None,
    latency: Latency | None = None,
    each_input: bool = False,
    order: Order | str = Order.UNKNOWN,
    seed: int = 0,
    ks: Sequence[int] | None = None,
    covariates: Mapping[str, str] | None = None,
    factors: Mapping[str, str] | None = None,
    baselines: str | Path = "baselines",
    overrides: Sequence[str] = (),
    now: datetime | None = None,
    redact: Callable[[str], str] | None = None,
) -> Scored:
    """Judge outcomes that somebody else produced.

    Every row counts: what broke, or has no result, is a failure of its class. The decision is that
    of a fixed design at the number of trials in the file, and says on what condition it holds;
    where more were to be made, by the file or by `trials`, it is INCONCLUSIVE unless what is
    missing could not change it.

    Args:
        outcomes: As `read_outcomes` gives them, or files for it to read without a layout.
        at_least: The required rate of every criterion, or of some by name.
        no_worse_than: "baseline" for the one that fits, an identifier, or the baseline itself.
        never_fails: Ask only whether any failure was observed.
        mean_at_least: The required mean score of outcomes that were read with `pass_at`.
        criteria: Instead of the four above: criteria by the names they have in the file. Their
            postconditions are not used.
        contract: What was tested; by default what the file says.
        trials: How many were planned, of each input with `each_input`, where somebody knows.
        design: "sequential" decides in the order of the trials, as early as it may.
        max_trials: Upper limit on trials of a sequential decision.
        margin: Accept a rate this far below the required one; none unless given.
        confidence: Of every criterion.
        power: Of every criterion.
        undecided: "fail" if a file that shows neither a rate above the required one nor one below
            it is to FAIL; otherwise it is INCONCLUSIVE, except by `rule` "wilson" and "fisher".
        rule: The rule set.
        intent: VERIFICATION refuses outcomes that cannot support their claim; SMOKE judges them.
        analysis: Whose trials decide.
        claim: What the verdict is about; by default these inputs.
        latency: Limits on the latencies of the trials that passed.
        each_input: Whether every input is judged on its own.
        order: What is known of the order of the trials: "file", "time", or "unknown".
        seed: Of the random order that stands for an unknown one.
        ks: For pass@k and pass^k.
        covariates: Conditions that the outcomes were made under.
        factors: What was under test, beside what the file says of it.
        baselines: The folder baselines are kept in.
        overrides: Major caveats of a baseline that are admitted, by code.
        now: When the baseline's age is taken; by default now.
        redact: Takes secrets out of every text.

    Raises:
        OutcomesUnreadable: A file cannot be read.
        DesignRefused: The outcomes cannot support what is asked of them.

    >>> from trialwise.outcomes.outcome_rows import OutcomeRow
    >>> rows = [OutcomeRow(input_id="q1", criterion="answers", passed=True)] * 50
    >>> scored = score(Outcomes(rows=tuple(rows), name="sums"), at_least=0.9)
    >>> scored.decision, scored.metrics.criteria[0].pass_k[-1].pass_hat_k
    (<Decision.PASS: 'PASS'>, 1.0)
    """
    found = _outcomes_of(outcomes)
    if criteria is None:
        criteria = plans.question_all(
            found,
            at_least=at_least,
            no_worse_than=no_worse_than,
            never_fails=never_fails,
            mean_at_least=mean_at_least,
            margin=margin,
            confidence=confidence,
            power=power,
            undecided=undecided,
            each_input=each_input,
        )
    elif never_fails or isinstance(no_worse_than, str) or (at_least, mean_at_least) != (None, None):
        raise InvalidArgument("criteria", [one.name for one in criteria], "be the only question")
    require_choice("design", design, ("fixed", "sequential"))
    # "balanced" means exactly the list that the file has, and nothing of it is cut short.
    options = RunOptions(
        max_trials=max_trials,
        intent=intent,  # type: ignore[arg-type]
        rule=rule,
        analysis=analysis,  # type: ignore[arg-type]
        seed=seed,
        draw="balanced",
        curtail=False,
        overrides=tuple(overrides),
    )
    asked = plans.ask(
        found,
        criteria,
        contract=contract or found.name,
        options=options,
        order=Order(require_choice("order", str(order), tuple(map(str, Order)))),
        trials=trials,
        sequential=design == "sequential",
        claim=claim or Claim(),
        latency=latency,
        factors={**found.factors, **(factors or {})},
        covariates=covariates or {},
    )
    moment = now or SystemClock().now()
    search = BaselineSearch(
        plans.contract_of(asked), plans.scopes_of_outcomes(asked), asked.covariates, options, moment
    )
    given = no_worse_than if isinstance(no_worse_than, Baseline) else None
    reference = search.find(Path(baselines), given)
    plan = plans.plan_outcomes(
        asked,
        baseline=reference.baseline,
        references=reference.references,
        guards=reference.guards,
        cache=FileDesignCache() if asked.sequential else None,
    )
    made = _trials(asked, redact)
    plan, outcome = _use_trials(plan, made)
    outcome = outcome._replace(texts=_keep_inputs(found, outcome.trials, redact))
    return Scored(
        Result(decide_and_keep(plan, outcome)),
        metrics_of(asked.experiments, ks=ks, confidence=confidence, rule=rule, order=asked.order),
        found,
        len(made) - len(outcome.trials),
    )


def measure_outcomes(
    outcomes: Source,
    *,
    contract: str | None = None,
    criteria: Sequence[str] = (),
    identifier: str | None = None,
    created_at: datetime | None = None,
    valid_days: float | None = None,
    grace_days: float = 0.0,
    claim: Claim | None = None,
    covariates: Mapping[str, str] | None = None,
    factors: Mapping[str, str] | None = None,
    baselines: str | Path = "baselines",
    redact: Callable[[str], str] | None = None,
) -> Measurement:
    """Make a baseline of outcomes that somebody else produced, and keep it.

    It is a reference for other outcomes of the same inputs, read in the same way. Like any
    baseline it is only as good as its size was settled beforehand.

    Args:
        outcomes: As of `score`.
        contract: What was measured; by default what the file says.
        criteria: Which criteria, by name; by default all.
        identifier: What to call it; by default the contract and the moment.
        created_at: When the measurement ended, with its zone; by default now.
        valid_days: How long it is taken to stay representative.
        grace_days: How long after that it is still admitted, with a warning.
        claim: What it is about.
        covariates: Conditions that it was measured under.
        factors: What was under test, beside what the file says of it.
        baselines: The folder baselines are kept in.
        redact: Takes secrets out of every text.

    Raises:
        BaselineError: The file says that trials are missing, so no baseline was written.
    """
    found = _outcomes_of(outcomes)
    asked = _ask_counts(
        found,
        criteria,
        contract=contract or found.name,
        claim=claim or Claim(),
        factors={**found.factors, **(factors or {})},
        covariates=covariates or {},
    )
    plan = plans.plan_outcomes(asked, measuring=True)
    trials = _trials(asked, redact)
    if len(trials) < plan.max_trials:
        raise BaselineError(
            f"no baseline was written: {found.source} holds {len(trials)} of "
            f"{plan.max_trials} trials. Finish the run it is of first."
        )
    return write_baseline(
        plan,
        trials,
        scopes=plans.scopes_of_outcomes(asked),
        baselines=Path(baselines),
        created_at=created_at or SystemClock().now(),
        identifier=identifier,
        valid_days=valid_days,
        grace_days=grace_days,
    )


def record_outcomes(outcomes: Source, *, criteria: Sequence[str] = ()) -> RunRecord:
    """Make a record of outcomes that somebody else produced, to compare it with others.

    It decides nothing: the number of trials is taken as settled beforehand. Trials keep the names
    that the file gives them, so that those of two files can be paired.

    Args:
        outcomes: As of `score`.
        criteria: Which criteria, by name; by default all.

    Raises:
        OutcomesUnreadable: A file cannot be read.

    >>> from trialwise.outcomes.outcome_rows import OutcomeRow
    >>> rows = [OutcomeRow(input_id="q1", criterion="answers", passed=True)] * 5
    >>> len(record_outcomes(Outcomes(rows=tuple(rows), name="sums")).trials)
    5
    """
    found = _outcomes_of(outcomes)
    asked = _ask_counts(found, criteria, contract=found.name, factors=found.factors)
    plan, outcome = _use_trials(plans.plan_outcomes(asked, measuring=True), _trials(asked, None))
    names = {
        (one.name, index): told.rows[0].trial
        for one in asked.experiments
        for index, told in enumerate(one.trials)
        if told.rows[0].trial is not None
    }
    texts = replace(_keep_inputs(found, outcome.trials, None), trial_names=names)
    return decide_and_keep(plan, outcome._replace(texts=texts))


# --- What is asked --------------------------------------------------------------------------------


def _outcomes_of(source: Source) -> Outcomes:
    if isinstance(source, Outcomes):
        return source
    from trialwise.outcomes.outcome_reading import read_outcomes

    return read_outcomes(source)


def _ask_counts(outcomes: Outcomes, criteria: Sequence[str], **arguments: Any) -> plans.Asked:
    """Ask for the counts of some criteria, or of all; nothing is decided by them."""
    names, nothing = criteria or outcomes.criteria, plans.Supplied()
    named = [Criterion(name, nothing, never_fails=True) for name in names]
    # All trials count, as they do where outcomes are scored.
    options = RunOptions(draw="balanced", curtail=False, analysis=Analysis.INTENT_TO_TREAT)
    return plans.ask(outcomes, named, options=options, order=Order.FILE, **arguments)


# --- What comes of it -----------------------------------------------------------------------------


def _keep_inputs(
    outcomes: Outcomes, trials: Sequence[Trial], redact: Callable[[str], str] | None
) -> RunTexts:
    """What the inputs are, as far as the file says more than their names."""
    text = Excerpts(reply_limit=0, redact=redact).text
    known = {
        row.input_id: AskedInput(
            value=text(row.asked), expected=None if row.expected is None else text(row.expected)
        )
        for row in reversed(outcomes.rows)
        if row.asked
    }
    return RunTexts(
        inputs={
            (trial.experiment, trial.input_id): known[trial.input_id]
            for trial in trials
            if trial.input_id in known
        }
    )


def _trials(asked: plans.Asked, redact: Callable[[str], str] | None) -> Trials:
    text = Excerpts(reply_limit=0, redact=redact).text
    trials: list[Trial] = []
    for one in asked.experiments:
        indexes = one.indexes(each_input=asked.criterion(one.criteria[0]).each_input)
        trials += [
            told.trial(one.name, index, text)
            for index, told in zip(indexes, one.trials, strict=True)
        ]
    return Trials.of(trials)


# --- The trials that a plan uses, and whether they were enough ------------------------------------


def _use_trials(plan: Plan, trials: Trials) -> tuple[Plan, RunOutcome]:
    """Take the trials in order until every criterion is decided.

    Trials beyond that are left out of the record, as they would not have been made; the criterion
    says how many there were.

    Args:
        plan: How the criteria are decided.
        trials: The trials of all experiments, each in the order of inputs.

    Returns:
        The plan with what its criteria have to say, and the outcome of the trials that decide.
    """
    used: list[Trial] = []
    stops: dict[str, StopReason] = {}
    criteria: dict[str, CriterionPlan] = {}
    message = ""
    for experiment in plan.experiments:
        mine, reasons = trials.of_experiment(experiment.name), []
        wanted: set[int] = set()
        for place, one in enumerate(plan.criteria_of(experiment.name)):
            indexes, stop = _reach(one, place, mine, plan.analysis_of(one))
            wanted |= indexes
            reasons.append(stop)
            unused = len(mine) - len(indexes)
            more = (_UNUSED.format(trials=as_count(unused, "trial")),) if unused else ()
            criteria[one.criterion] = replace(one, caveats=one.caveats + more)
        used += [trial for trial in mine if trial.index in wanted]
        stops[experiment.name] = combine_stops(reasons)
        if stops[experiment.name] is StopReason.TRIALS_BUDGET and not message:
            message = (
                f"The file holds {len(mine)} of the {experiment.trials} trials that were planned."
            )
    outcome = RunOutcome(
        Trials.of(used), stops, combine_stops(stops.values()), _sum_spending(used), message
    )
    return replace(plan, criteria=tuple(criteria[one.criterion] for one in plan.criteria)), outcome


def _reach(
    criterion: CriterionPlan, place: int, trials: Sequence[Trial], analysis: Analysis
) -> tuple[set[int], StopReason]:
    """Return the trials that a criterion looks at, and why it looks no further."""
    if criterion.counting.rides_along:
        return {trial.index for trial in trials}, StopReason.COMPLETE
    sequential = criterion.counting.stops_early
    streams: dict[str, Stream] = {}
    seen: Counter[str] = Counter()
    indexes: set[int] = set()
    for trial in trials:
        key = trial.input_id if criterion.counting.each_input else ""
        stream = streams.setdefault(key, Stream(criterion.limits))
        # A fixed design uses all of its trials, even if fewer already decide it.
        if not stream.is_settled if sequential else seen[key] < criterion.trials:
            indexes.add(trial.index)
        excused = analysis.leaves_out(trial.error_class)
        stream.add(seen[key], passed=None if excused else trial.outcomes[place].passed)
        seen[key] += 1
    # A trial that the analysis leaves out keeps its place and is not replaced.
    short = [one for one in streams.values() if one.next_place < criterion.trials]
    if not all(one.is_settled for one in short):
        return indexes, StopReason.TRIALS_BUDGET
    if all(one.decision is None for one in short):
        return indexes, StopReason.COMPLETE
    return indexes, StopReason.DECIDED if sequential else StopReason.CURTAILED


def _sum_spending(trials: Sequence[Trial]) -> Spending:
    costs = [trial.cost_usd for trial in trials if trial.cost_usd is not None]
    return Spending(
        trials=len(trials),
        attempts=sum(trial.attempts for trial in trials),
        tokens=sum(trial.usage.total_tokens for trial in trials if trial.usage is not None),
        # Rounded once: the order of the rows in a file must not change the last digit.
        usd=math.fsum(costs) if costs else None,
    )
