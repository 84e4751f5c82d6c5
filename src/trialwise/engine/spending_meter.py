"""What a run takes, counted as it goes, and the limits that end it cleanly."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from trialwise import model
from trialwise.engine.ports import Clock
from trialwise.model.evidence import Spending
from trialwise.model.reply import sum_usages
from trialwise.model.trial_table import TrialTable

#: Ten trials of $0.10 use up $1, although their sum in binary falls a little short of it.
_NEARLY = 1 - 1e-9


def find_used_up(
    budget: model.Budget,
    *,
    trials: int,
    seconds: float,
    usd: float,
    tokens: int = 0,
    name: str = "the budget",
) -> tuple[model.StopReason, str] | None:
    """Return which limit of a budget is reached, in words too; None where none is.

    Args:
        budget: The limits.
        trials: How many were started.
        seconds: How long ago the first of them was.
        usd: What they cost.
        tokens: What they sent and received.
        name: What the sentence calls the budget.
    """
    if budget.trials is not None and trials >= budget.trials:
        return model.StopReason.TRIALS_BUDGET, f"{name} of {budget.trials} trials is used up"
    if budget.seconds is not None and seconds >= budget.seconds:
        return model.StopReason.TIME_BUDGET, f"{name} of {budget.seconds:g} s is used up"
    if budget.tokens is not None and tokens >= budget.tokens:
        return model.StopReason.TOKEN_BUDGET, f"{name} of {budget.tokens} tokens is used up"
    if budget.usd is not None and usd >= budget.usd * _NEARLY:
        return model.StopReason.MONEY_BUDGET, f"{name} of ${budget.usd:g} is used up"
    return None


def untold_cost(usd: float) -> str:
    """Return why a limit on money cannot be kept, and the two ways out."""
    return (
        f"the budget of ${usd:g} cannot be kept: nobody tells what a trial costs. Declare it "
        "(cost_per_trial: $0.01), or limit the number of trials instead (budget: {trials: …})"
    )


def _has_room(limit: float | None, spent: float, most: float | None, in_flight: int) -> bool:
    """Return whether the trials in flight and one more stay within a limit."""
    if limit is None:
        return True
    # One trial alone: with several in flight at unknown cost, all of them could go beyond the
    # limit.
    if most is None:  # the first trial tells
        return in_flight == 0
    return (spent + most * (in_flight + 1)) * _NEARLY <= limit


class _Bill:
    """Tokens and dollars of one kind; the dollars are None until somebody tells any."""

    __slots__ = ("tokens", "usd")

    def __init__(self) -> None:
        self.tokens = 0
        self.usd: float | None = None

    def add(self, usage: model.Usage | None, usd: float | None) -> None:
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
    their seconds. A trial in flight reserves what the most expensive one took so far, so that
    trials side by side do not exceed a limit together.

    Args:
        budget: The limits.
        clock: For the seconds; the meter starts with its making.
        trial_usd: What a trial costs whose service does not tell.
        whole: The meter of several runs that share one budget: it counts what this one counts.
    """

    def __init__(
        self,
        budget: model.Budget,
        clock: Clock,
        trial_usd: float | None = None,
        *,
        whole: Meter | None = None,
    ) -> None:
        self._budget = budget
        self._whole = whole
        self._clock = clock
        # Declared by the suite, for services that do not tell.
        self._trial_usd = trial_usd
        # What the most expensive trial took; None until that is known.
        self._most_usd = trial_usd
        self._most_tokens: int | None = None
        self._replies = 0
        self.began_s = clock.monotonic()
        self.is_limited = budget != model.Budget()
        # Where this holds, a trial costs one addition and not a dozen.
        self._counts_only = trial_usd is None and not self.is_limited and whole is None
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

    def add(self, trial: model.Trial) -> None:
        """Count a completed trial."""
        self.trials += 1
        # Most trials of most services tell of none, and nobody has set a limit.
        if self._counts_only and trial.is_plain:
            self.attempts += 1
            return
        self.attempts += trial.attempts
        usd = self._trial_usd if trial.cost_usd is None else trial.cost_usd
        self.setup_s += trial.setup_s or 0.0
        self._work.add(trial.usage, usd)
        self._setup.add(trial.setup_usage, trial.setup_cost_usd)
        self._judging.add(trial.judging_usage, trial.judging_cost_usd)
        if self.is_limited:
            self._note_most(trial, usd)
        if self._whole is not None:
            self._whole.add(trial)

    def add_table(self, trials: TrialTable) -> None:
        """Count trials from before a restart."""
        if not self._counts_only or trials.has_expenses:
            for trial in trials.sketches():
                self.add(trial)
            return
        self.trials += len(trials)
        self.attempts += sum(trials.courses[way].attempts for way in trials.course_column)

    def _note_most(self, trial: model.Trial, usd: float | None) -> None:
        self._replies += trial.latency_s is not None
        spent_usd = known_sum((usd, trial.setup_cost_usd, trial.judging_cost_usd))
        if spent_usd is not None:
            self._most_usd = max(spent_usd, self._most_usd or 0.0)
        used = known_usage((trial.usage, trial.setup_usage, trial.judging_usage))
        if used is not None:
            self._most_tokens = max(used.total_tokens, self._most_tokens or 0)

    def abandon(self, replies: Iterable[model.Reply]) -> None:
        """Count what a trial took that will never be counted, as far as it tells.

        A request that was under way costs money as well, but nobody reports how much.

        Args:
            replies: What its attempts had come to, setup included.
        """
        for reply in replies:
            for part in (reply, reply.setup or model.Setup()):
                self._lost.add(part.usage, part.cost_usd)
                if self._whole is not None:
                    self._whole._lost.add(part.usage, part.cost_usd)

    def find_limit(self, in_flight: int, together: int = 1) -> tuple[model.StopReason, str] | None:
        """Return which limit forbids another start, in words too; None where none does.

        Args:
            in_flight: Trials started and not completed: they are paid already.
            together: How many trials start together, such as those of a pair: all or none.
        """
        found = find_used_up(
            self._budget,
            trials=self.trials + in_flight,
            seconds=self.seconds,
            tokens=self._tokens,
            usd=self._usd,
        )
        most = self._budget.trials
        if found is None and most is not None and self.trials + in_flight + together > most:
            why = f"the budget of {most} trials has no room for {together} more"
            found = model.StopReason.TRIALS_BUDGET, why
        if found is not None or in_flight:
            return found
        return self._find_untold() or self._find_shortage(together)

    def must_wait(self, in_flight: int, together: int = 1) -> bool:
        """Return whether another start could exceed a limit, so that it has to wait.

        Args:
            in_flight: Trials started and not completed.
            together: How many trials start together.
        """
        others = in_flight + together - 1
        return in_flight > 0 and not (
            _has_room(self._budget.usd, self._usd, self._most_usd, others)
            and _has_room(self._budget.tokens, self._tokens, self._most_tokens, others)
        )

    @property
    def seconds_left(self) -> float:
        """Return the seconds left of the time limit; infinity without a limit."""
        if self._whole is not None:
            return self._whole.seconds_left
        limit = self._budget.seconds
        return math.inf if limit is None else limit - self.seconds

    def describe_time_limit(self, why: str = "is used up") -> tuple[model.StopReason, str]:
        """Return the stop of a run by its time limit."""
        return model.StopReason.TIME_BUDGET, f"the budget of {self._budget.seconds:g} s {why}"

    @property
    def _usd(self) -> float:
        return sum(bill.usd or 0.0 for bill in self._bills)

    @property
    def _tokens(self) -> int:
        return sum(bill.tokens for bill in self._bills)

    def _find_untold(self) -> tuple[model.StopReason, str] | None:
        """Return the stop for a limit that cannot be kept because replies do not say their cost."""
        if not self._replies:
            return None
        if self._budget.usd is not None and self._most_usd is None:
            return model.StopReason.MONEY_BUDGET, untold_cost(self._budget.usd)
        if self._budget.tokens is not None and self._most_tokens is None:
            return model.StopReason.TOKEN_BUDGET, (
                f"the budget of {self._budget.tokens} tokens cannot be kept: the service does not "
                "tell how many tokens a trial takes. Limit the number of trials instead "
                "(budget: {trials: …}), or return a Reply with its usage"
            )
        return None

    def _find_shortage(self, together: int) -> tuple[model.StopReason, str] | None:
        """Return the stop for a limit that the next trials alone could exceed."""
        budget = self._budget
        more = "another trial" if together == 1 else f"{together} more trials"
        usd, tokens = self._most_usd, self._most_tokens
        # What nobody knows yet, the first of them tells.
        if usd is not None and not _has_room(budget.usd, self._usd, usd, together - 1):
            return model.StopReason.MONEY_BUDGET, (
                f"the budget of ${budget.usd:g} has no room for {more}: ${self._usd:.4g} is "
                f"spent, and a trial costs up to ${usd:.4g}"
            )
        if tokens is not None and not _has_room(budget.tokens, self._tokens, tokens, together - 1):
            return model.StopReason.TOKEN_BUDGET, (
                f"the budget of {budget.tokens} tokens has no room for {more}: "
                f"{self._tokens} are spent, and a trial takes up to {tokens}"
            )
        return None

    def spending(self) -> Spending:
        """Return what was taken so far."""
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


def known_usage(usages: Iterable[model.Usage | None]) -> model.Usage | None:
    """Return all tokens that were told.

    >>> known_usage([model.Usage(input_tokens=3), None, model.Usage(output_tokens=2)])
    Usage(input_tokens=3, output_tokens=2)
    """
    return sum_usages([one for one in usages if one is not None])


def known_sum(amounts: Iterable[float | None]) -> float | None:
    """Return all amounts that were told.

    >>> known_sum([0.5, None, 1]), known_sum([None]) is None
    (1.5, True)
    """
    known = [float(one) for one in amounts if one is not None]
    return sum(known) if known else None


def sum_expenses(replies: Sequence[model.Reply]) -> dict[str, Any]:
    """Return what a trial took in all of its attempts, as the fields of `Trial`."""
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
