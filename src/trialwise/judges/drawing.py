"""Outputs to be labelled, drawn from the trials of a run.

Labels correct a judged rate by the rectifier only if the labelled outputs were drawn as the judged
ones were. Here they are: every trial with a reply is as likely as any other. What the judge said of
it stays out of sight, so that people label the output and not the judge.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from trialwise.engine.trial_inputs import derive_seed
from trialwise.errors import InvalidArgument
from trialwise.judges.gold import GoldSetError
from trialwise.model.fingerprint import sampling_fingerprint
from trialwise.model.run import RunRecord
from trialwise.model.sampling import Sampling
from trialwise.validation import require_count

__all__ = ["draw_unlabelled"]

#: How the record of a run ends a reply that it does not hold in full.
_CUT = "…"


def draw_unlabelled(
    record: RunRecord, sampling: Sampling, *, experiment: str, units: int, seed: int = 0
) -> Iterator[dict[str, Any]]:
    """The lines of a gold set without its labels: where it comes from first, then every output.

    Args:
        record: The run.
        sampling: The inputs as they are now, since a record keeps their names alone.
        experiment: Of which of the run's samplings.
        units: How many.
        seed: Of the draw.

    Raises:
        GoldSetError: The inputs are others by now, too few trials have a reply, or a reply is
            longer than what a run keeps.
    """
    require_count("units", units, minimum=1)
    planned = next((one for one in record.plan.experiments if one.name == experiment), None)
    if planned is None:
        known = ", ".join(one.name for one in record.plan.experiments)
        raise InvalidArgument("experiment", experiment, f"be one of the run's: {known}")
    if planned.fingerprint != sampling_fingerprint(sampling):
        message = f"{record.run_id}: the inputs changed since this run; run it again, then draw"
        raise GoldSetError(message)
    mine = (one for one in record.trials if one.experiment == experiment)
    trials = [one for one in mine if one.reply is not None]
    if len(trials) < units:
        message = f"{record.run_id}: {len(trials)} trials have a reply, {units} were asked for"
        raise GoldSetError(f"{message}; ask for fewer, or run more")
    chance = Random(derive_seed("gold", seed, experiment))
    drawn = sorted(chance.sample(range(len(trials)), units))
    cut = sum((trials[place].reply or "").endswith(_CUT) for place in drawn)
    if cut:
        message = f"{record.run_id}: {cut} of the drawn replies are cut in the run's record"
        raise GoldSetError(f"{message}; take the outputs from where the service logs them")
    return _lines(record, sampling, [trials[place] for place in drawn], experiment, seed)


def _lines(
    record: RunRecord, sampling: Sampling, trials: list[Any], experiment: str, seed: int
) -> Iterator[dict[str, Any]]:
    asked = {one.id: one for one in sampling.inputs}
    of = sum(one.experiment == experiment for one in record.trials)
    source = f"{len(trials)} of {of} trials of run {record.run_id}, drawn with seed {seed}"
    yield {"provenance": {"source": source, "labelled_by": None, "rule": None}}
    for trial in trials:
        given = asked[trial.input_id]
        yield {
            "id": f"trial-{trial.index}",
            "input": given.value,
            **({} if given.expected is None else {"expected": given.expected}),
            "output": trial.reply,
            "label": None,
        }
