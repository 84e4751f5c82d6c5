"""The ways to ask for a required rate as a table: what each shows, and what it takes."""

from __future__ import annotations

from collections.abc import Sequence

from trialwise.documents.blocks import Row, Table
from trialwise.documents.numbers import as_mean_trials, as_money, as_percent, as_probability
from trialwise.procedures.sizing.rate_choices import RateChoice


def build_choices(
    choices: Sequence[RateChoice], expected: float, *, of: str = "", advice: str = ""
) -> Table:
    """Build the table of choices for a required rate.

    Args:
        choices: The ways to ask.
        expected: The true rate at which they are compared.
        of: The criterion, where there are several.
        advice: A note below the table.
    """
    priced = any(one.mean_usd is not None for one in choices)
    columns = ["write", "PASS shows", "PASS", "FAIL", "INCONCL.", "mean", "at most"]
    if priced:
        columns.append("cost")
    heading = f"Choices if the true rate is {as_percent(expected)}"
    return Table(
        heading=f"{of}: {heading[0].lower()}{heading[1:]}" if of else heading,
        columns=tuple(columns),
        rows=tuple(Row(cells=_write_cells(one, priced=priced)) for one in choices),
        notes=(advice,) if advice else (),
    )


def _write_cells(one: RateChoice, *, priced: bool) -> tuple[str, ...]:
    shares = (one.passes, one.fails, one.inconclusive)
    cells = [
        one.setting,
        f"> {as_percent(one.shows)}",
        *("" if share is None else as_probability(share, digits=1) for share in shares),
        "" if one.mean_trials is None else as_mean_trials(one.mean_trials),
        f"{one.max_trials:,}",
    ]
    if priced:
        cells.append("" if one.mean_usd is None else as_money(one.mean_usd))
    return tuple(cells)
