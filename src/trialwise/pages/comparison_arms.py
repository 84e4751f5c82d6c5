"""The arms of a comparison beside each other: what differs, how well they did, what they took."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TypeAlias

from trialwise.documents import blocks, numbers
from trialwise.documents.printable import cut_middle
from trialwise.model.evidence import Spending
from trialwise.model.run import LatencyFacts, RunRecord, summarize_latencies
from trialwise.pages.comparison_differences import name_arms, name_columns, tabulate_preferences
from trialwise.pages.suite_totals import write_amounts
from trialwise.procedures.comparing import amount_types, findings
from trialwise.stats.confidence_sequences import anytime_interval
from trialwise.stats.rate_intervals import clopper_pearson
from trialwise.stats.result_types import Interval

#: Criteria whose rates have a column, and characters of a name and of a factor.
_CRITERIA, _NAME, _FACTOR = 4, 80, 60
_HASH = re.compile(r"[0-9a-f]{16,}")


_Write: TypeAlias = Callable[[float], str]
#: How each amount is named and written.
_UNITS: Mapping[str, tuple[str, _Write]] = {
    "latency_s": ("latency", lambda value: numbers.as_seconds(round(float(f"{value:.3g}"), 6))),
    "cost_usd": ("cost", numbers.as_money),
    "tokens": ("tokens", "{:,.0f}".format),
    "score": ("score", numbers.as_score),
}


# --- The arms ---------------------------------------------------------------------------------


def build_arms_section(
    verdict: findings.ComparisonVerdict, arms: Sequence[findings.ArmRun]
) -> blocks.Section:
    """Build what the arms are, how well each did and what each took.

    Args:
        verdict: What was concluded.
        arms: The runs of the arms.
    """
    differing = list_factors(verdict, arms)
    records = {one.label: one.record for one in arms}
    known = {one.criterion for record in records.values() for one in record.plan.criteria}
    # What a judge prefers is a criterion of two arms, and no rate of one.
    criteria = [name for name in verdict.criteria if name in known]
    columns: list[blocks.Column[findings.ComparedArm]] = [("arm", partial(_name_arm, verdict))]
    columns += [
        (cut_middle(key, _FACTOR), partial(_write_factor, values))
        for key, values in differing.items()
    ]
    columns += [
        (blocks.Name(cut_middle(name, _NAME)), partial(_write_rate, name, verdict, records))
        for name in criteria[:_CRITERIA]
    ]
    words = tuple(range(1 + len(differing)))
    columns.append(("trials", lambda one: f"{len(records[one.label].trials):,}"))
    if any(_count_unmeasured(one) for one in records.values()):
        columns.append(("not measured", lambda one: _write_unmeasured(records[one.label])))
    columns += _list_spending(verdict, records)
    # More columns than these do not fit on a page that is printed.
    left = len(criteria) - _CRITERIA
    further = numbers.as_count(left, "further criterion", "further criteria")
    notes = [*([f"{further} not shown."] if left > 0 else []), _describe_intervals(verdict)]
    if not differing:
        notes.append("The runs name no factor or condition in which the arms differ.")
    table = blocks.build_table(
        "Arms", verdict.arms, *columns, words=words, is_headed=False, notes=tuple(notes)
    )
    tables = (table, tabulate_preferences(verdict), tabulate_amounts(verdict))
    parts: list[blocks.Block] = [one for one in tables if one is not None]
    found = tuple(list_amount_notes(verdict))
    parts += blocks.fold_notes("Successes, scores and steadiness", found)
    return blocks.Section(
        heading="Arms",
        blocks=tuple(parts),
        note="What each arm is, how often it passed, and what it took. Setup is kept apart.",
    )


def list_factors(
    verdict: findings.ComparisonVerdict, arms: Sequence[findings.ArmRun]
) -> dict[str, Mapping[str, str]]:
    """List the factors and conditions in which the arms differ, with the value of each arm.

    Args:
        verdict: What was concluded.
        arms: The runs of the arms, whose plans name their conditions.
    """
    given = {one.label: one.record.plan.covariates for one in arms}
    known = {arm.label: {**given[arm.label], **arm.factors} for arm in verdict.arms}
    values = {
        key: {label: _shorten_factor(mine.get(key, "–")) for label, mine in known.items()}
        for key in dict.fromkeys(chain.from_iterable(known.values()))
    }
    # What all arms share explains no difference between them.
    return {key: mine for key, mine in values.items() if len(set(mine.values())) > 1}


def _shorten_factor(value: str) -> str:
    """Shorten what a factor is: of a hash, such as a prompt's, the beginning is enough."""
    # Eight digits tell two prompts apart; all of them would hide the other columns.
    return f"{value[:8]}…" if _HASH.fullmatch(value) else cut_middle(value, _FACTOR)


