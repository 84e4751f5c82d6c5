"""Every format of a report, declared once, and reports on disk.

A format imports what it needs when it is rendered: a run wants one of them, rarely two.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Protocol

from trialwise import extensions
from trialwise.documents.blocks import Document
from trialwise.errors import InvalidArgument, TrialwiseError

if TYPE_CHECKING:
    from trialwise.documents.results import SuiteResults
    from trialwise.model.run import RunRecord


@dataclass(frozen=True, kw_only=True)
class ReportSource:
    """What a format may show: the runs of a suite, and what is known of the suite."""

    records: Sequence[RunRecord]
    """One run for each contract."""
    name: str = "trialwise"
    """The suite's."""
    file: str = "trialwise.yaml"
    """The suite file, which annotations point at."""
    files: Mapping[str, str] = field(default_factory=dict)
    """The suite file of each run, by run id, where there are several."""
    exit_code: int | None = None
    """What the process ends with; what the verdicts alone say where not given."""
    locations: Mapping[str, str] = field(default_factory=dict)
    """Where each run's record is kept, by run id."""

    @cached_property
    def results(self) -> SuiteResults:
        """The result lines of all runs, which most formats show."""
        from trialwise.pages.results import describe_suite

        files = {one.run_id: self.files.get(one.run_id, self.file) for one in self.records}
        return describe_suite(self.records, name=self.name, locations=self.locations, files=files)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFormat:
    """A format of a report."""

    name: str
    endings: tuple[str, ...]
    """Endings of file names that ask for it, or whole names; the usual one first."""
    summary: str
    """What it holds and for whom, as the rest of a sentence."""
    render: Callable[[ReportSource], str]
    key: str
    """What a suite file calls it."""
    is_json: bool = False

    def matches(self, file_name: str) -> bool:
        """Return whether a file name, in lower case, asks for this format."""
        return any(
            file_name.endswith(one) and file_name != one
            # A file called `.json` has no ending: that is its name.
            if one.startswith(".")
            else file_name == one
            for one in self.endings
        )


def report_format(
    name: str, *endings: str, summary: str, key: str = "", is_json: bool = False
) -> Callable[[Callable[[ReportSource], str]], ReportFormat]:
    """Declare a function as the renderer of a format.

    Args:
        name: What users call the format.
        endings: Endings of file names that ask for it, such as `.csv`; the usual one first.
        summary: What it holds and for whom, as the rest of a sentence.
        key: What a suite file calls it; its name where not given.
        is_json: Whether its text is JSON.
    """
    return lambda render: ReportFormat(
        name=name, endings=endings, summary=summary, render=render, key=key or name, is_json=is_json
    )


@report_format("html", ".html", ".htm", summary="an HTML page for people")
def _html(source: ReportSource) -> str:
    from trialwise.pages.run_report import render_html

    # A page about one run is called by its contract.
    return render_html(source.records, title=source.name if len(source.records) > 1 else None)


@report_format(
    "gitlab",
    "gl-code-quality-report.json",
    ".codequality.json",
    summary="GitLab's code quality report",
    is_json=True,
)
def _gitlab(source: ReportSource) -> str:
    from trialwise.renderers.ci_formats import render_gitlab

    return render_gitlab(source.results, file=source.file, files=source.files)


@report_format("json", ".json", summary="all results as JSON, for programs", is_json=True)
def _json(source: ReportSource) -> str:
    from trialwise.pages.json_report import describe_report
    from trialwise.renderers.ci_formats import render_json

    return render_json(
        describe_report(
            source.records, name=source.name, exit_code=source.exit_code, locations=source.locations
        )
    )


@report_format("jsonl", ".jsonl", ".ndjson", summary="runs, results and trials as JSON lines")
def _jsonl(source: ReportSource) -> str:
    from trialwise.pages.json_report import list_rows
    from trialwise.renderers.ci_formats import render_json_lines

    return render_json_lines(list_rows(source.records, locations=source.locations))


@report_format("junit", ".xml", summary="JUnit XML, for CI servers")
def _junit(source: ReportSource) -> str:
    from trialwise.renderers.ci_formats import render_junit

    return render_junit(source.results)


@report_format("markdown", ".md", summary="Markdown, for a pull request", key="md")
def _markdown(source: ReportSource) -> str:
    from trialwise.pages.results_page import build_results_page
    from trialwise.renderers.document_markdown import render_document_markdown

    return render_document_markdown(build_results_page(source.results))


