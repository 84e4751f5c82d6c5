"""Which trials a finding counts, and why those that failed did."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from trialwise.documents.printable import cut_middle
from trialwise.documents.results import CheckCount, FailureGroup
from trialwise.model.kept_texts import RunTexts
from trialwise.model.run import RunRecord
from trialwise.model.trial import Trial
from trialwise.model.verdict import Finding

#: What varies between two reports of the same failure: quoted pieces and numbers.
_VARIABLE = re.compile(r"(?<!\w)'[^']*'(?!\w)|\"[^\"]*\"|\d+")


@dataclass(slots=True)
class TrialIndex:
    """The trials of a record by experiment and input, in the order of inputs."""

    record: RunRecord
    _trials: dict[tuple[str, str | None], list[Trial]] = field(default_factory=dict)
    """By experiment and input; all of an experiment under no input."""

    def __post_init__(self) -> None:
        for trial in sorted(self.record.trials, key=lambda one: one.index):
            for input_id in (None, trial.input_id):
                self._trials.setdefault((trial.experiment, input_id), []).append(trial)

    def count_inputs(self, finding: Finding) -> int:
        """Count how many inputs a criterion was tried on."""
        name = self._experiment(finding)
        plans = self.record.plan.experiments
        return next((len(one.input_ids) for one in plans if one.name == name), 0)

    def list_counted(self, finding: Finding) -> Iterator[Trial]:
        """List every trial that ran for a finding, also those after its decision."""
        yield from self._trials.get((self._experiment(finding), finding.input_id), [])

    def _experiment(self, finding: Finding) -> str:
        if finding.experiment:
            return finding.experiment
        plans = self.record.plan.criteria
        return next((p.experiment for p in plans if p.criterion == finding.criterion), "")


def count_checks(criterion: str, trials: Iterable[Trial]) -> tuple[CheckCount, ...]:
    """Count how often each postcondition of a criterion held that did not always hold.

    Nothing where only one ever failed: it is then the criterion's own rate.

    Args:
        criterion: Its name.
        trials: Those that count; one without a reply asked no postcondition.
    """
    failed: Counter[str] = Counter()
    unasked: Counter[str] = Counter()
    total = 0
    for trial in trials:
        for outcome in trial.outcomes:
            if outcome.criterion != criterion:
                continue
            if outcome.result.passed and not outcome.others:  # nearly every one
                total += 1
                continue
            if not outcome.passed and outcome.postcondition is None:
                continue
            total += 1
            failed.update(dict.fromkeys((name for name, _ in outcome.failed_checks), 1))
            unasked.update(one.postcondition for one in outcome.others if one.result is None)
    if len(failed | unasked) < 2:
        return ()
    asked = {name: total - unasked[name] for name in failed}
    return tuple(
        CheckCount(name=name, passed=asked[name] - count, trials=asked[name])
        for name, count in failed.most_common()
    )


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
            key = (*parts, _VARIABLE.sub("", explanation))
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
