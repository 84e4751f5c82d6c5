"""What reading a suite needs beside the node at hand: problems, environment, other files.

Functions of the user's own modules are imported because the suite names them, and what the model
refuses is reported where it stands.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from trialwise.declarations.signatures import build_declared, derive_keys
from trialwise.declarations.structures import Fields
from trialwise.declarations.written import (
    INVALID,
    Entries,
    Invalid,
    Node,
    Reader,
    show_value,
    suggest_name,
)
from trialwise.errors import InvalidArgument
from trialwise.regular_files import FileUnreadable, read_text
from trialwise.suite import yaml_reading
from trialwise.suite.suite_problems import Problems, Source, shown_path

#: Files that a suite may be made of, each counted as often as it is included.
_MAX_FILES = 100
_MAX_TOTAL_BYTES = 4 * yaml_reading.MAX_BYTES
#: A reference, its characters meant as such (`$${`), or the beginning of something malformed.
_PART = r"\$\$\{|\$\{(?:([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\})?"
T = TypeVar("T")
#: What the model calls a field, where the suite's key is another word.
_KEYS = {
    "contract_ref": "ref",
    "category": "class",
    "rate_per_s": "rate",
    "timeout_s": "timeout",
    "population_name": "name",
    "seconds": "time",
    "usd": "money",
    "to_fail": "to",
    "window_hours": "window",
}
#: Where a field stands that is none of the contract's own.
_WITHIN = {"expected": ("inputs", "samplings")}


class EnvironmentText(str):
    """A text with a value of the environment in it, which `repr` does not show.

    >>> text = EnvironmentText("Bearer abc", "Bearer ${KEY}")
    >>> text == "Bearer abc", text
    (True, 'Bearer ${KEY}')
    """

    __slots__ = ("template",)

    def __new__(cls, value: str, template: str) -> EnvironmentText:
        """Both what it is and what was written."""
        text = super().__new__(cls, value)
        text.template = template
        return text

    template: str

    def __repr__(self) -> str:
        return repr(self.template)

    def __reduce__(self) -> tuple[type[EnvironmentText], tuple[str, str]]:
        return EnvironmentText, (str(self), self.template)


@dataclass(eq=False)
class Context(Reader):
    """One suite being read.

    An include is looked for only where a node is read as a part of the suite: what a suite holds as
    data may have a key of that name.
    """

    takes_python = False

    path: Path
    variables: Mapping[str, str] = field()
    """The variables of the environment."""
    _: KW_ONLY
    without_services: bool = False
    """Whether contracts are made without what is under test."""
    with_arms: bool = False
    """Whether to make the arms of contracts as well."""
    problems: Problems = field(default_factory=Problems)
    taken: dict[str, str] = field(default_factory=dict)
    """The values that the suite asked for, by variable: whatever comes from there may be a
    secret, so that records and reports leave it out."""
    files: list[Path] = field(default_factory=list)
    """The suite and what it includes, once each."""
    _values: int = 0
    _bytes: int = 0
    _reads: int = 0

    @property
    def folder(self) -> Path:
        """The folder that the suite's paths start from."""
        return self.path.parent

    def homes(self, key: str) -> list[str]:
        """Return the records in which a key belongs that was written elsewhere."""
        from trialwise.suite.keys import homes

        return homes(key)

    def refuse(self, node: Node, message: str, *, hide: bool = False) -> Invalid:
        """Report a problem; the answer stands for the value that is not there."""
        self.problems.add(node, message, hide=hide)
        return INVALID

    @property
    def problem_count(self) -> int:
        """How many problems were reported so far."""
        return len(self.problems)

    def fill_template(self, node: Node, text: str) -> str | Invalid:
        """Check the references in a text, which a service resolves at each call.

        Defaults are filled in, so that what is left are names of variables that are set.
        """
        return self.fill(node, text, keeps=True)

    def fill_scalar(self, node: Node, text: str) -> Any:
        """Read what a text with references is once they are replaced; a number is no secret."""
        filled = self.fill(node, text, notes=False)
        return INVALID if filled is INVALID else yaml_reading.scalar_of(str(filled).strip())

    def mark_filled(self, text: str, written: str) -> str:
        """Return a text that holds a value of the environment."""
        return EnvironmentText(text, written)

    def note_variable(self, name: str | None) -> None:
        """Remember the value of a variable that a service reads by itself."""
        if name is not None and self.variables.get(name):
            self.taken[name] = self.variables[name]

    def fill(
        self, node: Node, text: str, *, keeps: bool = False, notes: bool = True
    ) -> str | Invalid:
        """Fill a text with its references replaced, or return `INVALID` where one of them is wrong.

        Args:
            node: Where it stands.
            text: As it is written.
            keeps: Whether references to variables stay as they are.
            notes: Whether the values are to be kept out of records.
        """
        parts: list[str | Invalid] = []
        end, is_marked = 0, False
        for match in re.finditer(_PART, text):
            parts.append(text[end : match.start()])
            end = match.end()
            name, default = match[1], match[2]
            # As in a shell, a default also stands for a variable that is empty.
            if name and (self.variables.get(name) or (default is None and name in self.variables)):
                is_marked = True
                if notes:
                    self.taken[name] = self.variables[name]
                parts.append(f"${{{name}}}" if keeps else self.variables[name])
            elif name and default is not None and "${" not in default:
                parts.append(default)
            # A service that resolves its references at each call takes the escape away itself.
            elif match[0] == "$${" and not keeps:
                parts.append("${")
            else:
                parts.append(self.refuse(node, _explain_reference(match[0], name, default)))
        if INVALID in parts:
            return INVALID
        filled = "".join(map(str, (*parts, text[end:])))
        return EnvironmentText(filled, text) if is_marked and not keeps else filled

    def import_function(self, node: Node, path: str) -> Any:
        """Return the function at `module:name`, from the suite's folder or anything installed.

        The folder stays on the path, since a module may import others of its folder when it is
        called.

        Args:
            node: Where the suite names it.
            path: As `module:name`; the name may have dots.
        """
        name, _, attributes = path.partition(":")
        folder = self.folder.resolve()
        add_to_path(str(folder))
        found: Any = None
        problem = _find_other_module(name, folder)
        if not problem:
            found, problem = _import_module(name, folder)
        for attribute in () if problem else attributes.split("."):
            try:
                found = getattr(found, attribute)
            except Exception:  # a module's own __getattr__ may raise anything
                hint = suggest_name(attribute, [one for one in dir(found) if one[0] != "_"])
                problem = f"there is no `{attributes}` in the module `{name}`"
                return self.refuse(node, f"{problem}; {hint}" if hint else problem)
        # Said here with a place; in a trial it would be a failure of the service.
        if not problem and not callable(found):
            problem = f"`{attributes}` in the module `{name}` is not a function"
        return self.refuse(node, problem) if problem else found

    def read_json_file(self, node: Node, path: Path) -> Any:
        """Read a JSON document that the suite names."""
        from trialwise.suite.input_files import read_json_file

        return read_json_file(node, path, self)

    def root(self) -> Node | None:
        """Return the suite's own root."""
        nowhere = Node(None, Source(self.path, ""), (0, 0), (0, 0))
        return self._load(self.path, nowhere)

    def entries(self, node: Node) -> Entries:
        """Return the keys and values of a mapping, with those of the files it includes.

        What is written in place goes before what is included, and a file before those it includes.
        """
        if "include" not in node.entries:
            return node.entries
        # In place first, so that `setdefault` below lets the nearest file prevail.
        entries = {key: entry for key, entry in node.entries.items() if key != "include"}
        for root in self._read_included(node.entries["include"][1]):
            if not root.is_mapping:
                self.refuse(
                    root, f"an included mapping is expected here, this is {show_value(root)}"
                )
                continue
            for key, entry in self.entries(root).items():
                entries.setdefault(key, entry)
        return entries

    def items(self, node: Node) -> Iterator[Node]:
        """Yield the items of a list, with those of the lists that `- include: file` brings in."""
        for item in node.items():
            if not (item.is_mapping and list(item.entries) == ["include"]):
                yield item
                continue
            for root in self._read_included(item.entries["include"][1]):
                if root.is_list:
                    yield from self.items(root)
                else:
                    yield root

    def file(self, text: str) -> Path:
        """Return a path as the suite means it: from the suite's own folder."""
        return self.folder / text

    def _read_included(self, node: Node) -> Iterator[Node]:
        for one in list(node.items()) if node.is_list else [node]:
            path = self._include_path(one)
            root = None if isinstance(path, Invalid) else self._load(path, one)
            if root is not None:
                yield root

    def _include_path(self, node: Node) -> Path | Invalid:
        text = node.value
        if not isinstance(text, str) or not text.strip() or "${" in text:
            message = f"`include` must be the path of a YAML file, got {show_value(node)}"
            return self.refuse(node, message)
        try:
            root = self.folder.resolve()
            # Resolved, so that neither `..` nor a link leads out of the folder.
            path: Path = (node.source.path.parent / text).resolve()
        except (OSError, ValueError, RuntimeError):
            return self.refuse(node, "`include` must be the path of a YAML file")
        # What is included may say what is executed: who reads the folder has read the suite.
        if not path.is_relative_to(root):
            message = f"`include` must stay in the suite's folder, {show_value(node)} leaves it"
            return self.refuse(node, message)
        if path in node.source.chain:
            message = f"{show_value(node)} is this file, or includes it: that has no end"
            return self.refuse(node, message)
        return path

    def _load(self, path: Path, node: Node) -> Node | None:
        """Load the root of a file that a node includes; nothing includes the suite itself."""
        chain = node.source.chain
        self._reads += 1
        if self._reads > _MAX_FILES or len(chain) >= yaml_reading.MAX_DEPTH:
            self.refuse(node, f"a suite includes at most {_MAX_FILES} files")
            return None
        try:
            text = read_text(path, limit=yaml_reading.MAX_BYTES)
        except FileUnreadable as error:
            if chain:
                self.refuse(node, f"{shown_path(path)} {error.reason}")
            else:
                source = Source(path, error.text)
                self.problems.add_at(source, error.line, error.column, f"the file {error.reason}")
            return None
        self._bytes += len(text)
        if self._bytes > _MAX_TOTAL_BYTES:
            self.refuse(node, f"the files of a suite have at most {_MAX_TOTAL_BYTES:,} characters")
            return None
        # Once each, for `run --watch`, however often it is included.
        if path not in self.files:
            self.files.append(path)
        source = Source(path, text, chain=(*chain, path.resolve()))
        root, size = yaml_reading.parse_yaml(
            source, self.problems, room=yaml_reading.MAX_NODES - self._values
        )
        self._values += size
        return root


