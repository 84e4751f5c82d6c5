"""Which criteria say whether a run passes, and which runs they say it of.

A criterion that only advises, such as a judge that nobody has measured, decides no verdict and so
no gate. A run that a judge gave no verdict on is neither a pass nor a failure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trialwise.model.gate import Gate, Metrics, Stability
from trialwise.model.options import Analysis
from trialwise.model.plan import CriterionPlan, ExperimentPlan
from trialwise.model.trial import Trial
from trialwise.procedures.gates.measured_numbers import Runs

__all__ = ["Grading"]


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
        """The one that the gate names, all that it weighs, or else all that decide.

        Args:
            gate: What is asked.
            criteria: Of its experiment.
        """
        if isinstance(gate, Stability):
            return cls()
        names = tuple(one.criterion for one in criteria)
        advising = {one.criterion for one in criteria if one.advisory}
        if gate.criterion is not None:
            named = (gate.criterion,)
            return cls(counting=named, advising=tuple(advising.intersection(named)))
        if isinstance(gate, Metrics) and gate.weights:
            counting = names
        else:
            counting = tuple(name for name in names if name not in advising) or names
        return cls(
            counting=counting,
            advising=tuple(name for name in counting if name in advising),
            left_out=tuple(name for name in names if name not in counting),
        )

    def runs(
        self, experiment: ExperimentPlan, trials: Sequence[Trial], analysis: Analysis
    ) -> tuple[Runs, int]:
        """The runs of each input that count, and how many more a judge was silent on.

        Args:
            experiment: With its inputs.
            trials: In issue order.
            analysis: Whether it leaves out what had no fair chance.
        """
        leaves_out = analysis is Analysis.PER_PROTOCOL
        runs: dict[str, list[Trial]] = {name: [] for name in experiment.input_ids}
        silent = 0
        for trial in trials:
            if leaves_out and trial.is_excused:
                continue
            if any(trial.is_unjudged(trial.outcome(name)) for name in self.counting):
                silent += 1
            else:
                runs[trial.input_id].append(trial)
        return runs, silent

    def caveats(self, silent: int, *, is_asked: bool) -> Iterator[str]:
        """What a reader must know of the runs.

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
