"""The criteria: one table, one chart on one scale, and a block of its own for each."""

from __future__ import annotations

from collections.abc import Iterator

from trialwise.documents.numbers import as_count, as_ends, as_observed, as_percent, as_probability
from trialwise.model.plan import CriterionPlan
from trialwise.model.run import RunRecord
from trialwise.model.verdict import Caution, Finding, ObservedRate, Procedure
from trialwise.pages.finding_facts import pick_interval, pick_rate
from trialwise.reporters.html.curves import behaviours_of, trials_plot, verdicts_plot
from trialwise.reporters.html.intervals import interval_figure
from trialwise.reporters.html.judged import judged_block
from trialwise.reporters.html.parts import (
    Outline,
    Room,
    badge,
    details,
    facts,
    listed,
    prose,
    table,
)
from trialwise.reporters.html.paths import path_plot
from trialwise.reporters.html.plots import Plot, render_plot
from trialwise.reporters.html.streams import bounds_of, outcomes_of, plan_of
from trialwise.reporters.html.words import REASONS, is_soft, needs, question, shown, stopped
from trialwise.reporters.page.markup import Markup, element, joined
from trialwise.stats.sequential.design import SequentialDesign

__all__ = ["criteria_sections"]

_CAUTIONS = {
    Caution.ADEQUATE_POWER: "the evidence suffices",
    Caution.FAIL_CLEAR: "a clear failure",
    Caution.STRANDS_DISAGREE: "the observed rate is high enough, the evidence is not",
    Caution.FEASIBILITY_REFUSED: "too few trials to show the required rate at all",
    Caution.ZERO_EVALUABLE: "no trial to decide on",
    Caution.CONFIGURATION_ERROR: "the design cannot support its claim",
}
_OBSERVED = {
    ObservedRate.ABOVE_THRESHOLD: "above the threshold",
    ObservedRate.AT_THRESHOLD: "at the threshold",
    ObservedRate.BELOW_THRESHOLD: "below the threshold",
}


def criteria_sections(record: RunRecord, outline: Outline, room: Room) -> Markup:
    """The overview of all criteria, then each in detail."""
    findings = record.verdict.findings
    if not findings:
        return Markup("")
    aside = ", advisory ones aside" if any(one.advisory for one in findings) else ""
    names = {one.criterion: outline.claim(f"criterion {one.criterion}") for one in findings}
    overview = outline.section(
        "Criteria",
        _table(record, names),
        interval_figure(record, outline.below),
        note=f"Each criterion is decided on its own; the run is the worst of them{aside}.",
    )
    blocks = _Blocks(record, names, outline.below, room.charted)
    detailed = outline.section(
        "In detail",
        *(blocks.made(one) for one in findings),
        note="The rule that decided, where the run went, and what the same rule does elsewhere.",
    )
    return joined([overview, detailed])


def _table(record: RunRecord, names: dict[str, str]) -> Markup:
    rows = []
    for one in record.verdict.findings:
        rate, interval = pick_rate(one), pick_interval(one)
        link = element("a", element("bdi", one.criterion), href=f"#{names[one.criterion]}")
        rows.append(
            (
                link,
                _badges(record, one),
                "–" if rate is None else as_observed(rate),
                "–" if interval is None else as_ends(interval),
                needs(one) or "–",
                f"{one.tally.trials:,}",
                f"{one.tally.failed:,}",
                stopped(one),
            )
        )
    columns = ("criterion", "verdict", "rate", "interval, %", "needs", "trials", "failed", "ended")
    return table(
        "Criteria", columns, rows, words=(0, 1, 7), wide=True, hide_caption=True, class_="criteria"
    )


def _badges(record: RunRecord, finding: Finding) -> Markup:
    """The decision, and whether it only advises: its shape is hollow then."""
    advises = bool(finding.advisory)
    decided = badge(*shown(record, finding), soft=advises or is_soft(record))
    if not advises:
        return decided
    return joined([decided, " ", element("span", "advisory", class_="advisory")])


