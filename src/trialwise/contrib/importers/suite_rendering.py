"""An imported suite as the text of a suite file, saying of its parts where they came from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trialwise.contrib.importers.imported_suite import Imported, Place

__all__ = ["render_yaml"]

_WIDTH = 98
_INDENT = 2


def render_yaml(imported: Imported) -> str:
    """The suite file, with comments; the suite's own reader reads back the very same values.

    >>> from trialwise.contrib.importers.imported_suite import Imported
    >>> suite = {"name": "sums", "criteria": [{"name": "answers", "contains": "555"}]}
    >>> comments = {("criteria", 0): "contract `answers`, line 9"}
    >>> sources = ("cerberus.yaml",)
    >>> print(render_yaml(
    ...     Imported(format="cerberus", sources=sources, suite=suite, comments=comments)
    ... ))
    # Imported from cerberus.yaml (cerberus).
    <BLANKLINE>
    name: sums
    criteria:
      # contract `answers`, line 9
      - name: answers
        contains: '555'
    <BLANKLINE>
    """
    import io

    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.width = _WIDTH
    yaml.indent(mapping=_INDENT, sequence=_INDENT * 2, offset=_INDENT)
    yaml.allow_unicode = True
    out = io.StringIO()
    yaml.dump(_add_comments(imported.suite, (), imported, indent=0), out)
    return "\n".join([*_header(imported), "", out.getvalue()])


def _header(imported: Imported) -> list[str]:
    # The suite is kept and shared, so it does not name the folder it was made in.
    sources = ", ".join(Path(one).name for one in imported.sources)
    text = [f"Imported from {sources} ({imported.format})."]
    text += [f"- {note}" for note in imported.notes]
    return [line for one in text for line in _comment_lines(one)]


def _comment_lines(text: str) -> list[str]:
    """A comment in lines; what a terminal would obey is shown as a dot."""
    import textwrap

    plain = "".join(one if one.isprintable() else " " if one.isspace() else "·" for one in text)
    hanging = "  " if plain.startswith("- ") else ""
    lines = textwrap.wrap(
        plain, _WIDTH, break_long_words=False, break_on_hyphens=False, subsequent_indent=hanging
    )
    return [f"# {line}" for line in lines]


def _add_comments(value: Any, place: Place, imported: Imported, *, indent: int) -> Any:
    """The value as the library's own containers, which carry comments."""
    from ruamel.yaml.comments import CommentedMap, CommentedSeq
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString

    if isinstance(value, dict):
        made: Any = CommentedMap()
        for key, one in value.items():
            name = key if key.isprintable() else DoubleQuotedScalarString(key)
            made[name] = _add_comments(one, (*place, key), imported, indent=indent + _INDENT)
            _annotate(made, name, (*place, key), imported, indent)
        return made
    if isinstance(value, list):
        made = CommentedSeq()
        for index, one in enumerate(value):
            # A dash takes two columns, and what stands behind it is two further in.
            made.append(_add_comments(one, (*place, index), imported, indent=indent + _INDENT))
            _annotate(made, index, (*place, index), imported, indent)
        if value and all(not isinstance(one, dict | list) for one in value) and _is_short(value):
            made.fa.set_flow_style()
        return made
    if isinstance(value, str) and not value.isprintable():
        plain = _is_plain_block(value)
        return LiteralScalarString(value) if plain else DoubleQuotedScalarString(value)
    return value


def _annotate(made: Any, key: Any, place: Place, imported: Imported, indent: int) -> None:
    comment = imported.comments.get(place)
    if comment:
        lines = [line.removeprefix("# ") for line in _comment_lines(comment)]
        made.yaml_set_comment_before_after_key(key, before="\n".join(lines), indent=indent)


def _is_short(items: list[Any]) -> bool:
    return sum(len(str(item)) + 2 for item in items) <= 60 and not any(
        isinstance(item, str) and "\n" in item for item in items
    )


def _is_plain_block(text: str) -> bool:
    """Whether a literal block keeps every character: nothing odd, no space at a line's ends."""
    lines = text.split("\n")
    return (
        len(lines) > 1
        and bool(lines[0])
        and all(
            line.isprintable() and line == line.rstrip() and not line.startswith((" ", "\t"))
            for line in lines
        )
    )
