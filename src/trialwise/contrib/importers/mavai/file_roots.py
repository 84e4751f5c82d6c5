"""Files that a mavai file names: beside it, or below a root that it declares."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path, PureWindowsPath

from trialwise.contrib.importers.named_files import is_below
from trialwise.declarations.written import Node
from trialwise.declarations.written import show_value as shown
from trialwise.regular_files import FileUnreadable, read_bytes
from trialwise.suite.suite_problems import Problems

__all__ = ["Roots"]

#: Of one file, and of all the files of a contract together.
MAX_BYTES = 5_000_000
_NAME = re.compile(r"[a-z][a-z0-9-]*")


class Roots:
    """The anchors of one file, and which of them were used.

    Args:
        block: The value of `roots`, if there is one.
        folder: The file's own.
        environment: Where `MAVAI_ROOT_<NAME>` may stand for a root.
        problems: Where to say what is wrong.
    """

    def __init__(
        self, block: Node | None, folder: Path, environment: Mapping[str, str], problems: Problems
    ) -> None:
        self._folder = folder
        self._problems = problems
        self._known: dict[str, Path | None] = {}
        self._keys: dict[str, Node] = {}
        self._used: set[str] = set()
        self._left = MAX_BYTES
        if block is None:
            return
        if not block.is_mapping or not block.entries:
            problems.add(block, f"`roots` must map names to folders, got {_describe_value(block)}")
            return
        for name, (key, value) in block.entries.items():
            self._keys[name] = key
            self._known[name] = self._root(name, key, value, environment)

    def _root(
        self, name: str, key: Node, value: Node, environment: Mapping[str, str]
    ) -> Path | None:
        if not _NAME.fullmatch(name):
            self._problems.add(key, f"the root `{name}` must be named by [a-z][a-z0-9-]*")
            return None
        text = value.value
        if not isinstance(text, str) or not text:
            message = f"the root `{name}` must be a relative path, got {shown(value)}"
            self._problems.add(value, message)
            return None
        variable = f"MAVAI_ROOT_{name.upper().replace('-', '_')}"
        if Path(text).is_absolute() or PureWindowsPath(text).drive or text.startswith(("/", "\\")):
            message = (
                f"the root `{name}` must be a relative path; {variable} may be an absolute one"
            )
            self._problems.add(value, message)
            return None
        folder = self._folder / environment.get(variable, text)
        if variable not in environment and not is_below(folder, self._folder):
            # Whoever imports the file has to allow it, not who wrote it.
            message = (
                f"the root `{name}` is not below the folder of this file; where its files may be "
                f"copied into the suite, name it by the variable {variable}"
            )
            self._problems.add(value, message)
            return None
        try:
            folder = folder.resolve()
            is_folder = folder.is_dir()
        except (OSError, ValueError, RuntimeError):
            is_folder = False
        if not is_folder:
            self._problems.add(value, f"the root `{name}` is not a folder: {folder}")
            return None
        return folder

    def path(self, node: Node) -> Path | None:
        """The file that a text names, or None once it is said why there is none."""
        text = node.value
        if not isinstance(text, str) or not text:
            self._problems.add(node, f"a path is expected here, got {shown(node)}")
            return None
        if not text.startswith("@"):
            path = self._folder / text
            if is_below(path, self._folder):
                return path
            message = f"`{text}` is not below the folder of this file; declare a root for it"
            self._problems.add(node, message)
            return None
        name, _, rest = text[1:].partition("/")
        self._used.add(name)
        root = self._known.get(name)
        found = None if root is None else (root / rest).resolve()
        problem = ""
        if not rest:
            problem = f"`{text}` names a root, which is a folder and no file"
        elif name not in self._known:
            known = ", ".join(f"`{one}`" for one in self._known) or "none"
            problem = f"the root `{name}` is not declared; there are {known}"
        elif root is not None and found is not None and not found.is_relative_to(root):
            problem = f"`{text}` leaves its root"
        if problem:
            self._problems.add(node, problem)
        return None if problem else found

    def bytes(self, node: Node) -> bytes | None:
        """The contents of the file that a text names."""
        path = self.path(node)
        if path is None:
            return None
        try:
            content = read_bytes(path, limit=self._left)
        except FileUnreadable as error:
            self._problems.add(node, f"{path} {error.reason}")
            return None
        self._left -= len(content)
        return content

    def text(self, node: Node) -> str | None:
        """The same as text."""
        content = self.bytes(node)
        if content is None:
            return None
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            self._problems.add(node, f"the file is not UTF-8 (offset {error.start})")
            return None

    def check_used(self) -> None:
        """Say which roots nothing refers to."""
        for name in self._known:
            if name not in self._used:
                message = f"the root `{name}` is declared and nothing refers to it: remove it"
                self._problems.add(self._keys[name], message)


def _describe_value(node: Node) -> str:
    return "an empty one" if node.is_mapping else shown(node)
