"""Which arm's replies a judge prefers: a row for each judge and two arms."""

from __future__ import annotations

from trialwise.documents.blocks import Cell, Name, Table, Value, build_table
from trialwise.documents.numbers import as_ends, as_observed
from trialwise.documents.printable import cut_middle
from trialwise.procedures.comparing.findings import ComparisonVerdict, PreferenceFinding
from trialwise.stats.result_types import Interval

_NAME = 80


def tabulate_preferences(verdict: ComparisonVerdict) -> Table | None:
    """Tabulate how often a judge prefers a candidate's reply; None where no judge was asked.

    Args:
        verdict: What was concluded.
    """
    found = verdict.preferences
    if not found:
        return None
    corrected = any(one.corrected_rate is not None for one in found)
    return build_table(
        "Which replies a judge prefers",
        found,
        ("criterion", lambda one: Name(cut_middle(one.criterion, _NAME))),
        ("arms", lambda one: Name(cut_middle(f"{one.arm} against {one.against}", 2 * _NAME))),
        ("preferred", lambda one: _write_rate(one.rate, one.interval)),
        *(
            [("corrected", lambda one: _write_rate(one.corrected_rate, one.corrected_interval))]
            if corrected
            else []
        ),
        ("won", lambda one: f"{one.wins:,}"),
        ("lost", lambda one: f"{one.losses:,}"),
        ("tied", _write_ties),
        ("no answer", lambda one: f"{one.missing:,}"),
        words=(0, 1),
        notes=(
            "A tie counts half. Above 50 % the judge prefers the candidate's replies.",
            *([_explain_correction(found)] if corrected else ()),
        ),
    )


def _write_rate(rate: float | None, interval: Interval | None) -> Cell:
    if rate is None:
        return "–"
    return Value(text=as_observed(rate), note="" if interval is None else as_ends(interval))


def _write_ties(found: PreferenceFinding) -> Cell:
    turned = f"{found.inconsistent:,} by their place" if found.inconsistent else ""
    return Value(text=f"{found.ties:,}", note=turned)


def _explain_correction(found: tuple[PreferenceFinding, ...]) -> str:
    labels = max(one.labels for one in found)
    return (
        "Corrected is the share of decided pairs in which people would prefer the candidate, by "
        f"the judge's errors on {labels:,} labelled pairs."
    )
