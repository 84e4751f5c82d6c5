"""How many trials a choice between arms takes: `python -m bench.choosing [runs]`.

Beside it stands the smallest design of equal numbers, which tries all arms equally often and names
the highest rate: its size is exact, for these very rates, which nobody knows beforehand.
"""

from __future__ import annotations

import math
import sys

from trialwise.stats import binomial_cdf, binomial_pmf, forecast_choice

DIFFERENCE = 0.1
#: The rates, the most trials that other methods with a zone need, and the share of all runs that
#: is simulated: long choices take long to simulate.
CASES = (
    ((0.9, 0.8), 74, 1.0),
    ((0.9, *[0.8] * 4), 321, 0.5),
    ((0.9, *[0.8] * 9), 707, 0.15),
    ((0.8,) * 5, 531, 0.25),
)


def find_equal_number(arms: int, best: float, other: float, confidence: float = 0.95) -> int:
    """Find the fewest trials of all arms together that name the best arm so often.

    >>> find_equal_number(2, 0.9, 0.8)
    136
    """
    n = 1
    while _chance_of_best(arms, n, best, other) < confidence:
        n += 1
    return arms * n


def _chance_of_best(arms: int, n: int, best: float, other: float) -> float:
    """Compute the exact chance that the best arm has the highest count; a tie is broken by lot."""
    total = 0.0
    for x in range(n + 1):
        same, below = binomial_pmf(x, n, other), binomial_cdf(x - 1, n, other) if x else 0.0
        wins = math.fsum(
            math.comb(arms - 1, tied) * same**tied * below ** (arms - 1 - tied) / (tied + 1)
            for tied in range(arms)
        )
        total += binomial_pmf(x, n, best) * wins
    return total


def main() -> None:
    """Print a line for each case and way to choose."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    print("| arms | equal numbers | way | trials | best chosen | another | tied |")
    print("|---|--:|---|--:|--:|--:|--:|")
    for rates, _, share in CASES:
        best, other = rates[0], rates[1]
        equal = "" if best == other else f"{find_equal_number(len(rates), best, other):,}"
        name = (
            f"{len(rates)} at {other:.0%}" if best == other else f"{best:.0%}, others {other:.0%}"
        )
        for break_ties in (False, True):
            found = forecast_choice(
                rates,
                smallest_difference=DIFFERENCE,
                break_ties=break_ties,
                max_rounds=5000,
                runs=max(10, round(share * runs)),
                seed=20,
            )
            way = "choose --break-ties" if break_ties else "choose"
            print(
                f"| {len(rates)}: {name} | {equal} | `{way}` "
                f"| {found.mean_trials:,.0f} ± {found.trials_error:.0f} | {found.chosen[0]:.1%} "
                f"| {sum(found.chosen[1:]):.1%} | {found.tied:.1%} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