@report_format("tap", ".tap", summary="the Test Anything Protocol")
def _tap(source: ReportSource) -> str:
    from trialwise.renderers.ci_formats import render_tap

    return render_tap(source.results)


@report_format("transparent", ".txt", summary="the full statistical analysis as text")
def _transparent(source: ReportSource) -> str:
    from trialwise.pages.analysis import render_analysis
    from trialwise.pages.suite_totals import require_runs

    runs = ((one.verdict, one.plan.contract) for one in require_runs(source.records))
    return "\n".join(render_analysis(one, title=one.contract or name) for one, name in runs)


#: By name. A file name is held against them in this order, so that longer endings come first.
BUILT_IN: Mapping[str, ReportFormat] = {
    one.name: one for one in (_gitlab, _json, _jsonl, _junit, _html, _markdown, _tap, _transparent)
}


def list_endings(formats: Sequence[ReportFormat] = tuple(BUILT_IN.values())) -> list[str]:
    """List the usual ending of each format that has one; a whole name comes last."""
    usual = [one.endings[0] for one in formats if one.endings]
    # A name that must be written whole is the odd one of the list.
    return sorted(usual, key=lambda ending: not ending.startswith("."))


def find_format(name: str) -> ReportFormat:
    """Find the format of a name, or of the key that a suite file calls it by.

    Raises:
        InvalidArgument: There is none, neither here nor in another distribution.
    """
    for one in BUILT_IN.values():
        if name in (one.name, one.key):
            return one
    found = find_other_format(name)
    if found is None:
        # Those of other distributions are named without loading any of them.
        known = ", ".join((*BUILT_IN, *extensions.extension_names(extensions.REPORTERS)))
        raise InvalidArgument("format", name, f"be one of {known}")
    return found


def find_other_format(name: str) -> ReportFormat | None:
    """Find the format that another distribution declares under a name, or None."""
    return extensions.find_extension(extensions.REPORTERS, name, _accept)


def match_format(path: str | PurePath) -> ReportFormat:
    """Return the format that a file name asks for by its ending.

    >>> match_format("out/report.junit.xml").name, match_format("REPORT.MD").name
    ('junit', 'markdown')
    >>> match_format("report.pdf")
    Traceback (most recent call last):
        ...
    trialwise.errors.InvalidArgument: output must end with .json, .jsonl, .xml, .html, .md, .tap,
    .txt or gl-code-quality-report.json, got 'report.pdf'
    """
    name = PurePath(path).name.lower()
    # Other distributions are loaded only where no built-in format has the ending.
    for one in BUILT_IN.values():
        if one.matches(name):
            return one
    others = extensions.load_extensions(extensions.REPORTERS, _accept)
    for one in others.values():
        if one.matches(name):
            return one
    *some, last = list_endings((*BUILT_IN.values(), *others.values()))
    raise InvalidArgument("output", str(path), f"end with {', '.join(some)} or {last}")


def _accept(loaded: object) -> ReportFormat | None:
    return loaded if isinstance(loaded, ReportFormat) else None


# --- Reports on disk: rendered from stored or fresh runs, and written whole or not at all ---------


class ReportNotWritten(TrialwiseError):
    """A report could not be made, or not be written where it was asked for.

    Args:
        path: Where, or the name of its format.
        why: What the operating system said, or what its format raised.
        way_out: What to do, as a sentence.
    """

    def __init__(
        self, path: Path | str, why: str, way_out: str = "to a place that can be written to"
    ) -> None:
        super().__init__(
            f"{path}: the report could not be written ({why}). The run is kept; write the report "
            f"again {way_out}."
        )
        self.path = path
        self.why = why


def render_report(source: ReportSource, format_: str) -> str:
    """Render the runs of a suite in a format, as text.

    Args:
        source: The runs, and what is known of the suite.
        format_: The name of the format.

    Raises:
        ReportNotWritten: The format raised.
    """
    return _render(find_format(format_), source, format_)


def _render(chosen: ReportFormat, source: ReportSource, place: Path | str) -> str:
    """Render a report; a format that raises is named, whoever wrote it."""
    try:
        return chosen.render(source)
    except TrialwiseError:
        raise
    except Exception as error:
        import traceback

        maker = extensions.blame_extension(error) or getattr(chosen.render, "__module__", "")
        # The last frame alone: the run is kept and safe, and a page of code would hide that.
        where = "".join(traceback.format_tb(error.__traceback__)[-1:]).strip().partition("\n")[0]
        why = f"{maker} raised {type(error).__name__}: {error} in the format {chosen.name!r}"
        way_out = "in another format, or when this one is repaired"
        raise ReportNotWritten(place, f"{why}; {where}", way_out) from error


