"""The arms of a comparison beside each other: what differs, how well they did, what they took."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from trialwise.documents.blocks import (
    Block,
    Cell,
    Column,
    Details,
    Items,
    Name,
    Section,
    Table,
    Value,
    build_table,
)
from trialwise.documents.numbers import (
    as_count,
    as_ends,
    as_money,
    as_observed,
    as_percent,
    as_score,
    as_seconds,
)
from trialwise.documents.printable import cut_middle
from trialwise.model.evidence import Spending
from trialwise.model.run import LatencyFacts, RunRecord, summarize_latencies
from trialwise.pages.comparison_amounts import list_amount_notes
from trialwise.pages.comparison_differences import name_arms, name_columns
from trialwise.pages.comparison_preferences import tabulate_preferences
from trialwise.pages.suite_totals import write_amounts
from trialwise.procedures.comparing.findings import (
    AmountDifference,
    ArmRun,
    ComparedArm,
    ComparisonVerdict,
)
from trialwise.stats.confidence_sequences import anytime_interval
from trialwise.stats.rate_intervals import clopper_pearson

#: Criteria whose rates have a column, and characters of a name and of a factor.
_CRITERIA, _NAME, _FACTOR = 4, 80, 60
_HASH = re.compile(r"[0-9a-f]{16,}")


class Unit(NamedTuple):
    """How an amount is named and written."""

    name: str
    write: Callable[[float], str]
    more_is_better: bool = False


_UNITS: Mapping[str, Unit] = {
    "latency_s": Unit("latency", lambda value: as_seconds(round(float(f"{value:.3g}"), 6))),
    "cost_usd": Unit("cost", as_money),
    "tokens": Unit("tokens", lambda value: f"{value:,.0f}"),
    "score": Unit("score", as_score, more_is_better=True),
}


def find_unit(amount: str) -> Unit:
    """Find how an amount is written; one that is not known is a plain number."""
    return _UNITS.get(amount) or Unit(amount.replace("_", " "), lambda value: f"{value:,.4g}")


# --- The arms ---------------------------------------------------------------------------------


def build_arms_section(verdict: ComparisonVerdict, arms: Sequence[ArmRun]) -> Section:
    """Build what the arms are, how well each did and what each took.

    Args:
        verdict: What was concluded.
        arms: The runs of the arms, where they are known.
    """
    differing = list_factors(verdict, arms)
    records = {one.label: one.record for one in arms}
    known = {one.criterion for record in records.values() for one in record.plan.criteria}
    # What a judge prefers is a criterion of two arms, and no rate of one.
    criteria = [
        name for name in dict.fromkeys(one.criterion for one in verdict.findings) if name in known
    ]
    columns: list[Column[ComparedArm]] = [
        ("arm", lambda one: _name_arm(one, verdict)),
        *((cut_middle(key, _FACTOR), _read_factor(values)) for key, values in differing.items()),
    ]
    if records:
        columns += [
            (Name(cut_middle(name, _NAME)), _read_rate(name, verdict, records))
            for name in criteria[:_CRITERIA]
        ]
    words = (0, *range(1, 1 + len(differing)))
    columns.append(("trials", lambda one: _count_trials(one, records)))
    if any(_count_unmeasured(one) for one in records.values()):
        columns.append(("not measured", lambda one: _write_unmeasured(records.get(one.label))))
    columns += _list_spending(verdict, records)
    left = len(criteria) - _CRITERIA
    notes = [f"{as_count(left, 'further criterion', 'further criteria')} not shown."] * (left > 0)
    notes += [_describe_intervals(verdict)] * bool(records)
    notes += list(_list_alike(verdict, arms))
    table = build_table(
        "Arms", verdict.arms, *columns, words=words, is_headed=False, notes=tuple(notes)
    )
    amounts = tabulate_amounts(verdict)
    notes = list(list_amount_notes(verdict))
    further = (tabulate_preferences(verdict), amounts)
    blocks: list[Block] = [table, *(one for one in further if one is not None)]
    if notes:
        summary = "Successes, scores and steadiness"
        blocks.append(
            Details(summary=summary, blocks=(Items(items=tuple(notes)),), is_printed=True)
        )
    return Section(
        heading="Arms",
        blocks=tuple(blocks),
        note="What each arm is, how often it passed, and what it took. Setup is kept apart.",
    )


def list_factors(
    verdict: ComparisonVerdict, arms: Sequence[ArmRun]
) -> dict[str, Mapping[str, str]]:
    """List the factors and conditions in which the arms differ, with the value of each arm.

    Args:
        verdict: What was concluded.
        arms: The runs of the arms, whose plans name their conditions.
    """
    plans = {one.label: one.record.plan for one in arms}
    known = {
        arm.label: {
            **(plans[arm.label].covariates if arm.label in plans else {}),
            **arm.factors,
        }
        for arm in verdict.arms
    }
    keys = dict.fromkeys(key for values in known.values() for key in values)
    values = {
        key: {label: _shorten_factor(mine.get(key, "–")) for label, mine in known.items()}
        for key in keys
    }
    return {key: mine for key, mine in values.items() if len(set(mine.values())) > 1}


def _shorten_factor(value: str) -> str:
    """Shorten what a factor is: of a hash, such as a prompt's, the beginning is enough."""
    return f"{value[:8]}…" if _HASH.fullmatch(value) else cut_middle(value, _FACTOR)


