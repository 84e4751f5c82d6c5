"""pass@k and pass^k over many tasks, with an interval for the population of tasks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, SupportsIndex, TypeAlias

from trialwise.errors import InvalidArgument
from trialwise.stats.binomial import upper_z
from trialwise.stats.bounded_means import bounded_mean_interval
from trialwise.stats.result_types import Interval, Undefined
from trialwise.stats.run_reliability import pass_at_k, pass_hat_k
from trialwise.validation import require_choice, require_count, require_open_rate, require_successes

Metric: TypeAlias = Literal["pass@k", "pass^k"]


Method: TypeAlias = Literal["bounded", "normal"]


METHODS: tuple[Method, ...] = ("bounded", "normal")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskMean:
    """The mean of a per-task metric over tasks, never over pooled trials.

    `interval` is about the mean over the population the tasks were drawn from, not about these
    tasks alone; fewer than two tasks leave it undefined.
    """

    metric: Metric
    k: int
    tasks: tuple[tuple[int, int], ...]
    """(trials, successes) of each task, as given."""
    per_task: tuple[float, ...]
    estimate: float
    interval: Interval | Undefined
    confidence: float
    method: Method


def mean_pass_at_k(
    tasks: Sequence[tuple[SupportsIndex, SupportsIndex]],
    k: SupportsIndex,
    *,
    confidence: float = 0.95,
    method: Method = "bounded",
) -> TaskMean:
    """The mean of the tasks' unbiased pass@k, with an interval for the population of tasks.

    The tasks are the sample: independent draws from a population whose mean pass@k is the
    quantity of interest. Each task's estimate lies in [0, 1] and is unbiased, so the spread
    between tasks already holds the spread within them, and trials are neither pooled nor
    resampled. Tasks that share a template or a document are not independent, and the interval is
    then too short. The task list must not depend on the outcomes.

    Parameters
    ----------
    tasks : sequence of (trials, successes)
        At least one task, each with at least k trials. The numbers of trials may differ.
    k : int
        At least 1.
    confidence : float
        Strictly between 0 and 1.
    method : {"bounded", "normal"}
        "bounded": the means m with kl(estimate, m) ≤ ln(2/α)/tasks, valid at any number of tasks
        and any distribution in [0, 1] (Hoeffding 1963, theorem 1); wide. "normal": estimate ±
        z s/√tasks, cut at 0 and 1; shorter, but its coverage is only asymptotic and falls short
        below a few hundred tasks (Bowyer et al. 2025). Undefined where no two tasks differ,
        since a spread of zero is then no evidence of certainty.

    Examples
    --------
    >>> result = mean_pass_at_k([(5, 5), (5, 0), (5, 3), (5, 1)], 2)
    >>> result.estimate
    0.575
    >>> round(result.interval.low, 3), round(result.interval.high, 3)
    (0.065, 0.976)
    """
    return _task_mean("pass@k", tasks, k, confidence, method)


def mean_pass_hat_k(
    tasks: Sequence[tuple[SupportsIndex, SupportsIndex]],
    k: SupportsIndex,
    *,
    confidence: float = 0.95,
    method: Method = "bounded",
) -> TaskMean:
    """The mean of the tasks' unbiased pass^k, with an interval for the population of tasks.

    Meaning and parameters as in `mean_pass_at_k`. The mean of powers is not the power of the
    mean: one task that always succeeds and one that never does have a mean pass^10 of 0.5, while
    pooling their trials would say 0.001.

    Examples
    --------
    >>> mean_pass_hat_k([(10, 10), (10, 0)], 10).estimate
    0.5
    """
    return _task_mean("pass^k", tasks, k, confidence, method)


def _task_mean(
    metric: Metric,
    tasks: Sequence[tuple[SupportsIndex, SupportsIndex]],
    k: SupportsIndex,
    confidence: float,
    method: Method,
) -> TaskMean:
    size = require_count("k", k, minimum=1)
    counts = _check_tasks(tasks, size)
    level = require_open_rate("confidence", confidence)
    chosen = require_choice("method", method, METHODS)
    estimator = pass_at_k if metric == "pass@k" else pass_hat_k
    per_task = tuple(estimator(n, c, size) for n, c in counts)
    estimate = math.fsum(per_task) / len(per_task)
    return TaskMean(
        metric=metric,
        k=size,
        tasks=counts,
        per_task=per_task,
        estimate=estimate,
        interval=_over_tasks(per_task, estimate, level, chosen),
        confidence=level,
        method=chosen,
    )


def _check_tasks(
    tasks: Sequence[tuple[SupportsIndex, SupportsIndex]], k: int
) -> tuple[tuple[int, int], ...]:
    allowed = "be a sequence of at least one (trials, successes) pair"
    try:
        pairs = [(trials, successes) for trials, successes in tasks]
    except (TypeError, ValueError):
        raise InvalidArgument("tasks", tasks, allowed) from None
    if not pairs:
        raise InvalidArgument("tasks", tasks, allowed)
    counts = []
    for place, (trials, successes) in enumerate(pairs):
        names = (f"tasks[{place}] successes", f"tasks[{place}] trials")
        c, n = require_successes(successes, trials, names=names)
        if k > n:
            raise InvalidArgument("k", k, f"be at most {names[1]} ({n})")
        counts.append((n, c))
    return tuple(counts)


def _over_tasks(
    values: tuple[float, ...], mean: float, confidence: float, method: Method
) -> Interval | Undefined:
    count = len(values)
    if count < 2:
        return Undefined("an interval over tasks needs at least two tasks")
    if method == "bounded":
        found = bounded_mean_interval(mean, count, confidence=confidence)
        method_name = "bounded mean over tasks"
        return Interval(found.low, found.high, confidence=confidence, method=method_name)
    if min(values) == max(values):
        return Undefined("every task has the same estimate, so their spread is not known")
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1))
    half = upper_z((1 - confidence) / 2) * spread / math.sqrt(count)
    return Interval(
        max(0.0, mean - half),
        min(1.0, mean + half),
        confidence=confidence,
        method="normal over tasks",
    )
