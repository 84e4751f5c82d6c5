"""What a run hands back: the record, and the ways to look at it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from trialwise.model import RunRecord, Verdict
from trialwise.model.codec import to_plain
from trialwise.model.trial import NOT_MEASURED, Trial
from trialwise.pages.suite_totals import bound_suite_errors
from trialwise.procedures.chances import ErrorBound
from trialwise.procedures.composite import combine
from trialwise.renderers.capabilities import Capabilities, read_capabilities
from trialwise.runtime.frames import Library, RunFrame, run_frame
from trialwise.stats.result_types import Decision


class _Shown:
    """What a run and several can both be turned into: reports, tables, a card in a notebook."""

    __slots__ = ()

    @property
    def _runs(self) -> Sequence[Result]:
        raise NotImplementedError

    @property
    def _records(self) -> list[RunRecord]:
        return [one.record for one in self._runs]

    @property
    def _name(self) -> str:
        """What reports call several runs; they name one by its contract."""
        return "trialwise"

    def write(self, path: str | Path) -> Path:
        """Write a report; the end of the file's name says which.

        Args:
            path: Such as `report.html`, `report.md`, `junit.xml` or `report.json`.

        Returns:
            Where it was written.
        """
        from trialwise.reports.formats import ReportSource, write_report

        kept = {one.record.run_id: str(one.path) for one in self._runs if one.path is not None}
        known = ReportSource(records=self._records, name=self._name, locations=kept)
        return write_report(path, known)

    def to_frame(self, kind: RunFrame = "trials", *, library: Library | None = None) -> Any:
        """Return one table for analysis in pandas or polars.

        Args:
            kind: "trials", a row for each; "outcomes", a row for each trial and criterion;
                "findings", a row for each criterion; "inputs", a row for each input and criterion.
            library: "pandas" or "polars"; None for pandas where it is installed, else polars.
        """
        return run_frame(self._records, kind, library=library)

    def _repr_html_(self) -> str:
        from trialwise.pages.run_report import build_report_card
        from trialwise.renderers.html.page_frame import render_fragment

        return render_fragment(build_report_card(self._records))


@dataclass(frozen=True, slots=True)
class Result(_Shown):
    """A finished run.

    >>> import trialwise as tw
    >>> contract = tw.Contract(
    ...     "sums", lambda question: "555",
    ...     [tw.Criterion("answers", tw.contains("555"), at_least=0.9)],
    ... )
    >>> result = tw.run(contract, inputs=["What is 15 * 37?"], seed=1, store=None)
    >>> result.decision, result.verdict.findings[0].tally.trials
    (<Decision.PASS: 'PASS'>, 40)
    """

    record: RunRecord
    path: Path | None = None
    """The folder the run is kept in, if it is kept."""

    @property
    def _runs(self) -> Sequence[Result]:
        return (self,)

    @property
    def _name(self) -> str:
        return self.verdict.contract

    @property
    def verdict(self) -> Verdict:
        """The composite verdict with every finding."""
        return self.record.verdict

    @property
    def decision(self) -> Decision:
        """PASS, FAIL or INCONCLUSIVE."""
        assert self.verdict.decision is not None
        return self.verdict.decision

    @property
    def passed(self) -> bool:
        """Whether every criterion passed."""
        return self.decision is Decision.PASS

    @property
    def trials(self) -> Sequence[Trial]:
        """Every trial that ran, in the order of inputs; each is read when somebody asks for it."""
        return self.record.trials

    @property
    def failures(self) -> Sequence[Trial]:
        """The measured trials in which some criterion failed, in the order of inputs."""
        return tuple(
            one for one in self.record.trials.failing() if one.error_class not in NOT_MEASURED
        )

    def show(self, *, transparent: bool = False, stream: TextIO | None = None) -> None:
        """Print the summary, or the full statistical analysis."""
        out = sys.stdout if stream is None else stream
        able = read_capabilities(out)
        if transparent:
            out.write(self.transparent(unicode=able.unicode))
        else:
            folders = () if self.path is None else (str(self.path),)
            out.write(render_summary([self.record], able, folders=folders))

    def transparent(self, *, unicode: bool = True) -> str:
        """Return the full statistical analysis as text."""
        from trialwise.pages.analysis import render_analysis

        return render_analysis(self.verdict, title=self.verdict.contract, unicode=unicode)

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as plain values, fit for JSON."""
        plain: dict[str, Any] = to_plain(self.verdict)
        return plain

    def __repr__(self) -> str:
        decision = self.verdict.decision.value if self.verdict.decision else "REFUSED"
        trials = self.record.trials
        # A trial that never reached the service says nothing of it, and is no failure.
        lost = sum(one.error_class in NOT_MEASURED for one in trials.failing())
        counts = f"{trials.failures - lost:,} of {len(trials):,} trials failed"
        return f"<Result {decision}: {self.verdict.contract!r}, {counts}>"


@dataclass(frozen=True, slots=True)
class SuiteResult(_Shown):
    """Several contracts run together: FAIL beats INCONCLUSIVE beats PASS."""

    results: Mapping[str, Result]

    @property
    def _runs(self) -> Sequence[Result]:
        return [*self.results.values()]

    @property
    def decision(self) -> Decision:
        """The worst of all contracts'."""
        found = combine(result.decision for result in self.results.values())
        assert found is not None
        return found

    @property
    def passed(self) -> bool:
        """Whether every contract passed."""
        return self.decision is Decision.PASS

    @property
    def envelopes(self) -> tuple[ErrorBound, ...]:
        """The across-suite bounds on a wrong verdict, by kind of error (companion §7.3)."""
        return bound_suite_errors(one.verdict for one in self.results.values())

    def show(self, *, stream: TextIO | None = None) -> None:
        """Print the summary of every contract and of the suite."""
        out = sys.stdout if stream is None else stream
        out.write(render_summary(self._records, read_capabilities(out)))

    def to_dict(self) -> dict[str, Any]:
        """Return every contract's verdict as plain values, fit for JSON."""
        return {name: one.to_dict() for name, one in self.results.items()}

    def __repr__(self) -> str:
        several = ", ".join(f"{name} {one.decision}" for name, one in self.results.items())
        return f"<SuiteResult {self.decision}: {several}>"


def render_summary(
    records: Sequence[RunRecord],
    able: Capabilities,
    *,
    folders: Sequence[str] = (),
    files: Mapping[str, str] | None = None,
) -> str:
    """The verdicts of a suite as text: a line for each criterion, why it failed, and what needs
    attention.

    Args:
        records: One for each contract.
        able: What the stream can do.
        folders: Where the runs are kept.
        files: The suite file of each run, by run id.
    """
    from trialwise.pages.results import describe_suite
    from trialwise.renderers.results_text import render_results

    suite = describe_suite(records, files=files)
    return render_results(suite, capabilities=able, folders=folders)
