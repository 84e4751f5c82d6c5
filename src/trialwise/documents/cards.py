"""Blocks for trials: a card for each of them, and the calls of an agent in their order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trialwise.documents.blocks import Badge, Block, Details, Tone

__all__ = ["Call", "Card", "Cards", "Choice", "Excerpt", "Timeline"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One of many things of a kind: a line that unfolds."""

    label: str
    name: str
    badges: tuple[Badge, ...] = ()
    text: str = ""
    blocks: tuple[Block, ...] = ()
    is_open: bool = False
    tags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What it is found by: the values of each choice that it belongs to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One way to narrow down cards."""

    name: str
    """The key of the tags it looks at."""
    label: str
    everything: str
    """What the choice is called under which no card is hidden."""
    options: tuple[tuple[str, str], ...]
    """The values of a tag, with what each is called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cards:
    """Cards below each other, with choices for a reader who looks for some of them."""

    cards: tuple[Card, ...]
    choices: tuple[Choice, ...] = ()
    noun: str = "trial"


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """A text at a glance, with the rest of it on demand."""

    text: str
    label: str = ""
    tone: Tone = "plain"
    rest: Details | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a session."""

    place: str
    name: str
    about: str
    """Where it was made and whether it was made before."""
    when: str
    texts: tuple[Excerpt, ...] = ()
    start: float | None = None
    """Where its bar begins, as a share of the session; None where no bar is drawn."""
    width: float = 0.0
    is_endless: bool = False
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Calls in their order, each with a bar where it stood in the session."""

    heading: str
    calls: tuple[Call | str, ...]
    """A text stands for calls that are left out."""
    ticks: tuple[tuple[float, str], ...] = ()
    """Shares of the session, with the time there."""
