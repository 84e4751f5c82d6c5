"""How many runs every input of a gate gets, and why a design cannot give them.

A gate is about a number of runs that was fixed before the first one. Where a criterion may stop
the run early, how many there are depends on what was seen, and neither pass^k nor a mean of
stability scores is what it is called.
"""

from __future__ import annotations

from collections.abc import Sequence

from trialwise.model.claim import SamplingMode
from trialwise.model.contract import Contract
from trialwise.model.gate import Gate, Metrics, Stability
from trialwise.model.options import RunOptions
from trialwise.model.plan import CriterionPlan, ExperimentPlan
from trialwise.stats.sequential.trial_order import Draw

_ONCE = frozenset({SamplingMode.WITHOUT_REPLACEMENT, SamplingMode.EXHAUSTIVE})


def needs_runs(gate: Gate) -> bool:
    """Return whether a gate needs a fixed number of runs."""
    if isinstance(gate, Metrics):
        return bool(gate.expect or gate.k)
    return True


def short_of_runs(gate: Gate, experiment: ExperimentPlan, criteria: Sequence[CriterionPlan]) -> str:
    """Return why a planned experiment does not give a gate its runs; nothing where it does."""
    early = [one.criterion for one in criteria if one.limits.design is not None]
    if early:
        return _early(gate, early)
    # What is asked further gives one run to each input that had none, and no second one.
    runs = _fewest(
        experiment.trials - experiment.further,
        experiment.repetitions,
        each_input=any(one.counting.each_input for one in criteria),
        once=experiment.sampling_mode in _ONCE,
        draw=experiment.draw,
    )
    runs = max(runs, 1) if experiment.further else runs
    if runs >= gate.fewest_runs:
        return ""
    return _few(gate, runs, len(experiment.input_ids), experiment.draw)


def _fewest(
    trials: int, repetitions: Sequence[int], *, each_input: bool, once: bool, draw: Draw
) -> int:
    """Return the runs that every input is sure to get."""
    inputs = len(repetitions)
    if once:
        return 1 if trials >= inputs else 0
    if each_input or inputs == 1:
        return trials // inputs
    if draw == "independent":
        return 0
    return trials // sum(repetitions) * min(repetitions)


def _early(gate: Gate, criteria: Sequence[str]) -> str:
    named = ", ".join(criteria)
    return (
        f"it needs a number of runs that is fixed, and {named} may stop early: give `trials`, at "
        f"least {gate.fewest_runs} for each input"
    )


def unstated_runs(gate: Gate, name: str, contract: Contract, options: RunOptions) -> str:
    """Return that nobody says how often the same is run; nothing where somebody does.

    Args:
        gate: What is asked.
        name: One of its samplings.
        contract: With its criteria.
        options: How the run is made.
    """
    criteria = [one for one in contract.criteria if contract.experiment_of(one) == name]
    is_given = options.trials_of(name) is not None or any(one.trials for one in criteria)
    has_promise = any(not one.report_only for one in criteria)
    if is_given or (has_promise and not isinstance(gate, Stability)):
        return ""
    fewest, inputs = max(2, gate.fewest_runs), len(contract.samplings[name].inputs)
    return (
        f"it is about repeated runs: give `trials`, at least {fewest * inputs}, which is {fewest} "
        "for each input"
    )


def _few(gate: Gate, runs: int, inputs: int, draw: Draw | None) -> str:
    needed = f"it needs at least {gate.fewest_runs} runs of each input"
    if draw == "independent" and inputs > 1:
        return f"{needed}, which independent draws do not ensure: draw balanced"
    got = {0: "some would get none", 1: "some would get one"}.get(runs, f"some would get {runs}")
    return f"{needed}, and {got}: give at least {gate.fewest_runs * inputs} trials"