def _read_factor(values: Mapping[str, str]) -> Callable[[ComparedArm], Cell]:
    return lambda one: Name(values[one.label])


def _list_alike(verdict: ComparisonVerdict, arms: Sequence[ArmRun]) -> Iterator[str]:
    if len(arms) == len(verdict.arms) and not list_factors(verdict, arms):
        yield "The runs name no factor or condition in which the arms differ."


def _name_arm(arm: ComparedArm, verdict: ComparisonVerdict) -> Cell:
    label = Name(cut_middle(arm.label, _NAME))
    return (label, " (control)") if arm is verdict.control else label


def _read_rate(
    criterion: str, verdict: ComparisonVerdict, records: Mapping[str, RunRecord]
) -> Callable[[ComparedArm], Cell]:
    def read(arm: ComparedArm) -> Cell:
        record = records.get(arm.label)
        findings = () if record is None else record.verdict.findings
        found = next((one for one in findings if one.criterion == criterion), None)
        tally = None if found is None else found.all_trials
        if tally is None or tally.rate is None:
            return "–"
        # Counts at which a run stopped because of them need an interval that allows it.
        bound = clopper_pearson if _is_fixed(verdict) else anytime_interval
        interval = bound(tally.passed, tally.trials, confidence=verdict.question.confidence)
        return Value(text=as_observed(tally.rate), note=as_ends(interval))

    return read


def _is_fixed(verdict: ComparisonVerdict) -> bool:
    """Return whether no outcome had a say in the number of trials of any arm."""
    return all(one.fixed_size for one in verdict.pairings)


def _describe_intervals(verdict: ComparisonVerdict) -> str:
    level = as_percent(verdict.question.confidence)
    whose = f"Intervals are for the rate of one arm and criterion alone, at {level}:"
    if _is_fixed(verdict):
        return f"{whose} Clopper and Pearson's, which are exact."
    return f"{whose} they hold whenever the trials stopped, and are wide for that."


def _count_trials(arm: ComparedArm, records: Mapping[str, RunRecord]) -> str:
    record = records.get(arm.label)
    return f"{arm.spending.trials if record is None else len(record.trials):,}"


def _count_unmeasured(record: RunRecord) -> int:
    return sum(trial.is_excused for trial in record.trials.sketches())


def _write_unmeasured(record: RunRecord | None) -> str:
    if record is None:
        return "–"
    found = _count_unmeasured(record)
    share = f" ({as_observed(found / len(record.trials))})" if found else ""
    return f"{found:,}{share}"


