"""Numbers beside a verdict: the counts of every input, pass@k and pass^k, and repeated trials.

They describe all outcomes of a file and decide nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trialwise.model.metrics import PassK
from trialwise.model.trial import ErrorClass
from trialwise.outcomes.outcome_rows import OutcomeRow
from trialwise.outcomes.outcome_trials import Experiment, Order
from trialwise.procedures.metrics import Intervals, Reach, usual_ks
from trialwise.stats.latency_percentiles import LatencySummary, latency_summary
from trialwise.stats.rate_intervals import clopper_pearson, wilson_interval
from trialwise.stats.result_types import Interval, Rule, Undefined
from trialwise.stats.run_reliability import ReliabilitySummary, summarize
from trialwise.validation import require_count

__all__ = ["CriterionMetrics", "InputMetrics", "Metrics", "PassK", "metrics_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InputMetrics:
    """The trials of one input."""

    input_id: str
    trials: int
    passed: int
    rate: float
    interval: Interval
    """A two-sided interval for the rate of this input."""
    flaky: bool
    """Whether it both passed and failed."""
    errors: Mapping[str, int] = field(default_factory=dict)
    reliability: ReliabilitySummary | Undefined
    """Numbers from the order of its passes and failures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionMetrics:
    """One criterion over all inputs."""

    criterion: str
    trials: int
    passed: int
    rate: float
    inputs: tuple[InputMetrics, ...]
    pass_k: tuple[PassK, ...]
    latency: LatencySummary | Undefined
    """The latencies of the trials that passed."""

    @property
    def flaky(self) -> tuple[str, ...]:
        """The inputs that both passed and failed."""
        return tuple(one.input_id for one in self.inputs if one.flaky)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """The metrics of every criterion."""

    criteria: tuple[CriterionMetrics, ...]
    confidence: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; an undefined number is replaced by its reason."""
        from trialwise.model.codec import to_plain

        plain: dict[str, Any] = to_plain(self)
        return plain


def metrics_of(
    experiments: Sequence[Experiment],
    *,
    ks: Sequence[int] | None = None,
    confidence: float = 0.95,
    rule: Rule = "exact",
    order: Order = Order.UNKNOWN,
) -> Metrics:
    """Compute the metrics of experiments.

    Args:
        experiments: In the order of inputs, as far as it is known.
        ks: For pass@k and pass^k; by default powers of two, up to the fewest trials of an input.
        confidence: The confidence of every interval.
        rule: Whether the interval of an input is Wilson's or exact.
        order: What is known of the order.
    """
    asked = None if ks is None else [require_count("k", k, minimum=1) for k in ks]
    criteria = []
    for experiment in experiments:
        for place, criterion in enumerate(experiment.criteria):
            rows = [trial.rows[place] for trial in experiment.trials]
            by_input: dict[str, list[OutcomeRow]] = {name: [] for name in experiment.inputs}
            for row in rows:
                by_input[row.input_id].append(row)
            inputs = [_input(name, by_input[name], confidence, rule, order) for name in by_input]
            criteria.append(_criterion(criterion, rows, inputs, asked, confidence))
    return Metrics(criteria=tuple(criteria), confidence=confidence)


def _criterion(
    name: str,
    rows: Sequence[OutcomeRow],
    inputs: Sequence[InputMetrics],
    ks: Sequence[int] | None,
    confidence: float,
) -> CriterionMetrics:
    passed = sum(row.passed for row in rows)
    latencies = [row.latency_s for row in rows if row.passed and row.latency_s is not None]
    tasks = [(one.trials, one.passed) for one in inputs]
    fewest = min(one.trials for one in inputs)
    return CriterionMetrics(
        criterion=name,
        trials=len(rows),
        passed=passed,
        rate=passed / len(rows),
        inputs=tuple(inputs),
        # A file does not say how its inputs were chosen, so they count as a sample.
        pass_k=tuple(
            Intervals(Reach.POPULATION, confidence).pass_k(tasks, k) for k in ks or usual_ks(fewest)
        ),
        latency=latency_summary(latencies)
        if latencies
        else Undefined("no trial that passed has a latency"),
    )


def _input(
    name: str, rows: Sequence[OutcomeRow], confidence: float, rule: Rule, order: Order
) -> InputMetrics:
    trials, passed = len(rows), sum(row.passed for row in rows)
    make = wilson_interval if rule == "wilson" else clopper_pearson
    errors = Counter(str(row.error_class) for row in rows if row.error_class != ErrorClass.NONE)
    reliability: ReliabilitySummary | Undefined
    if trials == 1:
        reliability = Undefined("one trial shows nothing of repetition")
    elif order is Order.UNKNOWN:
        reliability = Undefined("the order of the trials is not known")
    else:
        reliability = summarize([row.passed for row in rows])
    return InputMetrics(
        input_id=name,
        trials=trials,
        passed=passed,
        rate=passed / trials,
        interval=make(passed, trials, confidence=confidence),
        flaky=0 < passed < trials,
        errors=errors,
        reliability=reliability,
    )
