"""Answers about several arms as files: what `choose` and `explore` found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trialwise.documents.blocks import Document
from trialwise.errors import InvalidArgument

#: By the ending of a file, in the order that a help text lists them.
ANSWER_FORMATS = {".html": "html", ".json": "json", ".md": "markdown", ".txt": "transparent"}


def match_answer_format(path: Path) -> str:
    """Return the name of the format that a file name asks for by its ending.

    >>> match_answer_format(Path("out/choice.md"))
    'markdown'

    Raises:
        InvalidArgument: An answer has no such format.
    """
    found = ANSWER_FORMATS.get(path.suffix.lower())
    if found is None:
        raise InvalidArgument("output", str(path), f"end with {', '.join(ANSWER_FORMATS)}")
    return found


def render_answer(page: Document, plain: dict[str, Any], format_: str) -> str:
    """Render an answer in a format, as text.

    Args:
        page: The answer for people.
        plain: The answer for programs.
        format_: `html`, `markdown`, `json` or `transparent`, which is plain text.
    """
    match format_:
        case "json":
            from trialwise.renderers.json_text import render_json

            return render_json(plain)
        case "html":
            from trialwise.renderers.html.page_frame import render_document

            return render_document(page)
        case "markdown":
            from trialwise.renderers.document_markdown import render_document_markdown

            return render_document_markdown(page)
        case "transparent":
            from trialwise.renderers.document_text import render_document_text

            return render_document_text(page)
    raise InvalidArgument("format", format_, f"be one of {', '.join(ANSWER_FORMATS.values())}")
