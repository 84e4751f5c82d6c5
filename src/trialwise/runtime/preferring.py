"""Asking a judge which arm's reply is better, pair by pair, once the arms have run.

The judge sees the replies as the runs keep them: redacted, and at most 4,000 characters of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from trialwise.model.claim import PopulationClaim, Sampling
from trialwise.model.run import RunRecord
from trialwise.procedures.comparing.assessment import PreferenceVotes
from trialwise.procedures.comparing.findings import ArmRun, ComparisonQuestion
from trialwise.procedures.comparing.pairing import Pairing, pair_trials

if TYPE_CHECKING:
    from trialwise.judges.preference import Comparison as JudgedPair
    from trialwise.judges.preference import Pairwise

#: Pairs of replies that the judge is asked about at a time.
_CONCURRENCY = 8


async def ask_preferences(
    preference: Pairwise,
    arms: Sequence[ArmRun],
    question: ComparisonQuestion,
    samplings: Mapping[str, Sampling],
) -> tuple[PreferenceVotes, ...]:
    """Ask a judge about every pair of replies of the arms that are compared.

    Args:
        preference: The judge, whose connections are closed at the end.
        arms: The control first.
        question: Which arms are compared with each other.
        samplings: The inputs, which the judge sees beside the replies.
    """
    found = []
    try:
        for first, second in question.couple_arms(arms):
            shared = _list_shared(first.record, second.record)
            for experiment in shared:
                name = preference.name if len(shared) == 1 else f"{preference.name}, {experiment}"
                pairing = pair_trials(
                    first.record,
                    second.record,
                    (experiment, experiment),
                    labels=(first.label, second.label),
                )
                before = preference.expenses.usd or 0.0
                asked = list(_list_questions(pairing, first.record, second.record))
                judged = await _ask_all(preference, asked, samplings.get(experiment))
                spent = preference.expenses.usd
                found.append(
                    PreferenceVotes(
                        criterion=name,
                        arm=second.label,
                        against=first.label,
                        experiment=experiment,
                        choices=tuple(one.preference.value for one in judged),
                        inputs=tuple(one["input_id"] for one in asked),
                        fixed_size=pairing.summary.fixed_size,
                        by_input=_counts_inputs(first.record, pairing),
                        errors=preference.errors,
                        advisory=preference.advisory,
                        usd=None if spent is None else spent - before,
                    )
                )
    finally:
        await preference.aclose()
    return tuple(found)


def _list_shared(*records: RunRecord) -> list[str]:
    """Return the samplings that both runs have."""
    ours, theirs = ([one.name for one in record.plan.experiments] for record in records)
    return [name for name in ours if name in theirs]


def _counts_inputs(record: RunRecord, pairing: Pairing) -> bool:
    return record.plan.claim.population is PopulationClaim.SUPERPOPULATION and pairing.repeats


def _list_questions(
    pairing: Pairing, control: RunRecord, candidate: RunRecord
) -> Iterator[dict[str, Any]]:
    """Yield what the judge is asked: the two replies, the input and the seed of each pair."""
    experiment = pairing.summary.experiment
    ours, theirs = (
        {trial.index: trial.reply for trial in record.trials.of_experiment(experiment)}
        for record in (control, candidate)
    )
    for pair in pairing.pairs:
        reference, reply = ours.get(pair.control.index), theirs.get(pair.candidate.index)
        if reference is not None and reply is not None and not pair.is_excused:
            yield {
                "candidate": reply,
                "reference": reference,
                "input_id": pair.control.input_id,
                "seed": pair.control.seed,
            }


async def _ask_all(
    preference: Pairwise, asked: Sequence[Mapping[str, Any]], sampling: Sampling | None
) -> list[JudgedPair]:
    from anyio import CapacityLimiter

    from trialwise.engine.ports import gather

    inputs = {} if sampling is None else {one.id: one.value for one in sampling.inputs}
    limiter = CapacityLimiter(_CONCURRENCY)

    async def ask(one: Mapping[str, Any]) -> JudgedPair:
        async with limiter:
            return await preference.compare(
                one["candidate"],
                one["reference"],
                given=inputs.get(one["input_id"]),
                seed=one["seed"],
            )

    return await gather([partial(ask, one) for one in asked])
