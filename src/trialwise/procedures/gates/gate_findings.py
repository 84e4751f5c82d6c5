"""The finding of each gate: its numbers, what was asked of them, and whether that holds.

As with criteria, a plan that was cut short decides nothing: a gate is about all of its runs. A
criterion that only advises, such as a judge that nobody has measured, decides no verdict and so
no gate. A run that a judge gave no verdict on is neither a pass nor a failure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from trialwise.documents.phrases import STOPS
from trialwise.model.contract import REPLIED
from trialwise.model.evidence import StopReason
from trialwise.model.gate import (
    Expectation,
    Gate,
    Metrics,
    Reliability,
    Stability,
    basis_of,
    listed_targets_of,
)
from trialwise.model.matcher import NumberSchema
from trialwise.model.metrics import (
    GateCheck,
    GateEvidence,
    GateFinding,
    GateNumber,
    MetricsEvidence,
    PassK,
    StabilityEvidence,
)
from trialwise.model.plan import CriterionPlan, ExperimentPlan, Plan
from trialwise.model.run_trials import Trials
from trialwise.model.trial import Analysis, Trial
from trialwise.model.trial_table import TrialTable
from trialwise.procedures.composite import combine
from trialwise.procedures.gates.gate_intervals import Measured, Runs, early
from trialwise.procedures.metrics import Reach
from trialwise.stats.result_types import Decision, Undefined


def decide_gates(
    plan: Plan, trials: Mapping[str, TrialTable], stops: Mapping[str, StopReason]
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
        names = getattr(gate, "samplings", ()) or (gate.sampling,)
        mine = [experiments[name] for name in names if name in experiments]
        tables = [trials[one.name] for one in mine]
        ends = [stops[one.name] for one in mine]
        stop = next((one for one in ends if one.is_premature), ends[0])
        found.append(_finding(gate, plan, mine, tables, stop))
    return tuple(found)


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
    experiments = [one for one in plan.experiments if one.name in samplings]
    tables = [trials.of_experiment(one.name) for one in experiments]
    gathered = _gather(gate, plan, experiments, tables)
    reach = Reach.of(plan.claim.population)
    _, measured = _measure(gate, gathered.runs, gathered.graders, reach)
    return {
        name: float(one.value)
        for name, one in measured.items()
        if not isinstance(one.value, Undefined)
    }


class _Gathered(NamedTuple):
    """The runs that a gate is about."""

    grading: Grading
    runs: dict[str, Sequence[Trial]]
    graders: dict[str, Sequence[str]]
    """The criteria that grade each input."""
    silent: int
    """Further runs that a judge was silent on."""


def _gather(
    gate: Gate,
    plan: Plan,
    experiments: Sequence[ExperimentPlan],
    tables: Sequence[TrialTable],
) -> _Gathered:
    criteria = [one for each in experiments for one in plan.criteria_of(each.name)]
    grading = Grading.of(gate, criteria)
    runs: dict[str, Sequence[Trial]] = {}
    graders: dict[str, Sequence[str]] = {}
    silent = 0
    for experiment, table in zip(experiments, tables, strict=True):
        start = f"{experiment.name}: " if len(experiments) > 1 else ""
        here = [one.criterion for one in plan.criteria_of(experiment.name)]
        names = [name for name in grading.counting if name in here]
        mine, unheard = grading.runs(experiment, table, plan.analysis, names)
        runs |= {f"{start}{name}": one for name, one in mine.items()}
        graders |= {f"{start}{name}": names for name in mine}
        silent += unheard
    return _Gathered(grading, runs, graders, silent)


def _finding(
    gate: Gate,
    plan: Plan,
    experiments: Sequence[ExperimentPlan],
    tables: Sequence[TrialTable],
    stop: StopReason,
) -> GateFinding:
    grading, runs, graders, silent = _gather(gate, plan, experiments, tables)
    reach = Reach.of(plan.claim.population)
    evidence, measured = _measure(gate, runs, graders, reach)
    done, planned = sum(map(len, tables)), sum(one.trials for one in experiments)
    is_whole = all(len(t) >= one.trials for t, one in zip(tables, experiments, strict=True))
    if not is_whole:
        evidence = _descriptive(evidence)
        measured = {
            name: one._replace(interval=early(one.interval)) for name, one in measured.items()
        }
    checks = tuple(_check(one, measured[one.target]) for one in gate.expect)
    is_open = silent > 0 and plan.analysis is not Analysis.PER_PROTOCOL
    decision = _decide(checks, evidence, is_whole=is_whole and not is_open)
    tried = [len(mine) for mine in runs.values() if mine]
    if is_whole or not checks:
        statement = "; ".join(map(str, checks)) or "Reported; nothing was asked of it"
    else:
        statement = (
            f"The run {STOPS[stop].predicate} after {done} of {planned} planned "
            "trials, and a gate is about all of them"
        )
    return GateFinding(
        gate=gate.name,
        experiment=", ".join(one.name for one in experiments),
        decision=None if grading.advising else decision,
        checks=checks,
        numbers=tuple(_numbers(gate, measured)),
        inputs=len(tried),
        runs=min(tried, default=0),
        confidence=gate.confidence,
        evidence=evidence,
        statement=f"{statement}.",
        caveats=(
            *grading.caveats(silent, is_asked=bool(checks)),
            *_caveats(checks, evidence, is_whole=is_whole),
        ),
    )


def _measure(
    gate: Gate, runs: Runs, graders: Mapping[str, Sequence[str]], reach: Reach
) -> tuple[GateEvidence, Mapping[str, Measured]]:
    # Loaded where they are asked for: few runs have two kinds of gates.
    if isinstance(gate, Reliability):
        from trialwise.procedures.gates.reliability_metrics import measure_reliability

        return measure_reliability(gate, runs, next(iter(graders.values()), ()), reach)
    if isinstance(gate, Stability):
        from trialwise.procedures.gates.stability_metrics import measure_stability

        return measure_stability(gate, runs, reach)
    from trialwise.procedures.gates.score_metrics import measure_scores

    return measure_scores(gate, runs, graders, reach)


def _descriptive(evidence: GateEvidence) -> GateEvidence:
    """The same of runs that are not all that were planned; only tables of pass^k hold intervals."""
    if not isinstance(evidence, MetricsEvidence):
        return evidence
    return replace(
        evidence,
        pass_k=tuple(map(_early, evidence.pass_k)),
        criteria=tuple(
            replace(one, pass_k=tuple(map(_early, one.pass_k))) for one in evidence.criteria
        ),
    )


def _early(row: PassK) -> PassK:
    return replace(
        row,
        pass_at_k_interval=early(row.pass_at_k_interval),
        pass_hat_k_interval=early(row.pass_hat_k_interval),
    )


def _numbers(gate: Gate, measured: Mapping[str, Measured]) -> Iterator[GateNumber]:
    for target in listed_targets_of(gate.name):
        basis = basis_of(target)
        # Those with a k are as many as one likes; a table has them.
        if basis is not None:
            value, interval = measured[target]
            yield GateNumber(target=target, basis=basis, value=value, interval=interval)


def _check(expectation: Expectation, measured: Measured) -> GateCheck:
    value = measured.value
    return GateCheck(
        target=expectation.target,
        matcher=expectation.matcher,
        basis=expectation.basis,
        value=value,
        interval=measured.interval,
        holds=None if isinstance(value, Undefined) else expectation.matcher.holds(value),
    )


def _decide(
    checks: Sequence[GateCheck], evidence: GateEvidence, *, is_whole: bool
) -> Decision | None:
    if not checks:
        return None
    if not is_whole:
        return Decision.INCONCLUSIVE
    words = {True: Decision.PASS, False: Decision.FAIL, None: Decision.INCONCLUSIVE}
    decision = combine(words[one.holds] for one in checks)
    unseen = isinstance(evidence, StabilityEvidence) and evidence.unmeasured
    # A session that nobody saw may have been the worst of them.
    return Decision.INCONCLUSIVE if unseen and decision is Decision.PASS else decision


def _caveats(
    checks: Sequence[GateCheck], evidence: GateEvidence, *, is_whole: bool
) -> Iterator[str]:
    if not is_whole:
        yield "Not all planned runs were made, so that no estimate is unbiased."
    if isinstance(evidence, StabilityEvidence):
        yield from _unseen(evidence)
    missed = [one.target for one in checks if one.holds and _reaches_beyond(one)]
    if missed:
        yield f"The interval reaches beyond the limit, for {', '.join(missed)}."


def _reaches_beyond(check: GateCheck) -> bool:
    """Return whether a limit that is kept might not be, as far as the interval says."""
    if not isinstance(check.matcher, NumberSchema) or isinstance(check.interval, Undefined):
        return False
    return not all(map(check.matcher.holds, check.interval))


def _hint(evidence: StabilityEvidence) -> str:
    """Say how a service tells its sessions, where none of its replies has one."""
    if evidence.runs:
        return ""
    return (
        " A command or an endpoint says with `trace: $.trace` where its reply holds the session; a "
        "function returns a `Trace` or its messages."
    )


def _unseen(evidence: StabilityEvidence) -> Iterator[str]:
    if evidence.unmeasured:
        runs = "1 run" if evidence.unmeasured == 1 else f"{evidence.unmeasured} runs"
        why = "no reply, or one without turns and tool calls"
        yield f"{runs} without a session: {why}.{_hint(evidence)}"
    if evidence.short and evidence.short == len(evidence.runs):
        yield (
            "Every session has at most one turn and one tool call, and so sub-scores of 1 by "
            "definition: nothing was measured."
        )


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
        if isinstance(gate, Stability):
            return cls()
        names = tuple(one.criterion for one in criteria)
        # A criterion that is only reported has no verdict of its own, and its grades still count.
        advising = {
            one.criterion
            for one in criteria
            if one.standing.advisory[one.standing.reported_at is not None :]
        }
        reported = {one.criterion for one in criteria if one.standing.reported_at is not None}
        if gate.criterion is not None:
            named = (gate.criterion,)
            return cls(counting=named, advising=tuple(advising.intersection(named)))
        if isinstance(gate, Metrics):
            # That there was a reply is no grade.
            names = tuple(name for name in names if not _is_reply(name) or name not in reported)
        if isinstance(gate, Metrics) and gate.weights:
            counting = tuple(name for name in names if name in gate.weights)
        else:
            decided = tuple(name for name in names if name not in advising | reported)
            counting = decided or tuple(name for name in names if name not in advising) or names
        return cls(
            counting=counting,
            advising=tuple(name for name in counting if name in advising),
            left_out=tuple(name for name in names if name not in (*counting, *reported)),
        )

    def runs(
        self,
        experiment: ExperimentPlan,
        trials: TrialTable,
        analysis: Analysis,
        counting: Sequence[str],
    ) -> tuple[Runs, int]:
        """Return the runs of each input that count, and how many more a judge was silent on.

        Args:
            experiment: With its inputs.
            trials: In the order of inputs.
            analysis: Whether it leaves out trials that were not measured.
            counting: The criteria of the experiment whose outcomes count.
        """
        runs: dict[str, list[Trial]] = {name: [] for name in experiment.input_ids}
        silent = 0
        for trial in trials.sketches():
            if analysis.leaves_out(trial.error_class):
                continue
            if any(trial.is_unjudged(trial.outcome(name)) for name in counting):
                silent += 1
            else:
                runs[trial.input_id].append(trial)
        return runs, silent

    def caveats(self, silent: int, *, is_asked: bool) -> Iterator[str]:
        """Yield what a reader must know of the runs.

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


def _is_reply(name: str) -> bool:
    """Return whether a criterion only asks for a reply, in a sampling without any other."""
    return name == REPLIED or name.startswith(f"{REPLIED} [")


def _only_advise(names: Sequence[str]) -> str:
    return f"{', '.join(names)} only {'advises' if len(names) == 1 else 'advise'}"
