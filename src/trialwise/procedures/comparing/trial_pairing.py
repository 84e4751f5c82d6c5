"""Which trial of one run belongs to which of the other: one input, one repetition.

Its own module because the pairing decides which test is valid. A number of trials that was settled
before the first makes pairs of one input and repetition whatever the two orders were. Files with
results tell neither order nor seeds: their trials are paired by input and by the name of the trial,
or by input alone where each was tried once, and otherwise not at all. Where a run
stopped because of what it saw, only a common order leaves something to decide by: then the
beginning that both have is a sequence whose end looked at nothing but its past.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trialwise.model.claim import SamplingMode
from trialwise.model.evidence import StopReason
from trialwise.model.plan import ExperimentPlan, Plan
from trialwise.model.run import RunRecord
from trialwise.model.trial import NOT_MEASURED, Analysis, Trial
from trialwise.procedures.comparing.comparison_findings import PairingSummary


@dataclass(frozen=True, slots=True)
class Pair:
    """One input and repetition under two arms."""

    control: Trial
    candidate: Trial

    @property
    def is_excused(self) -> bool:
        """Whether either trial was not measured."""
        return self.control.is_excused or self.candidate.is_excused

    def is_left_out(self, analysis: Analysis) -> bool:
        """Return whether the analysis leaves either trial out."""
        return any(
            analysis.leaves_out(trial.error_class) for trial in (self.control, self.candidate)
        )

    def is_unjudged(self, criterion: str) -> bool:
        """Return whether a judge gave one criterion no verdict on a reply of either."""
        return any(
            trial.is_unjudged(trial.outcome(criterion)) for trial in (self.control, self.candidate)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """The pairs of one experiment, and all trials for where there are none."""

    summary: PairingSummary
    pairs: tuple[Pair, ...]
    """In the control's order of inputs; a trial that was asked again replaces one that was lost."""
    control: tuple[Trial, ...]
    candidate: tuple[Trial, ...]
    stops: tuple[StopReason, StopReason]
    asked: tuple[Pair, ...] = ()
    """The same pairs as they were asked first, with trials that were not measured."""
    from_files: bool = False
    """Whether either side was read from a file, which tells neither order nor seeds."""

    @property
    def repeats(self) -> bool:
        """Whether an input makes more than one pair."""
        return len({pair.control.input_id for pair in self.pairs}) < len(self.pairs)

    def list_measured(self, criterion: str, analysis: Analysis) -> list[Pair]:
        """Return the pairs in which one criterion was measured under both arms."""
        return [
            pair
            for pair in self.pairs
            if not (pair.is_unjudged(criterion) or pair.is_left_out(analysis))
        ]


def pair_trials(
    control: RunRecord,
    candidate: RunRecord,
    experiments: tuple[str, str],
    *,
    labels: tuple[str, str] = ("control", "candidate"),
) -> Pairing:
    """Pair the trials of an experiment of one run with those of another.

    Args:
        control: The run of the control.
        candidate: The run of the candidate.
        experiments: Their names in the two plans, which may differ.
        labels: The labels of the two arms.
    """
    ours, theirs = (
        tuple(record.trials.of_experiment(name).sketches())
        for record, name in zip((control, candidate), experiments, strict=True)
    )
    plans = (
        _find_experiment(control.plan, experiments[0]),
        _find_experiment(candidate.plan, experiments[1]),
    )
    stops = _stop(control, experiments[0]), _stop(candidate, experiments[1])
    same_inputs = plans[0].fingerprint == plans[1].fingerprint
    inputs = {trial.index: trial.input_id for trial in ours}
    shared = [trial for trial in theirs if trial.index in inputs]
    from_files = any(one.sampling_mode is SamplingMode.EXTERNALLY_SUPPLIED for one in plans)
    same_order = (
        same_inputs and not from_files and all(inputs[one.index] == one.input_id for one in shared)
    )
    fixed = all(
        _is_fixed(record.plan, name) and stop is StopReason.COMPLETE
        for record, name, stop in zip((control, candidate), experiments, stops, strict=True)
    )
    pairs: tuple[Pair, ...] = ()
    asked = pairs
    if from_files:
        names = control.texts.trial_names, candidate.texts.trial_names
        pairs = asked = _by_name(ours, theirs, names) if same_inputs else ()
    elif fixed and same_inputs:
        planned = plans[0].trials, plans[1].trials
        pairs = _by_repetition(_replace_lost(ours, planned[0]), _replace_lost(theirs, planned[1]))
        asked = _by_repetition(ours, theirs)
    elif same_order:
        pairs = asked = _beginning(ours, theirs)
    return Pairing(
        summary=PairingSummary(
            experiment=experiments[0],
            against=labels[0],
            arm=labels[1],
            pairs=len(pairs),
            same_inputs=same_inputs,
            same_order=same_order,
            same_seeds=bool(pairs)
            and not from_files
            and all(one.control.seed == one.candidate.seed for one in pairs),
            fixed_size=fixed,
            left_out=(len(ours) - len(pairs), len(theirs) - len(pairs)),
            excused=sum(pair.is_excused for pair in pairs),
        ),
        pairs=pairs,
        asked=asked,
        control=ours,
        candidate=theirs,
        stops=stops,
        from_files=from_files,
    )


