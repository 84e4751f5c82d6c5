"""The criteria of a run: one table, one chart on one scale, and a section for each of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trialwise.documents.blocks import (
    Badge,
    Block,
    Cell,
    Columns,
    Details,
    Link,
    Prose,
    Section,
    Table,
    build_table,
)
from trialwise.documents.charts import Chart
from trialwise.documents.numbers import as_seconds
from trialwise.model.metrics import GateFinding
from trialwise.model.plan import CriterionPlan
from trialwise.model.run import RunRecord
from trialwise.model.verdict import Finding, LatencyFinding, Verdict
from trialwise.pages.analysis_criterion import list_criterion_sections
from trialwise.pages.design_curves import chart_trials, chart_verdicts, list_chances
from trialwise.pages.finding_facts import (
    APPROXIMATE,
    find_usual_level,
    list_latency_marks,
    pick_tally,
    write_coverage,
    write_difference,
    write_interval,
    write_need,
    write_rate,
    write_stop,
)
from trialwise.pages.gate_facts import count_runs, name_gate_section
from trialwise.pages.interval_strips import build_strips
from trialwise.pages.judge_facts import build_correction
from trialwise.pages.path_chart import chart_path, find_bounds, list_outcomes
from trialwise.pages.verdict_meaning import list_decided, make_badge, make_finding_badge
from trialwise.procedures.registry import procedure_of


def build_criteria_section(record: RunRecord) -> Section | None:
    """Build everything that was decided, in one table; None where nothing was.

    Args:
        record: The run.
    """
    verdict = record.verdict
    if not list_decided(verdict):
        return None
    advises = any(one.advisory for one in verdict.findings) or bool(verdict.advisory)
    aside = ", advisory ones aside" if advises else ""
    return Section(
        heading="Criteria",
        blocks=(_build_table(record),),
        note=f"Each row is decided on its own; the run is the worst of them{aside}.",
    )


def build_details_section(record: RunRecord, charted: int) -> Section | None:
    """Build all rates on one scale, then each criterion in detail; None where there is none.

    Args:
        record: The run.
        charted: How many criteria have their charts drawn.
    """
    findings = record.verdict.findings
    if not findings:
        return None
    strips = build_strips(record)
    builder = _SectionBuilder(record, charted)
    return Section(
        heading="In detail",
        blocks=(
            *(() if strips is None else (strips,)),
            *(builder.build(one) for one in findings),
        ),
        note="The rule that decided, where the run went, and what the same rule does elsewhere.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Decided:
    """A row of the table: a criterion, a latency limit or a gate."""

    name: str
    target: str
    badges: tuple[Badge, ...]
    measured: str
    needs: str
    trials: str
    interval: str = "–"
    failed: str = "–"
    asked: str = "–"
    ended: str = ""


def _build_table(record: RunRecord) -> Table:
    verdict, usual = record.verdict, find_usual_level(record.verdict)
    rows = [
        *(_describe_criterion(record, one, usual) for one in verdict.findings),
        *(_describe_latency(verdict, one) for one in verdict.latency),
        *(_describe_gate(one) for one in verdict.gates if one.decision is not None),
    ]
    only_rates = len(rows) == len(verdict.findings)
    at = f" (at {usual})" if usual else ""
    return build_table(
        "Criteria",
        rows,
        ("criterion", lambda one: Link(text=one.name, target=one.target)),
        ("verdict", lambda one: tuple(part for badge in one.badges for part in (badge, " "))),
        ("rate" if only_rates else "measured", lambda one: one.measured),
        (f"interval, %{at}", lambda one: one.interval),
        ("needs", lambda one: one.needs),
        ("trials", lambda one: one.trials),
        ("failed", lambda one: one.failed),
        ("asked", lambda one: one.asked),
        ("ended", lambda one: one.ended),
        words=(0, 1, 7, 8),
        notes=(APPROXIMATE,) if any("≈" in one.interval for one in rows) else (),
    )


def _describe_criterion(record: RunRecord, finding: Finding, usual: str) -> _Decided:
    return _Decided(
        name=finding.criterion,
        target=_name_section(finding),
        badges=_list_badges(record, finding),
        measured=write_rate(finding),
        interval=write_interval(finding, usual=usual),
        needs=_write_need(finding),
        trials=f"{pick_tally(finding).trials:,}",
        failed=f"{pick_tally(finding).failed:,}",
        asked=write_coverage(finding) or "–",
        ended=write_stop(finding),
    )


def _describe_latency(verdict: Verdict, finding: LatencyFinding) -> _Decided:
    marks = [Badge(word=mark, tone="quiet") for mark in list_latency_marks(finding, verdict)]
    return _Decided(
        name=f"latency {finding.constraint}",
        target=LATENCY,
        badges=(make_badge(finding.decision), *marks),
        measured="–" if finding.observed is None else as_seconds(finding.observed),
        needs="–" if finding.threshold is None else f"≤ {as_seconds(finding.threshold)}",
        trials=f"{finding.trials:,}",
        ended="successful trials only",
    )


def _describe_gate(gate: GateFinding) -> _Decided:
    """Describe its number and its limit; of several, those that do not hold."""
    checks = [one for one in gate.checks if not one.holds] or gate.checks
    names = [one.target.partition(".")[2] for one in checks]
    return _Decided(
        name=gate.gate,
        target=name_gate_section(gate),
        badges=(make_badge(gate.decision),),
        measured="; ".join(f"{name} {one.shown}" for name, one in zip(names, checks, strict=True)),
        needs="; ".join(str(one.matcher) for one in checks) or "–",
        trials=f"{gate.inputs * gate.runs:,}",
        ended=count_runs(gate),
    )


def _write_need(finding: Finding) -> str:
    """Write what is asked of the rate and, where that is a baseline, how far it is from it."""
    parts = filter(None, [write_need(finding), write_difference(finding)])
    return ": ".join(parts) or "–"


def _name_section(finding: Finding) -> str:
    return f"criterion {finding.criterion}"


def _list_badges(record: RunRecord, finding: Finding) -> tuple[Badge, ...]:
    """List the decision, and whether it only advises."""
    badge = make_finding_badge(record, finding)
    advises = finding.advisory and finding.plan.standing.reported_at is None
    return (badge, Badge(word="advisory", tone="quiet")) if advises else (badge,)


class _SectionBuilder:
    """Builds the section of each criterion, and draws no design twice."""

    def __init__(self, record: RunRecord, charted: int) -> None:
        self.record = record
        self.drawn: dict[object, Finding] = {}
        # What did not pass is looked at first.
        ranked = sorted(record.verdict.findings, key=lambda one: one.decision == "PASS")
        self.charted = {one.criterion for one in ranked[:charted]}

    def build(self, finding: Finding) -> Section:
        """One criterion: its verdict, its rule and its charts."""
        advises = [
            f"Advisory, it takes no part in the verdict: {reason}." for reason in finding.advisory
        ]
        correction, charts = build_correction(finding), tuple(self._list_charts(finding))
        elsewhere = self._point_elsewhere(finding)
        evidence = tuple(list_criterion_sections(finding, self.record.verdict))
        blocks: list[Block | None] = [
            Prose(paragraphs=tuple(advises), tone="quiet") if advises else None,
            Prose(paragraphs=(finding.statement, finding.advice)),
            correction,
            Columns(blocks=charts) if charts else None,
            Prose(paragraphs=(elsewhere,), tone="quiet") if elsewhere else None,
            Details(summary="Rule and evidence", blocks=evidence, is_printed=True),
        ]
        return Section(
            heading=finding.criterion,
            blocks=tuple(block for block in blocks if block is not None),
            name=_name_section(finding),
            badges=_list_badges(self.record, finding),
        )

    def _list_charts(self, finding: Finding) -> Iterator[Chart]:
        plan = finding.plan
        if finding.criterion not in self.charted:
            return
        bounds = find_bounds(plan.limits)
        if bounds is not None and procedure_of(plan).claims_rate:
            # Of many paths the one that decided is worth a look: the worst input's.
            worst = min(finding.by_input, key=_find_rate) if finding.by_input else finding
            outcomes = list_outcomes(self.record, worst)
            if outcomes:
                yield chart_path(worst, bounds, outcomes)
        key = _find_design_key(plan)
        curve = [] if key in self.drawn else list_chances(self.record, finding)
        if not curve:
            return
        self.drawn[key] = finding
        yield chart_verdicts(finding, curve)
        if plan.limits.design is not None or plan.limits.curtailed:
            yield chart_trials(finding, curve)

    def _point_elsewhere(self, finding: Finding) -> Cell:
        """Return a sentence on charts that are not here."""
        if finding.criterion not in self.charted:
            return f"Charts are drawn for {len(self.charted)} criteria, what did not pass first."
        first = self.drawn.get(_find_design_key(finding.plan))
        if first is None or first is finding:
            return ""
        link = Link(text=first.criterion, target=_name_section(first))
        return ("The rule is the same as that of ", link, ", whose curves hold here too.")


def _find_design_key(plan: CriterionPlan) -> tuple[object, ...]:
    """Return what the curves of a criterion depend on."""
    threshold, baseline = plan.threshold, plan.threshold.baseline
    counts = None if baseline is None else (baseline.passed, baseline.trials)
    return plan.limits, threshold.required_rate, threshold.alternative_rate, counts


def _find_rate(finding: Finding) -> float:
    return -1.0 if finding.tally.rate is None else finding.tally.rate


LATENCY = "latency of successful trials"
"""The name of the section on latencies, which links lead to."""

REASONS = {
    "condition": "condition not met",
    "transform": "reply not readable",
    "no-value": "no reply",
    "unknown": "not told by what was recorded",
    "raised": "check raised",
    "broken": "check broken",
}
"""Why a trial failed a criterion."""
