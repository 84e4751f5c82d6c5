"""What the design that ran does at every true rate: its verdicts, and how long it takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from trialwise.documents.numbers import as_mean_trials, as_percent, as_probability
from trialwise.model.claim import PopulationClaim
from trialwise.model.plan import CriterionPlan, Limits
from trialwise.model.run import RunRecord
from trialwise.model.verdict import Finding, Procedure
from trialwise.reporters.html.plots import Area, Axis, Hit, Line, Plot
from trialwise.reporters.page.axis import round_above
from trialwise.reporters.plan.charts import Guide
from trialwise.stats.binomial import binomial_tail

__all__ = ["Behaviour", "behaviour", "behaviours_of", "trials_plot", "verdicts_plot"]

#: Rates on a curve, and the most arithmetic that all of them may take together.
POINTS, FEWEST_POINTS = 41, 13
STEPS = 2_500_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """What a design does at one true rate, exactly."""

    rate: float
    passes: float
    fails: float
    mean_trials: float

    @property
    def inconclusive(self) -> float:
        """P(INCONCLUSIVE)."""
        return max(0.0, 1 - self.passes - self.fails)


def behaviour(limits: Limits, rate: float) -> Behaviour | None:
    """What limits lead to at a true rate, for independent trials; None without a rule in counts.

    A fixed design of N trials with cutoff c ends with its c-th success or its (N − c + 1)-th
    failure, whichever is first. With c successes first it takes n trials with probability
    C(n−1, c−1) p^c q^(n−c), and the mean over those is (c/p) P(Binomial(N+1, p) > c); the
    failures' part is its mirror image.

    >>> result = behaviour(Limits(cap=2, cutoff=2), 0.5)
    >>> round(result.passes, 9), round(result.mean_trials, 9)
    (0.25, 1.5)
    """
    if limits.design is not None:
        curve = limits.design.operating_characteristic(rate)
        return Behaviour(
            rate=rate, passes=curve.passes, fails=curve.fails, mean_trials=curve.mean_trials
        )
    if limits.cutoff is None:
        return None
    cap, cutoff = limits.cap, limits.cutoff
    passes = binomial_tail(cutoff, cap, rate)
    mean = float(cap)
    if limits.curtailed:
        fatal = cap - cutoff + 1
        mean = _mean_part(cutoff, cap, rate) + _mean_part(fatal, cap, 1 - rate)
    return Behaviour(rate=rate, passes=passes, fails=1 - passes, mean_trials=mean)


def _mean_part(count: int, cap: int, rate: float) -> float:
    """E[trials; the count-th event of this rate comes first]."""
    if count == 0 or rate == 0:
        return 0.0
    return count / rate * binomial_tail(count + 1, cap + 1, rate)


def behaviours_of(record: RunRecord, criterion: CriterionPlan, finding: Finding) -> list[Behaviour]:
    """The design that ran, over the rates that matter; empty where no binomial rule decides.

    Nor does one where a judge's errors are known: its labels have a part in every verdict.
    """
    by_chance = record.plan.claim.population is not PopulationClaim.FINITE_CORPUS
    if criterion.errors is not None:
        return []
    observational = criterion.procedure is Procedure.OBSERVATIONAL
    if not by_chance or observational or criterion.estimator is not None:
        return []
    limits = criterion.limits
    if limits.design is None and limits.cutoff is None:
        return []
    rates = _rates(_references(criterion, finding), _points(limits))
    found = [behaviour(limits, rate) for rate in rates]
    return [one for one in found if one is not None]


def _points(limits: Limits) -> int:
    design = limits.design
    if design is None:
        return POINTS
    width = sum(b - a for a, b in zip(design.accept, design.reject, strict=True))
    return max(FEWEST_POINTS, min(POINTS, STEPS // max(1, width)))


def _references(criterion: CriterionPlan, finding: Finding) -> list[float]:
    """The rates that the curves are read at."""
    threshold = criterion.threshold
    baseline = threshold.baseline
    given = [
        threshold.required_rate,
        threshold.alternative_rate,
        baseline.passed / baseline.trials if baseline is not None else None,
        finding.tally.rate,
    ]
    return sorted({rate for rate in given if rate is not None})


def _rates(references: Sequence[float], points: int) -> list[float]:
    """Evenly spaced around the references, with these among them."""
    reach = max(0.08, references[-1] - references[0])
    low, high = max(0.0, references[0] - reach), min(1.0, references[-1] + reach)
    even = [low + (high - low) * k / (points - 1) for k in range(points)]
    return sorted({*even, *references})


def verdicts_plot(criterion: CriterionPlan, finding: Finding, curve: Sequence[Behaviour]) -> Plot:
    """The operating characteristic: how often each verdict falls, by true rate."""
    heights = [(one.rate, one.passes, one.passes + one.inconclusive) for one in curve]
    first = tuple((rate, passes) for rate, passes, _ in heights)
    second = tuple((rate, both) for rate, _, both in heights)
    low, high = curve[0].rate, curve[-1].rate
    bands = [Area(name="PASS", ink="pass", upper=first, lower=((low, 0.0), (high, 0.0)))]
    if any(one.inconclusive > 1e-9 for one in curve):
        bands.append(Area(name="INCONCLUSIVE", ink="open", upper=second, lower=first, hatched=True))
    bands.append(Area(name="FAIL", ink="fail", upper=((low, 1.0), (high, 1.0)), lower=second))
    return Plot(
        heading="Verdicts by true rate",
        summary=_verdicts_summary(criterion, curve),
        x=Axis(low=low, high=high, label="true rate", unit="rate"),
        y=Axis(low=0, high=1, label="share of runs", unit="rate"),
        areas=tuple(bands),
        guides=_guides(criterion, finding),
        hits=_hits(curve, _said),
        columns=("true rate", "PASS", "INCONCLUSIVE", "FAIL"),
        rows=tuple(
            (_rate(one), as_probability(one.passes), _open(one), as_probability(one.fails))
            for one in _few(criterion, finding, curve)
        ),
    )


def trials_plot(criterion: CriterionPlan, finding: Finding, curve: Sequence[Behaviour]) -> Plot:
    """The average sample number: how many trials the design takes, by true rate."""
    low, high = curve[0].rate, curve[-1].rate
    taken = finding.tally.trials
    most = max(0 if criterion.each_input else taken, *(one.mean_trials for one in curve))
    at = {one.rate: one for one in curve}
    said = [
        f"{as_mean_trials(at[rate].mean_trials)} at {as_percent(round(rate, 6))}"
        for rate in _stated(criterion)
        if rate in at
    ]
    each = " for each input" if criterion.each_input else ""
    return Plot(
        heading="Trials by true rate",
        summary=(
            f"On average {' and '.join(said)}{each}, at most {criterion.trials:,}"
            + ("." if criterion.each_input else f"; this run took {taken:,}.")
        ),
        x=Axis(low=low, high=high, label="true rate", unit="rate"),
        y=Axis(low=0, high=round_above(most), label="mean trials", unit="count"),
        lines=(
            Line(name="", ink="one", points=tuple((one.rate, one.mean_trials) for one in curve)),
        ),
        guides=(
            *_guides(criterion, finding),
            *(
                ()
                if criterion.each_input
                else (Guide(value=taken, label=f"this run: {taken:,}", axis="y"),)
            ),
        ),
        hits=_hits(curve, _said_trials),
        columns=("true rate", "mean trials"),
        rows=tuple(
            (_rate(one), as_mean_trials(one.mean_trials)) for one in _few(criterion, finding, curve)
        ),
    )


def _stated(criterion: CriterionPlan) -> list[float]:
    """The rates that the claim is about, the good one first."""
    threshold = criterion.threshold
    baseline = threshold.baseline
    good = threshold.required_rate
    if good is None and baseline is not None:
        good = baseline.passed / baseline.trials
    return [rate for rate in (good, threshold.alternative_rate) if rate is not None]


def _guides(criterion: CriterionPlan, finding: Finding) -> tuple[Guide, ...]:
    names = ("required", "alternative")
    if criterion.threshold.required_rate is None:
        names = ("baseline", "drop to")
    guides = [
        Guide(value=rate, label=f"{name} {as_percent(round(rate, 3))}")
        for rate, name in zip(_stated(criterion), names, strict=False)
    ]
    observed = finding.tally.rate
    if observed is not None and not finding.by_input:
        guides.append(Guide(value=observed, label=f"observed {as_percent(round(observed, 3))}"))
    return tuple(guides)


def _verdicts_summary(criterion: CriterionPlan, curve: Sequence[Behaviour]) -> str:
    at = {one.rate: one for one in curve}
    stated = [at[rate] for rate in _stated(criterion) if rate in at]
    each = "Of one input: at" if criterion.each_input else "At"
    said = []
    for number, one in enumerate(stated):
        where = f"{each if not number else 'at'} a true rate of {_rate(one)}"
        of_runs = " of runs" if not number else ""
        shares = [(one.passes, "PASS"), (one.inconclusive, "are INCONCLUSIVE"), (one.fails, "FAIL")]
        parts = [
            f"{as_probability(share, digits=1)} {verb}" for share, verb in shares if share > 1e-9
        ]
        parts[0] = parts[0].replace(" %", f" %{of_runs}", 1)
        said.append(f"{where}, {', '.join(parts)}")
    return "; ".join(said) + "." if said else "How often each verdict falls, by true rate."


def _rate(one: Behaviour) -> str:
    return as_percent(round(one.rate, 4))


def _open(one: Behaviour) -> str:
    return as_probability(one.inconclusive) if one.inconclusive > 1e-9 else "0 %"


def _said(one: Behaviour) -> str:
    middle = f"INCONCLUSIVE {_open(one)}, " if one.inconclusive > 1e-9 else ""
    return (
        f"true rate {_rate(one)}: PASS {as_probability(one.passes)}, {middle}"
        f"FAIL {as_probability(one.fails)}"
    )


def _said_trials(one: Behaviour) -> str:
    return f"true rate {_rate(one)}: {as_mean_trials(one.mean_trials)} trials on average"


def _hits(curve: Sequence[Behaviour], said: Callable[[Behaviour], str]) -> tuple[Hit, ...]:
    rates = [one.rate for one in curve]
    edges = [rates[0], *((a + b) / 2 for a, b in pairwise(rates)), rates[-1]]
    return tuple(
        Hit(low=low, high=high, text=said(one))
        for one, (low, high) in zip(curve, pairwise(edges), strict=True)
    )


def _few(criterion: CriterionPlan, finding: Finding, curve: Sequence[Behaviour]) -> list[Behaviour]:
    """Every fourth rate and those that are referred to."""
    kept = set(_references(criterion, finding))
    return [one for k, one in enumerate(curve) if k % 4 == 0 or one.rate in kept]
