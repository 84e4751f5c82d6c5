"""A comparison as result lines, which JUnit and other short formats show: one for each criterion
and candidate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from trialwise.documents.results import Fact, LineKind, ResultLine, RunResults, Status, SuiteResults
from trialwise.pages.comparison import name_comparison
from trialwise.pages.comparison_differences import describe_difference, name_outcome
from trialwise.pages.comparison_flips import Flip, describe_losses, list_flips
from trialwise.procedures.comparing.findings import ArmRun, ComparisonFinding, ComparisonVerdict


def describe_results(verdict: ComparisonVerdict, arms: Sequence[ArmRun] = ()) -> SuiteResults:
    """Describe a comparison as the results of a suite, with a run for each candidate.

    Args:
        verdict: What was concluded.
        arms: The runs of the arms; without them no flip is named.
    """
    coupled: dict[tuple[str, str], list[ComparisonFinding]] = {}
    for finding in verdict.findings:
        coupled.setdefault((finding.arm, finding.against), []).append(finding)
    flips = list_flips(verdict, arms)
    runs = tuple(_describe_run(verdict, arms, flips, found) for found in coupled.values())
    return SuiteResults(
        name=name_comparison(verdict),
        status=Status(verdict.decision.value),
        runs=runs,
        totals=verdict.statement,
        seconds=sum(one.seconds for one in runs),
    )


def _describe_run(
    verdict: ComparisonVerdict,
    arms: Sequence[ArmRun],
    flips: Sequence[Flip],
    findings: Sequence[ComparisonFinding],
) -> RunResults:
    arm, against = findings[0].arm, findings[0].against
    name = f"{arm} against {against}"
    decided = {one.decision.value for one in findings if not one.advisory}
    worst = next((one for one in ("FAIL", "INCONCLUSIVE") if one in decided), "PASS")
    runs = {one.label: one for one in verdict.arms}
    starts = {one.label: one.record.verdict.started_at for one in arms}
    return RunResults(
        contract=name,
        status=Status(worst),
        lines=tuple(
            replace(_describe_line(verdict, name, one), details=describe_losses(flips, arms, one))
            for one in findings
        ),
        notes=(*verdict.caveats, *filter(None, [verdict.multiplicity])),
        facts={
            "statement": verdict.statement,
            "question": verdict.question.question,
            "confidence": verdict.question.confidence,
            "control": against,
            "control_run": runs[against].run_id or None,
            "candidate": arm,
            "candidate_run": runs[arm].run_id or None,
            "pairs": sum(
                one.pairs for one in verdict.pairings if (one.arm, one.against) == (arm, against)
            ),
            "claim": verdict.about,
        },
        run_id=runs[arm].run_id,
        seed=runs[arm].seed,
        started_at=starts.get(arm),
        seconds=runs[arm].spending.seconds,
    )


def _describe_line(
    verdict: ComparisonVerdict, contract: str, finding: ComparisonFinding
) -> ResultLine:
    return ResultLine(
        kind=LineKind.CRITERION,
        contract=contract,
        name=finding.criterion,
        status=Status(finding.decision.value),
        label=f"{finding.decision.value} ({name_outcome(finding)})",
        advisory=bool(finding.advisory),
        sentence=describe_difference(finding),
        statement=finding.statement or describe_difference(finding),
        notes=(*finding.advisory, *finding.caveats),
        claim=verdict.about,
        facts=dict(list_finding_facts(finding)),
    )


def list_finding_facts(finding: ComparisonFinding) -> Iterator[tuple[str, Fact]]:
    """Yield the numbers behind a finding, under the names that machine-readable reports use."""
    yield "decision", finding.decision.value
    yield "outcome", name_outcome(finding)
    yield "question", finding.question
    yield "margin", finding.margin or None
    yield "difference", finding.difference
    if finding.interval is not None:
        yield "low", finding.interval.low
        yield "high", finding.interval.high
        yield "confidence", finding.interval.confidence
    yield "p_value", finding.p_value
    yield "adjusted_p_value", finding.adjusted_p_value
    yield "decision_rule", finding.decision_rule
    for name, tally in (("control", finding.control), ("candidate", finding.candidate)):
        if tally is not None:
            yield f"{name}_passed", tally.passed
            yield f"{name}_trials", tally.trials
    if finding.pairs is not None:
        yield "only_control_passed", finding.pairs.only_a
        yield "only_candidate_passed", finding.pairs.only_b
        yield "pairs", finding.pairs.pairs
