"""Files with variables of the environment, as `.env` files are written."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from trialwise.suite.suite_files import FileUnreadable, read_text

if TYPE_CHECKING:
    from trialwise.suite.reading_context import Context
    from trialwise.suite.yaml_reading import Node

_LARGEST = 1_000_000
_LINE = r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)"


def load_env_files(root: Node, context: Context) -> None:
    """Add the variables of the files that a suite names; those that are set already prevail.

    Services and the programs that they start read the process's own environment, so the variables
    are set there too, unless the suite is read with another one.

    Args:
        root: The suite.
        context: Takes the variables and the problems.
    """
    entry = context.entries(root).get("env_file")
    if entry is None:
        return
    node = entry[1]
    for one in node.items() if node.is_list else [node]:
        if isinstance(one.value, str):
            _load(one, context)


def _load(node: Node, context: Context) -> None:
    path = context.file(node.value)
    try:
        text = read_text(path, limit=_LARGEST)
        found = parse_env(text)
    except FileUnreadable as error:
        context.refuse(node, f"the file {error.reason}")
        return
    own = context.environment.variables is os.environ
    if own:
        for name, value in found.items():
            os.environ.setdefault(name, value)
    else:
        context.environment.variables = {**found, **context.environment.variables}


def parse_env(text: str) -> dict[str, str]:
    """Parse the variables of a file with `NAME=value` lines, comments and quotes.

    Raises:
        FileUnreadable: A line is none of these.

    >>> parse_env("# keys\\nexport KEY='sk 1'\\nMODEL=small # for tests")
    {'KEY': 'sk 1', 'MODEL': 'small'}
    """
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        plain = line.strip()
        if not plain or plain.startswith("#"):
            continue
        match = re.fullmatch(_LINE, plain)
        if match is None:
            raise FileUnreadable(f"has a line {number} that is not NAME=value")
        found[match[1]] = _unquote(match[2])
    return found


def _unquote(value: str) -> str:
    quoted = re.fullmatch(r"(['\"])(.*)\1\s*(?:#.*)?", value)
    return quoted[2] if quoted else re.sub(r"(^|\s)#.*", "", value).strip()
