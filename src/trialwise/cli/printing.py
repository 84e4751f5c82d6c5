"""Standard output as it is: what it cannot show is spelled out, and JSON stays JSON.

What a service prints goes to standard error (`standard_streams.divert_prints`), so a command that
calls one writes its own output with `say` and `say_json` only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trialwise.cli.standard_streams import mute, own_output

#: Columns of a page whose lines are not broken.
_ENDLESS = 100_000

if TYPE_CHECKING:
    from trialwise.documents.blocks import Document
    from trialwise.renderers.capabilities import Capabilities
    from trialwise.reports.formats import Reported


def output_of(*, ascii_only: bool = False) -> Capabilities:
    """Return what standard output can do, or less where somebody asks for less."""
    from trialwise.renderers.capabilities import read_capabilities

    able = read_capabilities(own_output())
    return replace(able, unicode=False) if ascii_only else able


def say(text: str) -> None:
    """Print a text without failing on a character or a closed pipe."""
    out = own_output()
    encoding = out.encoding or "ascii"
    shown = text.encode(encoding, "backslashreplace").decode(encoding).removesuffix("\n")
    try:
        with ignore_gone_reader():
            click.echo(shown, file=out)
    except OSError as error:
        mute(out.fileno())
        click.echo(f"trialwise: standard output takes no more: {error.strerror}", err=True)


def say_page(page: Document, *, ascii_only: bool = False, wide: bool = False) -> None:
    """Print a page as text.

    Args:
        page: What to print.
        ascii_only: Whether somebody asks for less than the stream can show.
        wide: Whether lines are as long as what they say, such as the names of runs.
    """
    from trialwise.renderers.document_text import render_document_text

    able = output_of(ascii_only=ascii_only)
    say(render_document_text(page, replace(able, width=_ENDLESS) if wide else able).rstrip("\n"))


def say_json(data: Any) -> None:
    """Print plain values, or JSON text, as JSON."""
    text = data if isinstance(data, str) else json.dumps(data, indent=2, ensure_ascii=False)
    try:
        text.encode(own_output().encoding or "ascii")
    except UnicodeEncodeError:
        text = json.dumps(json.loads(text) if isinstance(data, str) else data, indent=2)
    with ignore_gone_reader():
        click.echo(text.removesuffix("\n"), file=own_output())


@contextmanager
def ignore_gone_reader() -> Iterator[None]:
    """Print to standard output as long as somebody reads it.

    A reader such as `head` that has read enough changes no exit code.
    """
    out = own_output()
    try:
        yield
        out.flush()
    except BrokenPipeError:
        mute(out.fileno())


def write_file(path: Path, text: str) -> None:
    """Write a file that somebody asked for, and say so."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.FileError(str(path), error.strerror or str(error)) from None
    click.echo(f"wrote {path}", err=True)


def give_answer(answer: Reported, given: Mapping[str, Any]) -> bool:
    """Print an answer about several arms and write its files; return whether all are there.

    It is printed first: no file that cannot be written may hide it.

    Args:
        answer: What was concluded, or planned.
        given: The options `as_json`, `markdown` and `outputs`.
    """
    from trialwise.renderers.document_text import render_document_text
    from trialwise.reports.formats import (
        ReportNotWritten,
        match_answer_format,
        render_answer,
        write_whole,
    )

    if given["as_json"]:
        say_json(answer.to_dict())
    elif given.get("markdown"):
        say(render_answer(answer, "markdown"))
    else:
        say(render_document_text(answer.build_summary(), output_of()).rstrip("\n"))
    complete = True
    for path in given.get("outputs", ()):
        try:
            text = render_answer(answer, match_answer_format(path))
            click.echo(f"wrote {write_whole(path, text)}", err=True)
        except ReportNotWritten as error:
            click.echo(f"trialwise: {error}", err=True)
            complete = False
    return complete
