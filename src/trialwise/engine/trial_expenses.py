"""What a trial took in all: attempts that came to nothing were paid for like the last one.

What nobody told is left out of a sum, and a sum of which nothing is known is unknown, not zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from trialwise.model.reply import Reply, Setup, Usage
from trialwise.model.trial import Trial

__all__ = ["known_sum", "known_usage", "with_expenses", "with_setup"]


def known_usage(usages: Iterable[Usage | None]) -> Usage | None:
    """All tokens that were told.

    >>> known_usage([Usage(input_tokens=3), None, Usage(output_tokens=2)])
    Usage(input_tokens=3, output_tokens=2)
    """
    known = [one for one in usages if one is not None]
    if len(known) < 2:
        return known[0] if known else None
    return Usage(
        input_tokens=sum(one.input_tokens for one in known),
        output_tokens=sum(one.output_tokens for one in known),
    )


def known_sum(amounts: Iterable[float | None]) -> float | None:
    """All amounts that were told.

    >>> known_sum([0.5, None, 1]), known_sum([None]) is None
    (1.5, True)
    """
    known = [float(one) for one in amounts if one is not None]
    return sum(known) if known else None


def with_setup(trial: Trial, setup: Setup) -> Trial:
    """A trial with what its preparation took."""
    return replace(
        trial,
        setup_s=float(setup.seconds),
        setup_usage=setup.usage,
        setup_cost_usd=known_sum([setup.cost_usd]),
    )


def with_expenses(trial: Trial, replies: Sequence[Reply]) -> Trial:
    """A trial that took as much more as some replies did.

    Args:
        trial: With what is its own.
        replies: What came of other attempts, their setup apart.
    """
    setups = [one.setup for one in replies if one.setup is not None]
    return replace(
        trial,
        usage=known_usage([trial.usage, *(one.usage for one in replies)]),
        cost_usd=known_sum([trial.cost_usd, *(one.cost_usd for one in replies)]),
        setup_s=known_sum([trial.setup_s, *(one.seconds for one in setups)]),
        setup_usage=known_usage([trial.setup_usage, *(one.usage for one in setups)]),
        setup_cost_usd=known_sum([trial.setup_cost_usd, *(one.cost_usd for one in setups)]),
    )
