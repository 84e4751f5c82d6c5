"""Reports on disk: rendered from stored or fresh runs, and written whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from secrets import token_hex
from typing import TypedDict, Unpack

from trialwise.errors import TrialwiseError
from trialwise.model.run import RunRecord
from trialwise.reports.formats import ReportFormat, ReportSource, find_format, match_format


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


class Known(TypedDict, total=False):
    """What is known of the suite whose runs are reported."""

    name: str
    """The suite's."""
    file: str
    """The suite file, which annotations point at."""
    files: Mapping[str, str]
    """The suite file of each run, by run id, where there are several."""
    exit_code: int | None
    """What the process ends with, for the JSON report."""
    locations: Mapping[str, str]
    """Where each run's record is kept, by run id."""


def render_report(records: Sequence[RunRecord], format_: str, **known: Unpack[Known]) -> str:
    """Render the runs of a suite in a format, as text.

    Args:
        records: One run for each contract.
        format_: The name of the format.
        known: What is known of the suite.

    Raises:
        ReportNotWritten: The format raised.
    """
    return _render(find_format(format_), ReportSource(records=records, **known), format_)


def _render(chosen: ReportFormat, source: ReportSource, place: Path | str) -> str:
    """Render a report; a format that raises is named, whoever wrote it."""
    try:
        return chosen.render(source)
    except TrialwiseError:
        raise
    except Exception as error:
        import traceback

        maker = getattr(chosen.render, "__module__", "")
        where = "".join(traceback.format_tb(error.__traceback__)[-1:]).strip().partition("\n")[0]
        why = f"the format {chosen.name!r} of {maker} raised {type(error).__name__}: {error}"
        way_out = "in another format, or when this one is repaired"
        raise ReportNotWritten(place, f"{why}; {where}", way_out) from error


def write_report(
    path: str | Path, records: Sequence[RunRecord], *, format_: str = "", **known: Unpack[Known]
) -> Path:
    """Write the report that a file name asks for, whole or not at all.

    Folders are made as needed. The text is written beside its place and moved there, so that a
    reader never sees half of it and an earlier report stays until the new one is complete.

    Args:
        path: Where.
        records: One run for each contract.
        format_: The name of the format, where the file's ending does not say it.
        known: What is known of the suite.

    Raises:
        InvalidArgument: No report has such an ending.
        ReportNotWritten: Its format raised, or the file system refused to write it.
    """
    place = Path(path)
    chosen = find_format(format_) if format_ else match_format(place)
    source = ReportSource(records=records, **known)
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
