"""What a run hands back: the record, and the ways to look at it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from trialwise.model.run import RunRecord
from trialwise.model.trial import NOT_MEASURED, Trial
from trialwise.model.verdict import Decision, Verdict
from trialwise.pages.suite_totals import SuiteEnvelope, bound_suite_errors
from trialwise.procedures.composite import combine

if TYPE_CHECKING:
    from trialwise.renderers.capabilities import Capabilities
    from trialwise.runtime.frames import Library, RunFrame


@dataclass(frozen=True, slots=True)
class Result:
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

    def write(self, path: str | Path) -> Path:
        """Write a report of the run; the end of the file's name says which.

        Args:
            path: Such as `report.html`, `report.md`, `junit.xml` or `report.json`.

        Returns:
            Where it was written.
        """
        from trialwise.reports.formats import write_report

        locations = {} if self.path is None else {self.record.run_id: str(self.path)}
        return write_report(path, [self.record], name=self.verdict.contract, locations=locations)

    def show(self, *, transparent: bool = False, stream: TextIO | None = None) -> None:
        """Print the summary, or the full statistical analysis."""
        out = sys.stdout if stream is None else stream
        from trialwise.renderers.capabilities import read_capabilities

        if transparent:
            out.write(self.transparent(unicode=read_capabilities(out).unicode))
        else:
            folders = () if self.path is None else (str(self.path),)
            able = read_capabilities(out)
            out.write(render_summary([self.record], able, folders=folders))

    def transparent(self, *, unicode: bool = True) -> str:
        """Return the full statistical analysis as text."""
        from trialwise.pages.analysis import render_analysis

        return render_analysis(self.verdict, title=self.verdict.contract, unicode=unicode)

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as plain values, fit for JSON."""
        from trialwise.model.codec import to_plain

        plain: dict[str, Any] = to_plain(self.verdict)
        return plain

    def __repr__(self) -> str:
        verdict = self.verdict
        decision = verdict.decision.value if verdict.decision else "REFUSED"
        trials = len(self.record.trials)
        lost = (one.error_class in NOT_MEASURED for one in self.record.trials.failing())
        failed = self.record.trials.failures - sum(lost)
        return f"<Result {decision}: {verdict.contract!r}, {failed:,} of {trials:,} trials failed>"

    def to_frame(self, kind: RunFrame = "trials", *, library: Library | None = None) -> Any:
        """Return a table for analysis in pandas or polars.

        Args:
            kind: "trials", a row for each; "outcomes", a row for each trial and criterion;
                "findings", a row for each criterion; "inputs", a row for each input and criterion.
            library: "pandas" or "polars"; None for pandas where it is installed, else polars.
        """
        from trialwise.runtime.frames import run_frame

        return run_frame([self.record], kind, library=library)

    def _repr_html_(self) -> str:
        from trialwise.pages.run_report import build_report_card
        from trialwise.renderers.html.page_frame import render_fragment

        return render_fragment(build_report_card([self.record]))


@dataclass(frozen=True, slots=True)
class SuiteResult:
    """Several contracts run together: FAIL beats INCONCLUSIVE beats PASS."""

    results: Mapping[str, Result]

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

    def __repr__(self) -> str:
        several = ", ".join(f"{name} {one.decision}" for name, one in self.results.items())
        return f"<SuiteResult {self.decision}: {several}>"

    def write(self, path: str | Path) -> Path:
        """Write a report of all contracts; the end of the file's name says which."""
        from trialwise.reports.formats import write_report

        several = self.results.values()
        locations = {one.record.run_id: str(one.path) for one in several if one.path is not None}
        return write_report(path, [one.record for one in several], locations=locations)

    @property
    def envelopes(self) -> tuple[SuiteEnvelope, ...]:
        """The across-suite bounds on a wrong verdict, by kind of error (companion §7.3)."""
        return bound_suite_errors(one.verdict for one in self.results.values())

    def show(self, *, stream: TextIO | None = None) -> None:
        """Print the summary of every contract and of the suite."""
        from trialwise.renderers.capabilities import read_capabilities

        out = sys.stdout if stream is None else stream
        records = [one.record for one in self.results.values()]
        out.write(render_summary(records, read_capabilities(out)))

    def to_dict(self) -> dict[str, Any]:
        """Return every contract's verdict as plain values, fit for JSON."""
        return {name: one.to_dict() for name, one in self.results.items()}

    def to_frame(self, kind: RunFrame = "trials", *, library: Library | None = None) -> Any:
        """Return all contracts in one table; see `Result.to_frame`."""
        from trialwise.runtime.frames import run_frame

        records = [one.record for one in self.results.values()]
        return run_frame(records, kind, library=library)

    def _repr_html_(self) -> str:
        from trialwise.pages.run_report import build_report_card
        from trialwise.renderers.html.page_frame import render_fragment

        return render_fragment(build_report_card([one.record for one in self.results.values()]))


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
