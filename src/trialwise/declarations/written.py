"""What a kind of value needs to know of a value: where it stands, and who reads it.

A suite file and a pytest marker hold the same keys. The suite reader gives each value a position
in a file and collects problems; a marker gives plain Python values and stops at the first problem.
Kinds see both as nodes, and report to a `Reader`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from trialwise.errors import TrialwiseError

_LONGEST_SHOWN = 40


class Invalid:
    """The type of `INVALID`: a value that a problem was reported for."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "INVALID"


INVALID = Invalid()


class Node:
    """A value as somebody wrote it, and where it stands; lines and columns count from 0."""

    __slots__ = ("column", "end_column", "end_line", "line", "source", "value")

    def __init__(
        self,
        value: Any,
        source: Any = None,
        start: tuple[int, int] = (0, 0),
        end: tuple[int, int] = (0, 0),
    ) -> None:
        self.value = value
        """A scalar, a list of nodes, or entries by key."""
        self.source = source
        """The file; None for a value of Python's."""
        self.line, self.column = start
        self.end_line, self.end_column = end

    @property
    def is_mapping(self) -> bool:
        """Whether it holds keys and values."""
        return type(self.value) is dict

    @property
    def is_list(self) -> bool:
        """Whether it holds items."""
        return type(self.value) is list

    @property
    def is_scalar(self) -> bool:
        """Whether it is one value."""
        return type(self.value) not in (dict, list)

    @property
    def entries(self) -> Entries:
        """The keys and values of a mapping."""
        entries: Entries = self.value
        return entries

    def items(self) -> Iterator[Node]:
        """Yield the items of a list."""
        yield from self.value

    def with_entries(self, entries: Entries) -> Node:
        """Return a mapping that stands where this node stands."""
        start, end = (self.line, self.column), (self.end_line, self.end_column)
        return Node(entries, self.source, start, end)

    def __repr__(self) -> str:
        return f"Node({self.value!r} at line {self.line + 1}, column {self.column + 1})"


Entries: TypeAlias = dict[str, tuple[Node, Node]]
"""Key and value nodes of a mapping, by key, in order."""


def to_node(value: Any) -> Node:
    """Return a Python value as kinds of values see what was written."""
    if isinstance(value, Mapping):
        return Node({str(key): (Node(key), to_node(one)) for key, one in value.items()})
    return Node([*map(to_node, value)] if isinstance(value, list | tuple) else value)


def lay_over(base: Node, change: Node) -> Node:
    """Return a value with a change: mappings are joined key by key, all else is replaced."""
    if not (base.is_mapping and change.is_mapping):
        return change
    return change.with_entries(dict(_join(base.entries, change.entries)))


def _join(ours: Entries, theirs: Entries) -> Iterator[tuple[str, tuple[Node, Node]]]:
    for name in {**ours, **theirs}:
        if name not in theirs:
            yield name, ours[name]
        elif theirs[name][1].value is not None:
            key, value = theirs[name]
            yield name, (key, lay_over(ours[name][1], value) if name in ours else value)


class ValueRefused(TrialwiseError):
    """A value is not what its key takes."""


class Reader:
    """Reads values of Python: code reads files and the environment by itself.

    The reader of a suite file collects problems, knows the environment and follows includes.
    """

    takes_python = True
    """Whether values come from Python, where a number of seconds needs no unit."""
    variables: Mapping[str, str] = {}
    """The variables of the environment."""

    @property
    def problem_count(self) -> int:
        """How many problems were reported so far."""
        return 0

    def refuse(self, node: Node, message: str, *, hide: bool = False) -> Invalid:  # noqa: ARG002
        """Report a problem with a value."""
        raise ValueRefused(message)

    def fill(self, node: Node, text: str) -> str | Invalid:  # noqa: ARG002
        """Replace the references to the environment in a text."""
        return text

    def fill_template(self, node: Node, text: str) -> str | Invalid:  # noqa: ARG002
        """Check the references in a text that a service resolves by itself at each call."""
        return text

    def fill_scalar(self, node: Node, text: str) -> Any:  # noqa: ARG002
        """Read a text with references as the scalar that it is then."""
        return text

    def mark_filled(self, text: str, written: str) -> str:  # noqa: ARG002
        """Mark a text that holds a value of the environment, so that no message shows it."""
        return text

    def entries(self, node: Node) -> Entries:
        """Return the keys and values of a mapping, with those that it includes."""
        return node.entries

    def items(self, node: Node) -> Iterator[Node]:
        """Return the items of a list, with those that it includes."""
        yield from node.items()

    def homes(self, key: str) -> Sequence[str]:  # noqa: ARG002
        """Return the records in which a key of this name belongs."""
        return ()

    def import_function(self, node: Node, path: str) -> Any:
        """Import a function that is named as `module:name`."""
        self.refuse(node, f"{path} cannot be imported here: give the function itself")

    def file(self, text: str) -> Path:
        """Return a path from the folder of the suite."""
        return Path(text)

    def read_json_file(self, node: Node, path: Path) -> Any:
        """Read a JSON document that the suite names."""
        self.refuse(node, f"{path} cannot be read here: give the document itself")


def show_value(node: Node) -> str:
    """Show a value as a message calls it: what was written, or what kind of thing it is."""
    if node.is_mapping:
        return "a mapping"
    if node.is_list:
        return "a list"
    if node.value is None:
        return "nothing"
    if isinstance(node.value, bool):
        # As YAML writes it, and not as Python does.
        return f"`{str(node.value).lower()}`"
    # A terminal would obey control codes, and a suite may come from somebody else.
    text = "".join(one if one.isprintable() else "·" for one in str(node.value))
    return f"`{text[: _LONGEST_SHOWN - 1]}…`" if len(text) > _LONGEST_SHOWN else f"`{text}`"


# --- Which name was probably meant where somebody wrote one that does not exist -------------------


def find_nearest(word: str, known: Sequence[str]) -> str | None:
    """Return the known word that was probably meant.

    >>> find_nearest("At-Lest", ["at_least", "trials"])
    'at_least'
    """
    from difflib import get_close_matches

    plain = word.casefold().replace("-", "_").replace(" ", "_")
    by_plain = {one.casefold().replace("-", "_"): one for one in reversed(known)}
    close = get_close_matches(plain, list(by_plain), n=1)
    # `rate_per_s` for `rate` is far by letters and near by meaning.
    close = close or [one for one in by_plain if len(one) > 3 and plain.startswith(one)]
    return by_plain[close[0]] if close else None


def suggest_name(word: str, known: Iterable[str], otherwise: str = "", *, quote: str = "`") -> str:
    """Return the question whether a similar name was meant.

    Args:
        word: What was written.
        known: The names that exist.
        otherwise: What to say where none of them is similar.
        quote: Stands before and after the name.

    >>> suggest_name("at_lest", ["at_least", "trials"])
    'did you mean `at_least`?'
    """
    close = find_nearest(word, list(known))
    return otherwise if close is None else f"did you mean {quote}{close}{quote}?"
