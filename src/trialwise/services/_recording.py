"""The lines of a recording: one trial each, readable, checked, without anything secret.

A line holds what came back and a hash of what was sent, never the request itself. Only values that
JSON returns unchanged are written, so that a replayed reply equals the recorded one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trialwise.engine.ports import ServiceError
from trialwise.model.lines import is_whole, parse_lines, seal, unplain
from trialwise.model.reply import Reply, Setup, Usage
from trialwise.model.trial import ErrorClass
from trialwise.services.failures import HttpFailure, RecordedFailure, RecordingError

#: How every line begins; also the version of the form.
PREFIX = '{"recording":1,'


def input_hash(value: Any) -> str:
    """A name for an input that depends on its content alone.

    >>> input_hash({"a": 1, "b": 2}) == input_hash({"b": 2, "a": 1})
    True
    """
    from hashlib import sha256

    check_plain("the input", value, ErrorClass.PRE_VALIDATION)
    text = _dump(value, sort_keys=True)
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]


def check_plain(place: str, value: Any, error_class: ErrorClass) -> None:
    """Refuse what JSON would lose or change, and say where it stands."""
    found = unplain(value, place)
    if found is not None:
        where, what = found
        raise RecordingError(
            f"{where} is {what}, which a recording cannot hold: "
            "only text, finite numbers, booleans, None, lists and dicts with text keys",
            error_class,
        )


def encode_reply(reply: Reply) -> dict[str, Any]:
    """A reply as plain values."""
    details = dict(reply.details)
    check_plain("the reply's value", reply.value, ErrorClass.INFRASTRUCTURE)
    check_plain("the reply's details", details, ErrorClass.INFRASTRUCTURE)
    setup = reply.setup
    return {
        "value": reply.value,
        "latency_s": reply.latency_s,
        "usage": _encode_usage(reply.usage),
        "cost_usd": reply.cost_usd,
        "exit_code": reply.exit_code,
        "setup": setup
        and {
            "seconds": setup.seconds,
            "usage": _encode_usage(setup.usage),
            "cost_usd": setup.cost_usd,
        },
        "details": details,
    }


def _encode_usage(usage: Usage | None) -> dict[str, int] | None:
    if usage is None:
        return None
    return {"input": usage.input_tokens, "output": usage.output_tokens}


def _decode_usage(fields: Mapping[str, int] | None) -> Usage | None:
    if fields is None:
        return None
    return Usage(input_tokens=fields["input"], output_tokens=fields["output"])


def decode_reply(fields: Mapping[str, Any]) -> Reply:
    """The reply a line holds."""
    setup = fields["setup"]
    return Reply(
        value=fields["value"],
        latency_s=fields["latency_s"],
        usage=_decode_usage(fields["usage"]),
        cost_usd=fields["cost_usd"],
        exit_code=fields["exit_code"],
        setup=setup
        and Setup(
            seconds=setup["seconds"],
            usage=_decode_usage(setup["usage"]),
            cost_usd=setup["cost_usd"],
        ),
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
    return seal(body.encode(errors="surrogatepass"))


def decode_line(line: bytes, place: str) -> dict[str, Any]:
    """What a line holds; a line that is not as it was written is refused.

    Args:
        line: Without its end.
        place: How a refusal names it.
    """
    if not line.startswith(PREFIX.encode()):
        raise RecordingError(f"{place} is not one of a recording", ErrorClass.PRE_VALIDATION)
    if not is_whole(line):
        raise RecordingError(
            f"{place} was changed or damaged: its checksum does not match",
            ErrorClass.PRE_VALIDATION,
        )
    return parse_lines([line])[0]


def _dump(value: Any, *, sort_keys: bool = False) -> str:
    import json

    # As it was said, so that a recording can be read: only ASCII would hide most languages.
    return json.dumps(
        value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=sort_keys
    )
