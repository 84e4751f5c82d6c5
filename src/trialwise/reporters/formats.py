"""Which report a file name asks for, and the one place where reports are written to disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from secrets import token_hex

from trialwise.errors import InvalidArgument, TrialwiseError
from trialwise.model.run import RunRecord

__all__ = [
    "Format",
    "ReportNotWritten",
    "format_of",
    "render_analysis",
    "render_report",
    "write_report",
]


class Format(StrEnum):
    """A kind of report."""

    JSON = "json"
    JUNIT = "junit"
    HTML = "html"
    MARKDOWN = "markdown"
    TAP = "tap"
    TRANSPARENT = "transparent"
    GITLAB = "gitlab"
    """GitLab's code quality report."""


_SUFFIXES = {
    ".json": Format.JSON,
    ".xml": Format.JUNIT,
    ".html": Format.HTML,
    ".htm": Format.HTML,
    ".md": Format.MARKDOWN,
    ".tap": Format.TAP,
    ".txt": Format.TRANSPARENT,
}
#: The name that GitLab's documentation gives its report, and an ending of ours for others.
_GITLAB_NAME, _GITLAB_ENDING = "gl-code-quality-report.json", ".codequality.json"

#: Where each renderer lives and what it takes beside the records. A report loads what it needs
#: and no other: one of them is wanted in a run, rarely two.
_RENDERERS: dict[Format, tuple[str, str, tuple[str, ...]]] = {
    Format.JSON: ("json_report", "render_json", ("name", "exit_code", "locations")),
    Format.JUNIT: ("junit", "render_junit", ("name", "locations")),
    Format.HTML: (".pages.run_report", "render_html", ()),
    Format.MARKDOWN: ("markdown", "render_markdown", ("name", "locations")),
    Format.TAP: ("tap", "render_tap", ()),
    Format.TRANSPARENT: ("formats", "render_analysis", ()),
    Format.GITLAB: ("annotations", "render_gitlab", ("file",)),
}


class ReportNotWritten(TrialwiseError):
    """A report could not be written where it was asked for.

    Args:
        path: Where.
        why: What the operating system said.
    """

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(
            f"{path}: the report could not be written ({why}). The run is kept; write the report "
            "again to a place that can be written to."
        )
        self.path = path
        self.why = why

    def __reduce__(self) -> tuple[type[ReportNotWritten], tuple[Path, str]]:
        return type(self), (self.path, self.why)


def format_of(path: str | Path) -> Format:
    """The report that a file name asks for by its ending.

    >>> format_of("out/report.junit.xml"), format_of("REPORT.MD")
    (<Format.JUNIT: 'junit'>, <Format.MARKDOWN: 'markdown'>)
    >>> format_of("report.pdf")
    Traceback (most recent call last):
        ...
    trialwise.errors.InvalidArgument: output must end with .json, .xml, .html, .md, .tap or .txt,
    got 'report.pdf'
    """
    name = Path(path).name.lower()
    if name == _GITLAB_NAME or name.endswith(_GITLAB_ENDING):
        return Format.GITLAB
    if found := _SUFFIXES.get(Path(name).suffix):
        return found
    allowed = "end with .json, .xml, .html, .md, .tap or .txt"
    raise InvalidArgument("output", str(path), allowed)


def render_report(
    records: Sequence[RunRecord],
    format_: Format,
    *,
    name: str = "trialwise",
    file: str = "trialwise.yaml",
    exit_code: int | None = None,
    locations: Mapping[str, str] | None = None,
) -> str:
    """The runs of a suite in a format, as text.

    Args:
        records: One run for each contract.
        format_: Which report.
        name: The suite's.
        file: The suite file, which annotations point at.
        exit_code: What the process ends with, for the JSON report.
        locations: Where each run's record is kept, by run id.
    """
    given = {"name": name, "file": file, "exit_code": exit_code, "locations": locations}
    module, function, taken = _RENDERERS[format_]
    render = getattr(import_module(f".{module}", "trialwise.reporters"), function)
    text: str = render(records, **{key: given[key] for key in taken})
    return text


def render_analysis(records: Sequence[RunRecord]) -> str:
    """The transparent analysis of every run, one below the other."""
    from trialwise.reporters.suite import checked
    from trialwise.reporters.transparent import render_transparent

    return "\n".join(
        render_transparent(record.verdict, title=record.verdict.contract or record.plan.contract)
        for record in checked(records)
    )


def write_report(
    path: str | Path,
    records: Sequence[RunRecord],
    *,
    format_: Format | None = None,
    name: str = "trialwise",
    file: str = "trialwise.yaml",
    exit_code: int | None = None,
    locations: Mapping[str, str] | None = None,
) -> Path:
    """Write the report that a file name asks for, whole or not at all.

    Folders are made as needed. The text is written beside its place and moved there, so that a
    reader never sees half of it and an earlier report stays until the new one is complete.

    Args:
        path: Where.
        records: One run for each contract.
        format_: Which report, where the file's ending does not say.
        name: The suite's.
        file: The suite file, which annotations point at.
        exit_code: What the process ends with, for the JSON report.
        locations: Where each run's record is kept, by run id.

    Raises:
        InvalidArgument: No report has such an ending.
        ReportNotWritten: The file system said no.
    """
    place = Path(path)
    text = render_report(
        records,
        format_ or format_of(place),
        name=name,
        file=file,
        exit_code=exit_code,
        locations=locations,
    )
    try:
        # No character that a service may have sent is worth a report.
        _replace(place, text.encode(errors="backslashreplace"))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else None
        raise ReportNotWritten(place, why or str(error)) from error
    return place


def _replace(place: Path, data: bytes) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.exists() and not place.is_file():
        # A pipe or a device, such as /dev/stdout, is written to and never moved over.
        place.write_bytes(data)
        return
    # Through a link, so that what it points at is replaced and the link stays.
    place = place.resolve()
    part = place.with_name(f".{place.name[:40]}.{token_hex(4)}.part")
    try:
        part.write_bytes(data)
        if place.exists():
            part.chmod(place.stat().st_mode & 0o777)
        part.replace(place)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
