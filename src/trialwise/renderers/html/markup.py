"""Markup that is safe by construction: only what was made here is markup, all else is text.

A service may answer anything, and a report shows it. Text is escaped where it enters an element,
and characters that would hide, reorder or break it are shown by name instead of obeyed.

A template library would do the escaping too, but it would be the only dependency of a page and
load more code than the pages themselves; a dozen functions that build elements are enough here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from html import escape as escape_markup
from importlib.resources import files

#: Controls, soft hyphen, bidirectional and zero-width marks, line separators, lone surrogates,
#: noncharacters and the invisible tag characters. Joiners stay: scripts and emoji need them.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufdd0-\ufdef\ufeff\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e007f]"
)
#: Controls whose names are known to more people, and to more fonts, than their numbers.
_CONTROLS = {"\0": "NUL", "\a": "BEL", "\b": "BS", "\r": "CR", "\x1b": "ESC", "\x7f": "DEL"}
#: The space between a number and its unit, and after a sign of its own.
_UNIT = re.compile(r"(?<=\d) (?=%|(?:ms|s|min|h)\b)|(?<=[±≥≤]) (?=\d)")
_VOID = frozenset({"br", "hr", "input", "link", "meta"})


class Markup(str):
    """A piece of a page: text that needs no further escaping."""

    __slots__ = ()


def make_visible(text: str) -> str:
    """Return the text with every character shown that would hide or reorder others.

    >>> make_visible("\\x1b[31mred\\u202egnp.exe")
    '⟨ESC⟩[31mred⟨U+202E⟩gnp.exe'
    """
    # Characters that reorder text can make code or a verdict read as its opposite ("Trojan Source",
    # CVE-2021-42574).
    return _HIDDEN.sub(
        lambda found: f"⟨{_CONTROLS.get(found.group()) or f'U+{ord(found.group()):04X}'}⟩",
        text.replace("\r\n", "\n"),
    )


def escape(text: str, *, quotes: bool = False) -> str:
    """Text without markup, as content or, with `quotes`, as the value of an attribute.

    >>> escape("</script>"), escape('"', quotes=True)
    ('&lt;/script&gt;', '&quot;')
    """
    return escape_markup(make_visible(text), quote=quotes)


def make_safe(value: object) -> Markup:
    """Markup as it is, nothing for None, anything else as escaped text.

    A number and its unit are not parted at the end of a line.
    """
    # The only way past the escaping: nothing but this module and its callers makes Markup.
    if isinstance(value, Markup):
        return value
    return Markup("" if value is None else _UNIT.sub("\u00a0", escape(str(value))))


def quote(text: str) -> Markup:
    """Text that somebody may copy: escaped, and otherwise as it is."""
    return Markup(escape(text))


def join_markup(parts: Iterable[object]) -> Markup:
    """Pieces one after the other."""
    return Markup("".join(map(make_safe, parts)))


def element(name: str, /, *content: object, **attributes: object) -> Markup:
    """Return an element with its content; a trailing underscore of an attribute is dropped.

    Classes may stand behind the name, as in a style sheet. Attributes that are None or False are
    left out, True is an empty value.

    >>> element("a", "R&D", href="#x", class_="quiet", aria_label="Department")
    '<a href="#x" class="quiet" aria-label="Department">R&amp;D</a>'
    >>> element("p.note.open", "Look.")
    '<p class="note open">Look.</p>'
    """
    # No tag or class of ours holds a point, and no text of a service ever is a tag.
    tag, *classes = name.split(".")
    given = "".join(
        f" {key.rstrip('_').replace('_', '-')}="
        f'"{"" if value is True else escape(str(value), quotes=True)}"'
        for key, value in {"class": " ".join(classes) or None, **attributes}.items()
        if value is not None and value is not False
    )
    # Closed as XML closes them, so that a page is well-formed to either kind of parser.
    if tag in _VOID:
        return Markup(f"<{tag}{given}/>")
    return Markup(f"<{tag}{given}>{join_markup(content)}</{tag}>")


def read_asset(name: str) -> str:
    """Read the text of a file, such as "page.css"."""
    return files("trialwise.renderers.html").joinpath(name).read_text("utf-8")


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
        """Return the outline of a document inside this one, whose names are its own."""
        return replace(self, level=self.level + 1, prefix=prefix, names={}, is_alone=False)

    def render_heading(self, *content: object, **attributes: object) -> Markup:
        """Render a heading of this level."""
        return element(f"h{min(self.level, _DEEPEST)}", *content, **attributes)

    def find(self, name: str) -> str:
        """Find the identity of what has a name, whether a link or the part itself asks first."""
        if name not in self.names:
            self.names[name] = self.claim(name)
        return self.names[name]

    def claim(self, name: str) -> str:
        """Return an identity that no other element of the page has.

        >>> outline = Outline(prefix="a-")
        >>> outline.claim("Wrong & <b>"), outline.claim("wrong b")
        ('a-wrong-b', 'a-wrong-b-2')
        """
        # Identities end up in addresses, where only plain letters survive being copied.
        slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:_NAME_LENGTH].strip("-")
        base = f"{self.prefix}{slug or 'part'}"
        identity, count = base, 1
        while identity in self.taken:
            count += 1
            identity = f"{base}-{count}"
        self.taken.add(identity)
        return identity


# --- The colours of every page, by what they mean: one palette for light, dark and paper ----------
#
# Text colours keep a contrast of 4.5 with every ground they stand on; the grounds of charts are
# paler than their text on purpose, and no meaning rests on a colour alone.

#: What a colour stands for, with its value on a light and on a dark ground.
_COLOURS = {
    "page": ("#faf9f6", "#111418"),
    "card": ("#ffffff", "#171b20"),
    "ink": ("#1b1e23", "#e9e7e2"),
    "quiet": ("#5a6068", "#a3a9b1"),
    "edge": ("#dcd9d1", "#333941"),
    "grid": ("#e8e5de", "#272c33"),
    "accent": ("#1d5083", "#8fbdea"),
    "wash": ("#edf2f7", "#17273a"),
    "pass": ("#0a6a5b", "#62cdb8"),
    "pass-wash": ("#e1f0ec", "#122e29"),
    "pass-fill": ("#a6d4ca", "#23594f"),
    "fail": ("#ab3512", "#f59a78"),
    "fail-wash": ("#fbe9e1", "#3a1e15"),
    "fail-fill": ("#efb8a2", "#7c3d28"),
    "open": ("#7a5400", "#e3bf5c"),
    "open-wash": ("#f7eed3", "#33290f"),
    "open-fill": ("#ead69c", "#66531e"),
    "one": ("#1d5083", "#8fbdea"),
    "two": ("#b4470f", "#f59a5f"),
    "three": ("#6b4a9e", "#bfa3ee"),
    "four": ("#1f7d72", "#5cc2b3"),
}
LIGHT = {name: light for name, (light, _) in _COLOURS.items()}
DARK = {name: dark for name, (_, dark) in _COLOURS.items()}
PAPER = {**LIGHT, "page": "#ffffff", "ink": "#000000", "quiet": "#3d4248", "edge": "#b9b6af"}


def declare_colours(colours: Mapping[str, str]) -> str:
    """Return the colours as custom properties.

    >>> declare_colours({"ink": "#000000"})
    '--ink:#000000'
    """
    return ";".join(f"--{name}:{value}" for name, value in colours.items())


def palette_css(selector: str = ":root") -> str:
    """Return the palette for a selector, in the theme of the system or of `data-theme`.

    Args:
        selector: The element that carries the colours, the root or something inside it.
    """
    inside = "" if selector == ":root" else f" {selector}"
    light, dark = declare_colours(LIGHT), declare_colours(DARK)
    return (
        f"{selector}{{color-scheme:light dark;{light}}}\n"
        f"@media (prefers-color-scheme:dark){{{selector}{{{dark}}}}}\n"
        f":root[data-theme=light]{inside}{{color-scheme:light;{light}}}\n"
        f":root[data-theme=dark]{inside}{{color-scheme:dark;{dark}}}\n"
        f"@media print{{{selector},:root[data-theme]{inside}"
        f"{{color-scheme:light;{declare_colours(PAPER)}}}}}\n"
    )