def _write_factor(values: Mapping[str, str], arm: findings.ComparedArm) -> blocks.Cell:
    return blocks.Name(values[arm.label])


def _name_arm(verdict: findings.ComparisonVerdict, arm: findings.ComparedArm) -> blocks.Cell:
    label = blocks.Name(cut_middle(arm.label, _NAME))
    return (label, " (control)") if arm is verdict.control else label


def _write_rate(
    criterion: str,
    verdict: findings.ComparisonVerdict,
    records: Mapping[str, RunRecord],
    arm: findings.ComparedArm,
) -> blocks.Cell:
    decided = records[arm.label].verdict.findings
    found = next((one for one in decided if one.criterion == criterion), None)
    tally = None if found is None else found.all_trials
    if tally is None or tally.rate is None:
        return "–"
    # Counts at which a run stopped because of them need an interval that allows it.
    bound = clopper_pearson if _is_fixed(verdict) else anytime_interval
    interval = bound(tally.passed, tally.trials, confidence=verdict.question.confidence)
    return blocks.Value(text=numbers.as_observed(tally.rate), note=numbers.as_ends(interval))


def _is_fixed(verdict: findings.ComparisonVerdict) -> bool:
    """Return whether no outcome had a say in the number of trials of any arm."""
    return all(one.fixed_size for one in verdict.pairings)


def _describe_intervals(verdict: findings.ComparisonVerdict) -> str:
    level = numbers.as_percent(verdict.question.confidence)
    whose = f"Intervals are for the rate of one arm and criterion alone, at {level}:"
    if _is_fixed(verdict):
        return f"{whose} Clopper and Pearson's, which are exact."
    return f"{whose} they hold whenever the trials stopped, and are wide for that."


def _count_unmeasured(record: RunRecord) -> int:
    return sum(trial.is_excused for trial in record.trials.sketches())


def _write_unmeasured(record: RunRecord) -> str:
    # A share tells a service that is often away from one hiccup in a long run.
    found = _count_unmeasured(record)
    share = f" ({numbers.as_observed(found / len(record.trials))})" if found else ""
    return f"{found:,}{share}"


def _list_spending(
    verdict: findings.ComparisonVerdict, records: Mapping[str, RunRecord]
) -> Iterator[blocks.Column[findings.ComparedArm]]:
    """Yield what the trials cost, for each trial and each success, and what preparing them took."""
    if any(one.spending.usd is not None for one in verdict.arms):
        passed = {label: len(one.trials) - one.trials.failures for label, one in records.items()}
        yield "cost of\na trial", lambda one: _divide_usd(one.spending.usd, one.spending.trials)
        yield "cost of\na success", lambda one: _divide_usd(one.spending.usd, passed[one.label])
    # Of successes: a refusal is quick, and would flatter the arm that refuses.
    latencies = {label: summarize_latencies(one) for label, one in records.items()}
    if any(latencies.values()):
        yield "latency of\na success", lambda one: _write_latency(latencies[one.label])
    if any(one.spending.tokens for one in verdict.arms):
        yield "tokens of\na trial", lambda one: _divide_tokens(one.spending)
    if any(map(_write_setup, verdict.arms)):
        yield "setup", lambda one: _write_setup(one) or "–"


def _write_latency(found: LatencyFacts | None) -> str:
    return "–" if found is None else _write_amount("latency_s", found.mean_s)


def _divide_tokens(spent: Spending) -> str:
    return f"{spent.tokens / spent.trials:,.0f}" if spent.trials else "–"


