"""The lines of a recording: one trial each, readable, checked, without anything secret.

A line holds what came back and a hash of what was sent, never the request itself. Only values that
JSON returns unchanged are written, so that a replayed reply equals the recorded one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from trialwise.engine.ports import ServiceError
from trialwise.model.outcome import ErrorClass
from trialwise.model.reply import Reply, Usage
from trialwise.services.failures import HttpFailure, RecordedFailure, RecordingError

#: How every line begins; also the version of the form.
PREFIX = '{"recording":1,'
#: Python refuses to read back a number of more than 4,300 digits.
_LONGEST_BITS = 14_000


def input_hash(value: Any) -> str:
    """A name for an input that depends on its content alone.

    >>> input_hash({"a": 1, "b": 2}) == input_hash({"b": 2, "a": 1})
    True
    """
    check_plain("the input", value, ErrorClass.PRE_VALIDATION)
    return _digest(_dump(value, sort_keys=True))


def check_plain(place: str, value: Any, error_class: ErrorClass) -> None:
    """Refuse what JSON would lose or change, and say where it stands."""
    try:
        _check_plain(place, value, error_class)
    except RecursionError:
        raise _unrecordable(place, "nested too deeply or within itself", error_class) from None


def _check_plain(place: str, value: Any, error_class: ErrorClass) -> None:
    if value is None or isinstance(value, (str, int)):
        if isinstance(value, int) and value.bit_length() > _LONGEST_BITS:
            raise _unrecordable(place, "a number of thousands of digits", error_class)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise _unrecordable(place, f"{value}", error_class)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _check_plain(f"{place}[{index}]", item, error_class)
    elif isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise _unrecordable(place, f"a dict with the key {key!r}", error_class)
            _check_plain(f"{place}[{key!r}]", item, error_class)
    else:
        raise _unrecordable(place, f"a {type(value).__name__}", error_class)


def encode_reply(reply: Reply) -> dict[str, Any]:
    """A reply as plain values."""
    details = dict(reply.details)
    check_plain("the reply's value", reply.value, ErrorClass.INFRASTRUCTURE)
    check_plain("the reply's details", details, ErrorClass.INFRASTRUCTURE)
    usage = reply.usage
    return {
        "value": reply.value,
        "latency_s": reply.latency_s,
        "usage": usage and {"input": usage.input_tokens, "output": usage.output_tokens},
        "cost_usd": reply.cost_usd,
        "exit_code": reply.exit_code,
        "details": details,
    }


def decode_reply(fields: Mapping[str, Any]) -> Reply:
    """The reply a line holds."""
    usage = fields["usage"]
    return Reply(
        value=fields["value"],
        latency_s=fields["latency_s"],
        usage=usage and Usage(input_tokens=usage["input"], output_tokens=usage["output"]),
        cost_usd=fields["cost_usd"],
        exit_code=fields["exit_code"],
        details=fields["details"],
    )


def encode_error(error: Exception) -> dict[str, Any]:
    """A failure as plain values: its kind and what it said, nothing it held."""
    kind = type(error)
    fields: dict[str, Any] = {
        "type": f"{kind.__module__}.{kind.__qualname__}",
        "message": str(error),
        "class": error.error_class.value if isinstance(error, ServiceError) else None,
    }
    if isinstance(error, HttpFailure):
        fields |= {"status": error.status, "retry_after_s": error.retry_after_s}
    return fields


def decode_error(fields: Mapping[str, Any]) -> Exception:
    """The failure a line holds, classed as it was."""
    if fields["class"] is None:
        return RecordedFailure(fields["message"], fields["type"])
    error_class = ErrorClass(fields["class"])
    if "status" in fields:
        return HttpFailure(
            fields["message"],
            error_class,
            status=fields["status"],
            retry_after_s=fields["retry_after_s"],
        )
    return ServiceError(fields["message"], error_class)


def encode_line(fields: Mapping[str, Any]) -> bytes:
    """One line, with a checksum over all of it."""
    body = PREFIX + _dump(fields)[1:]
    return f'{body[:-1]},"checksum":"{_digest(body)}"}}\n'.encode(errors="surrogatepass")


def decode_line(line: bytes, number: int) -> dict[str, Any]:
    """What a line holds; a line that is not as it was written is refused."""
    import json

    body, mark, end = line.decode(errors="surrogatepass").rpartition(',"checksum":"')
    if not body.startswith(PREFIX) or not mark:
        raise RecordingError(
            f"line {number} of the recording is not one of a recording", ErrorClass.PRE_VALIDATION
        )
    if end != _digest(f"{body}}}") + '"}':
        raise RecordingError(
            f"line {number} of the recording was changed or damaged: its checksum does not match",
            ErrorClass.PRE_VALIDATION,
        )
    fields: dict[str, Any] = json.loads(f"{body}}}")
    return fields


def _unrecordable(place: str, what: str, error_class: ErrorClass) -> RecordingError:
    return RecordingError(
        f"{place} is {what}, which a recording cannot hold: "
        "only text, finite numbers, booleans, None, lists and dicts with text keys",
        error_class,
    )


def _dump(value: Any, *, sort_keys: bool = False) -> str:
    import json

    return json.dumps(
        value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=sort_keys
    )


def _digest(text: str) -> str:
    from hashlib import sha256

    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]