def _find_experiment(plan: Plan, name: str) -> ExperimentPlan:
    return next(one for one in plan.experiments if one.name == name)


def _stop(record: RunRecord, name: str) -> StopReason:
    ends = {one.name: one.stop for one in record.verdict.experiments}
    return ends.get(name, record.verdict.stop)


def _is_fixed(plan: Plan, name: str) -> bool:
    """Return whether no outcome could change the number of trials.

    Also a design that ran to its last trial may have done so because of what it saw.
    """
    if plan.purpose == "measure" or any(one.experiment == name for one in plan.latency):
        return True
    return not any(
        one.limits.design is not None or (one.counting.curtailed and one.cutoff is not None)
        for one in plan.criteria_of(name)
        if not one.counting.rides_along
    )


def _by_repetition(ours: Sequence[Trial], theirs: Sequence[Trial]) -> tuple[Pair, ...]:
    """Pair the k-th trial of an input with the k-th of the other run; k depends on no outcome."""
    partners = dict(_repetitions(theirs))
    return tuple(Pair(trial, partners[key]) for key, trial in _repetitions(ours) if key in partners)


def _by_name(
    ours: Sequence[Trial],
    theirs: Sequence[Trial],
    names: tuple[Mapping[tuple[str, int], str], Mapping[tuple[str, int], str]],
) -> tuple[Pair, ...]:
    """Pair trials of one input and one name, or of one input that was tried once in both files.

    Names that only some trials of both files share belong to something else, such as the order of
    each file's own run, and pair nothing.
    """
    for known in (names, ({}, {})):
        first, second = (
            {(one.input_id, called.get((one.experiment, one.index))): one for one in trials}
            for trials, called in zip((ours, theirs), known, strict=True)
        )
        unique = len(first) == len(ours) and len(second) == len(theirs)
        if unique and (first.keys() <= second.keys() or second.keys() <= first.keys()):
            return tuple(Pair(one, second[key]) for key, one in first.items() if key in second)
    return ()


def _replace_lost(trials: Sequence[Trial], planned: int) -> Sequence[Trial]:
    """Return trials in their order, those asked again in the place of those not measured.

    Args:
        trials: All trials of an experiment.
        planned: How many were planned; those after them were asked again.
    """
    again: dict[str, list[Trial]] = {}
    trials = sorted(trials, key=lambda one: one.index)
    for trial in trials:
        if trial.index >= planned:
            again.setdefault(trial.input_id, []).append(trial)
    if not again:
        return trials
    found = []
    for trial in trials:
        if trial.index >= planned:
            continue
        kept, fresh = trial, again.get(trial.input_id)
        while fresh and kept.error_class in NOT_MEASURED:
            kept = fresh.pop(0)
        found.append(kept)
    return found


def _repetitions(trials: Sequence[Trial]) -> list[tuple[tuple[str, int], Trial]]:
    seen: Counter[str] = Counter()
    found = []
    for trial in trials:
        found.append(((trial.input_id, seen[trial.input_id]), trial))
        seen[trial.input_id] += 1
    return found


def _beginning(ours: Sequence[Trial], theirs: Sequence[Trial]) -> tuple[Pair, ...]:
    """Return the gapless beginning of the order of inputs that both runs have."""
    first, second = ({trial.index: trial for trial in one} for one in (ours, theirs))
    pairs: list[Pair] = []
    while len(pairs) in first and len(pairs) in second:
        pairs.append(Pair(first[len(pairs)], second[len(pairs)]))
    return tuple(pairs)
