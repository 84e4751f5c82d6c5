"""Functions that an import leaves to its user: what a foreign suite has and no suite can say.

A function that nobody has written yet raises, so that nothing passes in its place: a check is then
a broken check, which stops the run, and a service fails every trial. What a file says is written as
a literal, so that nothing of it is code.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field

__all__ = ["FunctionModule"]

_LONGEST_SOURCE = 2_000


@dataclass(slots=True)
class FunctionModule:
    """A Python module beside an imported suite, being written.

    >>> module = FunctionModule("checks", "promptfooconfig.yaml")
    >>> module.add_stub("javascript", "text", "Return whether the reply passes.", "output > 5")
    'checks:javascript_1'
    """

    name: str
    """What it is called, without its ending."""
    source: str
    """The file it comes from."""
    _imports: list[str] = field(default_factory=list)
    _parts: list[str] = field(default_factory=list)
    _counts: dict[str, int] = field(default_factory=dict)

    @property
    def is_needed(self) -> bool:
        """Whether there is anything in it."""
        return bool(self._parts)

    @property
    def text(self) -> str:
        """The module as Python."""
        heading = (
            f'"""What {show_plainly(self.source)} says that a suite cannot: yours to change."""'
        )
        head = [heading, "\n".join(sorted(set(self._imports)))]
        return "\n\n\n".join(["\n\n".join(filter(None, head)), *self._parts]) + "\n"

    def add_stub(self, kind: str, parameters: str, advice: str, source: str) -> str:
        """Add a function that is left to be written, and return it as `module:function`.

        Args:
            kind: What it stands for, such as `javascript`; part of its name.
            parameters: The names of its parameters.
            advice: What it has to do, for its docstring.
            source: What the foreign suite has in its place, which is shown as a comment.
        """
        name = self._name(kind)
        shown = [f"    # {line}" for line in _comment_lines(source)]
        lines = [
            f"def {name}({parameters}):",
            f'    """{advice}"""',
            *shown,
            f"    raise NotImplementedError({f'{name} is still to be written'!r})",
        ]
        self._parts.append("\n".join(lines))
        return f"{self.name}:{name}"

    def add_value(self, kind: str, expression: str, import_line: str) -> str:
        """Add a function that an expression makes, and return it as `module:function`."""
        name = self._name(kind)
        self._imports.append(import_line)
        self._parts.append(f"{name} = {expression}")
        return f"{self.name}:{name}"

    def _name(self, kind: str) -> str:
        plain = "".join(one if one.isascii() and one.isalnum() else "_" for one in kind.lower())
        plain = plain.strip("_")[:40] or "function"
        if plain[0].isdigit():
            plain = f"the_{plain}"
        self._counts[plain] = self._counts.get(plain, 0) + 1
        return f"{plain}_{self._counts[plain]}"


def show_plainly(text: str) -> str:
    """Return a text as it may stand in a docstring or a comment.

    >>> show_plainly('a "b"')
    'a ·b·'
    """
    kept = "".join(one if one.isprintable() and one not in '"\\' else "·" for one in text)
    return kept[:100]


def _comment_lines(source: str) -> list[str]:
    """Return a text in lines of printable characters, cut where it is very long."""
    lines: list[str] = []
    for line in source[:_LONGEST_SOURCE].splitlines():
        plain = "".join(one if one.isprintable() else "·" for one in line.expandtabs(4))
        lines += textwrap.wrap(plain, 90, drop_whitespace=False, break_on_hyphens=False) or [""]
    return [line.rstrip() for line in lines]
