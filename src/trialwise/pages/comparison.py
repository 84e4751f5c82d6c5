"""What a comparison concluded, for a terminal or a log: a line a criterion, then what it took.

Words carry every meaning; on a narrow terminal a line loses its last columns, never its contrast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from trialwise.documents.numbers import (
    as_count,
    as_duration,
    as_money,
    as_observed,
    as_points,
    as_seconds,
)
from trialwise.documents.printable import count_cells, pad, wrap_text
from trialwise.documents.results import Status
from trialwise.procedures.comparing.comparison_findings import (
    AmountDifference,
    ComparisonFinding,
    ComparisonVerdict,
    Contrast,
)
from trialwise.renderers.capabilities import Capabilities, Style, pick_style

__all__ = [
    "amount_words",
    "comparison_title",
    "difference_words",
    "notes_of",
    "pairing_words",
    "probability_words",
    "rates_words",
    "render_comparison",
    "setup_words",
    "won_words",
]

_INDENT, _GAP = "  ", "  "
_NARROWEST = 40
_LONGEST_NAME, _SHORTEST_NAME = 28, 10
_STYLES = {
    Contrast.BETTER: Style.GOOD,
    Contrast.WORSE: Style.BAD,
    Contrast.NOT_TOLD_APART: Style.OPEN,
}
_AMOUNTS = {"latency_s": "latency", "cost_usd": "cost", "tokens": "tokens"}
_UNITS: dict[str, Callable[[float], str]] = {
    "latency_s": as_seconds,
    "cost_usd": as_money,
    "tokens": lambda value: f"{value:,.0f}",
}
_HEADER = ("", "", "rates", "difference", "won", "p")


def render_comparison(
    verdict: ComparisonVerdict,
    *,
    capabilities: Capabilities | None = None,
    reports: Sequence[str] = (),
) -> str:
    """A comparison as text.

    Args:
        verdict: What was concluded.
        capabilities: What the stream can do; plain ASCII of 80 columns where not given.
        reports: Where the runs are kept.
    """
    able = capabilities or Capabilities()
    width = max(_NARROWEST, able.width)
    lines = [*_heading(verdict, able, width), *_table(verdict, able, width)]
    lines += _conclusion(verdict, able, width)
    for text in (*map(amount_words, verdict.amounts), *setup_words(verdict)):
        lines += _indented(text, able, width)
    lines += [able.shown(f"{_INDENT}run: {path}") for path in reports]
    notes = notes_of(verdict)
    if notes:
        lines += ["", able.painted("Worth knowing", Style.STRONG)]
        for note in notes:
            first, *rest = wrap_text(able.shown(note), width - 4)
            lines += [f"{_INDENT}- {first}", *(f"{_INDENT}  {line}" for line in rest)]
    return "\n".join(lines) + "\n"


# --- Words that the page shares ---------------------------------------------------------------


def comparison_title(verdict: ComparisonVerdict) -> str:
    """Who against whom, and of which contract where both have one."""
    name = f"{verdict.candidate.label} against {verdict.reference.label}"
    contract = verdict.reference.contract
    return f"{contract}: {name}" if contract == verdict.candidate.contract else name


def pairing_words(verdict: ComparisonVerdict) -> str:
    """How the trials were put together, in a line."""
    pairs = sum(one.pairs for one in verdict.pairings)
    if not pairs:
        return "two separate runs, nothing paired"
    alike = ["inputs"]
    alike += ["order"] if all(one.same_order for one in verdict.pairings) else []
    alike += ["seeds"] if all(one.same_seeds for one in verdict.pairings) else []
    shared = alike[0] if len(alike) == 1 else f"{', '.join(alike[:-1])} and {alike[-1]}"
    return f"{as_count(pairs, 'pair')} of the same {shared}"


def rates_words(finding: ComparisonFinding) -> str:
    """Both observed rates, the reference's first."""
    sides = (finding.reference, finding.candidate)
    rates = [None if side is None else side.rate for side in sides]
    shown = ["none" if rate is None else as_observed(rate) for rate in rates]
    return f"{shown[0].removesuffix(' %')} -> {shown[1]}"


def won_words(finding: ComparisonFinding) -> str:
    """How many of the pairs, or inputs, that differ the candidate won."""
    if finding.inputs_won is not None and finding.inputs_lost is not None:
        return f"{finding.inputs_won}/{finding.inputs_won + finding.inputs_lost} inputs"
    return "" if finding.pairs is None else f"{finding.pairs.only_b}/{finding.pairs.discordant}"


def difference_words(finding: ComparisonFinding) -> str:
    """The difference in points and its interval; nothing where there is none."""
    if finding.difference is None:
        return ""
    text = _signed(100 * finding.difference)
    if finding.interval is None:
        return text
    return f"{text} [{_signed(100 * finding.interval.low)}, {_signed(100 * finding.interval.high)}]"


def probability_words(value: float | None) -> str:
    """A p-value to three digits.

    >>> probability_words(0.015625), probability_words(1e-9), probability_words(1.0)
    ('0.0156', '<0.0001', '1')
    """
    if value is None:
        return ""
    return "<0.0001" if value < 0.0001 else f"{value:.3g}"


