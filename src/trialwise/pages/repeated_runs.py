"""Each run of an input that was tried repeatedly, for reports that have a row a run."""

from __future__ import annotations

from collections import Counter

from trialwise.documents.results import RepeatedRun
from trialwise.model.metrics import StabilityEvidence
from trialwise.model.run import RunRecord

#: A report with more rows is read by nobody; the JSON lines have all of them.
MOST_RUNS = 1_000


def list_repeated_runs(record: RunRecord) -> tuple[RepeatedRun, ...]:
    """List the runs of each input where gates are about repeated runs; nothing elsewhere."""
    if not record.plan.gates:
        return ()
    weakest = {
        (run.input_id, run.trial): run.weakest_score
        for gate in record.verdict.gates
        if isinstance(gate.evidence, StabilityEvidence)
        for run in gate.evidence.runs
    }
    several = len(record.plan.experiments) > 1
    counts: Counter[tuple[str, str]] = Counter()
    rows: list[RepeatedRun] = []
    for trial in record.trials:
        if len(rows) >= MOST_RUNS:
            break
        place = trial.experiment, trial.input_id
        counts[place] += 1
        where = f"{trial.experiment} " if several else ""
        failed = [one for one in trial.outcomes if not one.passed]
        why = [f"{one.criterion}: {one.result.explanation or one.result.reason}" for one in failed]
        rows.append(
            RepeatedRun(
                name=f"{where}{trial.input_id} #{counts[place]}",
                trial=trial.index,
                seed=trial.seed,
                passed=trial.passed,
                reason="; ".join(why),
                seconds=trial.latency_s or 0.0,
                weakest_score=weakest.get((trial.input_id, trial.index)),
            )
        )
    return tuple(rows)
