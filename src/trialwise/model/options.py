"""How a run is made: its size, its pace, its limits and what it is for.

Apart from the contract because the promise does not change with the machine that checks it. Each
field declares everything about its setting: the suite's key, the option and the marker's argument
follow from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from trialwise.declarations.scalars import (
    Choice,
    Count,
    Duration,
    Flag,
    Label,
    Money,
    Pace,
    Rate,
    Text,
    Whole,
)
from trialwise.declarations.signatures import Made, Names, setting, setting_keys, summarise
from trialwise.declarations.structures import Either, MapOf
from trialwise.errors import InvalidArgument
from trialwise.model.claim import Intent
from trialwise.model.trial import Analysis
from trialwise.stats.multiplicity import FAMILY_CORRECTIONS, FamilyCorrection
from trialwise.stats.result_types import RULES, Rule
from trialwise.stats.sequential.concurrency import DRAWS, Draw
from trialwise.validation import (
    require_choice,
    require_count,
    require_given,
    require_member,
    require_positive,
    require_rate,
    require_trials,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Limits that stop a run cleanly and keep every result.

    Args:
        trials: Maximum number of trials.
        seconds: Maximum time. Every result is kept.
        tokens: Maximum number of tokens.
        usd: Maximum cost. Every result is kept.
    """

    trials: int | None = setting(Count(), option="")
    seconds: float | None = setting(
        Duration(),
        key="time",
        option="max-seconds",
        elsewhere="seconds duration timeout",
        in_pytest=False,
    )
    tokens: int | None = setting(Count(), option="")
    usd: float | None = setting(
        Money(),
        key="money",
        option="max-usd",
        elsewhere="usd cost dollars max_cost max_usd",
        in_pytest=False,
    )

    def __post_init__(self) -> None:
        require_given(self, "trials tokens", require_count, minimum=1)
        require_given(self, "seconds usd", require_positive)


class _ExecutorName(Either):
    """The name of an executor, alone or with an address behind it."""

    def __init__(self) -> None:
        super().__init__(
            "the name of an executor, such as processes, or a name with an address",
            scalar=Text(),
            mapping=MapOf(Label(), "the name of one executor with its address"),
        )

    def finish(self, value: Any, node: Any, label: str, reader: Any) -> Any:
        """One text, such as `dask:tcp://scheduler:8786`."""
        value = super().finish(value, node, label, reader)
        if isinstance(value, dict) and len(value) != 1:
            return reader.refuse(node, f"{label} must name one executor, not {len(value)}")
        return value if isinstance(value, str) else _write_executor(value)


def _write_executor(given: object) -> str:
    """Return an executor as one text; Python may give a mapping, as a suite does.

    >>> _write_executor({"processes": 4})
    'processes:4'
    """
    # One text for either spelling, so that plans record it in one form.
    if isinstance(given, Mapping) and len(given) == 1:
        return ":".join(str(part) for pair in given.items() for part in pair)
    if isinstance(given, str) and given.strip():
        return given
    allowed = "be the name of one executor, such as processes, alone or with its address"
    raise InvalidArgument("executor", given, allowed)


