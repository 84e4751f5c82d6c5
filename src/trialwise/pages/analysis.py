"""The full analysis: all the reasoning behind a verdict (companion §10.2–10.4).

The verdict of the run comes first, then the sections of each criterion, then how to check it all.
"""

from __future__ import annotations

from collections.abc import Iterator

from trialwise.documents.blocks import Document, Section
from trialwise.model.verdict import Verdict
from trialwise.pages.analysis_criterion import list_criterion_sections
from trialwise.pages.analysis_run import list_closing_sections, list_opening_sections

__all__ = ["build_analysis", "render_analysis"]


def build_analysis(verdict: Verdict, *, title: str) -> Document:
    """The full statistical analysis of a verdict.

    Args:
        verdict: What was decided.
        title: The contract's name.
    """
    return Document(
        kind="Analysis",
        title=f"STATISTICAL ANALYSIS: {title}",
        blocks=tuple(_list_sections(verdict)),
    )


def render_analysis(verdict: Verdict, *, title: str, unicode: bool = True) -> str:
    """The full statistical analysis of a verdict, as text of at most 80 columns.

    Args:
        verdict: What was decided.
        title: The contract's name.
        unicode: Whether to use α, ≥ and their like; otherwise their ASCII fallbacks.
    """
    from trialwise.renderers.capabilities import Capabilities
    from trialwise.renderers.document_text import render_document_text

    return render_document_text(build_analysis(verdict, title=title), Capabilities(unicode=unicode))


def _list_sections(verdict: Verdict) -> Iterator[Section]:
    yield from list_opening_sections(verdict)
    for number, finding in enumerate(verdict.findings, start=1):
        yield from list_criterion_sections(finding, verdict, number)
    if verdict.latency:
        # Few runs have latency limits or gates.
        from trialwise.pages.analysis_latency import build_latency_section

        yield build_latency_section(verdict)
    if verdict.gates:
        from trialwise.pages.analysis_gates import list_gate_sections

        yield from list_gate_sections(verdict)
    yield from list_closing_sections(verdict)
