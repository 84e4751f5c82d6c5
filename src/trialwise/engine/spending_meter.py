"""What a run takes, counted as it goes, and the limits that end it cleanly."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

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


class _Bill:
    """Tokens and dollars of one kind; the dollars are None until somebody tells any."""

    __slots__ = ("tokens", "usd")

    def __init__(self) -> None:
        self.tokens = 0
        self.usd: float | None = None

    def add(self, usage: Usage | None, usd: float | None) -> None:
        """Add what one part of a trial took."""
        if usage is not None:
            self.tokens += usage.total_tokens
        if usd is not None:
            self.usd = (self.usd or 0.0) + usd

    @property
    def nanodollars(self) -> float | None:
        """The dollars without the noise of their additions."""
        return None if self.usd is None else round(self.usd, 9)


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
        self.setup_s = 0.0
        self.abandoned = 0
        # Apart, since a comparison of services is about the work alone; the budget sums them.
        self._work, self._setup, self._judging, self._lost = (_Bill() for _ in range(4))
        self._bills = (self._work, self._setup, self._judging, self._lost)

    @property
    def seconds(self) -> float:
        """Since the run began, by the monotonic clock."""
        return self._clock.monotonic() - self.began_s

    def add(self, trial: Trial) -> None:
        """Count a completed trial."""
        self.trials += 1
        self.attempts += trial.attempts
        self.setup_s += trial.setup_s or 0.0
        self._work.add(trial.usage, trial.cost_usd)
        self._setup.add(trial.setup_usage, trial.setup_cost_usd)
        self._judging.add(trial.judging_usage, trial.judging_cost_usd)

    def abandon(self, replies: Iterable[Reply]) -> None:
        """Count what a trial took that will never be counted, as far as it tells.

        A request that was under way costs money as well, but nobody reports how much.

        Args:
            replies: What its attempts had come to, setup included.
        """
        for reply in replies:
            for part in (reply, reply.setup or Setup()):
                self._lost.add(part.usage, part.cost_usd)

    def find_limit(self, in_flight: int) -> tuple[StopReason, str] | None:
        """Which limit forbids another start, in words too; None where none does.

        Args:
            in_flight: Trials started and not completed: they are paid already.
        """
        return find_used_up(
            self._budget,
            trials=self.trials + in_flight,
            seconds=self.seconds,
            tokens=sum(bill.tokens for bill in self._bills),
            usd=sum(bill.usd or 0.0 for bill in self._bills),
        )

    def spending(self) -> Spending:
        """What was taken so far."""
        return Spending(
            trials=self.trials,
            attempts=self.attempts,
            seconds=round(self.seconds, 6),
            tokens=self._work.tokens,
            usd=self._work.nanodollars,
            setup_s=round(self.setup_s, 6),
            setup_tokens=self._setup.tokens,
            setup_usd=self._setup.nanodollars,
            judging_tokens=self._judging.tokens,
            judging_usd=self._judging.nanodollars,
            abandoned=self.abandoned,
            abandoned_tokens=self._lost.tokens,
            abandoned_usd=self._lost.nanodollars,
        )


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


def sum_expenses(replies: Sequence[Reply]) -> dict[str, Any]:
    """What a trial took, as the fields of `Trial`: its reply and what other attempts came to."""
    if len(replies) == 1 and replies[0].setup is None:  # nearly every trial
        return {"usage": replies[0].usage, "cost_usd": known_sum([replies[0].cost_usd])}
    setups = [one.setup for one in replies if one.setup is not None]
    return {
        "usage": known_usage(one.usage for one in replies),
        "cost_usd": known_sum(one.cost_usd for one in replies),
        "setup_s": known_sum(one.seconds for one in setups),
        "setup_usage": known_usage(one.usage for one in setups),
        "setup_cost_usd": known_sum(one.cost_usd for one in setups),
    }