class _Blocks:
    """Makes the block of each criterion, and draws no design twice."""

    def __init__(
        self, record: RunRecord, names: dict[str, str], outline: Outline, charted: int
    ) -> None:
        self.record = record
        self.names = names
        self.outline = outline
        self.drawn: dict[object, str] = {}
        # What did not pass is looked at first.
        ranked = sorted(record.verdict.findings, key=lambda one: one.decision == "PASS")
        self.charted = {one.criterion for one in ranked[:charted]}

    def made(self, finding: Finding) -> Markup:
        """One criterion: its verdict, its rule and its charts."""
        identity = self.names[finding.criterion]
        below = self.outline.below
        return element(
            "article",
            self.outline.heading(
                element("bdi", finding.criterion),
                " ",
                _badges(self.record, finding),
                id=f"{identity}-h",
            ),
            prose(*map(_advice, finding.advisory), class_="advises"),
            prose(finding.statement, class_="statement"),
            prose(finding.advice),
            judged_block(finding, below),
            element(
                "div",
                *(render_plot(plot, below) for plot in self._plots(finding)),
                class_="plots",
            ),
            self._elsewhere(finding),
            details("Rule and evidence", facts(_evidence(finding)), open_=False),
            _notes(finding),
            id=identity,
            class_="criterion",
            aria_labelledby=f"{identity}-h",
        )

    def _plots(self, finding: Finding) -> Iterator[Plot]:
        plan = plan_of(self.record, finding)
        if plan is None or finding.criterion not in self.charted:
            return
        bounds = bounds_of(plan.limits)
        inferential = plan.procedure is not Procedure.OBSERVATIONAL
        if bounds is not None and inferential:
            # Of many paths the one that decided is worth a look: the worst input's.
            worst = min(finding.by_input, key=_passing_rate) if finding.by_input else finding
            outcomes = outcomes_of(self.record, worst)
            if outcomes:
                yield path_plot(worst, bounds, outcomes)
        key = _design(plan)
        if key in self.drawn:
            return
        curve = behaviours_of(self.record, plan, finding)
        if not curve:
            return
        self.drawn[key] = finding.criterion
        yield verdicts_plot(plan, finding, curve)
        if plan.limits.design is not None or plan.limits.curtailed:
            yield trials_plot(plan, finding, curve)

    def _elsewhere(self, finding: Finding) -> Markup | None:
        """A word on charts that are not here."""
        plan = plan_of(self.record, finding)
        if plan is None:
            return None
        if finding.criterion not in self.charted:
            said = f"Charts are drawn for {len(self.charted)} criteria, what did not pass first."
            return element("p", said, class_="note")
        first = self.drawn.get(_design(plan))
        if first is None or first == finding.criterion:
            return None
        link = element("a", element("bdi", first), href=f"#{self.names[first]}")
        same = ("The rule is the same as that of ", link, ", whose curves hold here too.")
        return element("p", *same, class_="note")


def _design(plan: CriterionPlan) -> tuple[object, ...]:
    """What the curves of a criterion depend on."""
    threshold, baseline = plan.threshold, plan.threshold.baseline
    counts = None if baseline is None else (baseline.passed, baseline.trials)
    return plan.limits, threshold.required_rate, threshold.alternative_rate, counts


def _passing_rate(finding: Finding) -> float:
    return -1.0 if finding.tally.rate is None else finding.tally.rate


def _advice(reason: str) -> str:
    return f"Advisory, it takes no part in the verdict: {reason}."


def _notes(finding: Finding) -> Markup:
    found = finding.diagnostics
    warnings = () if found is None else found.warnings
    # Why it only advises stands below its heading.
    caveats = [one for one in finding.caveats if not one.startswith("Advisory: ")]
    return listed(dict.fromkeys((*caveats, *warnings)), class_="caveats")


