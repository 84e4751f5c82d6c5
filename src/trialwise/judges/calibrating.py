"""Putting a gold set to a judge: the one place where a judge is asked about what people know."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TypeVar

from trialwise.engine.criterion_progress import derive_seed
from trialwise.engine.ports import gather
from trialwise.errors import TrialwiseError
from trialwise.judges.calibration import Calibration
from trialwise.judges.gold import GoldSet, GoldSetError, GoldUnit, PairGold, PairUnit
from trialwise.judges.preference import Comparison, Pairwise, Preference
from trialwise.judges.rubric import Judge
from trialwise.model import ErrorClass, FailReason, Reply
from trialwise.stats.agreement import confusion_of
from trialwise.validation import require_count

U = TypeVar("U", GoldUnit, PairUnit)
T = TypeVar("T")


class NothingJudged(TrialwiseError):
    """No unit of a gold set got a verdict, so that nothing is known of the judge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One unit of a gold set with the judge's verdict."""

    unit: GoldUnit
    passed: bool | None
    """None where the judge gave none."""
    explanation: str = ""


async def calibrate(
    judge: Judge,
    gold: GoldSet,
    *,
    measured_at: datetime,
    seed: int = 0,
    concurrency: int = 8,
    hear: Callable[[Judged], None] | None = None,
) -> Calibration:
    """Ask a judge about every unit of a gold set, and count.

    Args:
        judge: Which; its jurors' connections are closed at the end.
        gold: What people say.
        measured_at: The date and time, for the record.
        seed: For the order in which jurors see rubric and material.
        concurrency: Units at a time.
        hear: Hears of every unit, in the order they are done.

    Raises:
        GoldSetError: The judge sees inputs or expected answers in a run, and units have none: that
            is another question.
        NothingJudged: No unit got a verdict.
        ServiceError: One that ends the run, such as an answer that cannot be cached.
    """
    require_count("concurrency", concurrency, minimum=1)
    _check_units(judge, gold)

    async def ask(unit: GoldUnit, own_seed: int) -> Judged:
        judged = await _judge_unit(judge, unit, own_seed)
        if hear is not None:
            hear(judged)
        return judged

    found = await _ask_all(judge, gold.units, ask, seed, concurrency)
    told = [one for one in found if one.passed is not None]
    if not told:
        why = next((one.explanation for one in found), "the gold set is empty")
        raise NothingJudged(f"the judge gave no verdict on any unit: {why}")
    rows = [(one.unit.id, bool(one.passed), one.unit.label) for one in told]
    return _count(judge, gold, rows, len(found) - len(told), measured_at)


async def calibrate_pairwise(
    comparing: Pairwise,
    gold: PairGold,
    *,
    measured_at: datetime,
    seed: int = 0,
    concurrency: int = 8,
) -> Calibration:
    """Ask which of two outputs is better about every pair of a gold set, and count.

    A pass stands for an output of the candidate that is better, as it does in a comparison. Pairs
    that the judge finds equal, or whose order decides, are left out, as they are there.

    Args:
        comparing: The judge; its connections are closed at the end.
        gold: What people prefer.
        measured_at: The date and time, for the record.
        seed: For the juror.
        concurrency: Pairs at a time.

    Raises:
        NothingJudged: No pair was decided.
        ServiceError: One that ends the run, such as an answer that cannot be cached.
    """
    require_count("concurrency", concurrency, minimum=1)

    async def ask(unit: PairUnit, own_seed: int) -> Comparison:
        beside = {"given": unit.input, "expected": unit.expected}
        return await comparing.compare(unit.first, unit.second, **beside, seed=own_seed)

    found = await _ask_all(comparing, gold.units, ask, seed, concurrency)
    # Of the candidate, as in a comparison; the first output is its own where nobody says.
    won = Preference.WIN
    rows = [
        (unit.id, (one.preference is won) is (unit.candidate != "second"), unit.prefers_candidate)
        for one, unit in zip(found, gold.units, strict=True)
        if one.preference in (Preference.WIN, Preference.LOSS)
    ]
    if not rows:
        why = next((one.explanation for one in found if one.explanation), "all pairs were equal")
        raise NothingJudged(f"the judge preferred no output of any pair: {why}")
    missing = sum(one.preference is Preference.MISSING for one in found)
    return _count(comparing, gold, rows, missing, measured_at)


def _count(
    judge: Judge | Pairwise,
    gold: GoldSet | PairGold,
    rows: Sequence[tuple[str, bool, bool]],
    missing: int,
    measured_at: datetime,
) -> Calibration:
    """Return what rows of a unit's name, the judge's verdict and people's say of the judge."""
    return Calibration(
        judge=judge.identity,
        gold=gold.fingerprint,
        provenance=gold.provenance,
        confusion=confusion_of([said for _, said, _ in rows], [meant for *_, meant in rows]),
        is_oriented=isinstance(gold, PairGold) and gold.is_oriented,
        missing=missing,
        measured_at=measured_at.isoformat(timespec="seconds"),
        wrong=tuple(name for name, said, meant in rows if said is not meant),
    )


def _check_units(judge: Judge, gold: GoldSet) -> None:
    """What is asked of labelled outputs must be what is asked in a run."""
    for name, shown in (("input", judge.shows_input), ("expected", judge.shows_expected)):
        without = [unit.id for unit in gold.units if getattr(unit, name) is None]
        if shown and without:
            message = (
                f"{len(without)} of {len(gold.units)} labelled outputs have no `{name}` (first: "
                f"{without[0]!r}), but the judge sees it in a run: add it, or set "
                f"`shows_{name}: false`"
            )
            raise GoldSetError(message)


async def _ask_all(
    judge: Judge | Pairwise,
    units: Sequence[U],
    ask: Callable[[U, int], Awaitable[T]],
    seed: int,
    concurrency: int,
) -> list[T]:
    """Return what is said of each unit, so many of them asked at once."""
    from anyio import CapacityLimiter

    limiter = CapacityLimiter(concurrency)

    async def one(unit: U) -> T:
        # By the unit's name and not its place: a unit added to the set leaves the others' alone.
        async with limiter:
            return await ask(unit, derive_seed("gold", seed, unit.id))

    try:
        return await gather([partial(one, unit) for unit in units])
    finally:
        await judge.aclose()


async def _judge_unit(judge: Judge, unit: GoldUnit, seed: int) -> Judged:
    reply = Reply(value=unit.output)
    if unit.input is not None or unit.expected is not None:
        reply = reply.with_input(unit.input, unit.expected)
    appraisal = await judge.acheck(reply, seed=seed)
    result = appraisal.result
    evaluated = result.passed or result.reason is FailReason.CONDITION
    return Judged(
        unit=unit,
        passed=result.passed if evaluated and appraisal.error_class is ErrorClass.NONE else None,
        explanation=result.explanation,
    )
