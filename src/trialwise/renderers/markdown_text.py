"""Text that Markdown shows as it is: escaped, shortened, folded, and bounded in size.

Names and replies are shown in it, so everything that was not written here is escaped: it can
neither format, link, mention a person, refer to an issue nor break out of its table cell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import escape as escape_html

from trialwise.documents.printable import make_visible, shorten

#: GitHub refuses a comment of more than 65,536 characters, and a summary of more than 1 MiB.
MOST_BYTES = 60_000
#: Bytes that one table, one list or one block of details may take of them.
_PART = 12_000
LONGEST_NAME, LONGEST_SENTENCE = 60, 400
_ZERO_WIDTH = "&#8203;"
SIGNS = {"PASS": "✅", "FAIL": "❌", "INCONCLUSIVE": "⚠️", "REFUSED": "🚫"}

#: What Markdown would act on, and how it is written to be shown.
_ACTIVE = re.compile(
    r"(?P<mark>[\\`*_\[\]~$])|(?P<entity>[&<>|])|(?P<ping>[@#])"
    r"|(?<=:)(?P<link>//)|(?<=www)(?P<dot>\.)|(?<=gh)(?P<issue>-)(?=\d)",
    re.IGNORECASE,
)
_PING = re.compile(r"[@#]|(?<=gh)-(?=\d)", re.IGNORECASE)
_BACKTICKS = re.compile("`+")


def marker(name: str = "trialwise") -> str:
    """Return the hidden comment that a report of a suite begins with.

    >>> marker("Nightly suite")
    '<!-- trialwise-report: nightly-suite -->'
    """
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "trialwise"
    return f"<!-- trialwise-report: {slug[:LONGEST_NAME].strip('-')} -->"


def escape(text: str) -> str:
    r"""Text on one line that Markdown shows as it is, in a table and outside of one.

    >>> print(escape("a|b *c* @user #1"))
    a&#124;b \*c\* @&#8203;user #&#8203;1
    """
    return _ACTIVE.sub(_disarm, make_visible(text))


def _disarm(found: re.Match[str]) -> str:
    one = found.group()
    match found.lastgroup:
        case "entity":
            return "&#124;" if one == "|" else escape_html(one)
        case "ping" | "issue":
            # Mentions are looked for in what is shown, where no escape is left.
            return f"{one}{_ZERO_WIDTH}"
        case "link":
            return "\\//"
        case _:
            return f"\\{one}"


def write_inline(text: str, width: int = LONGEST_NAME) -> str:
    """Write a text on one line, shortened in its middle and escaped."""
    return escape(shorten(make_visible(text), width))


def write_code(text: str) -> str:
    """Text as a code span, in which nothing is acted on."""
    shown = shorten(make_visible(text), LONGEST_SENTENCE)
    fence = "`" * (1 + max((len(run) for run in _BACKTICKS.findall(shown)), default=0))
    return f"{fence} {shown} {fence}"


def fold_lines(summary: str, lines: Iterable[str]) -> str:
    """Return a block that a reader opens; its summary is HTML and not Markdown."""
    shown = escape_html(shorten(make_visible(summary), 2 * LONGEST_NAME), quote=False)
    quiet = _PING.sub(lambda ping: ping.group() + _ZERO_WIDTH, shown)
    return "\n".join([f"<details><summary>{quiet}</summary>", "", *lines, "", "</details>"])


def limit_lines(lines: Iterable[str], rest: str) -> Iterator[str]:
    """Lines as long as they fit, then how many do not."""
    used = left = 0
    for line in lines:
        used += len(line.encode()) + 1
        if used <= _PART:
            yield line
        else:
            left += 1
    if left:
        yield rest.format(left)
