"""Which trials a finding counts, and why those that failed did."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from trialwise.documents.printable import cut_middle
from trialwise.documents.results import CheckCount, FailureGroup, RepeatedRun
from trialwise.model.run import RunRecord, RunTexts
from trialwise.model.trial import Trial
from trialwise.model.verdict import Finding
from trialwise.procedures.criterion_rows import Row, Rows

#: What varies between two reports of the same failure: quoted pieces and numbers.
# An apostrophe within a word, as in "don't", opens no quotation.
_VARIABLE = re.compile(r"(?<!\w)'[^']*'(?!\w)|\"[^\"]*\"|\d+")


class TrialIndex:
    """The trials of a record by experiment and input, in the order of inputs.

    Args:
        record: The run.
    """

    def __init__(self, record: RunRecord) -> None:
        self.record = record
        self._rows: dict[str, Rows] = {}
        self._by_input: dict[str, Mapping[str, Rows]] = {}

    def count_inputs(self, finding: Finding) -> int:
        """Count how many inputs a criterion was tried on."""
        name = self.find_experiment(finding)
        plans = self.record.plan.experiments
        return next((len(one.input_ids) for one in plans if one.name == name), 0)

    def find_rows(self, finding: Finding) -> Rows:
        """Return every trial that ran for a finding, also those after its decision."""
        name = finding.criterion
        if name not in self._rows:
            table = self.record.trials.of_experiment(self.find_experiment(finding))
            if name not in table.criteria:
                return Rows.of(())
            self._rows[name] = Rows.of(table, table.criteria.index(name))
        if finding.input_id is None:
            return self._rows[name]
        if name not in self._by_input:
            table = self.record.trials.of_experiment(self.find_experiment(finding))
            self._by_input[name] = self._rows[name].split(table.names)
        return self._by_input[name].get(finding.input_id) or Rows.of(())

    def list_notable(self, finding: Finding) -> Iterator[Trial]:
        """Yield the trials of a finding of which there is more to say than that they passed."""
        table = self.record.trials.of_experiment(self.find_experiment(finding))
        return map(table.__getitem__, self.find_rows(finding).keep(_is_notable).places)

    def count_plain(self, finding: Finding) -> int:
        """Count the trials of a finding that simply passed."""
        return self.find_rows(finding).count(lambda row: not _is_notable(row))

    def find_experiment(self, finding: Finding) -> str:
        """Return the name of the experiment that a finding is about."""
        if finding.experiment:
            return finding.experiment
        plans = self.record.plan.criteria
        return next((p.experiment for p in plans if p.criterion == finding.criterion), "")


def _is_notable(row: Row) -> bool:
    return not row.passed or row.sign.has_others


def count_checks(criterion: str, trials: Iterable[Trial], plain: int) -> tuple[CheckCount, ...]:
    """Count how often each postcondition of a criterion held that did not always hold.

    Nothing where only one ever failed: it is then the criterion's own rate.

    Args:
        criterion: Its name.
        trials: Those that count; one without a reply asked no postcondition.
        plain: How many more there are that simply passed.
    """
    failed: Counter[str] = Counter()
    unasked: Counter[str] = Counter()
    total = plain
    for trial in trials:
        outcome = trial.outcome(criterion)
        if not outcome.passed and outcome.postcondition is None:
            continue
        total += 1
        # Once for each trial, also where a check of this name failed on several parts of the reply.
        failed.update(dict.fromkeys((name for name, _ in outcome.failed_checks), 1))
        unasked.update(one.postcondition for one in outcome.others if one.result is None)
    # A check that was not asked has fewer trials than the criterion, so that it is worth a row.
    if len(failed | unasked) < 2:
        return ()
    asked = {name: total - unasked[name] for name in failed}
    return tuple(
        CheckCount(name=name, passed=asked[name] - count, trials=asked[name])
        for name, count in failed.most_common()
    )


#: So many groups of failures are told apart. Further ones are told apart by their check alone, so
#: that a page of a million different failures stays small.
_MOST_GROUPS = 1000
#: Characters of a text that an example holds.
_LONGEST = 1200


def group_failures(
    criterion: str, trials: Iterable[Trial], texts: RunTexts
) -> tuple[FailureGroup, ...]:
    """Group the failures of a criterion, the most frequent first.

    Args:
        criterion: Its name.
        trials: Those that count.
        texts: What the trials asked, and where the service raised.
    """
    counts: dict[tuple[str, ...], int] = {}
    examples: dict[tuple[str, ...], FailureGroup] = {}
    for trial in trials:
        for outcome in trial.outcomes:
            result = outcome.result
            if outcome.criterion != criterion or result.reason is None:
                continue
            explanation = result.explanation or trial.error
            parts = (result.reason.value, trial.error_class.value, outcome.postcondition or "")
            # Two order numbers in one message are one failure to whoever has to repair it.
            key = (*parts, _VARIABLE.sub("", explanation))
            # Explanations are texts of services and judges: no two of them need be alike.
            if len(counts) >= _MOST_GROUPS and key not in counts:
                key = (*parts, "")
            counts[key] = counts.get(key, 0) + 1
            if key not in examples:
                asked = texts.find_input(trial)
                expected = None if asked is None else asked.expected
                examples[key] = FailureGroup(
                    count=0,
                    reason=parts[0],
                    error_class=parts[1],
                    postcondition=parts[2],
                    explanation=explanation,
                    evidence=result.evidence,
                    input_id=trial.input_id,
                    trial=trial.index,
                    seed=trial.seed,
                    asked="" if asked is None else cut_middle(asked.value, _LONGEST),
                    expected=None if expected is None else cut_middle(expected, _LONGEST),
                    reply=None if trial.reply is None else cut_middle(trial.reply, _LONGEST),
                    traceback=texts.find_traceback(trial),
                )
    ranked = sorted(counts, key=lambda key: -counts[key])  # stable: ties in order of appearance
    return tuple(replace(examples[key], count=counts[key]) for key in ranked)


# --- Each run of an input that was tried repeatedly, for reports that have a row a run ------------

#: A report with more rows is read by nobody; the JSON lines have all of them.
MOST_RUNS = 1_000


def list_repeated_runs(record: RunRecord) -> tuple[RepeatedRun, ...]:
    """List the runs of each input where gates are about repeated runs; nothing elsewhere."""
    if not record.plan.gates:
        return ()
    weakest = {
        (run.input_id, run.trial): run.weakest_score
        for gate in record.verdict.gates
        for run in gate.evidence.sessions
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
