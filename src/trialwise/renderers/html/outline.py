"""Where on a page a part stands: how deep its heading is, and which identities are taken."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from trialwise.renderers.html.markup import Markup, element

__all__ = ["Outline"]

_DEEPEST = 6
_NAME_LENGTH = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """The place of a part, with what it must not collide with."""

    level: int = 1
    prefix: str = ""
    taken: set[str] = field(default_factory=set)
    """The identities of the whole page."""
    names: dict[str, str] = field(default_factory=dict)
    """Identities of what links lead to, by the name that the document gives it."""
    is_alone: bool = True
    """Whether sections are landmarks: those of several documents would share their names."""

    @property
    def below(self) -> Outline:
        """One level deeper, with the same names taken."""
        return replace(self, level=self.level + 1)

    def nest(self, prefix: str) -> Outline:
        """The outline of a document inside this one, whose names are its own."""
        return replace(self, level=self.level + 1, prefix=prefix, names={}, is_alone=False)

    def render_heading(self, *content: object, **attributes: object) -> Markup:
        """A heading of this level."""
        return element(f"h{min(self.level, _DEEPEST)}", *content, **attributes)

    def find(self, name: str) -> str:
        """The identity of what has a name, whether a link or the part itself asks first."""
        if name not in self.names:
            self.names[name] = self.claim(name)
        return self.names[name]

    def claim(self, name: str) -> str:
        """An identity that no other element of the page has.

        >>> outline = Outline(prefix="a-")
        >>> outline.claim("Wrong & <b>"), outline.claim("wrong b")
        ('a-wrong-b', 'a-wrong-b-2')
        """
        slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:_NAME_LENGTH].strip("-")
        base = f"{self.prefix}{slug or 'part'}"
        identity, count = base, 1
        while identity in self.taken:
            count += 1
            identity = f"{base}-{count}"
        self.taken.add(identity)
        return identity
