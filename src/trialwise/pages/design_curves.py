"""What the design that ran does at every true rate: its verdicts, and how long it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from trialwise.documents.charts import Chart, Guide, Ink, Line, chart_lines, chart_shares
from trialwise.documents.numbers import as_mean_trials, as_percent, as_probability
from trialwise.model.claim import PopulationClaim
from trialwise.model.plan import Limits
from trialwise.model.run import RunRecord
from trialwise.model.verdict import Finding
from trialwise.pages.finding_facts import find_alternative, find_required
from trialwise.procedures.registry import procedure_of
from trialwise.stats.binomial import binomial_tail

#: Rates on a curve, and the most arithmetic that all of them may take together.
POINTS, FEWEST_POINTS = 41, 13
STEPS = 2_500_000
#: A share below this is rounding.
_NOTHING = 1e-9


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
        left = 1 - self.passes - self.fails
        return left if left > _NOTHING else 0.0


def find_behaviour(limits: Limits, rate: float) -> Behaviour | None:
    """Return the chances of each end at a true rate; None without a rule in counts.

    A fixed design of N trials with cutoff c ends with its c-th success or its (N − c + 1)-th
    failure, whichever is first. With c successes first it takes n trials with probability
    C(n−1, c−1) p^c q^(n−c), and the mean over those is (c/p) P(Binomial(N+1, p) > c); the
    failures' part is its mirror image.

    >>> result = find_behaviour(Limits(cap=2, cutoff=2), 0.5)
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
        mean = _find_mean_part(cutoff, cap, rate) + _find_mean_part(fatal, cap, 1 - rate)
    return Behaviour(rate=rate, passes=passes, fails=1 - passes, mean_trials=mean)


def _find_mean_part(count: int, cap: int, rate: float) -> float:
    """E[trials; the count-th event of this rate comes first]."""
    if count == 0 or rate == 0:
        return 0.0
    return count / rate * binomial_tail(count + 1, cap + 1, rate)


def list_behaviours(record: RunRecord, finding: Finding) -> list[Behaviour]:
    """List the design that ran, over the rates that matter; empty where no binomial rule decides.

    No such rule decides where a judge's errors are known: its labels have a part in every verdict.
    """
    is_corpus = record.plan.claim.population is PopulationClaim.FINITE_CORPUS
    is_observational = not procedure_of(finding).claims_rate
    if is_corpus or is_observational:
        return []
    plan, limits = finding.plan, finding.plan.limits
    if plan.errors is not None or plan.estimator is not None:
        return []
    if limits.design is None and limits.cutoff is None:
        return []
    rates = _spread_rates(_list_references(finding), _count_points(limits))
    found = [find_behaviour(limits, rate) for rate in rates]
    return [one for one in found if one is not None]