def _list_spending(
    verdict: ComparisonVerdict, records: Mapping[str, RunRecord]
) -> Iterator[Column[ComparedArm]]:
    """Yield what the trials cost, for each trial and each success, and what preparing them took."""
    if any(one.spending.usd is not None for one in verdict.arms):
        yield (
            "cost of\na trial",
            lambda one: _divide_usd(one.spending.usd, one.spending.trials),
        )
        if records:
            yield (
                "cost of\na success",
                lambda one: _divide_usd(one.spending.usd, _count_successes(records[one.label])),
            )
    latencies = {label: summarize_latencies(one) for label, one in records.items()}
    if any(latencies.values()):
        yield "latency of\na success", lambda one: _write_latency(latencies.get(one.label))
    if any(one.spending.tokens for one in verdict.arms):
        yield "tokens of\na trial", lambda one: _divide_tokens(one.spending)
    if any(map(_write_setup, verdict.arms)):
        yield "setup", lambda one: _write_setup(one) or "–"


def _count_successes(record: RunRecord) -> int:
    return len(record.trials) - record.trials.failures


def _write_latency(found: LatencyFacts | None) -> str:
    return "–" if found is None else find_unit("latency_s").write(found.mean_s)


def _divide_tokens(spent: Spending) -> str:
    return f"{spent.tokens / spent.trials:,.0f}" if spent.trials else "–"


def _divide_usd(usd: float | None, count: int) -> str:
    return "–" if usd is None or not count else as_money(usd / count)


def list_setup(verdict: ComparisonVerdict) -> Iterator[str]:
    """Describe what preparing the trials of each arm took, which is no part of the amounts."""
    for arm in verdict.arms:
        if took := _write_setup(arm):
            yield f"setup of {cut_middle(arm.label, _NAME)}, kept apart: {took}"


def _write_setup(arm: ComparedArm) -> str:
    spent = arm.spending
    return write_amounts(spent.setup_s, spent.setup_tokens, spent.setup_usd or None)


# --- What trials took -------------------------------------------------------------------------


def tabulate_amounts(verdict: ComparisonVerdict) -> Table | None:
    """Tabulate what trials took under both arms, pair by pair; None where no trial says.

    Args:
        verdict: What was concluded.
    """
    if not verdict.amounts:
        return None
    several = len(verdict.arms) > 2
    names = name_columns(verdict)
    samplings = len({one.experiment for one in verdict.amounts}) > 1
    order: dict[str, int] = {}
    for amount in verdict.amounts:
        order.setdefault(_name_amount(amount), len(order))
    bases = dict.fromkeys(f"{_name_amount(one)}: {one.basis}" for one in verdict.amounts)
    return build_table(
        "What trials took",
        sorted(verdict.amounts, key=lambda one: order[_name_amount(one)]),
        ("mean of", lambda one: _name_row(one, samplings)),
        *([("arm", lambda one: Name(name_arms(one, verdict)))] if several else []),
        (names[0], lambda one: find_unit(one.name).write(one.control_mean)),
        (names[1], lambda one: find_unit(one.name).write(one.candidate_mean)),
        ("typical difference", _write_change),
        ("pairs", lambda one: f"{one.pairs:,}"),
        words=(0, 1) if several else (0,),
        notes=(f"Described, not decided. Which pairs are counted: {'; '.join(bases)}.",),
    )


def _name_amount(amount: AmountDifference) -> str:
    of = f" of {cut_middle(amount.criterion, _NAME)}" if amount.criterion else ""
    return f"{find_unit(amount.name).name}{of}"


def _name_row(amount: AmountDifference, samplings: bool) -> str:
    where = f", {cut_middle(amount.experiment, _NAME)}" if samplings else ""
    return f"{_name_amount(amount)}{where}"


def _write_change(amount: AmountDifference) -> Cell:
    """Write the difference within pairs; one that its interval tells from 0 has a colour."""
    unit = find_unit(amount.name)
    text = sign_amount(amount.difference, unit.write)
    if amount.interval is None:
        return text
    low, high = amount.interval
    text += f" [{sign_amount(low, unit.write)}, {sign_amount(high, unit.write)}]"
    if low <= 0 <= high:
        return text
    rises = low > 0
    good = rises is unit.more_is_better
    return Value(text=text, tone="pass" if good else "fail")


def sign_amount(value: float, write: Callable[[float], str]) -> str:
    """Write an amount with its sign; 0 has none."""
    text, sign = write(abs(value)), "+" if value > 0 else "−"
    return text if text == write(0.0) else f"{sign}{text}"
