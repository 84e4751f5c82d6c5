"""Plain values as JSON text that is safe to show."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

_BEYOND_ASCII = re.compile(r"[^ -~\n]")


def render_json(values: Any) -> str:
    """Plain values as JSON text.

    Letters of every script stay as they are. What cannot be printed is written as an escape of
    JSON; half a surrogate pair, which JSON readers refuse, is spelled out.
    """
    text = json.dumps(values, indent=2, ensure_ascii=False, allow_nan=False)
    return _BEYOND_ASCII.sub(_escape, text) + "\n"


def render_json_lines(rows: Iterable[Any]) -> str:
    """Plain values as JSON, one a line, as safe to show as `render_json`."""
    lines = (json.dumps(one, ensure_ascii=False, allow_nan=False) for one in rows)
    return "".join(f"{_BEYOND_ASCII.sub(_escape, line)}\n" for line in lines)


def _escape(found: re.Match[str]) -> str:
    one = found.group()
    if one.isprintable():
        return one
    code = ord(one)
    if 0xD800 <= code <= 0xDFFF:
        return f"\\\\u{code:04x}"
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
