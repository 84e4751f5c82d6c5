"""The keyword arguments of `tw.run`: every field of `RunOptions`, typed.

Written by `make stubs` from the fields of `RunOptions`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from trialwise.model.claim import Intent
from trialwise.model.options import AbortRule, Budget, Horizon
from trialwise.model.trial import Analysis
from trialwise.stats.multiplicity import FamilyCorrection
from trialwise.stats.result_types import Rule
from trialwise.stats.sequential.concurrency import Draw


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
    executor: str
    rate_per_s: float | None
    timeout_s: float | None
    retries: int
    budget: Budget
    cost_per_trial_usd: float | None
    abort: AbortRule
    curtail: bool
    overrides: tuple[str, ...]
    smoke_refuses: str
    baseline: str | None
    horizon: int | Horizon | None
    correction: FamilyCorrection
    family: str
    family_size: int | None
    keep_going: bool
    inconclusive: str
    keep_inputs: bool
