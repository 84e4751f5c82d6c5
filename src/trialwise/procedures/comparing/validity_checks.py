"""What is checked before a verdict: did the arms see the same cases, and were they measured alike?

A comparison of pairs is valid only where the pairs are those that were planned. If an arm could be
measured less often than the other, the pairs that are left may be the easy ones, and no test of
them says anything about the arms. Whether the shares differ is an exact question: of the pairs in
which exactly one arm was not measured, either arm is as likely.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from trialwise.model.trial import NOT_MEASURED, Analysis, Trial
from trialwise.procedures.comparing.change_assessment import Assessed
from trialwise.procedures.comparing.comparison_findings import ValidityCheck
from trialwise.procedures.comparing.trial_pairing import Pairing
from trialwise.stats.paired import sign_test

#: The level of all checks together that arms are measured alike: a false alarm costs a verdict.
LEVEL = 0.01
#: Cases that a sentence names; the others are counted.
_MOST_NAMED = 3


def check_validity(pairings: Sequence[Pairing], analysis: Analysis) -> tuple[ValidityCheck, ...]:
    """Return whether every two arms saw the same cases and were measured alike.

    Args:
        pairings: One for every experiment of every two arms.
        analysis: Where it counts trials that were not measured, nothing is withheld.
    """
    # The checks share their level, so that many arms raise no more false alarms than two.
    level = LEVEL / max(1, len(pairings))
    found: list[ValidityCheck] = []
    for pairing in pairings:
        found.append(_check_cases(pairing))
        found.append(_check_measured(pairing, level, analysis))
    return tuple(found)


def _check_cases(pairing: Pairing) -> ValidityCheck:
    summary = pairing.summary
    reasons = list(_list_differences(pairing))
    alike = ["inputs", *(["order"] if summary.same_order else [])]
    alike += ["seeds"] if summary.same_seeds else []
    shared = alike[0] if len(alike) == 1 else f"{', '.join(alike[:-1])} and {alike[-1]}"
    both = f"{summary.against} and {summary.arm}"
    statement = (
        f"{both} did not see the same cases: {'; '.join(reasons)}."
        if reasons
        else f"{both} saw the same {summary.pairs:,} cases: the same {shared}."
    )
    return ValidityCheck(
        name="same cases",
        arm=summary.arm,
        against=summary.against,
        experiment=summary.experiment,
        holds=not reasons,
        statement=statement,
    )


def _list_differences(pairing: Pairing) -> Iterator[str]:
    """Yield why trials of either arm have no partner."""
    summary = pairing.summary
    if not summary.same_inputs:
        yield "their inputs differ"
        return
    if pairing.from_files and not summary.pairs:
        yield "the files do not say which trials belong together"
        return
    if not any(summary.left_out):
        return
    partners = {id(trial) for pair in pairing.pairs for trial in (pair.control, pair.candidate)}
    sides = (summary.against, pairing.control), (summary.arm, pairing.candidate)
    for (label, mine), (_, other) in (sides, sides[::-1]):
        last = max((trial.index for trial in other), default=-1)
        asked_again = {trial.input_id for trial in mine if trial.error_class in NOT_MEASURED}
        alone = [
            trial
            for trial in mine
            if id(trial) not in partners
            # A fresh trial in place of one that was not measured is no case of its own.
            and trial.error_class not in NOT_MEASURED
            and not (trial.index > last and trial.input_id in asked_again)
        ]
        if alone:
            count = "1 trial" if len(alone) == 1 else f"{len(alone):,} trials"
            yield f"{count} of {label} without a partner ({_explain_alone(alone, other)})"


def _explain_alone(alone: Sequence[Trial], other: Sequence[Trial]) -> str:
    """Return which cases only one arm has, and why."""
    theirs = Counter(trial.input_id for trial in other)
    never = list(dict.fromkeys(one.input_id for one in alone if not theirs[one.input_id]))
    if never:
        named = ", ".join(never[:_MOST_NAMED])
        more = f" and {len(never) - _MOST_NAMED} more" if len(never) > _MOST_NAMED else ""
        return f"the other was never asked {named}{more}"
    if max(one.index for one in alone) > max((one.index for one in other), default=-1):
        return "the other run ended earlier"
    return "the other has fewer repeats of the same inputs"


def _check_measured(pairing: Pairing, level: float, analysis: Analysis) -> ValidityCheck:
    summary = pairing.summary

    def is_lost(trial: Trial) -> bool:
        return trial.error_class in NOT_MEASURED or analysis.leaves_out(trial.error_class)

    lost = [(is_lost(pair.control), is_lost(pair.candidate)) for pair in pairing.asked]
    p_value = sign_test(lost.count((True, False)), lost.count((False, True))).p_value
    ours, theirs = (sum(side) for side in zip(*lost, strict=True)) if lost else (0, 0)
    shares = (
        f"could not be measured: {theirs:,} of {len(lost):,} in {summary.arm}, "
        f"{ours:,} of {len(lost):,} in {summary.against}"
    )
    holds = p_value > level
    return ValidityCheck(
        name="measured alike",
        arm=summary.arm,
        against=summary.against,
        experiment=summary.experiment,
        holds=holds,
        # Where the analysis counts them as failures, nothing was left out that could mislead.
        withholds=not holds and analysis is not Analysis.INTENT_TO_TREAT,
        statement=shares if ours or theirs else "every trial of both arms was measured",
        p_value=p_value,
    )


def withhold_verdicts(
    assessed: Sequence[Assessed], checks: Sequence[ValidityCheck]
) -> list[Assessed]:
    """Return the criteria, those without a verdict that a check does not allow to be decided.

    Args:
        assessed: The evidence of every criterion.
        checks: What was checked of every two arms.
    """
    reasons = {
        (one.against, one.arm, one.experiment): one.statement for one in checks if one.withholds
    }
    found = []
    for one in assessed:
        reason = reasons.get((one.against, one.arm, one.experiment), "")
        found.append(replace(one, obstacle=one.obstacle or reason))
    return found


def state_checks(checks: Sequence[ValidityCheck]) -> str:
    """Return the first line of a comparison that is not decided because of its checks, if any.

    Args:
        checks: What was checked of every two arms.
    """
    failed = [one.statement for one in checks if one.withholds]
    if not failed:
        return ""
    text = "; ".join(dict.fromkeys(failed))
    return (
        f"{text[0].upper()}{text[1:]}. Arms that are measured alike differ so much in less than "
        f"{100 * LEVEL:g} % of comparisons, so that no verdict is given."
    )
