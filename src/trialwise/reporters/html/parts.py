"""The parts that sections are built of: headings in order, tables, lists of facts, badges."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from trialwise.documents.numbers import as_count
from trialwise.model.verdict import Decision
from trialwise.reporters.page.markup import Markup, element, joined

__all__ = [
    "Outline",
    "Room",
    "Tone",
    "badge",
    "details",
    "facts",
    "glyph",
    "listed",
    "prose",
    "rest",
    "scrolling",
    "shape",
    "table",
    "tone",
]

_DEEPEST = 6
_NAME_LENGTH = 40

Tone: TypeAlias = Literal["pass", "fail", "open", "none"]
"""How a decision is coloured and shaped."""

_TONES: dict[Decision, Tone] = {
    Decision.PASS: "pass",
    Decision.FAIL: "fail",
    Decision.INCONCLUSIVE: "open",
}
#: A shape for every decision, so that none is told by its colour alone: a disc with a tick, a
#: square with a cross, a diamond with a bar, a ring for what is no decision.
_SHAPES: dict[Tone, tuple[str, str]] = {
    "pass": ("M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Z", "m4.7 8.3 2.3 2.3 4.3-5"),
    "fail": ("M1.5 1.5h13v13h-13Z", "m5 5 6 6m0-6-6 6"),
    "open": ("M8 .3 15.7 8 8 15.7.3 8Z", "M4.8 8h6.4"),
    "none": ("M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Z", ""),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """How much of a page one run may take, so that the whole stays under a megabyte."""

    size: int = 800_000
    """In bytes; the failing trials take what the rest leaves of it."""
    trials: int = 250
    """Failing trials."""
    charted: int = 12
    """Criteria whose charts are drawn."""
    cells: int = 1200
    """Of the heat maps."""

    def shared(self, runs: int) -> Room:
        """The room of each of several runs."""
        return Room(
            size=self.size // runs,
            trials=max(5, self.trials // runs),
            charted=max(1, self.charted // runs),
            cells=max(60, self.cells // runs),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """Where on the page a part stands: how deep its heading is, and which names are taken."""

    level: int = 1
    prefix: str = ""
    taken: set[str] = field(default_factory=set)
    contents: list[tuple[str, str]] = field(default_factory=list)
    """Titles and identities of the sections made so far."""
    is_alone: bool = True
    """Whether its sections are landmarks: where there are several runs they would share names."""

    def heading(self, *content: object, **attributes: object) -> Markup:
        """A heading of this level."""
        return element(f"h{min(self.level, _DEEPEST)}", *content, **attributes)

    @property
    def below(self) -> Outline:
        """One level deeper, with the same names taken."""
        return replace(self, level=self.level + 1)

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

    def section(self, title: str, *content: object, note: object = None, name: str = "") -> Markup:
        """A section of the page under its heading, with a word on how to read it.

        Args:
            title: Its heading.
            content: What stands in it.
            note: Beside the heading.
            name: Its identity, where links lead to it; made of the title where none is given.
        """
        identity = self.claim(name or title)
        self.contents.append((title, identity))
        side = element("div", self.heading(title, id=f"{identity}-h"), _note(note), class_="side")
        body = element("div", *content, class_="body")
        return element("section", side, body, id=identity, aria_labelledby=self.landmark(identity))

    def landmark(self, identity: str) -> str | None:
        """The heading that names a section, where it is a landmark."""
        return f"{identity}-h" if self.is_alone else None


def _note(note: object) -> Markup:
    return Markup("") if note is None else element("p", note, class_="note")


def tone(decision: Decision | None) -> Tone:
    """The class that colours a decision."""
    return "none" if decision is None else _TONES[decision]


def shape(kind: Tone) -> Markup:
    """The shape of a tone, drawn in a square of 16 by 16."""
    ground, sign = _SHAPES[kind]
    drawn = element("path", d=ground, class_="ground")
    return joined([drawn, element("path", d=sign, class_="sign") if sign else None])


def glyph(kind: Tone) -> Markup:
    """The shape of a tone beside words that say the same."""
    return element(
        "svg",
        shape(kind),
        viewBox="0 0 16 16",
        class_="glyph",
        aria_hidden="true",
        focusable="false",
    )


def badge(decision: Decision | None, label: str = "", *, soft: bool = False) -> Markup:
    """A decision as a word with its shape; what softens it leaves the shape hollow.

    Args:
        decision: None where nothing was decided.
        label: What to say instead of the decision.
        soft: Whether a PASS is a sentinel's and no evidence.
    """
    kind = tone(decision)
    word = label or ("REFUSED" if decision is None else decision.value)
    softened = decision is Decision.PASS and (soft or word != decision.value)
    hollow = " hollow" if softened else ""
    return element("span", glyph(kind), word, class_=f"badge {kind}{hollow}")


def prose(*paragraphs: object, class_: str | None = None) -> Markup:
    """Paragraphs; empty ones are left out."""
    return joined(element("p", one, class_=class_) for one in paragraphs if one)


def listed(items: Iterable[object], class_: str | None = None) -> Markup:
    """A list, or nothing for no items."""
    entries = [element("li", item) for item in items]
    return element("ul", *entries, class_=class_) if entries else Markup("")


def rest(count: int, most: int, noun: str) -> Markup:
    """How many things a list of at most so many leaves out, or nothing.

    >>> rest(60, 20, "input")
    '<p class="note">40 further inputs not listed.</p>'
    """
    if count <= most:
        return Markup("")
    return element("p", f"{as_count(count - most, f'further {noun}')} not listed.", class_="note")


def facts(pairs: Iterable[tuple[object, object]], class_: str = "facts") -> Markup:
    """Terms with what they are; pairs without a value are left out."""
    rows = [
        element("div", element("dt", term), element("dd", value))
        for term, value in pairs
        if value is not None and value != ""
    ]
    return element("dl", *rows, class_=class_) if rows else Markup("")


def details(summary: object, *content: object, open_: bool = False, **attributes: object) -> Markup:
    """Content on demand."""
    return element("details", element("summary", summary), *content, open=open_, **attributes)


def table(
    caption: str,
    columns: Sequence[object],
    rows: Iterable[Sequence[object]],
    *,
    words: Collection[int] = (0,),
    wide: bool = False,
    class_: str | None = None,
    hide_caption: bool = False,
) -> Markup:
    """A table whose first column names its rows.

    Args:
        caption: What it holds.
        columns: Their headings.
        rows: Their cells; markup stays markup.
        words: Which columns are read as words; the others are numbers, set flush right.
        wide: Whether it may be wider than a phone and then scrolls on its own.
        class_: Of the table.
        hide_caption: Whether the caption is only heard, where a heading says the same.
    """
    heads = [
        element("th", column, scope="col", class_=None if k in words else "num")
        for k, column in enumerate(columns)
    ]
    body = [
        element(
            "tr",
            *(
                element("th", cell, scope="row", class_=None if k in words else "num")
                if k == 0
                else element("td", cell, class_=None if k in words else "num")
                for k, cell in enumerate(row)
            ),
        )
        for row in rows
    ]
    made = element(
        "table",
        element("caption", caption, class_="heard" if hide_caption else None),
        element("thead", element("tr", *heads)),
        element("tbody", *body),
        class_=class_,
    )
    if not wide:
        return made
    return scrolling(caption, made)


def scrolling(caption: str, content: Markup) -> Markup:
    """Content that may be wider than the page: it scrolls on its own, by keyboard too."""
    # A group and no region: the page has enough landmarks.
    return element("div", content, class_="scroll", role="group", aria_label=caption, tabindex="0")
