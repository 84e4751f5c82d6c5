"""What the design that ran does at every true rate: its verdicts, and how long it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trialwise.documents.charts import Chart, Guide, Ink, Line, chart_lines, chart_shares
from trialwise.documents.numbers import as_mean_trials, as_percent, as_probability
from trialwise.model.plan import Limits
from trialwise.model.run import RunRecord
from trialwise.model.verdict import Finding
from trialwise.pages.finding_facts import find_alternative, find_required
from trialwise.procedures.chances import characterize
from trialwise.procedures.characteristic import Chance
from trialwise.procedures.registry import procedure_of

#: Rates on a curve, and the most arithmetic that all of them may take together.
POINTS, FEWEST_POINTS = 41, 13
STEPS = 2_500_000
#: A share below this is rounding.
_NOTHING = 1e-9


def list_chances(record: RunRecord, finding: Finding) -> list[Chance]:
    """List the chances of the design that ran, over the rates that matter; empty without a curve.

    There is none where the chances depend on more than a rate, such as on a judge's labels.
    """
    if not procedure_of(finding).claims_rate:
        return []
    plan = finding.plan
    found = characterize(plan, record.plan.intent_of(plan))
    if found.at is None:
        return []
    rates = _spread_rates(_list_references(finding), _count_points(plan.limits))
    chances = map(found.foresee, rates)
    # Where nothing ends a run early, it takes all of its trials.
    most = float(plan.limits.cap)
    return [replace(one, mean_trials=one.mean_trials or most) for one in chances]


def _count_points(limits: Limits) -> int:
    design, width = limits.design, limits.cap * (limits.cap - (limits.most_failing or 0))
    if design is not None:
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


def chart_verdicts(finding: Finding, curve: Sequence[Chance]) -> Chart:
    """Chart the operating characteristic: how often each verdict falls, by true rate."""
    bands: list[tuple[str, Ink, list[float]]] = [("PASS", "pass", [one.passes for one in curve])]
    if any(one.inconclusive > _NOTHING for one in curve):
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


def chart_trials(finding: Finding, curve: Sequence[Chance]) -> Chart:
    """Chart the average sample number: how many trials the design takes, by true rate."""
    taken = finding.tally.trials
    at = {one.rate: one for one in curve}
    said = [
        f"{as_mean_trials(at[rate].mean_trials or 0.0)} at {as_percent(round(rate, 6))}"
        for rate in _list_stated(finding)
        if rate in at
    ]
    each = " for each input" if finding.plan.counting.each_input else ""
    took = "" if finding.plan.counting.each_input else f"; this run took {taken:,}"
    guides = _list_guides(finding)
    if not finding.plan.counting.each_input:
        guides = (*guides, Guide(value=taken, label=f"this run: {taken:,}", axis="y"))
    points = tuple((one.rate, one.mean_trials or 0.0) for one in curve)
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


def _write_verdicts_summary(finding: Finding, curve: Sequence[Chance]) -> str:
    at = {one.rate: one for one in curve}
    stated = [at[rate] for rate in _list_stated(finding) if rate in at]
    each = "Of one input: at" if finding.plan.counting.each_input else "At"
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


def _keep_few_rows(chart: Chart, finding: Finding, curve: Sequence[Chance]) -> Chart:
    """Return the chart with every fourth rate in its table, and those that are referred to."""
    kept = set(_list_references(finding))
    rows = zip(curve, chart.rows, strict=True)
    few = [row for k, (one, row) in enumerate(rows) if k % 4 == 0 or one.rate in kept]
    return replace(chart, rows=tuple(few))