def _explain_reference(written: str, name: str | None, default: str | None) -> str:
    """Return what is wrong with a reference to the environment."""
    if written == "$${":
        return "a literal `${` cannot stand here"
    if name is None:
        return (
            "`${` begins a reference such as ${NAME} or ${NAME:-default}; "
            "write $${ for the characters themselves"
        )
    if default is not None:
        return f"the default of ${{{name}}} cannot hold a reference of its own"
    return (
        f"the environment variable {name} is not set: set it, or give a default "
        f"as in ${{{name}:-value}}"
    )


def add_to_path(folder: str) -> None:
    """Let modules of a folder be imported, after those of Python and before those installed.

    A file such as `statistics.py` beside the suite would otherwise replace what this package and
    the libraries under it import.
    """
    # Twice on the path is harmless, but a test session with many suites would grow it without end.
    if folder in sys.path:
        return
    standard = os.path.dirname(os.__file__)
    own = {standard, os.path.join(standard, "lib-dynload")}
    last = max((place for place, one in enumerate(sys.path) if one in own), default=-1)
    # After the standard library: a `json.py` beside the suite would break every import of it.
    sys.path.insert(last + 1, folder)


def _find_other_module(name: str, folder: Path) -> str:
    """Return why another module than the folder's own would be imported by its name, if so."""
    top = name.partition(".")[0]
    own = [path for path in (folder / f"{top}.py", folder / top / "__init__.py") if path.is_file()]
    if not own:
        return ""
    # Python would import its own module, and the function would be missing there.
    if top in sys.stdlib_module_names:
        return f"`{name}` is a module of Python itself: give your file another name"
    module = sys.modules.get(top)
    file = getattr(module, "__file__", None)
    if module is None or (file is not None and Path(file).resolve() in own):
        return ""
    return f"a module `{name}` is loaded from {file} already: rename one of the two"


