"""Arms compared on the same inputs, as a page: the answer, what it rests on, and what to read.

- `comparison`: the whole page; a summary for a terminal, a comment, a notebook; lines for JUnit;
  and everything for programs
- `comparison_differences`: the forest plot, what was decided, and which replies a judge prefers
- `comparison_flips`: pairs in which exactly one arm passed, with both replies
- `comparison_inputs`: each input under every arm
- `comparison_arms`: what the arms are, how well they did and what they took
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from trialwise import __version__
from trialwise.documents.blocks import Badge, Block, Details, Document, Items, Section, fold_notes
from trialwise.documents.numbers import as_count, as_money, as_percent, as_points, keep_few
from trialwise.documents.printable import cut_middle
from trialwise.documents.results import Fact, LineKind, ResultLine, RunResults, Status, SuiteResults
from trialwise.model.codec import to_plain
from trialwise.model.trial import Trial
from trialwise.model.verdict import Decision
from trialwise.pages import comparison_arms, comparison_differences, comparison_flips
from trialwise.pages.comparison_inputs import build_arm_inputs, count_inputs
from trialwise.procedures.comparing.findings import (
    ArmRun,
    ComparisonFinding,
    ComparisonVerdict,
    group_by_arms,
)
from trialwise.procedures.comparing.pairing import name_shared
from trialwise.procedures.comparing.words import name_outcome
from trialwise.procedures.comparison import COMPARISON
from trialwise.procedures.composite import combine

#: Notes of a summary, those on amounts, those of a page, and factors that are named at the top.
_FEW_NOTES, _FEW_AMOUNTS, _MOST_NOTES, _FACTORS = 15, 6, 60, 4
_NAME = 80


def build_comparison_page(verdict: ComparisonVerdict, arms: Sequence[ArmRun]) -> Document:
    """Build a comparison as a page with everything a reader may look for.

    Args:
        verdict: What was concluded.
        arms: The runs of the arms.
    """
    plot = comparison_differences.build_forest(verdict), _tabulate(verdict)
    notes = keep_few(COMPARISON.explain(verdict), _MOST_NOTES)
    sections = (
        Section(heading="Criteria", blocks=tuple(filter(None, plot)), depth="summary"),
        comparison_flips.build_flips_section(verdict, arms),
        comparison_arms.build_arms_section(verdict, arms),
        build_arm_inputs(verdict, arms),
        Section(heading="Worth knowing", blocks=(Items(items=notes),)) if notes else None,
    )
    return _frame(verdict, arms, *sections)


def summarize_comparison(
    verdict: ComparisonVerdict, arms: Sequence[ArmRun], *, is_pictured: bool = False
) -> Document:
    """Summarize a comparison: the answer, a row for each criterion, and a few flips.

    Args:
        verdict: What was concluded.
        arms: The runs of the arms.
        is_pictured: Whether the table holds the intervals as pictures instead of a plot below it.
    """
    return _frame(
        verdict,
        arms,
        _tabulate(verdict, is_pictured=is_pictured),
        # A terminal has no pictures in cells, and gets the plot instead.
        None if is_pictured else comparison_differences.build_forest(verdict),
        *comparison_flips.build_few_flips(verdict, arms),
        _fold_amounts(verdict),
        *fold_notes("Worth knowing", keep_few(COMPARISON.explain(verdict), _FEW_NOTES)),
    )


_tabulate = comparison_differences.tabulate_differences


def _frame(verdict: ComparisonVerdict, arms: Sequence[ArmRun], *blocks: Block | None) -> Document:
    status = Status(verdict.decision.value)
    return Document(
        kind="Comparison",
        title=name_comparison(verdict),
        badge=Badge(word=status.value, tone=status.tone),
        lead=verdict.statement,
        facts=tuple(_list_facts(verdict, arms)),
        blocks=tuple(one for one in blocks if one is not None),
    )


def _list_facts(
    verdict: ComparisonVerdict, arms: Sequence[ArmRun]
) -> Iterator[tuple[str, str | None]]:
    """Yield what was compared. Each value says what it is: a notebook shows them without labels."""
    yield "compared", _describe_pairing(verdict)
    yield "asked", _describe_question(verdict)
    yield "claim", verdict.about
    for key, values in list(comparison_arms.list_factors(verdict, arms).items())[:_FACTORS]:
        named = (cut_middle(one, _NAME) for one in values.values())
        yield "differs in", f"{cut_middle(key, _NAME)}: {', '.join(named)}"
    # The usual analysis needs no words; another one changes what the rates mean.
    if verdict.analysis != "measured":
        yield "analysis", f"decided {verdict.analysis}"
    spent = [arm.spending for arm in verdict.arms]
    known = [one.usd for one in spent if one.usd is not None]
    usd = f", {as_money(sum(known))}" if known else ""
    yield "took", f"{as_count(sum(one.trials for one in spent), 'trial')}{usd}"
    for arm in arms:
        if arm.path is not None:
            yield "run", f"{cut_middle(arm.label, _NAME)}: {arm.path.name}"


def _describe_question(verdict: ComparisonVerdict) -> str:
    asked = verdict.question
    by = "" if asked.margin is None else f", margin {as_points(asked.margin)}"
    what = f"candidates are {asked.question.replace('-', ' ')}{by}"
    if asked.question == "different":
        whose = "the arms differ", "candidates differ from the control"
        what = whose[asked.against == "control"]
    if verdict.relabelled is not None:
        what = "a service differs from itself"
    guards = [f"{name}, margin {as_points(one)}" for name, one in asked.guardrails.items()]
    guarded = f"; guardrails: {', '.join(guards)}" if guards else ""
    return f"whether {what}, at {as_percent(asked.confidence)} confidence{guarded}"


def name_comparison(verdict: ComparisonVerdict) -> str:
    """Name who is compared with whom, and of which contract where all have one."""
    candidates = ", ".join(one.label for one in verdict.candidates)
    name = f"{candidates} against {verdict.control.label}"
    contracts = {one.contract for one in verdict.arms}
    return f"{contracts.pop()}: {name}" if len(contracts) == 1 else name


def _describe_pairing(verdict: ComparisonVerdict) -> str:
    """Describe how the trials were put together, in a line."""
    pairs: Counter[tuple[str, str]] = Counter()
    for one in verdict.pairings:
        pairs[one.arm, one.against] += one.pairs
    if not any(pairs.values()):
        return "separate runs, nothing paired"
    shared = name_shared(*verdict.pairings)
    # Every two arms that are compared have pairs of their own.
    fewest, most = min(pairs.values()), max(pairs.values())
    least = "" if fewest == most else f"{fewest:,} to "
    each = "" if len(pairs) == 1 else ", for every two arms that are compared"
    return f"{least}{as_count(most, 'pair')} of the same {shared}{each}"


def _fold_amounts(verdict: ComparisonVerdict) -> Details | None:
    amounts = comparison_arms.tabulate_amounts(verdict)
    notes = (*comparison_arms.list_amount_notes(verdict), *comparison_arms.list_setup(verdict))
    blocks: list[Block] = [] if amounts is None else [replace(amounts, is_headed=False)]
    blocks += [Items(items=keep_few(notes, _FEW_AMOUNTS))] if notes else []
    whole = Details(summary="What trials took", blocks=tuple(blocks), is_printed=True)
    return whole if blocks else None


# --- Result lines ---------------------------------------------------------------------------------
# What JUnit and other short formats show: a line for each criterion and candidate.


def describe_results(verdict: ComparisonVerdict, arms: Sequence[ArmRun]) -> SuiteResults:
    """Describe a comparison as the results of a suite, with a run for each candidate.

    Args:
        verdict: What was concluded.
        arms: The runs of the arms.
    """
    coupled = group_by_arms(verdict.findings).values()
    flips = comparison_flips.list_flips(verdict, arms)
    runs = tuple(_describe_run(verdict, arms, flips, found) for found in coupled)
    return SuiteResults(
        name=name_comparison(verdict),
        status=Status(verdict.decision.value),
        runs=runs,
        outcome=(verdict.statement,),
        seconds=sum(one.seconds for one in runs),
    )


def _describe_run(
    verdict: ComparisonVerdict,
    arms: Sequence[ArmRun],
    flips: Sequence[comparison_flips.Flip],
    findings: Sequence[ComparisonFinding],
) -> RunResults:
    arm, against = findings[0].arm, findings[0].against
    name = f"{arm} against {against}"
    # A build that reads this must not go red for what only advises.
    worst = combine(one.decision for one in findings if not one.advisory) or Decision.PASS
    runs = {one.label: one for one in verdict.arms}
    starts = {one.label: one.record.verdict.started_at for one in arms}
    describe_losses = partial(comparison_flips.describe_losses, flips, arms)
    return RunResults(
        contract=name,
        status=Status(worst.value),
        lines=tuple(_describe_line(verdict, name, one, describe_losses(one)) for one in findings),
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
    verdict: ComparisonVerdict, contract: str, finding: ComparisonFinding, lost: tuple[str, ...]
) -> ResultLine:
    difference = comparison_differences.describe_difference(finding)
    return ResultLine(
        kind=LineKind.CRITERION,
        contract=contract,
        name=finding.criterion,
        status=Status(finding.decision.value),
        label=f"{finding.decision.value} ({name_outcome(finding)})",
        advisory=bool(finding.advisory),
        sentence=difference,
        statement=finding.statement or difference,
        notes=(*finding.advisory, *finding.caveats),
        claim=verdict.about,
        facts=dict(_list_finding_facts(finding)),
        details=lost,
    )


def _list_finding_facts(finding: ComparisonFinding) -> Iterator[tuple[str, Fact]]:
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


# --- Everything for programs ----------------------------------------------------------------------
# One versioned form: the verdict in full, its flips and inputs. `comparison.schema.json` beside
# this file describes it (JSON Schema 2020-12). The fields of the verdict stand at the top, as
# `ComparisonVerdict` names them.

#: Its number grows when a reader of the earlier form would misread the later one.
SCHEMA = "trialwise.comparison/1"
#: Flips that are written with their replies; the others are counted.
_MOST_FLIPS = 500


def describe_comparison(verdict: ComparisonVerdict, arms: Sequence[ArmRun]) -> dict[str, Any]:
    """Describe a comparison as plain values, fit for JSON.

    Args:
        verdict: What was concluded.
        arms: The runs of the arms.
    """
    flips = comparison_flips.list_flips(verdict, arms)
    records = {one.label: one.record for one in arms}
    # Replies make the file large; the others are in the journals of the runs.
    shown = [one.read(records) for one in flips[:_MOST_FLIPS]]
    return {
        "schema": SCHEMA,
        "tool": {"name": "trialwise", "version": __version__},
        **to_plain(verdict),
        "records": {one.label: None if one.path is None else str(one.path) for one in arms},
        "inputs": list(_list_inputs(verdict, arms)),
        "flips": [
            {
                "arm": one.arm,
                "against": one.against,
                "input": one.pair.control.input_id,
                "lost": list(one.lost),
                "won": list(one.won),
                "control": _describe_trial(one.pair.control),
                "candidate": _describe_trial(one.pair.candidate),
            }
            for one in shown
        ],
        "other_flips": len(flips) - len(shown),
    }


def read_comparison_schema() -> dict[str, Any]:
    """Read the JSON Schema of a comparison."""
    import json
    from importlib.resources import files

    text = files("trialwise.pages").joinpath("comparison.schema.json").read_text("utf-8")
    return dict(json.loads(text))


def _list_inputs(verdict: ComparisonVerdict, arms: Sequence[ArmRun]) -> Iterator[Mapping[str, Any]]:
    counted = count_inputs(arms)
    for criterion in verdict.criteria:
        for row in counted.get(criterion, ()):
            counts = {
                label: {"passed": passed, "trials": trials}
                for label, (passed, trials) in row.counts.items()
            }
            yield {"criterion": criterion, "input": row.input_id, "arms": counts}


def _describe_trial(trial: Trial) -> dict[str, Any]:
    failed = [one for one in trial.outcomes if not one.passed]
    return {
        "trial": trial.index,
        "seed": trial.seed,
        "reply": None if trial.reply is None else comparison_flips.shorten_reply(trial.reply),
        "error": trial.error,
        "failed": {one.criterion: one.result.explanation for one in failed},
    }
