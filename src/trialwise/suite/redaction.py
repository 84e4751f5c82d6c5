"""What must not be written down: patterns of the suite's, and values of its environment.

A value of the environment is shown as `${NAME}`, so that a reader sees what stood there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from warnings import catch_warnings, simplefilter

__all__ = ["Redaction"]

#: Shorter values are no secrets, and replacing every `1` would leave no report to read.
_SHORTEST = 4


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
    _compiled: tuple[re.Pattern[str], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        with catch_warnings():
            # Python warns of expressions that may mean something else one day.
            simplefilter("ignore", FutureWarning)
            put(self, "_compiled", tuple(re.compile(pattern) for pattern in self.patterns))
        longest_first = sorted(self.secrets.items(), key=lambda item: -len(item[1]))
        put(self, "secrets", MappingProxyType(dict(longest_first)))

    def __call__(self, text: str) -> str:
        """The text without them."""
        text = self.without_secrets(text)
        for pattern in self._compiled:
            text = pattern.sub("[redacted]", text)
        return text

    def without_secrets(self, text: str) -> str:
        """The text with the values of variables replaced by their names."""
        for name, value in self.secrets.items():
            if len(value) >= _SHORTEST:
                text = text.replace(value, f"${{{name}}}")
        return text
