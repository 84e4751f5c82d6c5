"""The report's order: the composite first, then a block a criterion, then how to check it all."""

from __future__ import annotations

from collections.abc import Iterator

from trialwise.model.verdict import Verdict
from trialwise.reporters.transparent.contract import closing_sections, opening_sections
from trialwise.reporters.transparent.criterion import criterion_sections
from trialwise.reporters.transparent.latency import latency_section
from trialwise.reporters.transparent.sheet import Section, rendered

__all__ = ["render_transparent"]


def render_transparent(verdict: Verdict, *, title: str, unicode: bool = True) -> str:
    """The full statistical analysis of a verdict, as text of at most 80 columns.

    Args:
        verdict: What was concluded.
        title: The contract's name.
        unicode: Whether to use α, ≥ and their like; otherwise their ASCII fallbacks.
    """
    return rendered(f"STATISTICAL ANALYSIS: {title}", _sections(verdict), unicode=unicode)


def _sections(verdict: Verdict) -> Iterator[Section]:
    yield from opening_sections(verdict)
    for number, finding in enumerate(verdict.findings, start=1):
        yield from criterion_sections(finding, verdict, number)
    if verdict.latency:
        yield latency_section(verdict)
    if verdict.gates:
        # Few runs have any.
        from trialwise.reporters.transparent.gates import gate_sections

        yield from gate_sections(verdict)
    yield from closing_sections(verdict)
