"""Gates: limits on numbers of repeated runs, such as pass^k or stability. They have no error rate.

A gate is about a number of runs that was fixed before the first one. Where a criterion may stop the
run early, how many there are depends on what was seen, and neither pass^k nor a mean of stability
scores is what it is called. As with criteria, a plan that was cut short decides nothing. A
criterion that only advises, such as a judge that nobody has measured, decides no verdict and so no
gate. A run that a judge gave no verdict on is neither a pass nor a failure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from trialwise.documents.numbers import STOPS
from trialwise.model.claim import SamplingMode
from trialwise.model.contract import REPLIED, Contract
from trialwise.model.evidence import StopReason
from trialwise.model.gate import TARGETS, Gate, targets_of
from trialwise.model.matcher import NumberSchema
from trialwise.model.metrics import GateCheck, GateEvidence, GateFinding, GateNumber
from trialwise.model.options import RunOptions
from trialwise.model.plan import CriterionPlan, ExperimentPlan, Plan
from trialwise.model.run import Trials
from trialwise.model.trial import Analysis, Trial
from trialwise.model.trial_table import TrialTable
from trialwise.model.verdict import Decision
from trialwise.procedures.characteristic import Characteristic
from trialwise.procedures.composite import combine
from trialwise.procedures.gate_measures import MEASURES
from trialwise.procedures.metrics import Measured
from trialwise.stats.result_types import Undefined

_ONCE = frozenset({SamplingMode.WITHOUT_REPLACEMENT, SamplingMode.EXHAUSTIVE})


class Gates:
    """Numbers of repeated runs, held against limits: planned, decided and explained."""

    name = "GATE"
    question = "Do the numbers of repeated runs keep their limits?"

    def plan(
        self,
        contract: Contract,
        options: RunOptions,
        experiment: ExperimentPlan,
        criteria: Sequence[CriterionPlan],
    ) -> tuple[list[CriterionPlan], list[str]]:
        """Give gates their runs: all that are planned, however soon the criteria are certain.

        Args:
            contract: With its gates.
            options: How the run is made.
            experiment: One of its samplings, as planned so far.
            criteria: Those of the sampling.

        Returns the criteria as the gates need them, and why the design gives a gate no runs.
        """
        mine = [
            gate
            for gate in contract.gates
            if gate.needs_runs and experiment.name in contract.gate_experiments(gate)
        ]
        if not mine:
            return list(criteria), []
        refusals = [
            f"{gate.name}: {reason}"
            for gate in mine
            if (
                reason := _find_shortage(gate, experiment, criteria)
                or _find_unstated(gate, experiment.name, contract, options)
            )
        ]
        # A run that ends as soon as its criteria are certain has few runs where they fail early.
        # Its pass^k would be that of a stopping rule, and not of k runs.
        return [one.change(curtailed=False, looks=()) for one in criteria], refusals

    def decide(
        self, plan: Plan, trials: Mapping[str, TrialTable], stops: Mapping[str, StopReason]
    ) -> tuple[GateFinding, ...]:
        """Return what every gate of a plan found.

        Args:
            plan: What was to be run.
            trials: What was run, by experiment, in the order of inputs.
            stops: Why each experiment ended.
        """
        experiments = {one.name: one for one in plan.experiments}
        found = []
        for gate in plan.gates:
            mine = [experiments[name] for name in gate.all_samplings if name in experiments]
            ends = [stops[one.name] for one in mine]
            stop = next((one for one in ends if one.is_premature), ends[0])
            found.append(_decide_gate(_GatedRuns(gate, plan, mine, trials), stop))
        return tuple(found)

    def characterize(self, gate: Gate) -> Characteristic:
        """Return that no number limits its errors: a limit is held against an estimate."""
        return Characteristic(uncounted=dict.fromkeys(Decision, _WITHOUT_ERROR))

    def explain(self, finding: GateFinding) -> tuple[str, ...]:
        """Say what a reader must know of its decision: that it has no error rate, and on what."""
        if not finding.checks:
            return ()
        named = ", ".join(finding.heuristics)
        heuristic = f" Heuristic: {named}." if named else ""
        return (f"A gate holds a number against a limit and has no error rate.{heuristic}",)


_WITHOUT_ERROR = "a gate, no known error"
PROCEDURE = Gates()


def measure_gate(
    gate: Gate, plan: Plan, trials: Trials, samplings: Sequence[str]
) -> dict[str, float]:
    """Return the numbers of a gate, by target; those that are undefined are left out.

    Args:
        gate: The gate.
        plan: What was run.
        trials: All of its trials.
        samplings: The samplings that the gate is about.
    """
    # A number that is undefined is kept by no baseline: no later run could be held against it.
    experiments = [one for one in plan.experiments if one.name in samplings]
    tables = {one.name: trials.of_experiment(one.name) for one in experiments}
    _, measured = _GatedRuns(gate, plan, experiments, tables).measure()
    return {
        name: float(one.value)
        for name, one in measured.items()
        if not isinstance(one.value, Undefined)
    }


# --- How many runs every input gets -----------------------------------------------------------


def _find_shortage(
    gate: Gate, experiment: ExperimentPlan, criteria: Sequence[CriterionPlan]
) -> str:
    """Return why a planned experiment does not give a gate its runs; nothing where it does."""
    early = [one.criterion for one in criteria if one.limits.design is not None]
    if early:
        return (
            f"it needs a number of runs that is fixed, and {', '.join(early)} may stop early: give "
            f"`trials`, at least {gate.fewest_runs} for each input"
        )
    # What is asked further gives one run to each input that had none, and no second one.
    is_split = any(one.counting.each_input for one in criteria)
    runs = max(_count_runs(experiment, is_split), 1 if experiment.further else 0)
    if runs >= gate.fewest_runs:
        return ""
    inputs = len(experiment.input_ids)
    needed = f"it needs at least {gate.fewest_runs} runs of each input"
    if experiment.draw == "independent" and inputs > 1:
        return f"{needed}, which independent draws do not ensure: draw balanced"
    got = {0: "some would get none", 1: "some would get one"}.get(runs, f"some would get {runs}")
    return f"{needed}, and {got}: give at least {gate.fewest_runs * inputs} trials"


def _count_runs(experiment: ExperimentPlan, is_split: bool) -> int:
    """Count the runs that every input is sure to get."""
    trials, repetitions = experiment.trials - experiment.further, experiment.repetitions
    inputs = len(repetitions)
    if experiment.sampling_mode in _ONCE:
        return 1 if trials >= inputs else 0
    if is_split or inputs == 1:
        return trials // inputs
    if experiment.draw == "independent":
        return 0
    # Balanced draws give every input its share of each whole round. What is left over goes to some
    # inputs only, and a gate is about all of them.
    return trials // sum(repetitions) * min(repetitions)


def _find_unstated(gate: Gate, name: str, contract: Contract, options: RunOptions) -> str:
    """Return that nobody says how often the same is run; nothing where somebody does."""
    criteria = [one for one in contract.criteria if contract.experiment_of(one) == name]
    if options.trials_of(name) is not None or any(one.trials for one in criteria):
        return ""
    if gate.looks_at_criteria and not all(one.report_only for one in criteria):
        return ""
    fewest, inputs = max(2, gate.fewest_runs), len(contract.samplings[name].inputs)
    return (
        f"it is about repeated runs: give `trials`, at least {fewest * inputs}, which is {fewest} "
        "for each input"
    )


# --- What the runs come to --------------------------------------------------------------------


class _GatedRuns:
    """The runs that a gate is about, and the criteria that grade them."""

    def __init__(
        self,
        gate: Gate,
        plan: Plan,
        experiments: Sequence[ExperimentPlan],
        trials: Mapping[str, TrialTable],
    ) -> None:
        self.gate = gate
        self.plan = plan
        self.experiments = experiments
        self.tables = [trials[one.name] for one in experiments]
        self.grading = Grading.of(
            gate, [one for each in experiments for one in plan.criteria_of(each.name)]
        )
        self.runs: dict[str, Sequence[Trial]] = {}
        self.graders: dict[str, Sequence[str]] = {}
        self.silent = 0
        for experiment, table in zip(experiments, self.tables, strict=True):
            self._gather(experiment, table)

    def _gather(self, experiment: ExperimentPlan, table: TrialTable) -> None:
        """Add the runs of each input that count, and count those that a judge was silent on."""
        start = f"{experiment.name}: " if len(self.experiments) > 1 else ""
        here = {one.criterion for one in self.plan.criteria_of(experiment.name)}
        names = [name for name in self.grading.counting if name in here]
        runs: dict[str, list[Trial]] = {name: [] for name in experiment.input_ids}
        for trial in table.sketches():
            if self.plan.analysis.leaves_out(trial.error_class):
                continue
            if any(trial.is_unjudged(trial.outcome(name)) for name in names):
                self.silent += 1
            else:
                runs[trial.input_id].append(trial)
        self.runs |= {f"{start}{name}": mine for name, mine in runs.items()}
        self.graders |= {f"{start}{name}": names for name in runs}

    def measure(self) -> tuple[GateEvidence, Mapping[str, Measured]]:
        """Measure what the gate is about, and the number of every target."""
        claim = self.plan.claim.population
        return MEASURES[self.gate.name](self.gate, self.runs, self.graders, claim)

    @property
    def is_whole(self) -> bool:
        """Whether all planned runs were made."""
        pairs = zip(self.tables, self.experiments, strict=True)
        return all(len(table) >= one.trials for table, one in pairs)


def _decide_gate(gated: _GatedRuns, stop: StopReason) -> GateFinding:
    gate, grading, is_whole = gated.gate, gated.grading, gated.is_whole
    evidence, measured = gated.measure()
    if not is_whole:
        # What was seen may have chosen where the run stopped, so that no interval covers at its
        # level. The numbers are shown all the same.
        evidence = evidence.after_early_stop()
        measured = {
            name: one._replace(interval=one.interval.after_early_stop())
            for name, one in measured.items()
        }
    checks = tuple(
        GateCheck(
            target=one.target,
            matcher=one.matcher,
            basis=one.is_of.basis,
            value=(value := measured[one.target].value),
            interval=measured[one.target].interval,
            holds=None if isinstance(value, Undefined) else one.matcher.holds(value),
        )
        for one in gate.expect
    )
    # Per protocol leaves out what was not measured. Otherwise a run that no judge spoke of might
    # have turned the number either way, and deciding without it would guess.
    is_open = gated.silent > 0 and gated.plan.analysis is not Analysis.PER_PROTOCOL
    tried = [len(mine) for mine in gated.runs.values() if mine]
    statement = "; ".join(map(str, checks)) or "Reported; nothing was asked of it"
    if checks and not is_whole:
        done, planned = sum(map(len, gated.tables)), sum(one.trials for one in gated.experiments)
        statement = (
            f"The run {STOPS[stop].predicate} after {done} of {planned} planned "
            "trials, and a gate is about all of them"
        )
    return GateFinding(
        gate=gate.name,
        experiment=", ".join(one.name for one in gated.experiments),
        decision=None
        if grading.advising
        else _combine_checks(checks, evidence, is_whole=is_whole and not is_open),
        checks=checks,
        numbers=tuple(_list_numbers(gate, measured)),
        inputs=len(tried),
        runs=min(tried, default=0),
        confidence=gate.confidence,
        evidence=evidence,
        statement=f"{statement}.",
        caveats=(
            *grading.list_caveats(gated.silent, is_asked=bool(checks)),
            *_list_caveats(checks, evidence, is_whole=is_whole),
        ),
    )


def _list_numbers(gate: Gate, measured: Mapping[str, Measured]) -> Iterator[GateNumber]:
    for path in targets_of(gate.name):
        # Those with a k are as many as one likes; a table has them.
        if TARGETS[path].is_listed and path in measured:
            value, interval = measured[path]
            basis = TARGETS[path].basis
            yield GateNumber(target=path, basis=basis, value=value, interval=interval)


def _combine_checks(
    checks: Sequence[GateCheck], evidence: GateEvidence, *, is_whole: bool
) -> Decision | None:
    words = {True: Decision.PASS, False: Decision.FAIL, None: Decision.INCONCLUSIVE}
    decision = combine(words[one.holds] for one in checks)
    # A session that nobody saw may have been the worst of them.
    is_hidden = evidence.unseen and decision is Decision.PASS
    return Decision.INCONCLUSIVE if checks and (is_hidden or not is_whole) else decision


def _list_caveats(
    checks: Sequence[GateCheck], evidence: GateEvidence, *, is_whole: bool
) -> Iterator[str]:
    if not is_whole:
        yield "Not all planned runs were made, so that no estimate is unbiased."
    yield from evidence.list_doubts()
    # A limit that is kept might not be, as far as the interval says.
    missed = [
        one.target
        for one in checks
        if one.holds
        and isinstance(one.matcher, NumberSchema)
        and not (isinstance(one.interval, Undefined) or all(map(one.matcher.holds, one.interval)))
    ]
    if missed:
        yield f"The interval reaches beyond the limit, for {', '.join(missed)}."


@dataclass(frozen=True, slots=True, kw_only=True)
class Grading:
    """The criteria of a gate; none where it looks at sessions."""

    counting: tuple[str, ...] = ()
    advising: tuple[str, ...] = ()
    """Those of them that only advise, so that the gate decides nothing."""
    left_out: tuple[str, ...] = ()
    """Those that only advise, where others count."""

    @classmethod
    def of(cls, gate: Gate, criteria: Sequence[CriterionPlan]) -> Grading:
        """Return the one that the gate names, all that it weighs, or else all that decide.

        Args:
            gate: What is asked.
            criteria: The criteria of its experiment.
        """
        if not gate.looks_at_criteria:
            return cls()
        names = [one.criterion for one in criteria]
        # A criterion that is only reported has no verdict of its own, and its grades still count.
        reported = {one.criterion for one in criteria if one.standing.reported_at is not None}
        advising = {
            one.criterion
            for one in criteria
            if one.standing.advisory[one.standing.reported_at is not None :]
        }
        named, weights = getattr(gate, "criterion", None), getattr(gate, "weights", None)
        if weights is not None:
            # That there was a reply is no grade, in a sampling without any other criterion.
            replied = {one for one in reported if one == REPLIED or one.startswith(f"{REPLIED} [")}
            names = [name for name in names if name not in replied]
        if named is not None:
            names = counting = [named]
        elif weights:
            counting = [name for name in names if name in weights]
        else:
            firm = [name for name in names if name not in advising]
            counting = [name for name in firm if name not in reported] or firm or names
        return cls(
            counting=tuple(counting),
            advising=tuple(name for name in counting if name in advising),
            left_out=tuple(name for name in names if name not in (*counting, *reported)),
        )

    def list_caveats(self, silent: int, *, is_asked: bool) -> Iterator[str]:
        """List what a reader must know of the runs.

        Args:
            silent: Runs that a judge was silent on.
            is_asked: Whether anything is asked of the gate.
        """
        if self.advising and is_asked:
            yield f"It decides nothing: {_only_advise(self.advising)}."
        if self.left_out:
            yield f"{_only_advise(self.left_out)}, and a run passes without."
        if silent:
            runs = "1 run is" if silent == 1 else f"{silent} runs are"
            yield f"{runs} left out, since a judge gave no verdict."


def _only_advise(names: Sequence[str]) -> str:
    return f"{', '.join(names)} only {'advises' if len(names) == 1 else 'advise'}"
