"""`${NAME}` and `${NAME:-default}`: values that a suite takes from the environment, and marks.

Whatever comes from there may be a secret. The text that carries it prints as what was written, so
that no message shows it, and the suite remembers it, so that records and reports can leave it out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from trialwise.suite.nodes import Node
from trialwise.suite.suite_problems import Problems

__all__ = ["Environment", "EnvironmentText"]

#: A reference, its characters meant as such (`$${`), or the beginning of something malformed.
_PART = r"\$\$\{|\$\{(?:([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\})?"


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


class Environment:
    """The variables that a suite may ask for, and those that it did."""

    __slots__ = ("_problems", "taken", "variables")

    def __init__(self, variables: Mapping[str, str], problems: Problems) -> None:
        self.variables = variables
        self.taken: dict[str, str] = {}
        """The values that were asked for, by variable."""
        self._problems = problems

    def filled(self, node: Node, text: str, *, note: bool = True) -> str | None:
        """A text with its references replaced, or None where one of them is wrong.

        Args:
            node: Where it stands.
            text: As it is written.
            note: Whether the values are to be kept out of records; a number is no secret.
        """
        return self._read(node, text, keep=False, note=note)

    def template(self, node: Node, text: str) -> str | None:
        """A text whose references are checked and kept, for services that resolve them per call.

        Defaults are filled in, so that what is left are names of variables that are set.
        """
        return self._read(node, text, keep=True, note=True)

    def note(self, name: str | None) -> None:
        """Remember the value of a variable that a service reads by itself."""
        if name is not None and self.variables.get(name):
            self.taken[name] = self.variables[name]

    def _read(self, node: Node, text: str, *, keep: bool, note: bool) -> str | None:
        parts: list[str | None] = []
        end, marked = 0, False
        for match in re.finditer(_PART, text):
            parts.append(text[end : match.start()])
            end = match.end()
            name, default = match[1], match[2]
            if name is None:
                parts.append(self._literal(node, match[0], keep=keep))
            elif self._is_set(name, default):
                marked = True
                if note:
                    self.taken[name] = self.variables[name]
                parts.append(f"${{{name}}}" if keep else self.variables[name])
            else:
                parts.append(self._default(node, name, default))
        if None in parts:
            return None
        filled = "".join(part for part in (*parts, text[end:]) if part is not None)
        return EnvironmentText(filled, text) if marked and not keep else filled

    def _is_set(self, name: str, default: str | None) -> bool:
        # As in a shell, a default also stands for a variable that is empty.
        return bool(self.variables.get(name)) or (default is None and name in self.variables)

    def _default(self, node: Node, name: str, default: str | None) -> str | None:
        if default is not None and "${" not in default:
            return default
        self._problems.add(node, _not_set(name, default))
        return None

    def _literal(self, node: Node, written: str, *, keep: bool) -> str | None:
        if written == "$${" and not keep:
            return "${"
        reason = (
            "a literal `${` cannot stand here"
            if written == "$${"
            else "`${` begins a reference such as ${NAME} or ${NAME:-default}; "
            "write $${ for the characters themselves"
        )
        self._problems.add(node, reason)
        return None


def _not_set(name: str, default: str | None) -> str:
    if default is not None:
        return f"the default of ${{{name}}} cannot hold a reference of its own"
    return (
        f"the environment variable {name} is not set: set it, or give a default "
        f"as in ${{{name}:-value}}"
    )
