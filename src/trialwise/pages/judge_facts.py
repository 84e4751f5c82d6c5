"""What a judge's errors leave of a rate, in the same figures on every page.

The rate of a judged criterion is what the judge said. Beside it stand the rates corrected for the
judge's errors, the labels these rest on, and what is missing where they leave it open.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from trialwise.documents.blocks import Facts, Section
from trialwise.documents.numbers import as_computed, as_count, as_ends, as_observed, as_percent
from trialwise.model.verdict import Decision, Finding, Verdict
from trialwise.stats.result_types import Undefined

if TYPE_CHECKING:
    from trialwise.stats.agreement import Confusion
    from trialwise.stats.judged_decision import JudgedDecision


CORRECTION_NAMES = {
    "rectifier": "rectifier",
    "rogan-gladen": "Rogan–Gladen",
    "pooled": "with the labels as trials",
}
"""How reports call the corrections."""


def list_corrections(finding: Finding) -> Iterator[JudgedDecision]:
    """List what was decided by each correction that was made, the rectifier's first."""
    made = [one for one in (finding.judged, finding.evidence.judged_otherwise) if one is not None]
    return iter(sorted(made, key=lambda one: one.correction != "rectifier"))


def find_labels(finding: Finding) -> Confusion | None:
    """Find the judge's verdicts beside the labels of people, where its errors were measured."""
    for one in list_corrections(finding):
        if not isinstance(one.corrected, Undefined):
            return one.corrected.confusion
    return None


def describe_labels(labels: Confusion) -> str:
    """Describe how many labels there are, and how often the judge differs from them."""
    return (
        f"{labels.labels:,}: of {labels.good:,} that people pass the judge fails "
        f"{labels.false_fail:,}, of {labels.bad:,} that people fail it passes {labels.false_pass:,}"
    )


def _as_corrected(judged: JudgedDecision, *, is_exact: bool = False) -> str:
    """Write a corrected rate with its interval, or why there is none."""
    found = judged.corrected
    if isinstance(found, Undefined):
        return found.reason
    if is_exact:
        low, high = map(as_computed, found.interval)
        return f"{as_computed(found.rate)} [{low}, {high}]"
    return f"{as_observed(found.rate)} {as_ends(found.interval)}"


def describe_corrections(finding: Finding) -> Iterator[str]:
    """Describe what a judge's errors leave of the rate, and what is missing to say more."""
    labels = find_labels(finding)
    if labels is None:
        return
    rates = [
        f"{_as_corrected(one)} ({CORRECTION_NAMES[one.correction]})"
        for one in list_corrections(finding)
    ]
    yield f"corrected by {as_count(labels.labels, 'label')}: {' and '.join(rates)}"
    if missing := name_missing(finding):
        yield f"missing: {missing}"


def name_missing(finding: Finding) -> str:
    """Name what would close a decision that the judge's errors leave open: labels or trials."""
    judged = finding.judged
    if judged is None or judged.decision is not Decision.INCONCLUSIVE:
        return ""
    match judged.open_because:
        case "trials":
            needed = judged.trials_needed
            if isinstance(needed, Undefined):
                return "more trials"
            return f"about {as_count(needed, 'trial')} in all"
        case "labels":
            most = judged.labels_needed
            if isinstance(most, Undefined):
                return "neither labels nor trials would do: the rate is too close to the required"
            return f"about {as_count(most, 'label')} in all: trials alone would not do"
        case _:
            return "labels drawn as the trials were: the two corrections contradict each other"


def explain_advisory_run(verdict: Verdict) -> str:
    """Explain why a run shows nothing, where all that was asked of it only advises."""
    gates = [one for one in verdict.gates if one.decision is not None]
    advising = [one for one in verdict.findings if one.advisory]
    if not advising or len(advising) < len(verdict.findings) or verdict.latency or gates:
        return ""
    reported = count_reported(verdict)
    return f"Nothing decides: {describe_left_out(len(advising) - reported, reported)}."


def count_reported(verdict: Verdict) -> int:
    """Count the criteria that are measured and shown on purpose, and decide nothing."""
    return sum(one.plan.standing.reported_at is not None for one in verdict.findings)


def describe_left_out(advising: int, reported: int, *, kind: str = "") -> str:
    """Describe how many criteria have no part in the verdict.

    Args:
        advising: Criteria that rest on a judge whose errors are not known well enough.
        reported: Criteria that are only reported.
        kind: A word before the noun, such as "further".

    >>> describe_left_out(1, 2)
    '1 criterion only advises, 2 criteria are only reported'
    """
    nouns = f"{kind} criterion".strip(), f"{kind} criteria".strip()
    said = []
    if advising:
        said.append(f"{as_count(advising, *nouns)} only advise{'s'[advising > 1 :]}")
    if reported:
        verb = "is" if reported == 1 else "are"
        said.append(f"{as_count(reported, *nouns)} {verb} only reported")
    return ", ".join(said)


def collect_judge_facts(finding: Finding) -> dict[str, str | int | float | bool | None]:
    """Collect the numbers of the correction that decides, by their names in JSON."""
    judged, labels = finding.judged, find_labels(finding)
    found = None if judged is None else judged.corrected
    corrected = None if isinstance(found, Undefined) else found
    return {
        "advisory_because": "; ".join(finding.advisory) or None,
        "correction": None if judged is None else judged.correction,
        "corrected_rate": None if corrected is None else corrected.rate,
        "corrected_low": None if corrected is None else corrected.interval.low,
        "corrected_high": None if corrected is None else corrected.interval.high,
        "corrected_confidence": None if corrected is None else corrected.interval.confidence,
        "labels": None if labels is None else labels.labels,
        "open_because": None if judged is None else judged.open_because,
        "labels_needed": None if judged is None else _if_known(judged.labels_needed),
        "trials_needed": None if judged is None else _if_known(judged.trials_needed),
    }


def _if_known(value: int | Undefined) -> int | None:
    return None if isinstance(value, Undefined) else value


_NOTE = (
    "The decision is that of the corrected rates, where they agree. The criterion's own rate and "
    "its path are about what the judge says."
)


def build_correction(finding: Finding) -> Section | None:
    """Build the judge's rate beside the corrected ones; None where no judge was measured."""
    if find_labels(finding) is None:
        return None
    facts = Facts(pairs=tuple(list_judge_rows(finding)))
    return Section(heading="Corrected for the judge's errors", blocks=(facts,), note=_NOTE)


def list_judge_rows(finding: Finding, *, is_exact: bool = False) -> Iterator[tuple[str, str]]:
    """List the labels, what the judge said, what each correction leaves of it, and what is missing.

    Args:
        finding: The finding of a criterion whose judge was measured.
        is_exact: Whether corrected rates have six digits.
    """
    labels, judged = find_labels(finding), finding.judged
    assert labels is not None
    yield "Labels", describe_labels(labels)
    if finding.tally.rate is not None:
        of = as_count(finding.tally.trials, "trial")
        yield "Judged", f"{as_observed(finding.tally.rate)} of {of}"
    for one in list_corrections(finding):
        said = _as_corrected(one, is_exact=is_exact)
        if not isinstance(one.corrected, Undefined):
            confidence = one.corrected.interval.confidence
            level = "" if confidence is None else f" at {as_percent(confidence)}"
            said = f"{said}{level}: {one.decision} at {as_percent(one.required_rate)}"
        yield f"Corrected, {CORRECTION_NAMES[one.correction]}", said
    if judged is not None and judged.decision is Decision.INCONCLUSIVE:
        yield "Open because of", judged.open_because
        yield "Missing", name_missing(finding)