def write_report(path: str | Path, source: ReportSource, *, format_: str = "") -> Path:
    """Write the report that a file name asks for, whole or not at all.

    Folders are made as needed. The text is written beside its place and moved there, so that a
    reader never sees half of it and an earlier report stays until the new one is complete.

    Args:
        path: Where.
        source: The runs, and what is known of the suite.
        format_: The name of the format, where the file's ending does not say it.

    Raises:
        InvalidArgument: No report has such an ending.
        ReportNotWritten: Its format raised, or the file system refused to write it.
    """
    place = Path(path)
    chosen = find_format(format_) if format_ else match_format(place)
    return write_whole(place, _render(chosen, source, place))


def write_whole(place: Path, text: str) -> Path:
    """Write the text of a report whole or not at all.

    Args:
        place: Where.
        text: All of it.

    Raises:
        ReportNotWritten: The file system refused to write it.
    """
    try:
        # No character that a service may have sent is worth a report.
        _replace(place, text.encode(errors="backslashreplace"))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else None
        raise ReportNotWritten(place, why or str(error)) from error
    return place


def _replace(place: Path, data: bytes) -> None:
    # CI jobs write reports into folders that only exist after the first of them.
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.exists() and not place.is_file():
        # A pipe or a device, such as /dev/stdout, is written to and never moved over.
        place.write_bytes(data)
        return
    # Through a link, so that what it points at is replaced and the link stays.
    place = place.resolve()
    part = place.with_name(f".{place.name[:40]}.{os.urandom(4).hex()}.part")
    try:
        part.write_bytes(data)
        if place.exists():
            # A file that others may read keeps its permissions; a new one has those of the process.
            part.chmod(place.stat().st_mode & 0o777)
        part.replace(place)
    # Also when interrupted: no reader should find the half that was written.
    except BaseException:
        part.unlink(missing_ok=True)
        raise


# --- Reports of answers about several arms, in the formats that reports of runs have --------------

#: In the order that a help text lists their endings. A comparison alone has test cases.
_FORMATS = ("html", "markdown", "junit", "json", "transparent")


class Reported(Protocol):
    """An answer, as its reports need it. One that has test cases has `render_junit`, too."""

    def build_page(self) -> Document:
        """Build the whole page."""
        ...

    def build_summary(self, *, is_pictured: bool = False) -> Document:
        """Build a shorter page."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain values."""
        ...


def list_answer_endings() -> tuple[str, ...]:
    """List the usual ending of each format that an answer can be written in."""
    return tuple(BUILT_IN[name].endings[0] for name in _FORMATS)


def match_answer_format(path: str | PurePath) -> str:
    """Return the name of the format that a file name asks for by its ending.

    >>> match_answer_format("out/comparison.xml")
    'junit'

    Raises:
        InvalidArgument: An answer has no such format.
    """
    name = PurePath(path).name.lower()
    for one in _FORMATS:
        if BUILT_IN[one].matches(name):
            return one
    raise InvalidArgument("output", str(path), f"end with {', '.join(list_answer_endings())}")


def render_answer(answer: Reported, format_: str) -> str:
    """Render an answer in a format, as text.

    Args:
        answer: What was concluded.
        format_: `html`, `markdown`, `junit`, `json` or `transparent`, which is plain text.

    Raises:
        InvalidArgument: There is no such format, or only a comparison has it.
    """
    junit = getattr(answer, "render_junit", None)
    match format_:
        case "json":
            from trialwise.renderers.ci_formats import render_json

            return render_json(answer.to_dict())
        case "html":
            from trialwise.renderers.html.page_frame import render_document

            return render_document(answer.build_page())
        case "markdown":
            from trialwise.renderers.document_markdown import render_document_markdown

            return render_document_markdown(answer.build_summary(is_pictured=True))
        case "transparent":
            from trialwise.renderers.document_text import render_document_text

            return render_document_text(answer.build_page())
        case "junit" if junit is not None:
            return str(junit())
    known = [name for name in _FORMATS if name != "junit" or junit is not None]
    raise InvalidArgument("format", format_, f"be one of {', '.join(known)}")
