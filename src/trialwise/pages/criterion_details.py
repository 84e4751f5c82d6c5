"""The criteria of a run: one table, one chart on one scale, and a section for each of them."""

from __future__ import annotations

from collections.abc import Iterator

from trialwise.documents.blocks import (
    Badge,
    Block,
    Cell,
    Columns,
    Details,
    Link,
    Prose,
    Section,
)
from trialwise.documents.charts import Chart
from trialwise.documents.results import RunResults
from trialwise.model.plan import CriterionPlan
from trialwise.model.run import RunRecord
from trialwise.model.verdict import Finding
from trialwise.pages.analysis_criterion import list_criterion_sections
from trialwise.pages.design_curves import chart_trials, chart_verdicts, list_chances
from trialwise.pages.finding_facts import (
    name_section,
)
from trialwise.pages.interval_strips import build_strips
from trialwise.pages.judge_facts import build_correction
from trialwise.pages.path_chart import chart_path, find_bounds, list_outcomes
from trialwise.pages.results_page import tabulate_lines
from trialwise.pages.verdict_meaning import make_finding_badge
from trialwise.procedures.registry import procedure_of

#: Rows of the table: of many inputs that fail, a page names the first.
_MOST_ROWS = 200


def build_criteria_section(record: RunRecord, run: RunResults) -> Section:
    """Build everything that was decided, in one table.

    Args:
        record: The run.
        run: Its results.
    """
    verdict = record.verdict
    advises = any(one.advisory for one in verdict.findings) or bool(verdict.advisory)
    aside = ", advisory ones aside" if advises else ""
    return Section(
        heading="Criteria",
        blocks=(tabulate_lines(run, linked=True, most=_MOST_ROWS),),
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
            name=name_section(finding),
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
        link = Link(text=first.criterion, target=name_section(first))
        return ("The rule is the same as that of ", link, ", whose curves hold here too.")


def _find_design_key(plan: CriterionPlan) -> tuple[object, ...]:
    """Return what the curves of a criterion depend on."""
    threshold, baseline = plan.threshold, plan.threshold.baseline
    counts = None if baseline is None else (baseline.passed, baseline.trials)
    return plan.limits, threshold.required_rate, threshold.alternative_rate, counts


def _find_rate(finding: Finding) -> float:
    return -1.0 if finding.tally.rate is None else finding.tally.rate
