"""Arms compared on the same inputs, as a page: the answer, what it rests on, and what to read.

comparison               the whole page, and a summary of it for a terminal, a comment, a notebook
comparison_differences   the forest plot and the table of what was decided
comparison_flips         pairs in which exactly one arm passed, with both replies
comparison_inputs        each input under every arm
comparison_arms          what the arms are, how well they did and what they took
comparison_amounts       costs of a success, scores and steadiness in sentences
comparison_preferences   which replies a judge prefers
comparison_results       result lines for JUnit
comparison_json          everything for programs
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from trialwise.documents.blocks import Badge, Block, Details, Document, Items, Section
from trialwise.documents.numbers import as_count, as_money, as_percent, as_points, keep_few
from trialwise.documents.printable import cut_middle
from trialwise.documents.results import Status
from trialwise.pages.comparison_amounts import list_amount_notes
from trialwise.pages.comparison_arms import (
    build_arms_section,
    list_factors,
    list_setup,
    tabulate_amounts,
)
from trialwise.pages.comparison_differences import build_forest, tabulate_differences
from trialwise.pages.comparison_flips import build_few_flips, build_flips_section
from trialwise.pages.comparison_inputs import build_arm_inputs
from trialwise.procedures.comparing.findings import ArmRun, ComparisonVerdict

#: Notes of a summary, those on amounts, those of a page, and factors that are named at the top.
_FEW_NOTES, _FEW_AMOUNTS, _MOST_NOTES, _FACTORS = 15, 6, 60, 4
_NAME = 80


def build_comparison_page(verdict: ComparisonVerdict, arms: Sequence[ArmRun] = ()) -> Document:
    """Build a comparison as a page with everything a reader may look for.

    Args:
        verdict: What was concluded.
        arms: The runs of the arms; without them the page holds no flips and no inputs.
    """
    forest = build_forest(verdict)
    plot = () if forest is None else (forest,)
    decided = Section(
        heading="Criteria",
        blocks=(*plot, tabulate_differences(verdict)),
        depth="summary",
    )
    notes = list_notes(verdict)
    sections = (
        decided,
        build_flips_section(verdict, arms),
        build_arms_section(verdict, arms),
        build_arm_inputs(verdict, arms),
        Section(heading="Worth knowing", blocks=(Items(items=keep_few(notes, _MOST_NOTES)),))
        if notes
        else None,
    )
    return _frame(verdict, arms, tuple(one for one in sections if one is not None))


def summarize_comparison(
    verdict: ComparisonVerdict, arms: Sequence[ArmRun] = (), *, is_pictured: bool = False
) -> Document:
    """Summarize a comparison: the answer, a row for each criterion, and a few flips.

    Args:
        verdict: What was concluded.
        arms: The runs of the arms; without them the summary holds no flips.
        is_pictured: Whether the table holds the intervals as pictures instead of a plot below it.
    """
    forest = None if is_pictured else build_forest(verdict)
    blocks: tuple[Block | None, ...] = (
        tabulate_differences(verdict, is_pictured=is_pictured),
        forest,
        build_few_flips(verdict, arms),
        _fold_amounts(verdict),
        _fold_notes(verdict),
    )
    return _frame(verdict, arms, tuple(one for one in blocks if one is not None))


def _frame(
    verdict: ComparisonVerdict, arms: Sequence[ArmRun], blocks: tuple[Block, ...]
) -> Document:
    status = Status(verdict.decision.value)
    return Document(
        kind="Comparison",
        title=name_comparison(verdict),
        badge=Badge(word=status.value, tone=status.tone),
        lead=verdict.statement,
        facts=tuple(_list_facts(verdict, arms)),
        blocks=blocks,
    )


def _list_facts(
    verdict: ComparisonVerdict, arms: Sequence[ArmRun]
) -> Iterator[tuple[str, str | None]]:
    """Yield what was compared. Each value says what it is: a notebook shows them without labels."""
    yield "compared", _describe_pairing(verdict)
    yield "asked", _describe_question(verdict)
    yield "claim", verdict.about
    for key, values in list(list_factors(verdict, arms).items())[:_FACTORS]:
        named = (cut_middle(one, _NAME) for one in values.values())
        yield "differs in", f"{cut_middle(key, _NAME)}: {', '.join(named)}"
    if verdict.analysis != "measured":
        yield "analysis", f"decided {verdict.analysis}"
    yield "took", ", ".join(_list_spending(verdict))
    for arm in arms:
        if arm.path is not None:
            yield "run", f"{cut_middle(arm.label, _NAME)}: {arm.path.name}"


def _describe_question(verdict: ComparisonVerdict) -> str:
    asked = verdict.question
    by = "" if asked.margin is None else f", margin {as_points(asked.margin)}"
    whose = "the arms differ" if asked.against == "all" else "candidates differ from the control"
    words = {
        "different": f"whether {whose}",
        "better": f"whether candidates are better{by}",
        "not-worse": f"whether candidates are not worse{by}",
        "equivalent": f"whether candidates are equivalent{by}",
    }
    if verdict.relabelled is not None:
        words["different"] = "whether a service differs from itself"
    guards = [f"{name}, margin {as_points(one)}" for name, one in asked.guardrails.items()]
    guarded = f"; guardrails: {', '.join(guards)}" if guards else ""
    return f"{words[asked.question]}, at {as_percent(asked.confidence)} confidence{guarded}"


def _list_spending(verdict: ComparisonVerdict) -> Iterator[str]:
    spent = [arm.spending for arm in verdict.arms]
    yield as_count(sum(one.trials for one in spent), "trial")
    known = [one.usd for one in spent if one.usd is not None]
    if known:
        yield as_money(sum(known))


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
    alike = ["inputs"]
    alike += ["order"] if all(one.same_order for one in verdict.pairings) else []
    alike += ["seeds"] if all(one.same_seeds for one in verdict.pairings) else []
    shared = alike[0] if len(alike) == 1 else f"{', '.join(alike[:-1])} and {alike[-1]}"
    fewest, most = min(pairs.values()), max(pairs.values())
    count = as_count(most, "pair") if fewest == most else f"{fewest:,} to {as_count(most, 'pair')}"
    each = "" if len(pairs) == 1 else ", for every two arms that are compared"
    return f"{count} of the same {shared}{each}"


def _fold_amounts(verdict: ComparisonVerdict) -> Details | None:
    amounts = tabulate_amounts(verdict)
    notes = (*list_amount_notes(verdict), *list_setup(verdict))
    if amounts is None and not notes:
        return None
    blocks: list[Block] = [] if amounts is None else [replace(amounts, is_headed=False)]
    blocks += [Items(items=keep_few(notes, _FEW_AMOUNTS))] if notes else []
    return Details(summary="What trials took", blocks=tuple(blocks), is_printed=True)


def _fold_notes(verdict: ComparisonVerdict) -> Details | None:
    notes = list_notes(verdict)
    if not notes:
        return None
    items = Items(items=keep_few(notes, _FEW_NOTES))
    return Details(summary="Worth knowing", blocks=(items,), is_printed=True)


def list_notes(verdict: ComparisonVerdict) -> tuple[str, ...]:
    """List what each criterion came to and why, and what qualifies it."""
    several = len(verdict.findings) > 1
    many = len(verdict.arms) > 2
    notes = [
        f"{finding.criterion}{f', {finding.arm}' if many else ''}: {note}" if several else note
        for finding in verdict.findings
        for note in (finding.statement, *finding.caveats)
        if note
    ]
    return tuple(filter(None, dict.fromkeys((*notes, *verdict.caveats, verdict.multiplicity))))
