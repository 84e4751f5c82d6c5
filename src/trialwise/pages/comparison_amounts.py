"""What is found beside the pass rate of arms, in sentences: successes, scores, steadiness."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from trialwise.documents.numbers import as_count, as_money, as_observed, as_score, as_seconds
from trialwise.procedures.comparing.findings import (
    ArmCost,
    ComparisonVerdict,
    CostRatio,
    FlakinessDifference,
    PreferenceFinding,
    ScoreLift,
    SpreadDifference,
)
from trialwise.stats.result_types import Interval

_SPREADS: dict[str, tuple[str, Callable[[float], str]]] = {
    "latency_s": ("latency", as_seconds),
    "score": ("score", "{:.3f}".format),
}


def list_amount_notes(verdict: ComparisonVerdict) -> Iterator[str]:
    """Yield what a success costs, how scores changed and how steady each arm is.

    Args:
        verdict: What was concluded.
    """
    several = len(verdict.arms) > 2
    for preferred in verdict.preferences:
        yield _describe_preference(preferred)
    if len(verdict.costs) > 1:
        yield f"cost of a success: {'; '.join(map(_describe_cost, verdict.costs))}"
    for ratio in verdict.cost_ratios:
        yield _describe_ratio(ratio)
    for lift in verdict.scores:
        yield _describe_lift(lift, several=several)
    for flaky in verdict.flakiness:
        if flaky.control or flaky.candidate:
            yield _describe_flakiness(flaky)
    for spread in verdict.spreads:
        yield _describe_spread(spread)


def _describe_preference(found: PreferenceFinding) -> str:
    pairs = found.wins + found.losses + found.ties
    text = (
        f"{found.criterion}: the judge prefers {found.arm} to {found.against} in {found.wins:,} of "
        f"{as_count(pairs, 'pair')}, the other in {found.losses:,}, neither in {found.ties:,}"
    )
    if found.rate is not None:
        text += f"; win rate {as_observed(found.rate)}{_write_share(found.interval)}"
    if found.corrected_rate is not None:
        text += (
            f"; corrected for its errors on {as_count(found.labels, 'labelled pair')}, people "
            f"would prefer {found.arm} in {as_observed(found.corrected_rate)}"
            f"{_write_share(found.corrected_interval)} of the decided pairs"
        )
    spent = f" (the judge cost {as_money(found.usd)})" if found.usd else ""
    missing = f"; {found.missing:,} without an answer" if found.missing else ""
    return f"{text}{missing}{spent}"


def _write_share(interval: Interval | None) -> str:
    if interval is None:
        return ""
    low, high = interval
    return f" [{100 * low:.1f}, {100 * high:.1f}]"


def _describe_cost(cost: ArmCost) -> str:
    each = "no success" if cost.usd_per_success is None else as_money(cost.usd_per_success)
    text = f"{each} with {cost.arm} ({cost.successes:,} of {as_count(cost.trials, 'trial')} passed)"
    return f"{text}, setup {as_money(cost.setup_usd)} apart" if cost.setup_usd else text


def _describe_ratio(ratio: CostRatio) -> str:
    text = (
        f"a success costs {_write_times(ratio.ratio)} as much with {ratio.arm} as with "
        f"{ratio.against}"
    )
    if ratio.interval is None:
        return text
    low, high = map(_write_times, ratio.interval)
    return f"{text} [{low}, {high}] (approximate, by a jackknife)"


def _write_score(value: float) -> str:
    return f"{value:.3f}"


def _write_times(ratio: float) -> str:
    return f"{ratio:.3g} times"


def _describe_lift(lift: ScoreLift, *, several: bool) -> str:
    arms = f" of {lift.arm} against {lift.against}" if several else ""
    text = (
        f"score of {lift.criterion}{arms}: mean {as_score(lift.control)} -> "
        f"{as_score(lift.candidate)}, lift {_sign(lift.difference, _write_score)}"
        f"{_write_interval(lift.interval, _write_score)} for every distribution of scores"
    )
    if lift.flip_interval is not None:
        text += f",{_write_interval(lift.flip_interval, _write_score)} by flipping signs"
    return f"{text}, {as_count(lift.pairs, 'pair')}"


def _describe_flakiness(flaky: FlakinessDifference) -> str:
    return (
        f"inputs that both passed and failed {flaky.criterion}: {flaky.control:,} with "
        f"{flaky.against} and {flaky.candidate:,} with {flaky.arm}, of "
        f"{as_count(flaky.inputs, 'repeated input')} (p = {flaky.p_value:.3g})"
    )


def _describe_spread(spread: SpreadDifference) -> str:
    name, write = _SPREADS[spread.name]
    of = f" of {spread.criterion}" if spread.criterion else ""
    return (
        f"two repeats of an input differ in {name}{of} by {write(spread.control)} with "
        f"{spread.against} and {write(spread.candidate)} with {spread.arm} on average, "
        f"difference {_sign(spread.difference, write)}{_write_interval(spread.interval, write)} "
        f"(p = {spread.p_value:.3g}, {as_count(spread.repeats, 'pair')} of repeats)"
    )


def _write_interval(interval: Interval | None, write: Callable[[float], str]) -> str:
    if interval is None:
        return ""
    low, high = (_sign(end, write) for end in interval)
    return f" [{low}, {high}]"


def _sign(value: float, write: Callable[[float], str]) -> str:
    sign = "+" if value > 0 else "−"
    return f"{sign}{write(abs(value))}" if value else write(0.0)