def _divide_usd(usd: float | None, count: int) -> str:
    return "–" if usd is None or not count else numbers.as_money(usd / count)


def list_setup(verdict: findings.ComparisonVerdict) -> Iterator[str]:
    """Describe what preparing the trials of each arm took, which is not part of the amounts."""
    for arm in verdict.arms:
        if took := _write_setup(arm):
            yield f"setup of {cut_middle(arm.label, _NAME)}, kept apart: {took}"


def _write_setup(arm: findings.ComparedArm) -> str:
    spent = arm.spending
    return write_amounts(spent.setup_s, spent.setup_tokens, spent.setup_usd or None)


# --- What trials took -------------------------------------------------------------------------


def tabulate_amounts(verdict: findings.ComparisonVerdict) -> blocks.Table | None:
    """Tabulate what trials took under both arms, pair by pair; None where no trial says.

    Args:
        verdict: What was concluded.
    """
    if not verdict.amounts:
        return None
    several = len(verdict.arms) > 2
    names = name_columns(verdict)
    samplings = len({one.experiment for one in verdict.amounts}) > 1
    order = list(dict.fromkeys(map(_name_amount, verdict.amounts)))
    bases = dict.fromkeys(f"{_name_amount(one)}: {one.basis}" for one in verdict.amounts)
    return blocks.build_table(
        "What trials took",
        sorted(verdict.amounts, key=lambda one: order.index(_name_amount(one))),
        ("mean of", lambda one: _name_row(one, samplings)),
        *([("arm", lambda one: blocks.Name(name_arms(one, verdict)))] if several else []),
        (names[0], lambda one: _write_amount(one.name, one.control_mean)),
        (names[1], lambda one: _write_amount(one.name, one.candidate_mean)),
        ("typical difference", _write_change),
        ("pairs", lambda one: f"{one.pairs:,}"),
        words=(0, 1) if several else (0,),
        notes=(f"Described, not decided. Which pairs are counted: {'; '.join(bases)}.",),
    )


def _name_amount(amount: amount_types.AmountDifference) -> str:
    of = f" of {cut_middle(amount.criterion, _NAME)}" if amount.criterion else ""
    return f"{_UNITS[amount.name][0]}{of}"


def _write_amount(name: str, value: float) -> str:
    return _UNITS[name][1](value)


def _name_row(amount: amount_types.AmountDifference, samplings: bool) -> str:
    where = f", {cut_middle(amount.experiment, _NAME)}" if samplings else ""
    return f"{_name_amount(amount)}{where}"


def _write_change(amount: amount_types.AmountDifference) -> blocks.Cell:
    """Write the difference within pairs; one that its interval tells from 0 has a colour."""
    sign = partial(_sign, write=_UNITS[amount.name][1])
    text = f"{sign(amount.difference)}{_write_interval(amount.interval, sign)}"
    # A colour where 0 is not ruled out would be read as a finding.
    if amount.interval is None or 0 in amount.interval:
        return text
    # More is worse, except of a score.
    good = (amount.interval.low > 0) is (amount.name == "score")
    return blocks.Value(text=text, tone="pass" if good else "fail")


# --- What is found beside the pass rate of arms, in sentences: successes, scores, steadiness ------

_write_score: _Write = "{:.3f}".format
_SPREADS: dict[str, tuple[str, _Write]] = {
    "latency_s": ("latency", numbers.as_seconds),
    "score": ("score", _write_score),
}


def list_amount_notes(verdict: findings.ComparisonVerdict) -> Iterator[str]:
    """Yield what a success costs, how scores changed and how steady each arm is.

    Args:
        verdict: What was concluded.
    """
    yield from map(_describe_preference, verdict.preferences)
    # The cost of one arm alone compares nothing: the other does not say what its trials cost.
    if len(verdict.costs) > 1:
        yield f"cost of a success: {'; '.join(map(_describe_cost, verdict.costs))}"
    yield from map(_describe_ratio, verdict.cost_ratios)
    yield from (_describe_lift(one, several=len(verdict.arms) > 2) for one in verdict.scores)
    # Arms that are steady on every input need no sentence for each criterion.
    flaky = (one for one in verdict.flakiness if one.control or one.candidate)
    yield from map(_describe_flakiness, flaky)
    yield from map(_describe_spread, verdict.spreads)


