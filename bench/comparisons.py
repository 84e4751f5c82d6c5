"""Sequential comparisons of two arms against fixed and group-sequential ones, all exact.

Everything is computed in discordant pairs, of which exactly one arm passed: each is won by B with
the same probability. Pairs are discordant pairs over their share of all pairs.

`python -m bench.comparisons` prints the section of `docs/benchmarks.md`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from trialwise.stats.binomial import binomial_pmf, binomial_tail
from trialwise.stats.paired_designs import (
    DesignQuestion,
    discordant_rates,
    fixed_discordant,
    plan_paired_design,
)

#: The rates of A and of B, outcomes independent given the input.
ROWS = ((0.80, 0.90), (0.85, 0.90), (0.90, 0.95), (0.70, 0.80))
#: Of each direction: 5 % two-sided.
SIZE = 0.025
POWER = 0.80
LOOKS = 5

#: A search takes seconds.
plan = cache(plan_paired_design)

Stop = Callable[[int, int], bool | None]
"""Given discordant pairs and wins of B: True says that B is better, False ends without, None goes
on."""


@dataclass(frozen=True, slots=True)
class Course:
    """What a rule does where B wins a discordant pair with a certain probability."""

    better: float
    """The probability that B is called better."""
    mean: float
    """The expected discordant pairs."""


def follow(stop: Stop, share: float) -> Course:
    """Follow a rule through every path, discordant pair by discordant pair."""
    better = mean = 0.0
    state, n = {0: 1.0}, 0
    # Wald's test has no end; what is left by then is a millionth of a rounding error.
    while state and math.fsum(state.values()) > 1e-15:
        mean += math.fsum(state.values())
        n += 1
        later: dict[int, float] = {}
        for wins, chance in state.items():
            later[wins + 1] = later.get(wins + 1, 0.0) + chance * share
            later[wins] = later.get(wins, 0.0) + chance * (1 - share)
        state = {}
        for wins, chance in later.items():
            said = stop(n, wins)
            if said is None:
                state[wins] = chance
            elif said:
                better += chance
    return Course(better, mean)


def wald(split: float) -> Stop:
    """Wald's own test of the split against one half, with his bounds for the two errors."""
    win, loss = math.log(2 * split), math.log(2 * (1 - split))
    upper = math.log(POWER / SIZE)
    lower = math.log((1 - POWER) / (1 - SIZE))

    def stop(n: int, wins: int) -> bool | None:
        ratio = wins * win + (n - wins) * loss
        return True if ratio >= upper else False if ratio <= lower else None

    return stop


def follow_both(stop: Stop, share: float) -> Course:
    """Follow the same test in both directions, until one of them says so or both have ended."""
    better = mean = 0.0
    # The wins, and whether the test for a better and the one for a worse B have ended without.
    state, n = {(0, False, False): 1.0}, 0
    while state and math.fsum(state.values()) > 1e-15:
        mean += math.fsum(state.values())
        n += 1
        later: dict[tuple[int, bool, bool], float] = {}
        for (before, was_up, was_down), chance in state.items():
            for wins, weight in ((before + 1, share), (before, 1 - share)):
                up = False if was_up else stop(n, wins)
                down = False if was_down else stop(n, n - wins)
                if up:
                    better += chance * weight
                elif not down and (up is None or down is None):
                    place = (wins, up is False, down is False)
                    later[place] = later.get(place, 0.0) + chance * weight
        state = later
    return Course(better, mean)


@dataclass(frozen=True, slots=True)
class Looks:
    """A group-sequential test in both directions."""

    at: tuple[int, ...]
    """The discordant pairs at each look."""
    wins: tuple[int, ...]
    """The fewest wins of B that show it better there; as few losses show it worse."""

    def stop(self, n: int, wins: int) -> bool | None:
        """Decide at a look, and only there."""
        if n not in self.at:
            return None
        needed = self.wins[self.at.index(n)]
        if wins >= needed:
            return True
        return False if n - wins >= needed or n == self.at[-1] else None


@cache
def group_sequential(split: float, power_of_time: float) -> Looks:
    """Find the smallest test with equally spaced looks that has the size and the power.

    The bounds are those of O'Brien and Fleming (`power_of_time` 0.5: the statistic times the
    square root of the time) or of Pocock (0: the same at each look). Their constant is the least
    with an exact size within the limit.
    """
    # No test of the size has the power with a tenth less than the fixed one takes.
    most = fixed_discordant(split, alpha=2 * SIZE, power=POWER) * 9 // 10
    while True:
        most += 1
        at = tuple(round(most * look / LOOKS) for look in range(1, LOOKS + 1))
        found = _calibrate(at, power_of_time)
        if follow(found.stop, split).better >= POWER:
            return found


