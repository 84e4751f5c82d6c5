"""Reports of a comparison, in the formats that reports of runs have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, TypeAlias

from trialwise.errors import InvalidArgument
from trialwise.reports.formats import BUILT_IN
from trialwise.reports.report_files import write_whole

if TYPE_CHECKING:
    from trialwise.procedures.comparing.findings import ArmRun, ComparisonVerdict

Render: TypeAlias = "Callable[[ComparisonVerdict, Sequence[ArmRun]], str]"


def _html(verdict: ComparisonVerdict, arms: Sequence[ArmRun]) -> str:
    from trialwise.pages.comparison import build_comparison_page
    from trialwise.renderers.html.page_frame import render_document

    return render_document(build_comparison_page(verdict, arms))


def _json(verdict: ComparisonVerdict, arms: Sequence[ArmRun]) -> str:
    from trialwise.pages.comparison_json import describe_comparison
    from trialwise.renderers.json_text import render_json

    return render_json(describe_comparison(verdict, arms))


def _junit(verdict: ComparisonVerdict, arms: Sequence[ArmRun]) -> str:
    from trialwise.pages.comparison_results import describe_results
    from trialwise.renderers.junit import render_junit

    return render_junit(describe_results(verdict, arms))


def _markdown(verdict: ComparisonVerdict, arms: Sequence[ArmRun]) -> str:
    from trialwise.pages.comparison import summarize_comparison
    from trialwise.renderers.document_markdown import render_document_markdown

    return render_document_markdown(summarize_comparison(verdict, arms, is_pictured=True))


def _text(verdict: ComparisonVerdict, arms: Sequence[ArmRun]) -> str:
    from trialwise.pages.comparison import build_comparison_page
    from trialwise.renderers.document_text import render_document_text

    return render_document_text(build_comparison_page(verdict, arms))


#: By the name of the format, whose endings `reports.formats` declares.
_RENDERERS: Mapping[str, Render] = {
    "html": _html,
    "markdown": _markdown,
    "junit": _junit,
    "json": _json,
    "transparent": _text,
}


def list_comparison_endings() -> tuple[str, ...]:
    """List the usual ending of each format that a comparison can be written in."""
    return tuple(BUILT_IN[name].endings[0] for name in _RENDERERS)


def match_comparison_format(path: str | PurePath) -> str:
    """Return the name of the format that a file name asks for by its ending.

    >>> match_comparison_format("out/comparison.xml")
    'junit'

    Raises:
        InvalidArgument: A comparison has no such format.
    """
    name = PurePath(path).name.lower()
    for one in _RENDERERS:
        if BUILT_IN[one].matches(name):
            return one
    raise InvalidArgument("output", str(path), f"end with {', '.join(list_comparison_endings())}")


def render_comparison(verdict: ComparisonVerdict, arms: Sequence[ArmRun], format_: str) -> str:
    """Render a comparison in a format, as text.

    Args:
        verdict: What was concluded.
        arms: The runs of the arms, the control first.
        format_: `html`, `markdown`, `junit`, `json` or `transparent`, which is plain text.
    """
    if format_ not in _RENDERERS:
        raise InvalidArgument("format", format_, f"be one of {', '.join(_RENDERERS)}")
    return _RENDERERS[format_](verdict, arms)


def write_comparison(
    path: str | Path, verdict: ComparisonVerdict, arms: Sequence[ArmRun] = ()
) -> Path:
    """Write the report of a comparison that a file name asks for, whole or not at all.

    Args:
        path: Where; its ending says the format.
        verdict: What was concluded.
        arms: The runs of the arms, the control first.

    Raises:
        InvalidArgument: A comparison has no such format.
        ReportNotWritten: The file system refused to write it.
    """
    format_ = match_comparison_format(path)
    return write_whole(Path(path), render_comparison(verdict, arms, format_))