def _import_module(name: str, folder: Path) -> tuple[Any, str]:
    """Return the module, or why there is none."""
    from importlib import import_module

    try:
        return import_module(name), ""
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            return None, f"there is no module `{name}` in {folder}, nor is one installed"
        return None, f"importing `{name}` failed: {_describe_error(error)}"
    except (Exception, SystemExit) as error:  # a module of the user's may raise anything
        return None, f"importing `{name}` failed: {_describe_error(error)}"


def _describe_error(error: BaseException) -> str:
    """Describe an exception in one line, with the line of the user's code that raised it."""
    try:
        text = " ".join(str(error).split())
    except Exception:  # its own __str__ may raise anything
        text = ""
    # The innermost frame is where the user has to look; the outer ones are the import machinery.
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = ""
    if trace is not None and "importlib" not in trace.tb_frame.f_code.co_filename:
        where = f" ({Path(trace.tb_frame.f_code.co_filename).name}, line {trace.tb_lineno})"
    kind = type(error).__name__
    return f"{kind}: {text[:300]}{where}" if text else f"{kind}{where}"


def make_model(build: Callable[[], T], fields: Fields, context: Reader) -> T | Invalid:
    """Return what the model makes of some fields, or `INVALID` once its refusal is reported."""
    try:
        return build()
    except InvalidArgument as error:
        key = _KEYS.get(error.argument, error.argument)
        node = fields.at(key)
        for outer in _WITHIN.get(key, ()):
            if outer in fields.nodes:
                return context.refuse(fields.at(outer), f"`{key}` must {error.allowed}")
        if node is fields.node:
            return context.refuse(node, f"`{key}` must {error.allowed}")
        return context.refuse(node, f"`{key}` must {error.allowed}, got {show_value(node)}")


def make_part(fields: Fields, owner: Callable[..., T], context: Reader) -> T | Invalid:
    """Return what a constructor makes of the keys that it declares.

    Args:
        fields: What was read of them.
        owner: The constructor.
        context: Takes the refusal.
    """
    keys = derive_keys(owner, texts="refused")
    return make_model(lambda: build_declared(owner, keys, fields, context), fields, context)


def check_sampling(
    fields: Fields, samplings: list[str] | None, whose: str, context: Reader
) -> None:
    """A sampling that is named exists, and where there are several one is named."""
    if samplings is None:
        return
    known = ", ".join(f"`{name}`" for name in samplings)
    name = fields.get("sampling")
    if "sampling" not in fields.nodes and len(samplings) > 1:
        context.refuse(fields.node, f"{whose} needs a `sampling`: there are {known}")
    elif name is not None and name not in samplings:
        hint = suggest_name(name, samplings, f"there are {known}")
        context.refuse(fields.at("sampling"), f"there is no sampling `{name}`; {hint}")
