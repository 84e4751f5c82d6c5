"""What came back from the service in one trial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from trialwise.errors import InvalidArgument
from trialwise.stats._checks import check_count, check_real

__all__ = ["Reply", "Usage"]

_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens a reply cost."""

    input_tokens: int = 0
    output_tokens: int = 0

    def __post_init__(self) -> None:
        check_count("input_tokens", self.input_tokens)
        check_count("output_tokens", self.output_tokens)

    @property
    def total_tokens(self) -> int:
        """Both directions together."""
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A response with what it took to get it.

    >>> Reply(value="555", latency_s=0.2).text
    '555'
    """

    value: Any
    """What the service said: text, or whatever a Python callable returned."""
    latency_s: float = 0.0
    usage: Usage | None = None
    cost_usd: float | None = None
    exit_code: int | None = None
    """How a subprocess ended; None for every other service."""
    details: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    """What else is known, such as tool calls, standard error or an HTTP status."""

    def __post_init__(self) -> None:
        if check_real("latency_s", self.latency_s) < 0:
            raise InvalidArgument("latency_s", self.latency_s, "be at least 0")

    @property
    def text(self) -> str:
        """The value as text; what is not text is shown as Python would."""
        return self.value if isinstance(self.value, str) else str(self.value)
