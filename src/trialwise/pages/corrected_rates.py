"""What a judge's measured errors leave of the rate of its criterion."""

from __future__ import annotations

from collections.abc import Iterator

from trialwise.documents.blocks import Facts, Section
from trialwise.documents.numbers import as_count, as_observed, as_percent
from trialwise.model.verdict import Finding
from trialwise.pages.judge_facts import (
    CORRECTION_NAMES,
    as_corrected,
    describe_labels,
    find_labels,
    list_corrections,
    name_missing,
)
from trialwise.stats.result_types import Undefined

__all__ = ["build_correction"]

_NOTE = (
    "A decision stands where both corrected rates say the same. The criterion's own rate and its "
    "path are about what the judge says."
)


def build_correction(finding: Finding) -> Section | None:
    """The judge's rate beside the corrected ones; None where no judge was measured."""
    if find_labels(finding) is None:
        return None
    facts = Facts(pairs=tuple(_list_rates(finding)))
    return Section(heading="Corrected for the judge's errors", blocks=(facts,), note=_NOTE)


def _list_rates(finding: Finding) -> Iterator[tuple[str, str | None]]:
    labels = find_labels(finding)
    assert labels is not None
    if finding.tally.rate is not None:
        of = as_count(finding.tally.trials, "trial")
        yield "judged", f"{as_observed(finding.tally.rate)} of {of}"
    for one in list_corrections(finding):
        said = as_corrected(one)
        if not isinstance(one.corrected, Undefined):
            confidence = one.corrected.interval.confidence
            level = "" if confidence is None else f" at {as_percent(confidence)}"
            said = f"{said}{level}: {one.decision} at {as_percent(one.required_rate)}"
        yield CORRECTION_NAMES[one.correction], said
    yield "labels", describe_labels(labels)
    yield "missing", name_missing(finding)
