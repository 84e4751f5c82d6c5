"""Two services compared on the same inputs: a row for each criterion, and what qualifies it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from trialwise.documents.blocks import (
    Badge,
    Block,
    Cell,
    Details,
    Document,
    Items,
    Name,
    Table,
    build_table,
)
from trialwise.documents.charts import Strip
from trialwise.documents.numbers import (
    as_count,
    as_money,
    as_observed,
    as_points,
    as_seconds,
)
from trialwise.documents.phrases import keep_few
from trialwise.documents.results import Status
from trialwise.model.tally import Tally
from trialwise.pages.comparison_amounts import list_amount_notes
from trialwise.pages.suite_totals import write_amounts
from trialwise.procedures.comparing.comparison_findings import (
    AmountDifference,
    ComparisonFinding,
    ComparisonVerdict,
    Contrast,
)

#: Rows and notes that the page shows; the others are counted.
_MOST_ROWS, _MOST_NOTES = 40, 15
_CONTRASTS: dict[Contrast, Literal["pass", "fail", "open"]] = {
    Contrast.BETTER: "pass",
    Contrast.WORSE: "fail",
    Contrast.NOT_TOLD_APART: "open",
}
_AMOUNTS = {"latency_s": "latency", "cost_usd": "cost", "tokens": "tokens"}
_UNITS: dict[str, Callable[[float], str]] = {
    "latency_s": as_seconds,
    "cost_usd": as_money,
    "tokens": lambda value: f"{value:,.0f}",
}


def build_comparison_page(verdict: ComparisonVerdict, *, runs: Sequence[str] = ()) -> Document:
    """Build a comparison as a page.

    Args:
        verdict: What was decided.
        runs: Where the runs are kept.
    """
    margin, status = verdict.question.margin, Status(verdict.decision.value)
    took = [
        *(_describe_amount(one) for one in verdict.amounts if one.name != "score"),
        *list_amount_notes(verdict),
        *_describe_setup(verdict),
    ]
    usual = verdict.analysis == "measured"
    return Document(
        kind="Comparison",
        title=_name_arms(verdict),
        badge=Badge(word=status.value, tone=status.tone),
        lead=verdict.statement,
        # Each says what it is: a notebook shows them side by side.
        facts=(
            ("", _describe_pairing(verdict)),
            ("", verdict.about),
            ("", None if margin is None else f"margin {as_points(margin)}"),
            ("", None if usual else f"decided {verdict.analysis}"),
            ("", ", ".join(_list_spending(verdict))),
            *(("", f"run: {path}") for path in runs),
        ),
        blocks=(
            _tabulate_contrasts(verdict),
            *_fold("What trials took", took),
            *_fold("Worth knowing", _list_notes(verdict)),
        ),
    )


def _list_spending(verdict: ComparisonVerdict) -> Iterator[str]:
    spent = [arm.spending for arm in verdict.arms]
    yield as_count(sum(one.trials for one in spent), "trial")
    known = [one.usd for one in spent if one.usd is not None]
    if known:
        yield as_money(sum(known))


def _fold(title: str, notes: Sequence[str]) -> Iterator[Block]:
    if notes:
        items = Items(items=keep_few(notes, _MOST_NOTES))
        yield Details(summary=title, blocks=(items,), is_printed=True)


def _name_arms(verdict: ComparisonVerdict) -> str:
    """Name who against whom, and of which contract where all have one."""
    candidates = ", ".join(one.label for one in verdict.candidates)
    name = f"{candidates} against {verdict.control.label}"
    contracts = {one.contract for one in verdict.arms}
    return f"{contracts.pop()}: {name}" if len(contracts) == 1 else name


def _describe_pairing(verdict: ComparisonVerdict) -> str:
    """Describe how the trials were put together, in a line."""
    pairs = sum(one.pairs for one in verdict.pairings)
    if not pairs:
        return "two separate runs, nothing paired"
    alike = ["inputs"]
    alike += ["order"] if all(one.same_order for one in verdict.pairings) else []
    alike += ["seeds"] if all(one.same_seeds for one in verdict.pairings) else []
    shared = alike[0] if len(alike) == 1 else f"{', '.join(alike[:-1])} and {alike[-1]}"
    return f"{as_count(pairs, 'pair')} of the same {shared}"


def _count_won(finding: ComparisonFinding) -> str:
    """Count how many of the pairs, or inputs, that differ the candidate won."""
    if finding.inputs_won is not None and finding.inputs_lost is not None:
        return f"{finding.inputs_won}/{finding.inputs_won + finding.inputs_lost} inputs"
    return "" if finding.pairs is None else f"{finding.pairs.only_b}/{finding.pairs.discordant}"


def _describe_difference(finding: ComparisonFinding) -> str:
    """Describe the difference in points and its interval; nothing where there is none."""
    if finding.difference is None:
        return ""
    text = _sign_points(100 * finding.difference)
    if finding.interval is None:
        return text
    low, high = (_sign_points(100 * end) for end in finding.interval)
    return f"{text} [{low}, {high}]"


def as_p_value(value: float | None) -> str:
    """Write a p-value to three digits.

    >>> as_p_value(0.015625), as_p_value(1e-9), as_p_value(1.0)
    ('0.0156', '<0.0001', '1')
    """
    if value is None:
        return ""
    return "<0.0001" if value < 0.0001 else f"{value:.3g}"


def _describe_amount(amount: AmountDifference) -> str:
    """Describe what trials took on both sides, and the typical difference within pairs."""
    shown = _UNITS[amount.name]
    text = (
        f"{_AMOUNTS[amount.name]}: mean {shown(amount.control_mean)} -> "
        f"{shown(amount.candidate_mean)}, typical difference "
        f"{_sign_amount(amount.difference, shown)}"
    )
    if amount.interval is not None:
        low, high = (_sign_amount(end, shown) for end in amount.interval)
        text += f" [{low}, {high}]"
    return f"{text}, {as_count(amount.pairs, 'pair')} ({amount.basis.removeprefix('pairs ')})"


def _describe_setup(verdict: ComparisonVerdict) -> Iterator[str]:
    """Describe what preparing the trials took, which is no part of the amounts above."""
    for side in verdict.arms:
        spent = side.spending
        if took := write_amounts(spent.setup_s, spent.setup_tokens, spent.setup_usd or None):
            yield f"setup of {side.label}, kept apart: {took}"


def _list_notes(verdict: ComparisonVerdict) -> tuple[str, ...]:
    """List what each criterion came to and why, and what qualifies it."""
    several = len(verdict.findings) > 1
    notes = [
        f"{finding.criterion}: {note}" if several else note
        for finding in verdict.findings
        for note in (finding.statement, *finding.caveats)
    ]
    return tuple(filter(None, dict.fromkeys((*notes, *verdict.caveats, verdict.multiplicity))))


def _tabulate_contrasts(verdict: ComparisonVerdict) -> Table:
    # Two arms give their names to the columns; of more, each row names its own.
    several = len(verdict.arms) > 2
    before, after = verdict.control.label, verdict.candidates[0].label
    names = ("control", "candidate", "candidate is") if several else (before, after, f"{after} is")
    reach, margin = _find_reach(verdict), verdict.question.margin
    left = len(verdict.findings) - _MOST_ROWS

    def draw(finding: ComparisonFinding) -> Cell:
        if finding.interval is None or finding.difference is None:
            return ""
        low, high = finding.interval
        return Strip(
            low=low,
            value=finding.difference,
            high=high,
            ink=_CONTRASTS[finding.contrast],
            span=(-reach, reach),
            need=0.0,
            others=() if margin is None else (-margin,),
        )

    def write_side(side: Tally | None) -> str:
        return "–" if side is None or side.rate is None else as_observed(side.rate)

    return build_table(
        "Criteria",
        verdict.findings[:_MOST_ROWS],
        *([("arm", _name_contrast)] if several else []),
        ("criterion", lambda one: Name(one.criterion)),
        (
            names[2],
            lambda one: Badge(word=one.contrast.value, tone=_CONTRASTS[one.contrast]),
        ),
        (names[0], lambda one: write_side(one.control)),
        (names[1], lambda one: write_side(one.candidate)),
        ("difference in points", _describe_difference),
        ("", draw),
        ("won", _count_won),
        ("p", lambda one: as_p_value(one.adjusted_p_value)),
        words=(0, 1, 2, 6) if several else (0, 1, 5),
        notes=(f"and {left:,} more rows",) if left > 0 else (),
    )


def _name_contrast(finding: ComparisonFinding) -> Cell:
    return Name(f"{finding.arm} against {finding.against}")


def _find_reach(verdict: ComparisonVerdict) -> float:
    """Return how far the pictures of the differences extend to either side of 0."""
    far = [abs(end) for one in verdict.findings if one.interval is not None for end in one.interval]
    far += [] if verdict.question.margin is None else [verdict.question.margin]
    return min(1.0, 1.1 * max(far, default=1.0)) or 1.0


def _sign_points(value: float) -> str:
    """Return a difference in points, with its sign; 0 has none."""
    text = f"{value:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", "−")


def _sign_amount(value: float, shown: Callable[[float], str]) -> str:
    sign = "+" if value > 0 else "−"
    return f"{sign}{shown(abs(value))}" if value else shown(0.0)
