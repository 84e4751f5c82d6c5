"""A claim about a finite corpus: counts, not a conceptual population (companion 8.4.6).

A module of its own because its unknown is an integer, the number of inputs of the corpus that
would succeed, and because part of a corpus drawn without replacement follows the hypergeometric
law and not the binomial. Every bound here inverts that law exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from trialwise import validation
from trialwise.decimals import as_written, at_most, ceil_product
from trialwise.errors import InvalidArgument
from trialwise.stats.binomial import find_first
from trialwise.stats.rate_intervals import SIDES, Side
from trialwise.stats.result_types import Count, Interval, Undefined


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactCorpusRate:
    """The success rate of a corpus evaluated whole: a known quantity, with no interval."""

    successes: int
    corpus_size: int
    rate: float
    interval: Undefined
    """Always undefined: nothing was left to chance by evaluating every input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FiniteCorpusInterval:
    """What part of a corpus says about the whole corpus, as counts and as rates."""

    successes: int
    rate: float
    """The observed rate, successes / trials; near exhaustion no corpus of this size may have it."""
    sample_fraction: float
    """trials / corpus_size, carried beside every claim about a corpus."""
    low_count: int
    high_count: int
    interval: Interval
    """The two counts over the corpus size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FiniteCorpusCutoff:
    """How many successes in part of a corpus establish a rate of the whole corpus."""

    required_rate: float
    trials: int
    corpus_size: int
    alpha: float
    required_successes: int
    """The smallest number of successes with which the whole corpus meets the rate."""
    sample_fraction: float
    cutoff: int | None
    """The smallest sufficient number of successes; None when not even all trials suffice."""
    size: float | Undefined
    """The exact probability of reaching the cutoff with one corpus success too few."""
    minimum_trials: int
    """The fewest trials for which some cutoff exists."""

    @property
    def reference_rate(self) -> float:
        """The rate that the rule compares with."""
        return self.required_rate


def exact_corpus_rate(successes: Count, corpus_size: Count) -> ExactCorpusRate:
    """The success rate of a corpus of which every input was evaluated: K / N, and no interval.

    A binomial interval would describe sampling that did not take place. Saying more than this
    corpus is a separate superpopulation claim.

    Parameters
    ----------
    successes : 0 … corpus_size.
    corpus_size : the number of inputs, all evaluated once, at least 1.

    References
    ----------
    Companion 8.4.6 (exhaustive evaluation), 1.4.5b (worked example).

    Examples
    --------
    >>> result = exact_corpus_rate(99_990, 100_000)
    >>> result.rate
    0.9999
    >>> result.interval
    Undefined(reason='every input of the corpus was evaluated: its rate is known, not estimated')
    """
    k, N = validation.require_successes(successes, corpus_size, names=("successes", "corpus_size"))
    reason = "every input of the corpus was evaluated: its rate is known, not estimated"
    return ExactCorpusRate(successes=k, corpus_size=N, rate=k / N, interval=Undefined(reason))


def finite_corpus_interval(
    successes: Count,
    trials: Count,
    corpus_size: Count,
    *,
    confidence: float = 0.95,
    side: Side = "two-sided",
) -> FiniteCorpusInterval:
    """The exact confidence interval for a corpus's success rate from a part of the corpus.

    A number of corpus successes M stays in the interval while neither exact test rejects it:
    ``P(K ≥ k | M) > α/2`` and ``P(K ≤ k | M) > α/2`` (α instead of α/2 for one side, with the other
    side at its logical limit). It is the Clopper–Pearson construction with the hypergeometric law:
    coverage is at least `confidence` at every M, the limits respect what was seen (at least k
    successes, at least n − k failures), it shrinks to a point as the corpus is exhausted and tends
    to Clopper–Pearson as the corpus grows.

    Parameters
    ----------
    successes : k, 0 … trials.
    trials : n, distinct inputs drawn at random without replacement, 1 … corpus_size.
    corpus_size : N.
    confidence : strictly between 0 and 1, read as the decimal written.
    side : ``"two-sided"``, or ``"lower"`` or ``"upper"`` for that bound alone.

    References
    ----------
    Companion 8.4.6; Buonaccorsi (1987), American Statistician 41(3), 215–218.

    Examples
    --------
    >>> result = finite_corpus_interval(45, 50, 100)
    >>> result.low_count, result.high_count
    (82, 95)
    >>> result.interval.low, result.sample_fraction
    (0.82, 0.5)
    """
    N = validation.require_count("corpus_size", corpus_size, minimum=1)
    k, n = validation.require_successes(successes, trials)
    _check_part(n, N)
    validation.require_open_rate("confidence", confidence)
    validation.require_choice("side", side, SIDES)
    # Through the decimal, so that it reads back as written: 0.95 leaves 0.025, not an ulp more.
    level = float((1 - as_written(confidence)) / (2 if side == "two-sided" else 1))
    low = k if side == "upper" else _low_count(k, n, N, level)
    high = N - (n - k) if side == "lower" else N - _low_count(n - k, n, N, level)
    return FiniteCorpusInterval(
        successes=k,
        rate=k / n,
        sample_fraction=n / N,
        low_count=low,
        high_count=high,
        interval=Interval(low / N, high / N, confidence=confidence, method="hypergeometric"),
    )


def finite_corpus_cutoff(
    required_rate: float, trials: Count, corpus_size: Count, *, alpha: float = 0.05
) -> FiniteCorpusCutoff:
    """The exact test that a corpus meets a required rate, from a part of the corpus.

    The corpus meets the rate with at least ⌈required_rate · N⌉ successes. The cutoff is the
    smallest k with ``P(K ≥ k | M) ≤ α`` at M one success below that, which is the worst corpus that
    does not meet it. A tail equal to α admits k.

    Parameters
    ----------
    required_rate : above 0 and at most 1, read as the decimal written. Unlike an infinite
        population, a corpus can be shown to succeed throughout.
    trials : n, distinct inputs drawn at random without replacement, 1 … corpus_size.
    corpus_size : N, at least 1.
    alpha : the largest admissible error probability, strictly between 0 and 1.

    References
    ----------
    Companion 8.4.6 (partial evaluation of a corpus).

    Examples
    --------
    >>> plan = finite_corpus_cutoff(0.9, 50, 100)
    >>> plan.cutoff, plan.required_successes, plan.minimum_trials
    (48, 90, 23)
    >>> finite_corpus_cutoff(0.9, 20, 100).cutoff is None
    True
    """
    N = validation.require_count("corpus_size", corpus_size, minimum=1)
    n = _check_part(validation.require_count("trials", trials, minimum=1), N)
    enough = required_successes_of(required_rate, N)
    validation.require_open_rate("alpha", alpha)
    cutoff = _cutoff(n, enough - 1, N, alpha)
    return FiniteCorpusCutoff(
        required_rate=required_rate,
        trials=n,
        corpus_size=N,
        alpha=alpha,
        required_successes=enough,
        sample_fraction=n / N,
        cutoff=cutoff,
        size=(
            Undefined("no number of successes in so few trials establishes the rate")
            if cutoff is None
            else tail(cutoff, n, enough - 1, N)
        ),
        minimum_trials=fewest_trials(enough - 1, N, alpha),
    )


def most_failing_successes(
    required_rate: float, trials: int, corpus_size: int, *, alpha: float = 0.05
) -> int:
    """The most successes in a part that show a corpus below the rate; −1 where none would.

    It is the same test of the failures: one failure more in the corpus than the rate allows.

    Examples
    --------
    >>> most_failing_successes(0.9, 50, 100)
    42
    """
    n = _check_part(trials, corpus_size)
    allowed = corpus_size - required_successes_of(required_rate, corpus_size)
    failures = _cutoff(n, allowed, corpus_size, validation.require_open_rate("alpha", alpha))
    return -1 if failures is None else n - failures


def _check_part(trials: int, corpus_size: int) -> int:
    if trials > corpus_size:
        raise InvalidArgument("trials", trials, f"be at most corpus_size ({corpus_size})")
    return trials


def required_successes_of(required_rate: float, corpus_size: int) -> int:
    """Return the fewest successes with which a corpus meets the rate, which must be above 0."""
    if validation.require_rate("required_rate", required_rate) == 0:
        raise InvalidArgument("required_rate", required_rate, "lie above 0 and be at most 1")
    return ceil_product(required_rate, corpus_size)


def _rejects(k: int, n: int, M: int, N: int, level: float) -> bool:
    """Whether P(K ≥ k | M) ≤ level, by the exact-boundary convention."""
    return at_most(tail(k, n, M, N), level, partial(exact_tail, k, n, M, N))


def _low_count(k: int, n: int, N: int, level: float) -> int:
    """The smallest M whose upper tail at k exceeds the level; the tail grows with M."""
    # At M = N − (n − k) the observed failures are all there are, so the tail is 1.
    return find_first(k - 1, N - (n - k), lambda M: not _rejects(k, n, M, N, level))


def _cutoff(n: int, M: int, N: int, alpha: float) -> int | None:
    k = find_first(-1, n + 1, lambda k: _rejects(k, n, M, N, alpha))
    return k if k <= n else None


def fewest_trials(M: int, N: int, alpha: float) -> int:
    """Return the fewest trials whose success throughout rules out M successes in the corpus."""

    def enough(n: int) -> bool:
        return _rejects(n, n, M, N, alpha)

    # The answer is usually far below M + 1, and a tail costs more the more trials it has.
    high = 1
    while high <= M and not enough(high):
        high *= 2
    return find_first(high // 2, min(high, M + 1), enough)


# --- The hypergeometric law: trials drawn from a finite corpus without replacement ----------------
#
# A module of its own because a distribution is one job and a claim about a corpus another. It is
# written here, and not as log-gammas, because those lose a digit for every tenfold growth of the
# corpus, and a corpus may be large.

#: The package exports the checked forms, from `toolbox.hypergeometric_law`.

#: A further term below this share of its sum no longer moves a double.
_NEGLIGIBLE = 1e-18


def tail(k: int, n: int, M: int, N: int) -> float:
    """P(K ≥ k) without checks: the weight from k on, over the whole weight."""
    lowest, highest = max(0, n - (N - M)), min(n, M)
    if k <= lowest:
        return 1.0
    if k > highest:
        return 0.0
    mode = (n + 1) * (M + 1) // (N + 2)
    below = above = 0.0
    # Upward from the mode, relative to the weight of the mode.
    weight, j = 1.0, mode
    while j <= highest and weight:
        if j < k:
            below += weight
        elif weight > _NEGLIGIBLE * above:
            above += weight
        else:
            break
        weight *= (M - j) * (n - j) / ((j + 1) * (N - M - n + j + 1))
        j += 1
    # Downward from the mode.
    weight, j = 1.0, mode
    while j > lowest and weight:
        weight *= j * (N - M - n + j) / ((M - j + 1) * (n - j + 1))
        j -= 1
        if j >= k:
            above += weight
        elif weight > _NEGLIGIBLE * below:
            below += weight
        else:
            break
    return above / (above + below)


def exact_tail(k: int, n: int, M: int, N: int) -> Fraction:
    """P(K ≥ k) in rationals for 0 ≤ k ≤ n, for the exact-boundary convention."""
    first = max(k, n - (N - M))
    term = math.comb(M, first) * math.comb(N - M, n - first)
    total = 0
    # The next term is a small factor away: no further binomial coefficient is formed.
    for j in range(first, min(n, M) + 1):
        total += term
        term = term * (M - j) * (n - j) // ((j + 1) * (N - M - n + j + 1))
    return Fraction(total, math.comb(N, n))