class _Ending(Choice):
    """What an abort makes of the criteria; the model keeps whether they FAIL."""

    def finish(self, value: Any, node: Any, label: str, reader: Any) -> bool:  # noqa: ARG002
        """Return whether they FAIL."""
        return value is True or value == "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortRule:
    """When too many trials never reached the service, and going on would waste them.

    Args:
        max_error_rate: Stop above this share of infrastructure, pre-validation and empty-run
            errors; 1 for never.
        after: The number of trials before this rule applies.
        to_fail: What the criteria are after an abort; never PASS.
        exit_codes: Whether a command that ends with another exit code than 0 counts as an error
            here.
    """

    max_error_rate: float = setting(Rate(), default=0.5)
    after: int = setting(Count(), default=10)
    to_fail: bool = setting(
        _Ending("inconclusive", "fail"), default=False, key="to", words="inconclusive"
    )
    exit_codes: bool = setting(Flag(), default=False)

    def __post_init__(self) -> None:
        require_rate("max_error_rate", self.max_error_rate)
        require_count("after", self.after, minimum=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Horizon:
    """How long a monitor runs: this many runs or release gates, or a window (§8.5).

    Args:
        runs: Number of recurring runs.
        gates: Number of release gates, one run for each.
        days: Length of a window in days.
        per_day: Number of runs on each day of the window.
    """

    runs: int | None = setting(Count())
    gates: int | None = setting(Count())
    days: int | None = setting(Count())
    per_day: int = setting(Count(), default=1)

    def __post_init__(self) -> None:
        require_given(self, "runs gates days per_day", require_count, minimum=1)
        given = [name for name in ("runs", "gates", "days") if getattr(self, name) is not None]
        if len(given) != 1:
            raise InvalidArgument("horizon", given or None, "be exactly one of runs, gates, days")
        if self.per_day != 1 and self.days is None:
            raise InvalidArgument("per_day", self.per_day, "go with days")

    def count_runs(self) -> int:
        """Count the runs in the horizon.

        >>> Horizon(days=90, per_day=4).count_runs()
        360
        """
        return (self.runs or self.gates or self.days or 0) * self.per_day

    def __str__(self) -> str:
        if self.days is not None:
            often = "a run" if self.per_day == 1 else f"{self.per_day} runs"
            return (
                f"a window of {self.days} {'day' if self.days == 1 else 'days'} with {often} a day"
            )
        if self.gates is not None:
            return f"{self.gates} release {'gate' if self.gates == 1 else 'gates'}"
        return f"{self.runs} {'run' if self.runs == 1 else 'runs'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialOptions:
    """Which trials a run takes, in which order, and which of them decide by which rules.

    Args:
        trials: A fixed number of trials for every criterion, or one for each sampling.
        max_trials: Upper limit on trials where no number is fixed.
        intent: `verification` refuses weak designs; `smoke` is a quick check.
        rule: The rule set for every decision.
        analysis: Which trials decide: `measured` asks again what never reached the service,
            `intent-to-treat` counts it as failed, `per-protocol` also leaves out empty runs.
        seed: Seed for the order of inputs and for each trial.
        draw: How inputs are drawn.
    """

    trials: int | Mapping[str, int] | None = setting(
        Either(
            "a whole number of at least 1, or one for each sampling",
            scalar=Count(),
            mapping=MapOf(Count(), "a number of trials for each sampling"),
        ),
        elsewhere="runs n samples repeat repeats repetitions iterations epochs attempts num_trials",
    )
    max_trials: int | None = setting(Count())
    intent: Intent = setting(Choice(*(one.lower() for one in Intent)), default=Intent.VERIFICATION)
    rule: Rule = setting(Choice(*RULES), default="exact")
    analysis: Analysis = setting(Choice(*Analysis), default=Analysis.MEASURED)
    seed: int | None = setting(Whole(), words="drawn and recorded")
    draw: Draw | None = setting(Choice(*DRAWS), words="what keeps the error rates exact")

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "intent", require_member("intent", str(self.intent).upper(), Intent))
        put(self, "analysis", require_member("analysis", self.analysis, Analysis))
        require_choice("rule", self.rule, RULES)
        if self.draw is not None:
            require_choice("draw", self.draw, DRAWS)
        sizes = self.trials.values() if isinstance(self.trials, Mapping) else (self.trials,)
        for size in sizes:
            if size is not None:
                require_trials("trials", size)
        require_given(self, "max_trials", require_trials)
        if self.trials is not None and self.max_trials is not None:
            allowed = "be left out where trials fixes the number"
            raise InvalidArgument("max_trials", self.max_trials, allowed)

    def trials_of(self, experiment: str) -> int | None:
        """Return the fixed number of trials of an experiment, if there is one."""
        if isinstance(self.trials, Mapping):
            return self.trials.get(experiment)
        return self.trials


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions(TrialOptions):
    """Everything about a run that the contract does not say.

    Args:
        concurrency: Number of concurrent trials.
        executor: Where trials run: `local`, `processes` for services that keep a processor busy,
            `dask` or `ray`; an address follows a colon, such as `dask:tcp://scheduler:8786`.
        rate_per_s: Upper limit on trials started per unit of time.
        timeout_s: Time limit for one attempt.
        retries: Number of further attempts after an infrastructure error. The verdict reports them.
        budget: Limits that stop the run.
        cost_per_trial_usd: What a trial costs where the service does not tell. A budget reserves it
            for each trial in flight.
        abort: When to stop because of errors.
        curtail: Whether a fixed design stops when its result can no longer change.
        overrides: Codes of major caveats to accept under verification.
        smoke_refuses: What refuses a smoke run, too, instead of a warning: `hard` invalidators of a
            comparison, or also `major` caveats.
        baseline: The identifier of the baseline to compare with.
        horizon: Number of recurring runs over which wrong verdicts are bounded (§8.5), or `gates`
            or `days`.
        correction: How decisions that belong together are corrected for their number.
        family: Name of the decisions that are corrected together; contracts may share it.
        family_size: Number of decisions in the family, where more belong to it than are run here.
        keep_going: Whether trials go on for other criteria after the FAIL of one has settled the
            verdict.
        inconclusive: What the exit code says of a run that is INCONCLUSIVE: 3 (`undecided`) or 1
            (`fail`). The verdict stays.
        keep_inputs: Whether the run keeps its inputs and expected answers, redacted like replies,
            so that reports can show them.
    """

    concurrency: int = setting(
        Count(),
        default=1,
        elsewhere="parallel parallelism workers threads jobs max_concurrency max_connections",
    )
    executor: str = setting(_ExecutorName(), default="local")
    rate_per_s: float | None = setting(Pace(), key="rate", in_pytest=False)
    timeout_s: float | None = setting(Duration(), key="timeout", in_pytest=False)
    retries: int = setting(Count(0), default=2, in_pytest=False)
    budget: Budget = setting(
        Made("budget", Budget, setting_keys(Budget), doc=summarise(Budget)), default=Budget()
    )
    cost_per_trial_usd: float | None = setting(
        Money(), key="cost_per_trial", elsewhere="trial_cost cost_per_call price_per_trial"
    )
    abort: AbortRule = setting(
        Made("abort", AbortRule, setting_keys(AbortRule), doc=summarise(AbortRule)),
        default=AbortRule(),
        in_pytest=False,
    )
    curtail: bool = setting(Flag(), default=True)
    overrides: tuple[str, ...] = setting(Names(), default=(), option="override")
    smoke_refuses: str = setting(Choice("nothing", "hard", "major"), default="nothing")
    baseline: str | None = setting(Text(), words="the one that fits")
    horizon: int | Horizon | None = setting(
        Either(
            "a number of runs, or `gates`, or `days` with `per_day`",
            scalar=Count(),
            mapping=Made("horizon", Horizon, setting_keys(Horizon), doc=summarise(Horizon)),
        )
    )

    correction: FamilyCorrection = setting(Choice(*FAMILY_CORRECTIONS), default="none")
    family: str = setting(Text(), default="", words="everything that is run together")
    family_size: int | None = setting(Count(), words="counted")
    keep_going: bool = setting(Flag(), default=False)
    inconclusive: str = setting(Choice("undecided", "fail"), default="undecided", in_pytest=False)
    keep_inputs: bool = setting(Flag(), default=True)

    def __post_init__(self) -> None:
        put = object.__setattr__
        TrialOptions.__post_init__(self)
        require_choice("smoke_refuses", self.smoke_refuses, ("nothing", "hard", "major"))
        require_choice("inconclusive", self.inconclusive, ("undecided", "fail"))
        require_count("concurrency", self.concurrency, minimum=1)
        require_count("retries", self.retries)
        put(self, "executor", _write_executor(self.executor))
        require_choice("correction", self.correction, FAMILY_CORRECTIONS)
        require_given(self, "family_size", require_count, minimum=1)
        written: object = self.horizon
        if isinstance(written, Mapping):  # as a suite writes it
            put(self, "horizon", Horizon(**written))
        if not isinstance(self.horizon, Horizon):
            require_given(self, "horizon", require_count, minimum=1)
        require_given(self, "rate_per_s timeout_s cost_per_trial_usd", require_positive)
        cost, limit = self.cost_per_trial_usd, self.budget.usd
        # Said now: later it would look like a run that was cut short before its first trial.
        if cost is not None and limit is not None and cost > limit:
            allowed = f"be at most the budget of ${limit:g}, which would allow no trial"
            raise InvalidArgument("cost_per_trial", cost, allowed)
        put(self, "overrides", tuple(self.overrides))

    def share_pace(self, runs: int) -> RunOptions:
        """Return the options of one of several runs at once, which keep to these limits together.

        Args:
            runs: How many run at once; each has at least one trial at a time.
        """
        # Rounded down, so that together they never ask more than one run may.
        rate = self.rate_per_s
        return replace(
            self,
            concurrency=max(1, self.concurrency // runs),
            rate_per_s=None if rate is None else rate / runs,
        )

    def without_calls(self, trials: Mapping[str, int]) -> RunOptions:
        """Return the options for replies that are there already: all are taken, at any pace."""
        # Curtailing would leave out replies that are there, and all of them are evidence.
        return replace(
            self,
            trials=trials,
            max_trials=None,
            curtail=False,
            draw="balanced",
            retries=0,
            concurrency=1,
            rate_per_s=None,
            timeout_s=None,
            budget=Budget(),
        )

    @property
    def horizon_runs(self) -> int | None:
        """The number of runs in the horizon, however it is declared."""
        given = self.horizon
        return given.count_runs() if isinstance(given, Horizon) else given
