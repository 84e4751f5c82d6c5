"""How passing holds up over k runs of an input: pass^k, with what is known of it and how far.

Two numbers go by this name. The unbiased one asks whether k further runs would all pass, and has
an interval. The decay curve of the report follows the runs in the order they were started.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from trialwise.documents.axes import Axis, thin_out
from trialwise.documents.charts import Area, Chart, Line, Mark, spread_hits
from trialwise.documents.numbers import as_count, as_ends, as_observed, as_percent
from trialwise.model.claim import PopulationClaim
from trialwise.model.metrics import GateFinding, ReliabilityEvidence
from trialwise.model.run import RunRecord
from trialwise.procedures.metrics import Reach, mean_of, pass_interval
from trialwise.stats.passk import pass_hat_k, pass_hat_k_interval
from trialwise.stats.result_types import Interval, Undefined

__all__ = ["POINTS", "Step", "chart_decay", "list_decay_steps"]

#: The most values of k that are drawn and listed; beyond as many runs they are spread out.
POINTS = 40
#: About the height of a line of text, as a share of the plot's.
_LINE = 0.12


class Step(NamedTuple):
    """What is known of pass^k at one k, as means over inputs."""

    k: int
    unbiased: float
    interval: Interval | Undefined
    """Of the unbiased one."""
    decay: float
    """The report's curve at this k, as a share."""

    @property
    def ends(self) -> str:
        """The interval in percent."""
        return "–" if isinstance(self.interval, Undefined) else as_ends(self.interval)


def list_decay_steps(
    evidence: ReliabilityEvidence, claim: PopulationClaim, confidence: float
) -> list[Step]:
    """pass^k for k up to the fewest runs of an input: no run says anything of more.

    Args:
        evidence: The outcomes of each input.
        claim: Whom the intervals are about.
        confidence: Of each of them.
    """
    tasks = [(one.summary.runs, sum(one.summary.outcomes)) for one in evidence.inputs]
    # Inputs with the same counts have the same interval, and there are few different counts.
    exact, each = cache(pass_hat_k_interval), cache(pass_hat_k)
    reach = Reach.of(claim)
    steps: list[Step] = []
    for place in sorted(set(thin_out(len(evidence.decay_curve), POINTS))):
        k = place + 1
        mean = mean_of([each(*task, k) for task in tasks])
        found = pass_interval(
            tasks, [k] * len(tasks), mean, exact, confidence=confidence, reach=reach
        )
        steps.append(Step(k, mean, found, evidence.decay_curve[place] / 100))
    return steps


def chart_decay(record: RunRecord, gate: GateFinding, evidence: ReliabilityEvidence) -> Chart:
    """The curve over k, with the interval of every point where it has one."""
    steps = list_decay_steps(evidence, record.plan.claim.population, gate.confidence)
    band = [(float(one.k), one.interval) for one in steps if isinstance(one.interval, Interval)]
    level = as_percent(gate.confidence)
    area = Area(
        name=f"{level} interval of each k{'' if _is_whole(record, gate) else ', descriptive'}",
        ink="one",
        upper=tuple((k, found.high) for k, found in band),
        lower=tuple((k, found.low) for k, found in band),
    )
    return Chart(
        heading="Reliability decay curve",
        summary=_write_summary(steps, len(evidence.inputs)),
        x=Axis(low=1, high=steps[-1].k, label="k runs, all of which pass", unit="count"),
        y=Axis(low=0, high=1, label="pass^k", unit="rate"),
        areas=(area,) if len(band) > 1 else (),
        lines=(
            Line(
                name="unbiased pass^k",
                ink="one",
                points=tuple((float(one.k), one.unbiased) for one in steps),
            ),
            Line(
                name="decay curve: plug-in pass^k of the first k runs",
                ink="quiet",
                points=tuple((float(one.k), one.decay) for one in steps),
                dashed=True,
            ),
        ),
        marks=(_mark_end(steps[-1]),),
        hits=spread_hits([one.k for one in steps], lambda place: _read_out(steps[place])),
        columns=("k", "unbiased pass^k", f"{level} interval", "decay curve"),
        rows=tuple(
            (f"{one.k:,}", as_observed(one.unbiased), one.ends, as_observed(one.decay))
            for one in steps
        ),
    )


def _read_out(step: Step) -> str:
    return (
        f"k = {step.k:,}: unbiased {as_observed(step.unbiased)} {step.ends}, "
        f"decay curve {as_observed(step.decay)}"
    )


def _write_summary(steps: Sequence[Step], inputs: int) -> str:
    last, mean, found, curve = steps[-1]
    once = as_observed(steps[0].unbiased)
    over = f", a mean over {as_count(inputs, 'input')}" if inputs > 1 else ""
    unknown = f" It has no interval: {found.reason}." if isinstance(found, Undefined) else ""
    return (
        f"The chance that k runs of an input all pass{over}: {once} at "
        f"k = 1, {as_observed(mean)} at k = {last:,}, where it only says whether every run "
        f"passed.{unknown} The decay curve takes the runs in the order they were started and need "
        f"not fall; it ends at {as_observed(curve)}. Beyond k = {last:,}, the fewest runs of "
        "an input, nothing is estimated: it would be extrapolation."
    )


def _mark_end(step: Step) -> Mark:
    label = f"all {step.k:,}: {as_observed(step.unbiased)}"
    # The curve comes down from the left: what is under its end is free, unless the axis is there.
    return Mark(x=step.k, y=step.unbiased, label=label, below=step.unbiased > _LINE)


def _is_whole(record: RunRecord, gate: GateFinding) -> bool:
    """Whether all planned trials were run; intervals of fewer are descriptive."""
    planned = next(one.trials for one in record.plan.experiments if one.name == gate.experiment)
    return sum(one.experiment == gate.experiment for one in record.trials) >= planned
