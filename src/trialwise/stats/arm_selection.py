"""Which of several arms is best, in rounds on the same inputs and with as few trials as possible.

The user states the smallest difference that matters, δ. After each round three questions are asked,
each by betting against a hypothesis. A bet is fixed before the round it is made on, and on average
nobody wins by betting against a hypothesis that is true. So the capital reaches 1/α with
probability at most α, whenever one looks (Ville's inequality). Nothing else is assumed: the rates
may be any, and the arms may pass and fail together in any way.

1. *Can arm j be better than every other by δ or more?* The capital starts at 1, is divided among
   the other arms i, and bets on xᵢ − xⱼ + δ, whose mean is at most 0 if j is that good. Where ties
   are said, a part of it bets on all others together, for the case that they are as good as j. An
   arm is dropped when its capital reaches 1/α. At most one arm is better than all others by δ, so
   an error can be made about that arm only: it is dropped with probability at most α.
2. *Is the last arm no better than the one that stayed longest beside it?* It is named where this is
   ruled out at the level `TIE_ERROR`. Only rounds after all others were dropped count: by then it
   is settled which of the two would be named, so the error is spent on one direction alone. Of
   arms that are all as good, however many, one is named with probability at most `TIE_ERROR`.
   The arms are tied where question 1 drops the last arm, too: then no arm is better than all
   others by δ.
3. *Is arm j as good as every other?* Rounds in which i passes and j fails are then no likelier than
   the contrary (`measure_sign_evidence`, averaged over i). An arm is beaten where this is ruled
   out. The arms that may be best include a best one with probability at least 1 − α.

The size of a bet maximises the expected logarithm of the capital at the estimated rates of wins and
losses, and is never larger than what a single win needs to reach 1/α.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from trialwise.errors import InvalidArgument
from trialwise.validation import require_count, require_open_rate

ChoiceOutcome: TypeAlias = Literal["chosen", "tied"]

#: How often an arm is named, at most, although the arm beside it is at least as good.
TIE_ERROR = 0.2
#: The share of rounds in which one of two arms passes and the other fails, before any was seen:
#: what arms with rates of 80 % to 90 % have.
_DISCORDANT = 0.28
#: How many rounds the guess above counts for, and all pairs together for the estimate of one pair.
_GUESSED_ROUNDS = 10
_SHARED_ROUNDS = 60
#: The smallest bet keeps half of the difference in mind; the estimated one gets weight slowly.
_LEAST_LEAD = 0.5
_LEAD_WEIGHT = 1.5
#: The share of the capital that bets on a tie from the first round on, where ties are said.
_KEPT_FOR_TIES = 0.25
#: A bet that could lose everything would never recover.
_LARGEST_SHARE = 0.98
#: Rounding of a product of a few hundred factors.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmCounts:
    """The trials of one arm that were used."""

    trials: int
    passed: int

    @property
    def rate(self) -> float | None:
        """The share that passed; None before the first trial."""
        return self.passed / self.trials if self.trials else None


class ArmSelection:
    """Follows rounds of trials until one arm is chosen or all that remain are tied.

    Args:
        arms: How many arms there are, at least 2.
        smallest_difference: The smallest difference between two rates that matters, such as 0.1.
        alpha: The largest probability of naming a wrong arm, or of "tied", where one arm is better
            than every other by the smallest difference or more.
        break_ties: Whether to choose the last arm at once. Otherwise rounds go on until it is
            shown to be better than the arm that stayed longest beside it, or until the arms are
            shown to be tied.
        edition: 1 for choices that were made before the last two arms began anew: of two equal arms
            one was then named in up to twice `TIE_ERROR`.

    Examples:
        >>> selection = ArmSelection(3, smallest_difference=0.2, break_ties=True)
        >>> while selection.outcome is None:
        ...     selection.add_round({arm: arm == 1 for arm in selection.next_arms})
        >>> selection.outcome, selection.chosen, selection.trials
        ('chosen', 1, 15)
    """

    def __init__(
        self,
        arms: int,
        *,
        smallest_difference: float,
        alpha: float = 0.05,
        break_ties: bool = False,
        edition: int = 2,
    ) -> None:
        self._arms = require_count("arms", arms, minimum=2)
        self._delta = require_open_rate("smallest_difference", smallest_difference)
        self._target = 1 / require_open_rate("alpha", alpha)
        self._breaks_ties = break_ties
        self._begins_anew = edition > 1
        every = range(self._arms)
        #: [j][i]: what was won by betting on i that j is not better than all others by delta;
        #: [j][j]: by betting on all others together that they are as good as j.
        kept = 0.0 if break_ties else _KEPT_FOR_TIES
        each = (1 - kept) / (arms - 1)
        self._against_lead = [[kept if i == j else each for i in every] for j in every]
        #: [i][j]: what was won by betting that i is better than j.
        self._ahead = [[1.0] * arms for _ in every]
        self._wins = [[0] * arms for _ in every]
        self._rounds = [[0] * arms for _ in every]
        self._discordant = 0.0
        self._seen = 0
        self._passed, self._tried = [0] * arms, [0] * arms
        self._dropped: list[int] = []
        self._sampled = tuple(every)
        self._outcome: ChoiceOutcome | None = None

    @property
    def outcome(self) -> ChoiceOutcome | None:
        """Return "chosen" or "tied"; None while more rounds are needed."""
        return self._outcome

    @property
    def chosen(self) -> int | None:
        """Return the arm that was chosen; None where none was."""
        return self.remaining[0] if self._outcome == "chosen" else None

    @property
    def remaining(self) -> tuple[int, ...]:
        """Return the arms that may be better than every other by the smallest difference."""
        return tuple(arm for arm in range(self._arms) if arm not in self._dropped)

    @property
    def unbeaten(self) -> tuple[int, ...]:
        """Return the arms that no other arm is shown to be better than."""
        return tuple(j for j in range(self._arms) if self._measure_beaten(j) < self._target)

    @property
    def tied(self) -> tuple[int, ...]:
        """Return the arms that are tied: those of the last round, and others not clearly worse."""
        if self._outcome != "tied":
            return ()
        close = (j for j in range(self._arms) if self._measure_beaten(j) < 1 / TIE_ERROR)
        return tuple(sorted({*self._sampled, *close}))

    @property
    def next_arms(self) -> tuple[int, ...]:
        """Return the arms that the next round tries; none after the outcome."""
        return self._sampled if self._outcome is None else ()

    @property
    def trials(self) -> int:
        """Return how many trials were used, of all arms together."""
        return sum(self._tried)

    @property
    def counts(self) -> tuple[ArmCounts, ...]:
        """Return the trials of every arm that were used."""
        return tuple(
            ArmCounts(trials=tried, passed=passed)
            for tried, passed in zip(self._tried, self._passed, strict=True)
        )

    def add_round(self, passed: Mapping[int, bool | None]) -> None:
        """Count one round: whether each of `next_arms` passed.

        Args:
            passed: One entry for each arm of `next_arms`; None where the trial was not measured.
        """
        if self._outcome is not None:
            raise InvalidArgument("passed", dict(passed), "be left out after the outcome")
        if set(passed) != set(self._sampled):
            raise InvalidArgument("passed", sorted(passed), f"be of the arms {self._sampled}")
        found = {arm: int(result) for arm, result in passed.items() if result is not None}
        self._bet(found)
        self._count(found)
        self._drop()
        self._conclude()

    def _bet(self, found: Mapping[int, int]) -> None:
        """Settle the bets on a round, each of which was fixed by the rounds before it."""
        pooled = (_GUESSED_ROUNDS * _DISCORDANT + self._discordant) / (_GUESSED_ROUNDS + self._seen)
        # With a single arm left, what has to be found out is whether it is tied.
        is_last = len(self._dropped) == self._arms - 1
        for j in found:
            capital = self._against_lead[j]
            room = self._target - math.fsum(capital)
            for i in found:
                if i == j:
                    continue
                result = found[i] - found[j]
                share, mean = self._estimate(i, j, pooled)
                bet = _Bet(share, 0.0 if is_last else mean, self._delta)
                capital[i] = bet.settle(capital[i], room, result)
                ahead = self._ahead[i][j]
                bet = _Bet(share, max(mean, self._delta), 0.0)
                self._ahead[i][j] = bet.settle(ahead, 1 / TIE_ERROR - ahead, result)
            capital[j] = self._bet_on_tie(j, room, found, pooled)

    def _bet_on_tie(self, j: int, room: float, found: Mapping[int, int], pooled: float) -> float:
        """Return the capital after a bet that all others together are as good as an arm."""
        capital, others = self._against_lead[j][j], len(found) - 1
        if not others or not capital or room <= 0:
            return capital
        delta = self._delta
        # The mean square of the difference between an arm and the average of others like it.
        spread = pooled * (1 + 1 / others) / 2
        size = min(delta / (spread + delta**2), _LARGEST_SHARE / (1 - delta))
        size = min(size, room / (capital * (1 + delta)))
        result = (sum(found.values()) - found[j]) / others - found[j]
        return capital * (1 + size * (result + delta))

    def _estimate(self, i: int, j: int, pooled: float) -> tuple[float, float]:
        """Return the share of rounds that tell i and j apart, and by how much i is better."""
        delta, rounds = self._delta, self._rounds[i][j]
        wins, losses = self._wins[i][j], self._wins[j][i]
        share = (_SHARED_ROUNDS * pooled + wins + losses) / (_SHARED_ROUNDS + rounds)
        share = min(1.0, max(1.05 * delta, share))
        weight = _LEAD_WEIGHT / delta**2
        mean = (weight * delta + wins - losses) / (weight + rounds)
        return share, min(_LARGEST_SHARE * share, max(_LEAST_LEAD * delta, mean))

    def _count(self, found: Mapping[int, int]) -> None:
        apart = 0
        for i, result in found.items():
            self._tried[i] += 1
            self._passed[i] += result
            for j in found:
                self._rounds[i][j] += 1
                self._wins[i][j] += result > found[j]
                apart += result > found[j]
        pairs = len(found) * (len(found) - 1) / 2
        if pairs:
            self._discordant += apart / pairs
            self._seen += 1

    def _drop(self) -> None:
        needed = self._target * (1 - _ROUNDING)
        self._dropped += [
            arm for arm in self.remaining if math.fsum(self._against_lead[arm]) >= needed
        ]

    def _conclude(self) -> None:
        left = self.remaining
        if not left:
            self._outcome = "tied"
            return
        doubtful = self._find_doubtful(left[0]) if len(left) == 1 else ()
        if len(left) == 1 and not doubtful:
            self._outcome = "chosen"
            return
        sampled = tuple(sorted((*left, *doubtful)))
        if sampled != self._sampled:
            self._sampled = sampled
            for j in left:
                _move_capital(self._against_lead[j], sampled)

    def _find_doubtful(self, best: int) -> tuple[int, ...]:
        """Return the arm beside the last one, where it may be just as good."""
        if self._breaks_ties:
            return ()
        shown = {j: self._ahead[best][j] for j in self._sampled if j != best}
        least = min(shown, key=shown.__getitem__)
        if self._begins_anew:
            self._begins_anew = False
            shown[least] = self._ahead[best][least] = 1.0
        return () if shown[least] >= (1 - _ROUNDING) / TIE_ERROR else (least,)

    def _measure_beaten(self, j: int) -> float:
        others = (i for i in range(self._arms) if i != j)
        evidence = (measure_sign_evidence(self._wins[i][j], self._wins[j][i]) for i in others)
        return math.fsum(evidence) / (self._arms - 1)


class _Bet(NamedTuple):
    """A bet that the next result + shift is positive, where the result is −1, 0 or 1."""

    share: float
    mean: float
    shift: float

    def settle(self, capital: float, room: float, result: int) -> float:
        """Return the capital after the result; a win adds at most `room`."""
        if capital <= 0 or room <= 0:
            return capital
        size = find_bet(self.share, self.mean, self.shift)
        size = min(size, room / (capital * (1 + self.shift)))
        return capital * (1 + size * (result + self.shift))


def find_bet(share: float, mean: float, shift: float) -> float:
    """Find the bet that makes the capital grow fastest.

    It maximises the expected logarithm of 1 + size · (result + shift), where the result is 1 with
    probability (share + mean) / 2, −1 with probability (share − mean) / 2, and otherwise 0.

    >>> find_bet(0.5, 0.1, 0.0)
    0.2
    """
    wins, losses = (share + mean) / 2, (share - mean) / 2
    if not shift:
        return min(_LARGEST_SHARE, mean / share)
    gain, loss, rest = 1 + shift, 1 - shift, 1 - share
    # The derivative, times the three denominators, is a quadratic a·size² + b·size + c, a < 0.
    a = -gain * loss * shift
    b = wins * gain * (shift - loss) - losses * loss * (gain + shift) + rest * shift * (gain - loss)
    c = mean + shift
    size = (-b - math.sqrt(b * b - 4 * a * c)) / (2 * a)
    return min(size, _LARGEST_SHARE / loss)


def measure_sign_evidence(wins: int, losses: int) -> float:
    """Measure the evidence that wins are likelier than losses, valid whenever one looks.

    It is the mean of (2θ)^wins · (2(1 − θ))^losses over θ between 1/2 and 1, whose expectation is
    at most 1, whenever one stops, where wins are not likelier.

    >>> measure_sign_evidence(9, 0)
    102.3
    """
    n = wins + losses
    # θ^wins · (1 − θ)^losses is integrated by the tail of a binomial with one more draw.
    below = sum(math.comb(n + 1, k) for k in range(wins + 1))
    return below / ((n + 1) * math.comb(n, wins))


def _move_capital(capital: list[float], bettors: Sequence[int]) -> None:
    """Give all capital to those who bet on, in proportion to what each of them has."""
    total, held = math.fsum(capital), math.fsum(capital[i] for i in bettors)
    for i in range(len(capital)):
        if i not in bettors:
            capital[i] = 0.0
        elif held > 0:
            capital[i] *= total / held
        else:
            capital[i] = total / len(bettors)
