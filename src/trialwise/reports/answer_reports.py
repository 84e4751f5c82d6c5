"""Reports of answers about several arms, in the formats that reports of runs have."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any, Protocol

from trialwise.documents.blocks import Document
from trialwise.errors import InvalidArgument
from trialwise.reports.formats import BUILT_IN

#: By name, in the order that a help text lists their endings. A comparison alone has test cases.
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