def _describe_preference(found: amount_types.PreferenceFinding) -> str:
    pairs = found.wins + found.losses + found.ties
    text = (
        f"{found.criterion}: the judge prefers {found.arm} to {found.against} in {found.wins:,} of "
        f"{numbers.as_count(pairs, 'pair')}, the other in {found.losses:,}, neither in "
        f"{found.ties:,}"
    )
    if found.rate is not None:
        text += f"; win rate {numbers.as_observed(found.rate)}{_write_share(found.interval)}"
    if found.corrected_rate is not None:
        text += (
            f"; corrected for its errors on {numbers.as_count(found.labels, 'labelled pair')}, "
            f"people would prefer {found.arm} in {numbers.as_observed(found.corrected_rate)}"
            f"{_write_share(found.corrected_interval)} of the decided pairs"
        )
    spent = f" (the judge cost {numbers.as_money(found.usd)})" if found.usd else ""
    missing = f"; {found.missing:,} without an answer" if found.missing else ""
    return f"{text}{missing}{spent}"


def _write_share(interval: Interval | None) -> str:
    return _write_interval(interval, lambda end: f"{100 * end:.1f}")


def _describe_cost(cost: amount_types.ArmCost) -> str:
    each = "no success" if cost.usd_per_success is None else numbers.as_money(cost.usd_per_success)
    trials = numbers.as_count(cost.trials, "trial")
    text = f"{each} with {cost.arm} ({cost.successes:,} of {trials} passed)"
    return f"{text}, setup {numbers.as_money(cost.setup_usd)} apart" if cost.setup_usd else text


def _describe_ratio(ratio: amount_types.CostRatio) -> str:
    write: _Write = "{:.3g} times".format
    text = f"a success costs {write(ratio.ratio)} as much with {ratio.arm} as with {ratio.against}"
    if ratio.interval is None:
        return text
    return f"{text}{_write_interval(ratio.interval, write)} (approximate, by a jackknife)"


def _describe_lift(lift: amount_types.ScoreLift, *, several: bool) -> str:
    arms = f" of {lift.arm} against {lift.against}" if several else ""
    sign = partial(_sign, write=_write_score)
    text = (
        f"score of {lift.criterion}{arms}: mean {numbers.as_score(lift.control)} -> "
        f"{numbers.as_score(lift.candidate)}, lift {sign(lift.difference)}"
        f"{_write_interval(lift.interval, sign)} for every distribution of scores"
    )
    if lift.flip_interval is not None:
        text += f",{_write_interval(lift.flip_interval, sign)} by flipping signs"
    return f"{text}, {numbers.as_count(lift.pairs, 'pair')}"


def _describe_flakiness(flaky: amount_types.FlakinessDifference) -> str:
    return (
        f"inputs that both passed and failed {flaky.criterion}: {flaky.control:,} with "
        f"{flaky.against} and {flaky.candidate:,} with {flaky.arm}, of "
        f"{numbers.as_count(flaky.inputs, 'repeated input')} (p = {flaky.p_value:.3g})"
    )


def _describe_spread(spread: amount_types.SpreadDifference) -> str:
    name, write = _SPREADS[spread.name]
    sign = partial(_sign, write=write)
    of = f" of {spread.criterion}" if spread.criterion else ""
    return (
        f"two repeats of an input differ in {name}{of} by {write(spread.control)} with "
        f"{spread.against} and {write(spread.candidate)} with {spread.arm} on average, "
        f"difference {sign(spread.difference)}{_write_interval(spread.interval, sign)} "
        f"(p = {spread.p_value:.3g}, {numbers.as_count(spread.repeats, 'pair')} of repeats)"
    )


def _write_interval(interval: Interval | None, write: _Write) -> str:
    return "" if interval is None else f" [{', '.join(map(write, interval))}]"


def _sign(value: float, write: _Write) -> str:
    """Write an amount with its sign; what is written as 0 has none."""
    text, sign = write(abs(value)), "+" if value > 0 else "−"
    return text if text == write(0.0) else f"{sign}{text}"