def amount_words(amount: AmountDifference) -> str:
    """What trials took on both sides, and the median difference within pairs."""
    shown = _UNITS[amount.name]
    text = (
        f"{_AMOUNTS[amount.name]}: mean {shown(amount.reference_mean)} -> "
        f"{shown(amount.candidate_mean)}, median difference "
        f"{_signed_amount(amount.median_difference, shown)}"
    )
    if amount.interval is not None:
        low, high = (_signed_amount(end, shown) for end in amount.interval)
        text += f" [{low}, {high}]"
    return f"{text}, {as_count(amount.pairs, 'pair')} ({amount.basis.removeprefix('pairs ')})"


def setup_words(verdict: ComparisonVerdict) -> Iterator[str]:
    """What preparing the trials took, which is no part of the amounts above."""
    for side in (verdict.reference, verdict.candidate):
        spent = side.spending
        parts = [as_duration(spent.setup_s)] if spent.setup_s else []
        parts += [f"{spent.setup_tokens:,} tokens"] if spent.setup_tokens else []
        parts += [as_money(spent.setup_usd)] if spent.setup_usd else []
        if parts:
            yield f"setup of {side.label}, kept apart: {', '.join(parts)}"


def notes_of(verdict: ComparisonVerdict) -> tuple[str, ...]:
    """What each criterion came to and why, and what qualifies it."""
    several = len(verdict.findings) > 1
    notes = [
        f"{finding.criterion}: {note}" if several else note
        for finding in verdict.findings
        for note in (finding.statement, *finding.caveats)
    ]
    return tuple(filter(None, dict.fromkeys((*notes, *verdict.caveats, verdict.multiplicity))))


# --- Lines ------------------------------------------------------------------------------------


def _heading(verdict: ComparisonVerdict, able: Capabilities, width: int) -> list[str]:
    lines = [able.painted(able.shown(comparison_title(verdict), width), Style.STRONG)]
    facts = [pairing_words(verdict), verdict.about]
    if verdict.analysis != "intent-to-treat":
        facts.append(f"decided {verdict.analysis}")
    return lines + _indented(able.dot.join(facts), able, width)


def _table(verdict: ComparisonVerdict, able: Capabilities, width: int) -> Iterator[str]:
    rows = [_HEADER, *map(_row, verdict.findings)]
    shown = [tuple(map(able.shown, row)) for row in rows]
    widths = [max(map(count_cells, column)) for column in zip(*shown, strict=True)]
    widths[0] = min(widths[0], _LONGEST_NAME)

    def excess() -> int:
        return len(_INDENT) + sum(widths) + len(_GAP) * (len(widths) - 1) - width

    # Names give way first, then the last columns.
    widths[0] = min(widths[0], max(_SHORTEST_NAME, widths[0] - excess()))
    while len(widths) > 2 and excess() > 0:
        widths.pop()
    header = _GAP.join(pad(text, size) for text, size in zip(_HEADER, widths, strict=False))
    yield able.painted(f"{_INDENT}{header}".rstrip(), Style.FAINT)
    for row, finding in zip(shown[1:], verdict.findings, strict=True):
        fitted = (able.shown(row[0], widths[0]), *row[1:])
        columns = [pad(text, size) for text, size in zip(fitted, widths, strict=False)]
        columns[1] = able.painted(columns[1], _STYLES[finding.contrast])
        yield f"{_INDENT}{_GAP.join(columns)}".rstrip()


def _row(finding: ComparisonFinding) -> tuple[str, ...]:
    """In the order of the header."""
    return (
        finding.criterion,
        finding.contrast.value,
        rates_words(finding),
        difference_words(finding),
        won_words(finding),
        probability_words(finding.adjusted_p_value),
    )


def _conclusion(verdict: ComparisonVerdict, able: Capabilities, width: int) -> list[str]:
    word = verdict.decision.value
    facts = [verdict.statement.removesuffix(".")]
    if verdict.question.margin is not None:
        facts.append(f"margin {as_points(verdict.question.margin)}")
    spent = [side.spending for side in (verdict.reference, verdict.candidate)]
    facts.append(as_count(sum(one.trials for one in spent), "trial"))
    known = [one.usd for one in spent if one.usd is not None]
    facts += [as_money(sum(known))] if known else []
    mark = able.painted(word, pick_style(Status(word).tone))
    first, *rest = wrap_text(able.shown(able.dot.join(facts)), width - len(word) - len(_GAP))
    space = " " * (len(word) + len(_GAP))
    return [f"{mark}{_GAP}{first}", *(f"{space}{line}" for line in rest)]


def _indented(text: str, able: Capabilities, width: int) -> list[str]:
    return [f"{_INDENT}{line}" for line in wrap_text(able.shown(text), width - len(_INDENT))]


def _signed(value: float) -> str:
    """A difference in points, with its sign; 0 has none."""
    text = f"{value:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", "−")


def _signed_amount(value: float, shown: Callable[[float], str]) -> str:
    sign = "+" if value > 0 else "−"
    return f"{sign}{shown(abs(value))}" if value else shown(0.0)
