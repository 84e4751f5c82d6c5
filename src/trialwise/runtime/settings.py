"""The keyword arguments of `run` and `measure`, typed once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from trialwise.model.options import AbortRule, Analysis, Budget, RunOptions
from trialwise.model.verdict import Intent
from trialwise.stats.result_types import Rule
from trialwise.stats.sequential.trial_order import Draw

__all__ = ["RunSettings", "options_of"]


class RunSettings(TypedDict, total=False):
    """Every field of `RunOptions`, for callers who would rather not build one."""

    trials: int | Mapping[str, int] | None
    max_trials: int | None
    intent: Intent | str
    rule: Rule
    analysis: Analysis | str
    seed: int | None
    draw: Draw | None
    concurrency: int
    rate_per_s: float | None
    timeout_s: float | None
    retries: int
    budget: Budget
    abort: AbortRule
    curtail: bool
    overrides: tuple[str, ...]
    baseline: str | None
    horizon: int | None


def options_of(options: RunOptions | None, settings: RunSettings) -> RunOptions:
    """The options given whole, changed by those given one by one."""
    from dataclasses import replace

    if options is None:
        return RunOptions(**settings)  # type: ignore[arg-type]
    return replace(options, **settings)  # type: ignore[arg-type]
