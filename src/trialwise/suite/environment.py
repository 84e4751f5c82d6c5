"""`${NAME}` and `${NAME:-default}`: values that a suite takes from the environment, and marks.

Whatever comes from there may be a secret. The text that carries it prints as what was written, so
that no message shows it, and the suite remembers it, so that records and reports can leave it out.

`Redaction` takes them out of what is written down, together with the patterns of the suite. A value
of the environment is shown as `${NAME}`, so that a reader sees what stood there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from trialwise.suite.suite_problems import Problems
from trialwise.suite.yaml_reading import Node

#: A reference, its characters meant as such (`$${`), or the beginning of something malformed.
_PART = r"\$\$\{|\$\{(?:([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\})?"
#: Shorter values are no secrets, and replacing every `1` would leave no report to read.
_SHORTEST = 4


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
        """Return a text with its references replaced, or None where one of them is wrong.

        Args:
            node: Where it stands.
            text: As it is written.
            note: Whether the values are to be kept out of records; a number is no secret.
        """
        return self._read(node, text, keep=False, note=note)

    def template(self, node: Node, text: str) -> str | None:
        """Return a text whose references are checked here and resolved at each call.

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


@dataclass(frozen=True, slots=True)
class Redaction:
    """Takes out of a text what must not be stored or shown.

    >>> redaction = Redaction((r"[0-9]{16}",), {"API_KEY": "sk-12345"})
    >>> redaction("key sk-12345, card 4111111111111111")
    'key ${API_KEY}, card [redacted]'
    """

    patterns: tuple[str, ...] = ()
    """Regular expressions whose matches are replaced."""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Values that the suite took from the environment, by variable."""
    _spellings: Mapping[str, tuple[str, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        longest_first = dict(sorted(self.secrets.items(), key=lambda item: -len(item[1])))
        put(self, "secrets", MappingProxyType(longest_first))
        spelled = {
            name: _list_spellings(value)
            for name, value in longest_first.items()
            if len(value) >= _SHORTEST
        }
        put(self, "_spellings", spelled)

    def __call__(self, text: str) -> str:
        """The text without them."""
        if not (self.secrets or self.patterns):  # most suites, and every reply comes by here
            return text
        text = self.without_secrets(text)
        if self.patterns:
            from trialwise.checks.texts import replace_matches

            for pattern in self.patterns:
                text = replace_matches(pattern, text, "[redacted]")
        return text

    def without_secrets(self, text: str) -> str:
        """Return the text with the values of variables replaced by their names."""
        for name, spellings in self._spellings.items():
            for spelling in spellings:
                text = text.replace(spelling, f"${{{name}}}")
        return text


def _list_spellings(secret: str) -> tuple[str, ...]:
    """Return a secret as it is, as JSON and as Python's `repr` writes it, each once.

    An error message may quote any of them, also in a text that is quoted again. They differ where
    the secret holds a quote, a line end or another letter than those of ASCII.
    """
    once = [secret, *_quote(secret)]
    twice = [spelling for one in once for spelling in _quote(one)]
    # The longest first: it may hold the others.
    return tuple(sorted({*once, *twice}, key=len, reverse=True))


def _quote(text: str) -> Iterator[str]:
    yield json.dumps(text)[1:-1]
    yield json.dumps(text, ensure_ascii=False)[1:-1]
    yield repr(text)[1:-1]
    # A text with both quotes is written in single ones.
    yield repr(f'"{text}')[2:-1]
