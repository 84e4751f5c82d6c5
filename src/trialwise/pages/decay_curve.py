"""The reliability decay curve: the chance that k runs of an input all pass, over k."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from trialwise.documents.charts import Area, Axis, Chart, Line, Mark, spread_hits, thin_out
from trialwise.documents.numbers import as_count, as_ends, as_observed, as_percent
from trialwise.model.claim import PopulationClaim
from trialwise.model.metrics import GateFinding, ReliabilityEvidence
from trialwise.model.verdict import Verdict
from trialwise.procedures.metrics import Intervals, PassFigure, Reach, mean_of
from trialwise.stats.passk import pass_hat_k, pass_hat_k_interval
from trialwise.stats.result_types import Interval, Undefined

#: The most values of k that are drawn and listed; beyond as many runs they are spread out.
POINTS = 40


#: Values of the curve in a sentence.
_LISTED = 20


#: About the height of a line of text, as a share of the plot's.
_LINE = 0.12


class Step(NamedTuple):
    """What is known of pass^k at one k, as means over inputs."""

    k: int
    unbiased: float
    interval: Interval | Undefined
    """The interval of the unbiased estimate."""
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
        confidence: The confidence of each of them.
    """
    tasks = [(one.summary.runs, sum(one.summary.outcomes)) for one in evidence.inputs]
    # Inputs with the same counts have the same interval, and there are few different counts.
    figure = PassFigure(cache(pass_hat_k), cache(pass_hat_k_interval), rises=False)
    intervals = Intervals(Reach.of(claim), confidence)
    steps: list[Step] = []
    for place in sorted(set(thin_out(len(evidence.decay_curve), POINTS))):
        k = place + 1
        mean = mean_of([figure.estimate(*task, k) for task in tasks])
        found = intervals.of_passes(figure, tasks, [k] * len(tasks))
        steps.append(Step(k, mean, found, evidence.decay_curve[place] / 100))
    return steps


def describe_decay(evidence: ReliabilityEvidence) -> str:
    """Describe the first values of the curve, and how it is made."""
    values = ", ".join(f"{value:.4g}" for value in evidence.decay_curve[:_LISTED])
    return (
        f"Decay curve: {values} (plug-in, in percent). It takes the runs in the order they were "
        "started, and it need not fall."
    )


def chart_decay(verdict: Verdict, gate: GateFinding, evidence: ReliabilityEvidence) -> Chart:
    """Chart the curve over k, with the interval of every point where it has one."""
    steps = list_decay_steps(evidence, verdict.claim.population, gate.confidence)
    band = [(float(one.k), one.interval) for one in steps if isinstance(one.interval, Interval)]
    level = as_percent(gate.confidence)
    area = Area(
        name=f"{level} interval of each k{'' if _is_whole(verdict, gate) else ', descriptive'}",
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
        f"passed.{unknown} The decay curve ends at {as_observed(curve)}. Beyond "
        f"k = {last:,}, the fewest runs of an input, nothing is estimated: it would be "
        "extrapolation."
    )


def _mark_end(step: Step) -> Mark:
    label = f"all {step.k:,}: {as_observed(step.unbiased)}"
    # The curve comes down from the left: what is under its end is free, unless the axis is there.
    return Mark(x=step.k, y=step.unbiased, label=label, below=step.unbiased > _LINE)


def _is_whole(verdict: Verdict, gate: GateFinding) -> bool:
    """Return whether all planned trials were run; intervals of fewer are descriptive."""
    runs = next(one for one in verdict.experiments if one.name == gate.experiment)
    return runs.trials >= runs.planned
