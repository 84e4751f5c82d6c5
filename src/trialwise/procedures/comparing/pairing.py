"""Which arms are compared, which of their trials belong together, and whether that is fair.

The pairing decides which test is valid. A number of trials that was settled before the first makes
pairs of one input and repetition whatever the two orders were. Files with results tell neither
order nor seeds: their trials are paired by input and by the name of the trial, or by input alone
where each was tried once, and otherwise not at all. Where a run stopped because of what it saw,
only a common order leaves something to decide by: then the beginning that both have is a sequence
whose end looked at nothing but its past.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count, takewhile
from typing import Any, NamedTuple, TypeVar

from trialwise.documents.numbers import as_count
from trialwise.errors import InvalidArgument
from trialwise.model.claim import Claim, PopulationClaim, SamplingMode
from trialwise.model.evidence import StopReason
from trialwise.model.plan import Plan
from trialwise.model.run import RunRecord
from trialwise.model.trial import NOT_MEASURED, Analysis, Trial
from trialwise.procedures.comparing.findings import ArmRun, PairingSummary, ValidityCheck
from trialwise.stats.paired import sign_test

K = TypeVar("K")

#: The level of all checks together that arms are measured alike: a false alarm costs a verdict.
LEVEL = 0.01
#: Cases that a sentence names; the others are counted.
_MOST_NAMED = 3

# --- The arms -------------------------------------------------------------------------------------


def name_arms(
    records: Sequence[RunRecord], labels: Sequence[str] | None = None
) -> tuple[ArmRun, ...]:
    """Give runs the labels by which a comparison speaks of them.

    Args:
        records: The control's run first.
        labels: One for each; their contracts unless given, where those have different names.
    """
    names = label_contracts([record.plan.contract for record in records], labels)
    return tuple(ArmRun(name, record) for name, record in zip(names, records, strict=True))


def label_contracts(
    contracts: Sequence[str], labels: Sequence[object] | None = None
) -> tuple[str, ...]:
    """Return what to call arms: their contracts, where those have different names.

    Args:
        contracts: Their names, the control's first.
        labels: As somebody gave them; one for each arm.

    Raises:
        InvalidArgument: The labels are not different names.

    >>> label_contracts(["old", "new"]), label_contracts(["agent", "agent"])
    (('old', 'new'), ('control', 'candidate'))
    """
    names, arms = tuple(contracts), len(contracts)
    if labels is not None:
        given = tuple(one for one in labels if isinstance(one, str) and one.strip())
        if isinstance(labels, str) or not len(labels) == len(given) == len(set(given)) == arms:
            number = "two" if arms == 2 else str(arms)
            raise InvalidArgument("labels", labels, f"be {number} different names")
        return given
    if len(set(names)) == arms:
        return names
    if arms == 2:
        return "control", "candidate"
    return ("control", *(f"candidate {place}" for place in range(1, arms)))


# --- Pairs ----------------------------------------------------------------------------------------


def read_pass(trial: Trial, criteria: Sequence[str], analysis: Analysis) -> bool | None:
    """Return whether a trial passed all of some criteria; None where it does not count.

    Args:
        trial: Of one arm.
        criteria: By name.
        analysis: Whose trials count.
    """
    outcomes = [trial.outcome(name) for name in criteria]
    # A reply that no judge graded is neither a pass nor a failure.
    if analysis.leaves_out(trial.error_class) or any(map(trial.is_unjudged, outcomes)):
        return None
    return all(one.passed for one in outcomes)


class Pair(NamedTuple):
    """One input and repetition under two arms."""

    control: Trial
    candidate: Trial

    @property
    def is_excused(self) -> bool:
        """Whether either trial was not measured."""
        return any(trial.is_excused for trial in self)

    def is_left_out(self, analysis: Analysis) -> bool:
        """Return whether the analysis leaves either trial out."""
        return any(analysis.leaves_out(trial.error_class) for trial in self)

    def is_unjudged(self, criterion: str) -> bool:
        """Return whether a judge gave one criterion no verdict on a reply of either."""
        return any(trial.is_unjudged(trial.outcome(criterion)) for trial in self)

    def read(self, criterion: str, analysis: Analysis) -> tuple[bool, bool] | None:
        """Return whether the control and whether the candidate passed; None if left out."""
        ours, theirs = (read_pass(trial, (criterion,), analysis) for trial in self)
        return None if ours is None or theirs is None else (ours, theirs)


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

    def counts_inputs(self, claim: Claim) -> bool:
        """Return whether inputs are the units: a claim reaches beyond them, and some repeat."""
        repeats = len({pair.control.input_id for pair in self.pairs}) < len(self.pairs)
        return claim.population is PopulationClaim.SUPERPOPULATION and repeats

    @property
    def arms(self) -> dict[str, Any]:
        """Which two arms it is about, as the fields of a finding."""
        return {"arm": self.summary.arm, "against": self.summary.against}

    @property
    def place(self) -> dict[str, Any]:
        """The two arms and the experiment, as the fields of a finding."""
        return {**self.arms, "experiment": self.summary.experiment}

    def list_measured(self, criterion: str, analysis: Analysis) -> list[Pair]:
        """Return the pairs in which one criterion was measured under both arms."""
        return [pair for pair in self.pairs if pair.read(criterion, analysis) is not None]


def pair_trials(control: ArmRun, candidate: ArmRun, *experiments: str) -> Pairing:
    """Pair the trials of an experiment of one arm with those of another.

    Args:
        control: The arm that is known.
        candidate: The arm that is compared with it.
        experiments: The name in both plans, or the name in each.
    """
    names = experiments[0], experiments[-1]
    sides = list(zip((control.record, candidate.record), names, strict=True))
    ours, theirs = (tuple(run.trials.of_experiment(name).sketches()) for run, name in sides)
    first, second = (
        next(one for one in run.plan.experiments if one.name == name) for run, name in sides
    )
    stops = _find_stop(*sides[0]), _find_stop(*sides[1])
    same_inputs = first.fingerprint == second.fingerprint
    inputs = {trial.index: trial.input_id for trial in ours}
    from_files = SamplingMode.EXTERNALLY_SUPPLIED in (first.sampling_mode, second.sampling_mode)
    # The order in a file is that of whoever wrote it, and says nothing of when a trial was made.
    same_order = (same_inputs and not from_files) and all(
        inputs.get(one.index, one.input_id) == one.input_id for one in theirs
    )
    # Both ran all their trials, and nothing that they saw could have ended them earlier: only then
    # does McNemar's test, which knows no looks, keep its level.
    fixed = stops == (StopReason.COMPLETE,) * 2
    fixed = fixed and all(_is_fixed(run.plan, name) for run, name in sides)
    pairs: tuple[Pair, ...] = ()
    asked = pairs
    if from_files:
        called = [run.texts.trial_names for run, _ in sides]
        pairs = asked = _pair_names(ours, theirs, called) if same_inputs else ()
    elif fixed and same_inputs:
        # A fresh trial stands where its lost one was planned, or repeats would be matched askew.
        again = _replace_lost(ours, first.trials), _replace_lost(theirs, second.trials)
        pairs = _match(_number_repeats(again[0]), _number_repeats(again[1]))
        asked = _match(_number_repeats(ours), _number_repeats(theirs))
    elif same_order:
        pairs = asked = _pair_beginning(ours, theirs)
    # Files do not tell the seeds of their trials.
    same_seeds = bool(pairs) and not from_files
    same_seeds = same_seeds and all(one.control.seed == one.candidate.seed for one in pairs)
    return Pairing(
        summary=PairingSummary(
            experiment=names[0],
            against=control.label,
            arm=candidate.label,
            pairs=len(pairs),
            same_inputs=same_inputs,
            same_order=same_order,
            same_seeds=same_seeds,
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


def _find_stop(record: RunRecord, name: str) -> StopReason:
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


def _match(ours: Mapping[K, Trial], theirs: Mapping[K, Trial]) -> tuple[Pair, ...]:
    return tuple(Pair(one, theirs[key]) for key, one in ours.items() if key in theirs)


def _number_repeats(trials: Sequence[Trial]) -> dict[tuple[str, int], Trial]:
    """Return the k-th trial of an input by both; k depends on no outcome."""
    seen: Counter[str] = Counter()
    found = {}
    for trial in trials:
        found[trial.input_id, seen[trial.input_id]] = trial
        seen[trial.input_id] += 1
    return found


def _pair_names(
    ours: Sequence[Trial], theirs: Sequence[Trial], names: Sequence[Mapping[tuple[str, int], str]]
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
            return _match(first, second)
    return ()


def _pair_beginning(ours: Sequence[Trial], theirs: Sequence[Trial]) -> tuple[Pair, ...]:
    """Return the gapless beginning of the order of inputs that both runs have."""
    first, second = ({trial.index: trial for trial in one} for one in (ours, theirs))
    common = takewhile(lambda place: place in first and place in second, count())
    return tuple(Pair(first[place], second[place]) for place in common)


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
    for trial in (one for one in trials if one.index < planned):
        # In the order of issue: which fresh trial stands for which lost one must depend on no
        # outcome.
        kept, fresh = trial, again.get(trial.input_id)
        while fresh and kept.error_class in NOT_MEASURED:
            kept = fresh.pop(0)
        found.append(kept)
    return found


# --- Whether the arms saw the same cases, and were measured alike ---------------------------------
# A comparison of pairs is valid only where the pairs are those that were planned. If an arm could
# be measured less often than the other, the pairs that are left may be the easy ones, and no test
# of them says anything about the arms. Whether the shares differ is an exact question: of the pairs
# in which exactly one arm was not measured, either arm is as likely.


def check_validity(pairings: Sequence[Pairing], analysis: Analysis) -> tuple[ValidityCheck, ...]:
    """Return whether every two arms saw the same cases and were measured alike.

    Args:
        pairings: One for every experiment of every two arms.
        analysis: Where it counts trials that were not measured, nothing is withheld.
    """
    # The checks share their level, so that many arms raise no more false alarms than two.
    level = LEVEL / max(1, len(pairings))
    both = ((_check_cases(one), _check_measured(one, level, analysis)) for one in pairings)
    return tuple(chain.from_iterable(both))


def name_shared(summary: PairingSummary, *others: PairingSummary) -> str:
    """Name what the two sides of every pair share.

    Args:
        summary: Of a pairing.
        others: Of further ones.
    """
    every = (summary, *others)
    alike = ["inputs"]
    alike += ["order"] if all(one.same_order for one in every) else []
    alike += ["seeds"] if all(one.same_seeds for one in every) else []
    return " and ".join(filter(None, (", ".join(alike[:-1]), alike[-1])))


def _check_cases(pairing: Pairing) -> ValidityCheck:
    summary = pairing.summary
    reasons = list(_list_differences(pairing))
    both = f"{summary.against} and {summary.arm}"
    statement = (
        f"{both} did not see the same cases: {'; '.join(reasons)}."
        if reasons
        else f"{both} saw the same {summary.pairs:,} cases: the same {name_shared(summary)}."
    )
    return ValidityCheck(name="same cases", **pairing.place, holds=not reasons, statement=statement)


def _list_differences(pairing: Pairing) -> Iterator[str]:
    """Yield why trials of either arm have no partner."""
    summary = pairing.summary
    if not summary.same_inputs:
        yield "their inputs differ"
        return
    if pairing.from_files and not summary.pairs:
        yield "the files do not say which trials belong together"
        return
    if not any(summary.left_out):
        return
    partners = {id(trial) for pair in pairing.pairs for trial in pair}
    sides = (summary.against, pairing.control), (summary.arm, pairing.candidate)
    for (label, mine), (_, other) in (sides, sides[::-1]):
        last = max((trial.index for trial in other), default=-1)
        asked_again = {trial.input_id for trial in mine if trial.error_class in NOT_MEASURED}
        alone = [
            trial
            for trial in mine
            if id(trial) not in partners
            # A fresh trial in place of one that was not measured is no case of its own.
            and trial.error_class not in NOT_MEASURED
            and not (trial.index > last and trial.input_id in asked_again)
        ]
        if alone:
            trials = as_count(len(alone), "trial")
            yield f"{trials} of {label} without a partner ({_explain_alone(alone, other, last)})"


def _explain_alone(alone: Sequence[Trial], other: Sequence[Trial], last: int) -> str:
    """Return which cases only one arm has, and why."""
    theirs = {trial.input_id for trial in other}
    never = list(dict.fromkeys(one.input_id for one in alone if one.input_id not in theirs))
    if never:
        named = ", ".join(never[:_MOST_NAMED])
        more = f" and {len(never) - _MOST_NAMED} more" if len(never) > _MOST_NAMED else ""
        return f"the other was never asked {named}{more}"
    if max(one.index for one in alone) > last:
        return "the other run ended earlier"
    return "the other has fewer repeats of the same inputs"


def _check_measured(pairing: Pairing, level: float, analysis: Analysis) -> ValidityCheck:
    summary = pairing.summary

    def is_lost(trial: Trial) -> bool:
        return trial.error_class in NOT_MEASURED or analysis.leaves_out(trial.error_class)

    lost = [tuple(map(is_lost, pair)) for pair in pairing.asked]
    # Among pairs that lost exactly one side either arm is as likely, whatever is lost together.
    p_value = sign_test(lost.count((True, False)), lost.count((False, True))).p_value
    ours, theirs = sum(one for one, _ in lost), sum(other for _, other in lost)
    shares = (
        f"could not be measured: {theirs:,} of {len(lost):,} in {summary.arm}, "
        f"{ours:,} of {len(lost):,} in {summary.against}"
    )
    holds = p_value > level
    return ValidityCheck(
        name="measured alike",
        **pairing.place,
        holds=holds,
        # Where the analysis counts them as failures, nothing was left out that could mislead.
        withholds=not holds and analysis is not Analysis.INTENT_TO_TREAT,
        statement=shares if ours or theirs else "every trial of both arms was measured",
        p_value=p_value,
    )
