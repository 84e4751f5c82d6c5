"""How a run is made: its size, its pace, its limits and what it is for.

Apart from the contract because the promise does not change with the machine that checks it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from trialwise.errors import InvalidArgument
from trialwise.model.verdict import Intent
from trialwise.stats.result_types import RULES, Rule
from trialwise.stats.sequential.trial_order import DRAWS, Draw
from trialwise.validation import require_choice, require_count, require_positive, require_rate

__all__ = ["AbortRule", "Analysis", "Budget", "RunOptions"]


class Analysis(StrEnum):
    """Whose trials decide."""

    INTENT_TO_TREAT = "intent-to-treat"
    """All of them: how reliable is the whole pipeline?"""
    PER_PROTOCOL = "per-protocol"
    """Those the service had a fair chance in: infrastructure, pre-validation and empty runs out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Limits that stop a run cleanly and keep every result."""

    trials: int | None = None
    seconds: float | None = None
    tokens: int | None = None
    usd: float | None = None

    def __post_init__(self) -> None:
        for name in ("trials", "tokens"):
            if getattr(self, name) is not None:
                require_count(name, getattr(self, name), minimum=1)
        for name in ("seconds", "usd"):
            if getattr(self, name) is not None:
                require_positive(name, getattr(self, name))


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortRule:
    """When so many trials never reached the service that going on would waste them."""

    max_error_rate: float = 0.5
    """Stop above this share of infrastructure, pre-validation and empty-run errors; 1 for never."""
    after: int = 10
    """Trials before which nothing is concluded."""
    to_fail: bool = False
    """Whether an abort FAILs instead of leaving the criteria INCONCLUSIVE; never PASS."""

    def __post_init__(self) -> None:
        require_rate("max_error_rate", self.max_error_rate)
        require_count("after", self.after, minimum=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Everything about a run that the contract does not say."""

    trials: int | Mapping[str, int] | None = None
    """A fixed number of trials for every criterion, or by sampling; None: decided criterion by
    criterion."""
    max_trials: int | None = None
    """The most trials of a sequential decision."""
    intent: Intent = Intent.VERIFICATION
    rule: Rule = "wilson"
    analysis: Analysis = Analysis.INTENT_TO_TREAT
    seed: int | None = None
    """None: drawn once and recorded."""
    draw: Draw | None = None
    """How inputs are chosen; None: what keeps each procedure's error rates exact."""
    concurrency: int = 1
    rate_per_s: float | None = None
    """The most trials started in a second."""
    timeout_s: float | None = None
    """Of one attempt."""
    retries: int = 0
    """Further attempts after an infrastructure error; disclosed on the verdict."""
    budget: Budget = Budget()
    abort: AbortRule = AbortRule()
    curtail: bool = True
    """Whether a fixed design stops once its verdict can no longer change."""
    overrides: tuple[str, ...] = ()
    """Major caveats admitted under verification, by code; recorded on the verdict."""
    baseline: str | None = None
    """A baseline's identifier, where it should not be chosen by its index."""
    horizon: int | None = None
    """Runs of a recurring monitor within which false alarms are bounded (§8.5)."""

    def __post_init__(self) -> None:
        put = object.__setattr__
        intent = require_choice("intent", str(self.intent).upper(), tuple(map(str, Intent)))
        put(self, "intent", Intent(intent))
        analysis = require_choice("analysis", str(self.analysis), tuple(map(str, Analysis)))
        put(self, "analysis", Analysis(analysis))
        require_choice("rule", self.rule, RULES)
        if self.draw is not None:
            require_choice("draw", self.draw, DRAWS)
        sizes = self.trials.values() if isinstance(self.trials, Mapping) else (self.trials,)
        for size in sizes:
            if size is not None:
                require_count("trials", size, minimum=1)
        if self.trials is not None and self.max_trials is not None:
            allowed = "be left out where trials fixes the number"
            raise InvalidArgument("max_trials", self.max_trials, allowed)
        require_count("concurrency", self.concurrency, minimum=1)
        require_count("retries", self.retries)
        for name in ("max_trials", "horizon"):
            if getattr(self, name) is not None:
                require_count(name, getattr(self, name), minimum=1)
        for name in ("rate_per_s", "timeout_s"):
            if getattr(self, name) is not None:
                require_positive(name, getattr(self, name))
        put(self, "overrides", tuple(self.overrides))

    def trials_of(self, experiment: str) -> int | None:
        """The fixed number of trials of an experiment, if there is one."""
        if isinstance(self.trials, Mapping):
            return self.trials.get(experiment)
        return self.trials