def _calibrate(at: tuple[int, ...], power_of_time: float) -> Looks:
    def constant(n: int, wins: int) -> float:
        return (2 * wins - n) / math.sqrt(n) * math.pow(n / at[-1], power_of_time)

    every = sorted({constant(n, wins) for n in at for wins in range(n // 2, n + 2)})

    def make(bound: float) -> Looks:
        reached = ([w for w in range(n + 1) if constant(n, w) >= bound - 1e-12] for n in at)
        return Looks(
            at, tuple(min(wins, default=n + 1) for n, wins in zip(at, reached, strict=True))
        )

    low, high = 0, len(every) - 1
    while low < high:
        middle = (low + high) // 2
        within = follow(make(every[middle]).stop, 0.5).better <= SIZE
        low, high = (low, middle) if within else (middle + 1, high)
    return make(every[low])


def fixed_pairs(rate_a: float, rate_b: float) -> int:
    """The fewest pairs at which McNemar's exact test has the power."""
    only_a, only_b = discordant_rates(rate_a, rate_b)
    discordant, split = only_a + only_b, only_b / (only_a + only_b)

    powers: list[float] = []

    def power(n: int) -> float:
        while len(powers) <= n:
            k = len(powers)
            needed = next(
                (w for w in range(k // 2, k + 1) if binomial_tail(w, k, 0.5) <= SIZE), k + 1
            )
            powers.append(binomial_tail(needed, k, split) if needed <= k else 0.0)
        return math.fsum(binomial_pmf(k, n, discordant) * powers[k] for k in range(n + 1))

    low, high = 1, 2
    while power(high) < POWER:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power(middle) >= POWER else (middle, high)
    return high


@dataclass(frozen=True, slots=True)
class Line:
    """A method in one row: the expected pairs where B is better, and where the arms are equal."""

    name: str
    better: float
    equal: float


class Row:
    """Two rates, and what each method needs to tell them apart.

    Args:
        rate_a: The rate of A, and of B where the arms are equal.
        rate_b: The rate of a better B.
    """

    def __init__(self, rate_a: float, rate_b: float) -> None:
        self.rates = rate_a, rate_b
        only_a, only_b = discordant_rates(rate_a, rate_b)
        self.split = only_b / (only_a + only_b)
        self._shares = only_a + only_b, sum(discordant_rates(rate_a, rate_a))

    def ask_better(self) -> list[Line]:
        """Return the methods that ask whether B is better, ours first."""
        return [self._plan("better"), self._line("Wald", wald(self.split)), self._fixed()]

    def ask_different(self) -> list[Line]:
        """Return the methods that call a worse B worse, ours first."""
        return [
            self._plan("different"),
            self._line("Wald, both directions", wald(self.split), follow_both),
            self._line("O'Brien–Fleming", group_sequential(self.split, 0.5).stop),
            self._line("Pocock", group_sequential(self.split, 0.0).stop),
            self._fixed(),
        ]

    def _plan(self, question: DesignQuestion) -> Line:
        rate_a, rate_b = self.rates
        design = plan(rate_a, rate_b, question=question)
        better, equal = (
            design.operating_characteristic(share).mean_trials / discordant
            for share, discordant in zip((self.split, 0.5), self._shares, strict=True)
        )
        return Line("ours", better, equal)

    def _line(self, name: str, stop: Stop, go: Callable[[Stop, float], Course] = follow) -> Line:
        better, equal = (
            go(stop, share).mean / discordant
            for share, discordant in zip((self.split, 0.5), self._shares, strict=True)
        )
        return Line(name, better, equal)

    def _fixed(self) -> Line:
        pairs = fixed_pairs(*self.rates)
        return Line("McNemar, fixed", pairs, pairs)


_NOTE = """\
## Pairs that a comparison takes

The expected pairs until two arms on the same inputs are told apart, if B is better / if B is as
good as A, and in brackets how many times ours that is. The errors are 2.5 % for each direction and
the power 80 %, the outcomes of the arms independent given the input. Everything is computed, by
following every path; nothing is simulated. Wald's test has his own bounds, which keep smaller
errors than were asked for (a power of 82 to 83 %). The tests of O'Brien and Fleming and of Pocock
look 5 times, after equally many discordant pairs, with the least constant that keeps the exact
size and the least maximum that has the power. McNemar's exact test has a fixed size.
`python -m bench.comparisons` computes these tables.
"""


def section() -> str:
    """Return the section of the page."""
    rows = [Row(*rates) for rates in ROWS]
    better = _table([(row, row.ask_better()) for row in rows])
    different = _table([(row, row.ask_different()) for row in rows])
    return "\n".join(
        [
            _NOTE,
            "Is B better? A worse B and an equal one get the same answer.\n",
            better,
            "Is B different? A worse B is called worse.\n",
            different,
        ]
    )


def _table(rows: list[tuple[Row, list[Line]]]) -> str:
    names = [line.name for line in rows[0][1]]
    lines = [f"| A to B | {' | '.join(names)} |", f"|---|{'--:|' * len(names)}"]
    for row, (ours, *others) in rows:
        cells = [f"{ours.better:.0f} / {ours.equal:.0f}"]
        cells += [
            f"{one.better:.0f} / {one.equal:.0f} "
            f"({one.better / ours.better:.2f} / {one.equal / ours.equal:.2f})"
            for one in others
        ]
        named = " to ".join(f"{rate:.0%}".replace("%", " %") for rate in row.rates)
        lines.append(f"| {named} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    print(section())
