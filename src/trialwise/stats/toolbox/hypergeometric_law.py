"""The hypergeometric distribution, for your own questions about a finite corpus."""

from __future__ import annotations

from operator import index
from typing import SupportsIndex

from trialwise.errors import InvalidArgument
from trialwise.stats.finite import fewest_trials, required_successes_of, tail
from trialwise.validation import require_count, require_open_rate


def hypergeometric_tail(
    k: int, *, trials: SupportsIndex, corpus_successes: SupportsIndex, corpus_size: SupportsIndex
) -> float:
    """P(K ≥ k), where K counts the successes among trials drawn without replacement.

    ``P(K = j) = C(M, j) C(N − M, n − j) / C(N, n)``, summed by the ratio of neighbouring terms
    outward from the mode: no factorial is formed and a small tail keeps its relative precision,
    in time proportional to the standard deviation of K.

    Parameters
    ----------
    k : any whole number; the tail is 1 below and 0 above the possible counts.
    trials : n, 0 … corpus_size.
    corpus_successes : M, 0 … corpus_size.
    corpus_size : N, at least 1.

    References
    ----------
    Companion 8.4.6 (partial evaluation of a corpus).

    Examples
    --------
    >>> hypergeometric_tail(2, trials=2, corpus_successes=2, corpus_size=4)  # 1 of C(4, 2)
    0.16666666666666666
    """
    n, M, N = _check_corpus(trials, corpus_successes, corpus_size)
    return tail(_check_whole("k", k), n, M, N)


def hypergeometric_cdf(
    k: int, *, trials: SupportsIndex, corpus_successes: SupportsIndex, corpus_size: SupportsIndex
) -> float:
    """P(K ≤ k), where K counts the successes among trials drawn without replacement.

    At most k successes are at least n − k failures, so this is the upper tail of the failures and
    as precise when it is small.

    Parameters
    ----------
    k : any whole number; the probability is 0 below and 1 above the possible counts.
    trials : n, 0 … corpus_size.
    corpus_successes : M, 0 … corpus_size.
    corpus_size : N, at least 1.

    References
    ----------
    Companion 8.4.6 (partial evaluation of a corpus).

    Examples
    --------
    >>> hypergeometric_cdf(0, trials=2, corpus_successes=2, corpus_size=4)
    0.16666666666666666
    """
    n, M, N = _check_corpus(trials, corpus_successes, corpus_size)
    return tail(n - _check_whole("k", k), n, N - M, N)


def finite_corpus_minimum_trials(
    required_rate: float, corpus_size: SupportsIndex, *, alpha: float = 0.05
) -> int:
    """The fewest trials that can establish a required rate of a corpus, if all of them succeed.

    The smallest n with ``C(M, n) / C(N, n) ≤ α``, where M is one success short of the requirement.
    It never exceeds M + 1: this many successes meet the requirement by themselves.

    Parameters
    ----------
    required_rate : above 0 and at most 1, read as the decimal written.
    corpus_size : N, at least 1.
    alpha : the largest admissible error probability, strictly between 0 and 1.

    References
    ----------
    Companion 8.4.6 (partial evaluation of a corpus).

    Examples
    --------
    >>> finite_corpus_minimum_trials(0.9, 100)  # 29 in an infinite population
    23
    """
    N = require_count("corpus_size", corpus_size, minimum=1)
    enough = required_successes_of(required_rate, N)
    return fewest_trials(enough - 1, N, require_open_rate("alpha", alpha))


def _check_corpus(
    trials: SupportsIndex, corpus_successes: SupportsIndex, corpus_size: SupportsIndex
) -> tuple[int, int, int]:
    N = require_count("corpus_size", corpus_size, minimum=1)
    n = require_count("trials", trials)
    M = require_count("corpus_successes", corpus_successes)
    for argument, value in (("trials", n), ("corpus_successes", M)):
        if value > N:
            raise InvalidArgument(argument, value, f"be at most corpus_size ({N})")
    return n, M, N


def _check_whole(argument: str, value: SupportsIndex) -> int:
    try:
        if not isinstance(value, bool):
            return index(value)
    except TypeError:
        pass
    raise InvalidArgument(argument, value, "be a whole number")
