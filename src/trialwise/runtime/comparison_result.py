"""What `compare` returns: the arms that were compared, what they show, and ways to look at it."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from trialwise.errors import InvalidArgument
from trialwise.model.run import RunRecord
from trialwise.model.verdict import Decision
from trialwise.procedures.comparing.findings import ArmRun, ComparisonFinding, ComparisonVerdict
from trialwise.procedures.comparing.relabelling import relabel_arms
from trialwise.runtime.open_comparison import find_rules

if TYPE_CHECKING:
    from trialwise.documents.blocks import Document
    from trialwise.procedures.comparing.findings import ScoreLift
    from trialwise.runtime.frames import ComparisonFrame, Library


def relabel_comparison(comparison: Comparison, *, seed: int = 0) -> Comparison:
    """Conclude the comparison of a service with itself.

    No difference is there by construction. It passes where none was found, and where swapping the
    labels at random within pairs finds one no more often than the level allows.

    Args:
        comparison: Of two arms, asked whether they are different.
        seed: Of the coins that swap labels.
    """
    if len(comparison.arms) != 2 or comparison.verdict.question.question != "different":
        allowed = 'be of two arms, asked whether they are "different"'
        raise InvalidArgument("comparison", repr(comparison), allowed)
    rules = find_rules(comparison.arms, comparison.verdict.question)
    if not rules and not all(one.fixed_size for one in comparison.verdict.pairings):
        allowed = "be kept in a store, with the rules that ended it, or have fixed trials"
        raise InvalidArgument("comparison", repr(comparison), allowed)
    verdict = relabel_arms(comparison.verdict, comparison.arms, rules, seed=seed)
    return replace(comparison, verdict=verdict)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Arms compared: the runs of the control and of the candidates, and what they show.

    >>> import trialwise as tw
    >>> criterion = tw.Criterion("answers", tw.contains("555"), at_least=0.9)
    >>> old = tw.Contract("sums", lambda question, seed: "555" if seed % 3 else "554", [criterion])
    >>> new = old.with_service(lambda question: "555")
    >>> comparison = tw.compare(old, new, inputs=["15 * 37?"], trials=30, seed=1, store=None)
    >>> comparison.findings[0].contrast
    <Contrast.BETTER: 'better'>
    """

    verdict: ComparisonVerdict
    arms: tuple[ArmRun, ...]
    """The control first."""
    path: Path | None = None
    """The folder the comparison is kept in, if it is kept."""

    @property
    def control(self) -> RunRecord:
        """The run of the control."""
        return self.arms[0].record

    @property
    def candidate(self) -> RunRecord:
        """The run of the first candidate."""
        return self.arms[1].record

    @property
    def paths(self) -> tuple[Path | None, ...]:
        """The folders the runs are kept in, if they are kept."""
        return tuple(one.path for one in self.arms)

    @property
    def decision(self) -> Decision:
        """FAIL if any candidate fails a criterion, PASS if all pass everywhere."""
        return self.verdict.decision

    @property
    def passed(self) -> bool:
        """Whether the decision is PASS: for an `assert`."""
        return self.decision is Decision.PASS

    @property
    def findings(self) -> tuple[ComparisonFinding, ...]:
        """One for every criterion of every two arms that are compared."""
        return self.verdict.findings

    def build_page(self) -> Document:
        """Build the page that every report of the comparison is made from."""
        from trialwise.pages.comparison import build_comparison_page

        return build_comparison_page(self.verdict, self.arms)

    def score_lift(self, criterion: str, *, confidence: float = 0.95) -> ScoreLift:
        """Measure how much better the candidate's scores are, pair by pair.

        Args:
            criterion: Which both runs have; without scores, a pass counts 1 and a failure 0.
            confidence: The confidence of the interval.
        """
        from trialwise.procedures.comparing.amounts import measure_lift

        return measure_lift(self.control, self.candidate, criterion, confidence=confidence)

    def relabel(self, *, seed: int = 0) -> Comparison:
        """Conclude `compare(contract, contract)`: is a difference found that is not there?"""
        return relabel_comparison(self, seed=seed)

    def show(self, *, stream: TextIO | None = None) -> None:
        """Print what the comparison concluded."""
        from trialwise.pages.comparison import summarize_comparison
        from trialwise.renderers.capabilities import read_capabilities
        from trialwise.renderers.document_text import render_document_text

        out = sys.stdout if stream is None else stream
        page = summarize_comparison(self.verdict, self.arms)
        out.write(render_document_text(page, read_capabilities(out)))

    def to_dict(self) -> dict[str, Any]:
        """Return the conclusion as plain values, fit for JSON."""
        from trialwise.pages.comparison_json import describe_comparison

        return describe_comparison(self.verdict, self.arms)

    def render(self, format_: str) -> str:
        """Return the report in a format: `html`, `markdown`, `junit`, `json` or `transparent`."""
        from trialwise.reports.comparison_reports import render_comparison

        return render_comparison(self.verdict, self.arms, format_)

    def write(self, path: str | Path) -> Path:
        """Write a report: `.html`, `.md`, `.xml` (JUnit), `.json` or `.txt`.

        Args:
            path: Where; its ending says the format.
        """
        from trialwise.reports.comparison_reports import write_comparison

        return write_comparison(path, self.verdict, self.arms)

    def __repr__(self) -> str:
        return f"<Comparison {self.decision.value}: {self.verdict.statement.removesuffix('.')}>"

    def to_frame(self, kind: ComparisonFrame = "pairs", *, library: Library | None = None) -> Any:
        """Return a table for analysis in pandas or polars.

        Args:
            kind: "pairs", one row for each pair and criterion, or "findings".
            library: "pandas" or "polars"; None for pandas where it is installed, else polars.
        """
        from trialwise.runtime.frames import comparison_frame

        return comparison_frame(self, kind, library=library)

    def _repr_html_(self) -> str:
        from trialwise.pages.comparison import summarize_comparison
        from trialwise.renderers.html.page_frame import render_fragment

        return render_fragment(summarize_comparison(self.verdict, self.arms, is_pictured=True))
