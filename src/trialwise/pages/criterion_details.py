"""The criteria of a run: one table, one chart on one scale, and a section for each of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from trialwise.documents import blocks
from trialwise.documents.charts import Axis, Chart, Strip, StripRow, Strips
from trialwise.documents.numbers import as_count, as_ends, as_observed, as_percent
from trialwise.documents.results import RunResults
from trialwise.model.plan import CriterionPlan
from trialwise.model.run import RunRecord
from trialwise.model.verdict import Decision, Finding
from trialwise.pages import criterion_charts
from trialwise.pages import finding_facts as facts
from trialwise.pages.analysis_criterion import list_criterion_sections
from trialwise.pages.judge_facts import CORRECTION_NAMES, list_corrections
from trialwise.pages.results_page import tabulate_lines
from trialwise.pages.verdict_meaning import MEASURED, make_finding_badge
from trialwise.procedures.registry import procedure_of
from trialwise.stats.judged_decision import JudgedDecision
from trialwise.stats.result_types import Interval, Undefined

#: Rows of the table: of many inputs that fail, a page names the first.
_MOST_ROWS = 200


def build_criteria_section(record: RunRecord, run: RunResults) -> blocks.Section:
    """Build everything that was decided, in one table.

    Args:
        record: The run.
        run: Its results.
    """
    verdict = record.verdict
    # A table of which not every row counts must say so where its rule is explained.
    advises = any(one.advisory for one in verdict.findings) or bool(verdict.advisory)
    aside = ", advisory ones aside" if advises else ""
    note = f"Each row is decided on its own; the run is the worst of them{aside}."
    table = tabulate_lines(run, linked=True, most=_MOST_ROWS)
    return blocks.Section(heading="Criteria", blocks=(table,), note=note)


def build_details_section(record: RunRecord, charted: int) -> blocks.Section | None:
    """Build all rates on one scale, then each criterion in detail; None where there is none.

    Args:
        record: The run.
        charted: How many criteria have their charts drawn.
    """
    findings = record.verdict.findings
    if not findings:
        return None
    strips, builder = filter(None, [build_strips(record)]), _SectionBuilder(record, charted)
    shown: tuple[blocks.Block, ...] = (*strips, *map(builder.build, findings))
    note = "The rule that decided, where the run went, and what the same rule does elsewhere."
    return blocks.Section(heading="In detail", blocks=shown, note=note)


class _SectionBuilder:
    """Builds the section of each criterion, and draws no design twice."""

    def __init__(self, record: RunRecord, charted: int) -> None:
        self.record = record
        # A suite of equal criteria would repeat the same pair of curves for each of them.
        self.drawn: dict[object, Finding] = {}
        # What did not pass is looked at first.
        ranked = sorted(record.verdict.findings, key=lambda one: one.decision == "PASS")
        self.charted = {one.criterion for one in ranked[:charted]}

    def build(self, finding: Finding) -> blocks.Section:
        """One criterion: its verdict, its rule and its charts."""
        badges = [make_finding_badge(self.record, finding)]
        if finding.advisory and finding.plan.standing.reported_at is None:
            badges.append(blocks.Badge(word="advisory", tone="quiet"))
        inside, name = tuple(self._list_blocks(finding)), facts.name_section(finding)
        heading = finding.criterion
        return blocks.Section(heading=heading, blocks=inside, name=name, badges=tuple(badges))

    def _list_blocks(self, finding: Finding) -> Iterator[blocks.Block]:
        for reason in finding.advisory:
            said = f"Advisory, it takes no part in the verdict: {reason}."
            yield blocks.Prose(paragraphs=(said,), tone="quiet")
        yield blocks.Prose(paragraphs=(finding.statement, finding.advice))
        if charts := tuple(self._list_charts(finding)):
            yield blocks.Columns(blocks=charts)
        if elsewhere := self._point_elsewhere(finding):
            yield blocks.Prose(paragraphs=(elsewhere,), tone="quiet")
        evidence = tuple(list_criterion_sections(finding, self.record.verdict))
        yield blocks.Details(summary="Rule and evidence", blocks=evidence, is_printed=True)

    def _list_charts(self, finding: Finding) -> Iterator[Chart]:
        plan = finding.plan
        if finding.criterion not in self.charted:
            return
        bounds = criterion_charts.find_bounds(plan.limits)
        if bounds is not None and procedure_of(plan).claims_rate:
            # Of many paths the one that decided is worth a look: the worst input's.
            each = finding.by_input or [finding]
            worst = min(each, key=lambda one: (one.tally.rate is not None, one.tally.rate or 0.0))
            outcomes = criterion_charts.list_outcomes(self.record, worst)
            if outcomes:
                yield criterion_charts.chart_path(worst, bounds, outcomes)
        key = _find_design_key(plan)
        # Chances are computed, not looked up: a second time would cost as much as the first.
        curve = [] if key in self.drawn else criterion_charts.list_chances(self.record, finding)
        if not curve:
            return
        self.drawn[key] = finding
        yield criterion_charts.chart_verdicts(finding, curve)
        if plan.limits.design is not None or plan.limits.curtailed:
            yield criterion_charts.chart_trials(finding, curve)

    def _point_elsewhere(self, finding: Finding) -> blocks.Cell:
        """Return a sentence on charts that are not here."""
        if finding.criterion not in self.charted:
            return f"Charts are drawn for {len(self.charted)} criteria, what did not pass first."
        first = self.drawn.get(_find_design_key(finding.plan))
        if first is None or first is finding:
            return ""
        name = blocks.Name(first.criterion, facts.name_section(first))
        return ("The rule is the same as that of ", name, ", whose curves hold here too.")


def _find_design_key(plan: CriterionPlan) -> tuple[object, ...]:
    """Return what the curves of a criterion depend on."""
    threshold, baseline = plan.threshold, plan.threshold.baseline
    counts = None if baseline is None else (baseline.passed, baseline.trials)
    # Anything else, such as the name of a criterion, does not change how its rule errs.
    return plan.limits, threshold.required_rate, threshold.alternative_rate, counts


# --- Every criterion's interval on one scale, against what was required of it ---------------------

#: Inputs of one criterion that are drawn, the worst first; the heat map holds the others.
MOST_INPUTS = 16
_ORDER = (Decision.FAIL, None, Decision.INCONCLUSIVE, Decision.PASS)


def build_strips(record: RunRecord) -> Strips | None:
    """Build the chart, or None where no trial gave a rate."""
    findings = record.verdict.findings
    usual = facts.find_usual_level(record.verdict)
    # One scale for all: two rates can be compared by eye only where a point means the same.
    rows = [row for finding in findings for row in _list_rows(record, finding, usual)]
    if not rows:
        return None
    low = find_scale_start(row.strip for row in rows)
    left_out = sum(max(0, len(one.by_input) - MOST_INPUTS) for one in findings)
    rest = f" {as_count(left_out, 'further input')} not drawn." if left_out else ""
    if any(row.strip.dashed for row in rows):
        rest = f" Below what a judge says: the same, corrected for the judge's errors.{rest}"
    said = f"A dot is the observed rate, a line its {usual} interval, an upright stroke the"
    dashed = "A dashed stroke is the rate that a PASS still allows for."
    return Strips(
        heading="Rates against requirements",
        summary=f"{said} required rate. {dashed}{rest}",
        axis=Axis(low=low, high=1.0, label="rate", unit="rate"),
        rows=tuple(replace(row, strip=replace(row.strip, span=(low, 1.0))) for row in rows),
    )


def find_scale_start(strips: Iterable[Strip]) -> float:
    """Return where the scale of several rates begins: at 0, or where nothing below it is lost."""
    # A required rate of 0 is none, and lies at the end of any scale.
    known = [
        value
        for one in strips
        for value in (one.low, one.value, *filter(None, (one.need, *one.others)))
    ]
    # On a scale from 0, rates of 97 and 98 % are one dot; a scale that starts near them is honest
    # only if no interval, no requirement and no alternative is cut off.
    least = min(known, default=0.0)
    return 0.0 if least < 0.4 else math.floor(20 * (least - 0.02)) / 20


def map_strips(record: RunRecord) -> dict[str, Strip]:
    """Map the name of each criterion and input to its interval, all on one scale."""
    parts = (part for one in record.verdict.findings for part in (one, *one.by_input))
    known = [part for part in parts if facts.pick_interval(part) is not None]
    made = (make_strip(part, make_finding_badge(record, part).word) for part in known)
    named = zip(map(facts.name_finding, known), made, strict=True)
    strips = {name: strip for name, strip in named if strip is not None}
    span = (find_scale_start(strips.values()), 1.0)
    return {name: replace(strip, span=span, others=(), hint="") for name, strip in strips.items()}


def make_strip(finding: Finding, word: str) -> Strip | None:
    """Place the interval of a finding on a scale from 0 to 1; None where no trial gave a rate.

    Args:
        finding: The finding.
        word: What it is called; a PASS under another word says less than it seems to.
    """
    rate, interval = facts.pick_rate(finding), facts.pick_interval(finding)
    if rate is None:
        return None
    low, high = (rate, rate) if interval is None else (interval.low, interval.high)
    required, alternative = (facts.find_required(finding), facts.find_alternative(finding))
    name = finding.criterion if finding.input_id is None else finding.input_id
    return Strip(
        low=low,
        value=rate,
        high=high,
        # What measured a baseline decided nothing, and must not look as if it had.
        ink="quiet" if word == MEASURED else criterion_charts.INKS[finding.decision],
        span=(0.0, 1.0),
        need=required,
        others=() if alternative is None else (alternative,),
        # A PASS that only advises, or that is called a smoke pass, is drawn hollow.
        soft=finding.decision is Decision.PASS
        and (bool(finding.advisory) or word != finding.decision),
        hint=_write_hint(f"{name}: {word}", rate, interval, required),
    )


def _write_hint(start: str, rate: float, interval: Interval | None, required: float | None) -> str:
    ends = "" if interval is None else f", interval {as_ends(interval)} %"
    held = "" if required is None else f", held against {as_percent(round(required, 4))}"
    return f"{start}, rate {as_observed(rate)}{ends}{held}"


def _list_rows(record: RunRecord, finding: Finding, usual: str) -> Iterator[StripRow]:
    row = _make_row(record, finding, usual)
    if row is not None:
        yield row
        yield from _list_corrected(finding, row, list(list_corrections(finding)))
    found = [(part, _make_row(record, part, usual)) for part in finding.by_input]
    drawn = [(part, one) for part, one in found if one is not None]
    drawn.sort(key=lambda pair: (_ORDER.index(pair[0].decision), pair[1].strip.value))
    # The worst are drawn: a page that drew the best of many inputs would hide what failed.
    for part, one in drawn[:MOST_INPUTS]:
        yield one
        # The correction that leaves it open, or else either: two lines for each input suffice.
        yield from _list_corrected(part, one, [part.judged] if part.judged else [])


def _make_row(record: RunRecord, finding: Finding, usual: str) -> StripRow | None:
    strip = make_strip(finding, make_finding_badge(record, finding).word)
    if strip is None:
        return None
    return StripRow(
        name=finding.criterion if finding.input_id is None else finding.input_id,
        strip=strip,
        value=facts.write_rate(finding)
        if procedure_of(finding).decides_mean
        else as_observed(strip.value),
        interval=facts.write_interval(finding, "", usual),
        note=f"of {as_count(finding.tally.trials, 'trial')}",
        depth=0 if finding.input_id is None else 1,
    )


def _list_corrected(
    finding: Finding, row: StripRow, corrections: Sequence[JudgedDecision]
) -> Iterator[StripRow]:
    """List what is left of a rate that a judge gave."""
    for one in corrections:
        found = one.corrected
        # A correction may be impossible, such as for a judge that is no better than chance.
        if isinstance(found, Undefined):
            continue
        name = f"corrected, {CORRECTION_NAMES[one.correction]}"
        said, required = f"{name}: {one.decision}", facts.find_required(finding)
        (low, high), rate = found.interval, found.rate
        hint = _write_hint(said, rate, found.interval, required)
        ink = criterion_charts.INKS[one.decision]
        strip = replace(row.strip, low=low, value=rate, high=high, ink=ink, dashed=True, hint=hint)
        yield StripRow(
            name=name,
            strip=strip,
            value=as_observed(rate),
            interval=as_ends(found.interval),
            note=f"by {as_count(found.confusion.labels, 'label')}",
            depth=row.depth + 1,
        )