def _count_points(limits: Limits) -> int:
    design = limits.design
    if design is None:
        return POINTS
    width = sum(b - a for a, b in zip(design.accept, design.reject, strict=True))
    return max(FEWEST_POINTS, min(POINTS, STEPS // max(1, width)))


def _list_stated(finding: Finding) -> list[float]:
    """List the rates that the claim is about, the good one first."""
    given = (find_required(finding), find_alternative(finding))
    return [rate for rate in given if rate is not None]


def _list_references(finding: Finding) -> list[float]:
    """List the rates that the curves are read at."""
    observed = [] if finding.tally.rate is None else [finding.tally.rate]
    return sorted({*_list_stated(finding), *observed})


def _spread_rates(references: Sequence[float], points: int) -> list[float]:
    """Evenly spaced around the references, with these among them."""
    reach = max(0.08, references[-1] - references[0])
    low, high = max(0.0, references[0] - reach), min(1.0, references[-1] + reach)
    even = [low + (high - low) * k / (points - 1) for k in range(points)]
    return sorted({*even, *references})


def chart_verdicts(finding: Finding, curve: Sequence[Behaviour]) -> Chart:
    """Chart the operating characteristic: how often each verdict falls, by true rate."""
    bands: list[tuple[str, Ink, list[float]]] = [("PASS", "pass", [one.passes for one in curve])]
    if any(one.inconclusive for one in curve):
        bands.append(("INCONCLUSIVE", "open", [one.inconclusive for one in curve]))
    bands.append(("FAIL", "fail", [one.fails for one in curve]))
    chart = chart_shares(
        "Verdicts by true rate",
        _write_verdicts_summary(finding, curve),
        "true rate",
        "share of runs",
        rates=[one.rate for one in curve],
        bands=bands,
        guides=_list_guides(finding),
    )
    return _keep_few_rows(chart, finding, curve)


def chart_trials(finding: Finding, curve: Sequence[Behaviour]) -> Chart:
    """Chart the average sample number: how many trials the design takes, by true rate."""
    taken = finding.tally.trials
    at = {one.rate: one for one in curve}
    said = [
        f"{as_mean_trials(at[rate].mean_trials)} at {as_percent(round(rate, 6))}"
        for rate in _list_stated(finding)
        if rate in at
    ]
    each = " for each input" if finding.plan.each_input else ""
    took = "" if finding.plan.each_input else f"; this run took {taken:,}"
    guides = _list_guides(finding)
    if not finding.plan.each_input:
        guides = (*guides, Guide(value=taken, label=f"this run: {taken:,}", axis="y"))
    points = tuple((one.rate, one.mean_trials) for one in curve)
    chart = chart_lines(
        "Trials by true rate",
        f"On average {' and '.join(said)}{each}, at most {finding.plan.trials:,}{took}.",
        "true rate",
        "mean trials",
        [Line(name="mean trials", ink="one", points=points)],
        guides=guides,
    )
    return _keep_few_rows(chart, finding, curve)


def _list_guides(finding: Finding) -> tuple[Guide, ...]:
    names = ("required", "alternative")
    if finding.plan.threshold.required_rate is None:
        names = ("baseline", "drop to")
    guides = [
        Guide(value=rate, label=f"{name} {as_percent(round(rate, 3))}")
        for rate, name in zip(_list_stated(finding), names, strict=False)
    ]
    observed = finding.tally.rate
    if observed is not None and not finding.by_input:
        label = f"observed {as_percent(round(observed, 3))}"
        guides.append(Guide(value=observed, label=label))
    return tuple(guides)


def _write_verdicts_summary(finding: Finding, curve: Sequence[Behaviour]) -> str:
    at = {one.rate: one for one in curve}
    stated = [at[rate] for rate in _list_stated(finding) if rate in at]
    each = "Of one input: at" if finding.plan.each_input else "At"
    said = []
    for number, one in enumerate(stated):
        where = f"{each if not number else 'at'} a true rate of {as_percent(round(one.rate, 4))}"
        of_runs = " of runs" if not number else ""
        shares = [(one.passes, "PASS"), (one.inconclusive, "are INCONCLUSIVE"), (one.fails, "FAIL")]
        known = [(share, verb) for share, verb in shares if share > _NOTHING]
        parts = [f"{as_probability(share, digits=1)} {verb}" for share, verb in known]
        parts[0] = parts[0].replace(" %", f" %{of_runs}", 1)
        said.append(f"{where}, {', '.join(parts)}")
    return "; ".join(said) + "." if said else "How often each verdict falls, by true rate."


def _keep_few_rows(chart: Chart, finding: Finding, curve: Sequence[Behaviour]) -> Chart:
    """Return the chart with every fourth rate in its table, and those that are referred to."""
    kept = set(_list_references(finding))
    rows = zip(curve, chart.rows, strict=True)
    few = [row for k, (one, row) in enumerate(rows) if k % 4 == 0 or one.rate in kept]
    return replace(chart, rows=tuple(few))
