"""What a judge's measured errors leave of its rate, in the block of its criterion."""

from __future__ import annotations

from collections.abc import Iterator

from trialwise.documents.numbers import as_count, as_observed, as_percent
from trialwise.model.verdict import Finding
from trialwise.reporters.html.parts import Outline, facts
from trialwise.reporters.judged import (
    CORRECTION_NAMES,
    corrected_text,
    corrections_of,
    labels_of,
    labels_text,
    missing_for,
)
from trialwise.reporters.page.markup import Markup, element
from trialwise.stats.result_types import Undefined

__all__ = ["judged_block"]

_NOTE = (
    "A decision stands where both corrected rates say the same. The criterion's own rate and its "
    "path are about what the judge says."
)


def judged_block(finding: Finding, outline: Outline) -> Markup:
    """The judged rate beside the corrected ones, or nothing where no judge was measured."""
    if labels_of(finding) is None:
        return Markup("")
    return element(
        "div",
        outline.heading("Corrected for the judge's errors"),
        facts(_rows(finding)),
        element("p", _NOTE, class_="note"),
        class_="judge",
    )


def _rows(finding: Finding) -> Iterator[tuple[str, object]]:
    labels = labels_of(finding)
    assert labels is not None
    if finding.tally.rate is not None:
        of = as_count(finding.tally.trials, "trial")
        yield "judged", f"{as_observed(finding.tally.rate)} of {of}"
    for one in corrections_of(finding):
        said = corrected_text(one)
        if not isinstance(one.corrected, Undefined):
            sure = one.corrected.interval.confidence
            level = "" if sure is None else f" at {as_percent(sure)}"
            said = f"{said}{level}: {one.decision} at {as_percent(one.required_rate)}"
        yield CORRECTION_NAMES[one.correction], said
    yield "labels", labels_text(labels)
    yield "missing", missing_for(finding)
