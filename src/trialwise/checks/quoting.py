"""What a failure shows: bounded, on one line, and safe to print.

One home for the bounds, so that no check can put a whole reply, a line break or a terminal's
control codes into a report.
"""

from __future__ import annotations

from trialwise.model.trial import CheckResult, FailReason
from trialwise.redaction import LOOKED_AT, redact_text, redact_values

#: The longest evidence and explanation, in characters.
EVIDENCE_LIMIT = 200
EXPLANATION_LIMIT = 300
_PREVIEW = 80
_LABEL = 60


def printable(text: str, limit: int = EVIDENCE_LIMIT) -> str:
    """Text on one line, what cannot be printed as an escape, cut to `limit` characters."""
    if len(text) <= limit and text.isprintable():
        return text  # whole and as it was, so that the record recognises a secret in it
    # An escape only lengthens, so more of the text can never be needed.
    head = redact_text(text[:LOOKED_AT])[: limit + 1]
    line = head if head.isprintable() else "".join(map(_escape, head))
    return line if len(line) <= limit else line[: limit - 1] + "…"


def preview(text: str) -> str:
    """Return the beginning of a text, and how much there is if that is not all of it."""
    if len(text) <= _PREVIEW:
        return printable(text)
    head = redact_text(text[:LOOKED_AT])[:_PREVIEW]
    return f"{printable(head)}… ({len(text)} characters)"


def around(text: str, start: int, length: int = 0, *, margin: int = 30) -> str:
    """Return the piece of a text that matters, with a little on either side."""
    if len(text) > margin and redact_text(text) != text:
        # A secret may stand across the edge of the piece, and its half would be shown.
        return preview(text)
    end = start + min(length, EVIDENCE_LIMIT - 4 * margin)
    left, right = max(0, start - margin), end + margin
    piece = printable(text[left:right])
    return ("…" if left else "") + piece + ("…" if right < len(text) else "")


def shown(value: object, limit: int = _PREVIEW) -> str:
    """Return a value as JSON where it is JSON, else as Python shows it, bounded."""
    import json

    try:
        # JSON escapes quotes and line ends, and the record would not recognise a secret with one.
        return printable(json.dumps(redact_values(value), ensure_ascii=False), limit)
    except (TypeError, ValueError, RecursionError):
        return printable(_safe_repr(value), limit)


def label(value: object) -> str:
    """Return a value inside a check's name: text in quotes, anything else as JSON."""
    if isinstance(value, str):
        return "'" + printable(value, _LABEL) + "'"
    return shown(value, _LABEL)


def failed(
    explanation: str,
    evidence: str = "",
    *,
    reason: FailReason = FailReason.CONDITION,
    score: float | None = None,
) -> CheckResult:
    """Return a failure whose explanation and evidence keep the bounds."""
    return CheckResult.fail(
        printable(explanation, EXPLANATION_LIMIT),
        evidence=printable(evidence),
        reason=reason,
        score=score,
    )


def _escape(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def _safe_repr(value: object) -> str:
    try:
        return repr(value)
    except Exception as error:  # a reply's own __repr__ may raise anything
        return f"<{type(value).__name__}, whose repr raised {type(error).__name__}>"
