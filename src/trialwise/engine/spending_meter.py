"""What a run takes, counted as it goes, and the limits that end it cleanly."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from trialwise.engine.ports import Clock
from trialwise.model.evidence import Spending, StopReason
from trialwise.model.options import Budget
from trialwise.model.reply import Reply, Setup, Usage, sum_usages
from trialwise.model.trial import Trial

#: Ten trials of $0.10 use up $1, although their sum in binary falls a little short of it.
_NEARLY = 1 - 1e-9


def find_used_up(
    budget: Budget,
    *,
    trials: int,
    seconds: float,
    usd: float,
    tokens: int = 0,
    name: str = "the budget",
) -> tuple[StopReason, str] | None:
    """Which limit of a budget is reached, in words too; None where none is.

    Args:
        budget: The limits.
        trials: How many were started.
        seconds: How long ago the first of them was.
        usd: What they cost.
        tokens: What they sent and received.
        name: What the sentence calls the budget.
    """
    if budget.trials is not None and trials >= budget.trials:
        return StopReason.TRIALS_BUDGET, f"{name} of {budget.trials} trials is used up"
    if budget.seconds is not None and seconds >= budget.seconds:
        return StopReason.TIME_BUDGET, f"{name} of {budget.seconds:g} s is used up"
    if budget.tokens is not None and tokens >= budget.tokens:
        return StopReason.TOKEN_BUDGET, f"{name} of {budget.tokens} tokens is used up"
    if budget.usd is not None and usd >= budget.usd * _NEARLY:
        return StopReason.MONEY_BUDGET, f"{name} of ${budget.usd:g} is used up"
    return None


class Meter:
    """The spending of a run against its budget.

    Setup, judging and trials that nobody waited for count toward the budget, since they are paid
    like the rest; they are kept apart. Trials from before a restart count as well, except for
    their seconds.

    Args:
        budget: The limits.
        clock: For the seconds; the meter starts with its making.
    """

    def __init__(self, budget: Budget, clock: Clock) -> None:
        self._budget = budget
        self._clock = clock
        self.began_s = clock.monotonic()
        self.is_limited = budget != Budget()
        self.trials = 0
        self.attempts = 0
        self.tokens = 0
        self.usd: float | None = None
        self.setup_s = 0.0
        self.setup_tokens = 0
        self.setup_usd: float | None = None
        self.judging_tokens = 0
        self.judging_usd: float | None = None
        self.abandoned = 0
        self.abandoned_tokens = 0
        self.abandoned_usd: float | None = None

    @property
    def seconds(self) -> float:
        """Since the run began, by the monotonic clock."""
        return self._clock.monotonic() - self.began_s

    def add(self, trial: Trial) -> None:
        """Count a completed trial."""
        self.trials += 1
        self.attempts += trial.attempts
        if trial.usage is not None:
            self.tokens += trial.usage.total_tokens
        if trial.cost_usd is not None:
            self.usd = (self.usd or 0.0) + trial.cost_usd
        if trial.setup_s is not None:
            self.setup_s += trial.setup_s
        if trial.setup_usage is not None:
            self.setup_tokens += trial.setup_usage.total_tokens
        if trial.setup_cost_usd is not None:
            self.setup_usd = (self.setup_usd or 0.0) + trial.setup_cost_usd
        if trial.judging_usage is not None:
            self.judging_tokens += trial.judging_usage.total_tokens
        if trial.judging_cost_usd is not None:
            self.judging_usd = (self.judging_usd or 0.0) + trial.judging_cost_usd

    def abandon(self, replies: Iterable[Reply]) -> None:
        """Count what a trial took that will never be counted, as far as it tells.

        A request that was under way costs money as well, but nobody reports how much.

        Args:
            replies: What its attempts had come to, setup included.
        """
        for reply in replies:
            setup = reply.setup or Setup()
            usage = known_usage([reply.usage, setup.usage])
            if usage is not None:
                self.abandoned_tokens += usage.total_tokens
            self.abandoned_usd = known_sum([self.abandoned_usd, reply.cost_usd, setup.cost_usd])

    def find_limit(self, in_flight: int) -> tuple[StopReason, str] | None:
        """Which limit forbids another start, in words too; None where none does.

        Args:
            in_flight: Trials started and not completed: they are paid already.
        """
        usd = (self.usd or 0.0) + (self.setup_usd or 0.0) + (self.judging_usd or 0.0)
        return find_used_up(
            self._budget,
            trials=self.trials + in_flight,
            seconds=self.seconds,
            tokens=self.tokens + self.setup_tokens + self.judging_tokens + self.abandoned_tokens,
            usd=usd + (self.abandoned_usd or 0.0),
        )

    def spending(self) -> Spending:
        """What was taken so far."""
        return Spending(
            trials=self.trials,
            attempts=self.attempts,
            seconds=round(self.seconds, 6),
            tokens=self.tokens,
            usd=_nanodollars(self.usd),
            setup_s=round(self.setup_s, 6),
            setup_tokens=self.setup_tokens,
            setup_usd=_nanodollars(self.setup_usd),
            judging_tokens=self.judging_tokens,
            judging_usd=_nanodollars(self.judging_usd),
            abandoned=self.abandoned,
            abandoned_tokens=self.abandoned_tokens,
            abandoned_usd=_nanodollars(self.abandoned_usd),
        )


def _nanodollars(usd: float | None) -> float | None:
    """A sum without the noise of its additions."""
    return None if usd is None else round(usd, 9)


def known_usage(usages: Iterable[Usage | None]) -> Usage | None:
    """All tokens that were told.

    >>> known_usage([Usage(input_tokens=3), None, Usage(output_tokens=2)])
    Usage(input_tokens=3, output_tokens=2)
    """
    return sum_usages([one for one in usages if one is not None])


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
