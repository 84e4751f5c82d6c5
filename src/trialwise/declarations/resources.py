"""Kinds of values that reach outside: URLs, commands, folders, functions and secrets.

They are read like any text when a suite is loaded, and become what a constructor takes when the
service is built: until then `{model}` in them stands for the model of a contract.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trialwise.declarations.scalars import Kind, PythonPath, Text
from trialwise.declarations.structures import Either, Listing
from trialwise.declarations.written import INVALID, Invalid, Node, Reader, show_value


class Url(Text):
    """Where to: a variable may hold its beginning, or else its host."""

    def __init__(self) -> None:
        super().__init__("a URL", environment="template")

    def read(self, node: Node, label: str, reader: Reader) -> str | Invalid:
        """Read the text; what a variable holds at its very beginning is filled in at once.

        The service takes variables in the host only: a URL is written into logs.
        """
        text = node.value
        # A variable at the beginning may hold a whole address, scheme included, which must be seen
        # to be checked; any other reference is resolved by the service, at each call.
        if not isinstance(text, str) or not text.startswith("${"):
            return super().read(node, label, reader)
        end = text.find("}") + 1
        head = reader.fill(node, text[:end])
        tail = reader.fill_template(node, text[end:])
        if isinstance(head, Invalid) or isinstance(tail, Invalid):
            return INVALID
        if "${" in head:
            return reader.refuse(node, f"{label}: the value of {text[:end]} holds a reference")
        return reader.mark_filled(head + tail, text)

    def label(self, written: str) -> str:
        """Return the host."""
        return (written.partition("://")[2] or written).partition("/")[0]


class CommandLine(Either):
    """A program and its arguments, as one text or as a list."""

    def __init__(self) -> None:
        super().__init__(
            "a command, or a list of its arguments",
            # Split into words first, so that no value of the environment becomes two.
            scalar=Text("a command", environment="kept"),
            listing=Listing(Text(environment="read"), "a list of arguments, the program first"),
        )

    def finish(self, value: Any, node: Node, label: str, reader: Reader) -> Any:
        """Return the arguments; a text is split first and filled then."""
        if isinstance(value, list):
            return value
        import shlex

        try:
            # As a shell would split it; nothing else of a shell applies, since none is started.
            words = shlex.split(value)
        except ValueError as error:
            problem = f"must be a command with its quotes closed ({error})"
            return reader.refuse(node, f"{label} {problem}, got {show_value(node)}")
        argv = [reader.fill(node, word) for word in words]
        if not argv:
            return reader.refuse(node, f"{label} must name a program")
        return INVALID if INVALID in argv else argv

    def label(self, written: str) -> str:
        """Return the name of the program."""
        return Path(written.split(maxsplit=1)[0]).name


class File(Text):
    """The path of a file, from the suite's folder."""

    def __init__(self) -> None:
        super().__init__("a path", environment="read")

    def finish(self, value: Any, node: Node, label: str, reader: Reader) -> Any:  # noqa: ARG002
        """Return the path."""
        return reader.file(value)

    def label(self, written: str) -> str:
        """Return the name of the file, without its extension."""
        return Path(written).stem


class Folder(File):
    """The path of a folder that exists; the suite's own where none is named."""

    def finish(self, value: Any, node: Node, label: str, reader: Reader) -> Any:
        """Return the path as text."""
        folder = reader.file(".").resolve() / value
        # Said before the first trial: a program would fail in each with a worse message.
        if not folder.is_dir():
            return reader.refuse(node, f"{label} must be a folder that exists")
        return str(folder)

    def supply(self, reader: Reader) -> Any:
        """Return the suite's folder."""
        return str(reader.file(".").resolve())


class PythonFunction(PythonPath):
    """A function, imported when the service is built."""

    def finish(self, value: Any, node: Node, label: str, reader: Reader) -> Any:  # noqa: ARG002
        """Return the function."""
        return reader.import_function(node, value)


class SecretName(Kind):
    """The name of an environment variable that holds a secret, or null for none."""

    expected = spelled = "the name of an environment variable"
    takes_null = True
    form: Mapping[str, Any] = {"type": ["string", "null"], "pattern": r"\S"}

    def read(self, node: Node, label: str, reader: Reader) -> Any:
        """Read the name."""
        text = Text(self.expected)
        return None if node.value is None else text.read(node, label, reader)