def _evidence(finding: Finding) -> Iterator[tuple[str, object]]:
    yield "question", question(finding)
    yield "rule", finding.decision_rule
    yield "given up only for evidence", finding.null
    yield "its alternative", finding.alternative
    yield "in counts", _in_counts(finding)
    yield "threshold", _threshold(finding)
    yield "estimate", _estimate(finding)
    interval = pick_interval(finding)
    if interval is not None:
        sure = f" at {as_percent(interval.confidence)}" if interval.confidence is not None else ""
        yield "interval", f"{as_ends(interval)} %{sure}, {interval.method or 'Wilson'}"
    if finding.lower_bound is not None and finding.alpha is not None:
        yield (
            "lower bound",
            f"{as_probability(finding.lower_bound)} at level {as_percent(finding.alpha)}",
        )
    if finding.p_value is not None:
        p = finding.p_value
        yield "p-value", f"{p.value:.4g} ({p.method}, {p.tail})"
    if finding.power is not None:
        yield "chance to see the alternative", as_probability(finding.power)
    yield "observed rate", _OBSERVED.get(finding.observed_rate)
    if finding.caution is not None:
        yield "caution", _CAUTIONS[finding.caution]
    yield "per protocol", _per_protocol(finding)
    yield "failures by reason", _reasons(finding)
    yield "category", finding.category
    yield "confidence", finding.confidence_statement


def _in_counts(finding: Finding) -> str | None:
    first = finding.by_input[0] if finding.by_input else finding
    design = first.design
    if isinstance(design, SequentialDesign):
        left = "" if design.always_decides else ", INCONCLUSIVE if none of them does"
        each = " of each input" if finding.by_input else ""
        return f"decided after any of at most {design.cap:,} trials{each}{left}"
    if first.cutoff is None or design is None:
        return None
    trials = first.planned_trials or first.tally.trials
    return f"PASS with at least {first.cutoff:,} successes in {trials:,} trials, else FAIL"


def _threshold(finding: Finding) -> str | None:
    threshold = finding.threshold
    if threshold is None:
        return None
    parts = [needs(finding), f"set by {threshold.origin}", threshold.contract_ref]
    if threshold.alternative_rate is not None:
        parts.insert(1, f"told from {as_percent(round(threshold.alternative_rate, 6))}")
    if threshold.baseline is not None:
        parts.append(f"baseline {threshold.baseline.identifier}")
    return ", ".join(part for part in parts if part)


def _estimate(finding: Finding) -> str | None:
    if finding.estimate is None:
        return None
    if finding.estimator is not None:
        return f"{as_probability(finding.estimate)}, by the estimator that the claim asks for"
    rate = finding.tally.rate
    seen = "" if rate is None else f" (observed {as_observed(rate)}, too good or too bad on"
    seen += " average where a run stops early)" if seen else ""
    return f"{as_probability(finding.estimate)}, median-unbiased{seen}"


def _per_protocol(finding: Finding) -> str | None:
    every, fair = finding.intent_to_treat or finding.tally, finding.per_protocol
    if fair is None or fair.rate is None or fair.trials == every.trials:
        return None
    left_out = as_count(every.trials - fair.trials, "trial")
    return (
        f"{as_observed(fair.rate)}, {fair.passed:,} of {fair.trials:,}: without {left_out} in "
        "which the service had no fair chance"
    )


def _reasons(finding: Finding) -> str | None:
    found = finding.breakdown
    if found is None or not finding.tally.failed:
        return None
    counts = (found.condition, found.transform, found.no_value)
    named = zip(counts, REASONS.values(), strict=True)
    parts = [f"{count:,} {name}" for count, name in named if count]
    errors = [f"{count:,} {kind}" for kind, count in found.errors.items()]
    return ", ".join(parts) + (f"; errors: {', '.join(errors)}" if errors else "")
