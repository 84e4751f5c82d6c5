"""Where the answers about several arms go: standard output and files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trialwise.cli.options import build_output_option, require_folder
from trialwise.reports.answer_reports import (
    ANSWER_FORMATS,
    match_answer_format,
    render_answer,
)

if TYPE_CHECKING:
    from trialwise.documents.blocks import Document


def _check_ending(path: Path) -> None:
    match_answer_format(path)
    require_folder(path)


output_option = build_output_option(_check_ending, [*ANSWER_FORMATS], "Write the answer to a file")


def give_answer(page: Document, plain: dict[str, Any], given: dict[str, Any]) -> bool:
    """Print an answer and write the files; return whether all of them are there.

    Args:
        page: The answer for people.
        plain: The answer for programs.
        given: The options `as_json` and `outputs`.
    """
    from trialwise.cli.printing import output_of, say, say_json, write_file
    from trialwise.renderers.document_text import render_document_text

    if given["as_json"]:
        say_json(plain)
    else:
        say(render_document_text(page, output_of()).rstrip("\n"))
    complete = True
    for path in given["outputs"]:
        try:
            write_file(path, render_answer(page, plain, match_answer_format(path)))
        except click.FileError as error:
            click.echo(f"trialwise: {error.format_message()}", err=True)
            complete = False
    return complete
