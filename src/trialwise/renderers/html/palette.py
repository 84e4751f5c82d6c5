"""The colours of every page, by what they mean: one palette for light, dark and paper.

Text colours keep a contrast of 4.5 with every ground they stand on; the grounds of charts are
paler than their text on purpose, and no meaning rests on a colour alone.
"""

from __future__ import annotations

from collections.abc import Mapping

LIGHT: Mapping[str, str] = {
    "page": "#faf9f6",
    "card": "#ffffff",
    "ink": "#1b1e23",
    "quiet": "#5a6068",
    "edge": "#dcd9d1",
    "grid": "#e8e5de",
    "accent": "#1d5083",
    "wash": "#edf2f7",
    "pass": "#0a6a5b",
    "pass-wash": "#e1f0ec",
    "pass-fill": "#a6d4ca",
    "fail": "#ab3512",
    "fail-wash": "#fbe9e1",
    "fail-fill": "#efb8a2",
    "open": "#7a5400",
    "open-wash": "#f7eed3",
    "open-fill": "#ead69c",
    "one": "#1d5083",
    "two": "#b4470f",
    "three": "#6b4a9e",
    "four": "#1f7d72",
}
DARK: Mapping[str, str] = {
    "page": "#111418",
    "card": "#171b20",
    "ink": "#e9e7e2",
    "quiet": "#a3a9b1",
    "edge": "#333941",
    "grid": "#272c33",
    "accent": "#8fbdea",
    "wash": "#17273a",
    "pass": "#62cdb8",
    "pass-wash": "#122e29",
    "pass-fill": "#23594f",
    "fail": "#f59a78",
    "fail-wash": "#3a1e15",
    "fail-fill": "#7c3d28",
    "open": "#e3bf5c",
    "open-wash": "#33290f",
    "open-fill": "#66531e",
    "one": "#8fbdea",
    "two": "#f59a5f",
    "three": "#bfa3ee",
    "four": "#5cc2b3",
}
PAPER: Mapping[str, str] = {
    **LIGHT,
    "page": "#ffffff",
    "ink": "#000000",
    "quiet": "#3d4248",
    "edge": "#b9b6af",
}


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
