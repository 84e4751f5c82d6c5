"""Observational criteria explained: what was asked of the trials, and that nothing is claimed."""

from __future__ import annotations

from trialwise.documents.blocks import Section
from trialwise.model.verdict import Finding
from trialwise.procedures.explaining.analysis_sections import make_section

__all__ = ["explain_observation"]


def explain_observation(finding: Finding) -> tuple[Section, ...]:
    """The question that the trials answer by themselves."""
    rows = [
        ("Mode", "observational: no threshold, no α, no inferential claim"),
        ("Question", f"was any failure of {finding.criterion} observed in the run?"),
    ]
    return (make_section("HYPOTHESIS TEST", rows),)
