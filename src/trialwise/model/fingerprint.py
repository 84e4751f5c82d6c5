"""Fingerprints of contents: sixteen characters that change when what they stand for does.

Apart from the nouns because a fingerprint must never fail and never drift: not on an object of the
user's that cannot be written down, not with the order of a mapping, and not with an address in
memory.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from hashlib import sha256
from typing import Any, TypeAlias

from trialwise.model.claim import Input, Sampling

#: 64 bits: two of a project's contents never meet by chance, and a person can compare them.
_LENGTH = 16
#: Deeper parts are told apart by their `repr` only; JSON documents are not nested so far.
_DEEPEST = 60
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_LARGEST = 2**63
#: Values of these types are as JSON holds them; they are most parts of a plan.
_PLAIN = frozenset({str, bool, type(None)})

Describe: TypeAlias = Callable[[object], object]


def fingerprint(value: object, *, describe: Describe | None = None) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of a value's canonical text.

    >>> fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
    True
    """
    return sha256(canonical(value, describe=describe).encode("ascii")).hexdigest()[:_LENGTH]


def canonical(value: object, *, describe: Describe | None = None) -> str:
    """Return a value as JSON with sorted keys; other values are told apart as well as possible.

    Bytes stand for themselves by a hash, sets are sorted, dataclasses and objects without a `repr`
    of their own are their fields, anything else is its `repr` without addresses. It never raises.

    Args:
        value: Anything.
        describe: Asked first about what JSON cannot hold; it returns a value to write instead, or
            None.

    >>> canonical({"b": (1, 2.5), "a": {3}})
    '{"a":{"$set":[3]},"b":[1,2.5]}'
    """
    return _text(_plain(value, describe, ()))


def sampling_fingerprint(sampling: Sampling) -> str:
    """Return the fingerprint of the inputs' contents, whatever their order and the sampling's name.

    An expected answer does: held to another one, the same input is another trial.

    >>> one = Sampling.of(["What is 15 * 37?"])
    >>> sampling_fingerprint(one) == sampling_fingerprint(Sampling.of(["What is 15 * 38?"]))
    False
    """
    inputs = sorted(sampling.inputs, key=lambda one: one.id)
    return fingerprint([_contents(one) for one in inputs])


def _contents(one: Input) -> list[object]:
    contents = [one.id, one.value, one.stratum, one.repetitions, float(one.weight)]
    # Left out where there is none, as it was before there were any.
    if one.cluster is not None:
        return [*contents, one.expected, one.cluster]
    return contents if one.expected is None else [*contents, one.expected]


def _text(plain: object) -> str:
    # Here, because making a service loads this module and is no reason to load a parser.
    import json

    return json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _plain(value: object, describe: Describe | None, within: tuple[int, ...]) -> Any:
    """Return the value as JSON holds it; `within` are the ids of the containers it lies in."""
    try:
        if value is None or isinstance(value, str | int | float):
            return _scalar(value)
        if id(value) in within:
            return {"$cycle": len(within) - within.index(id(value))}
        if describe is not None and (described := describe(value)) is not None:
            return _plain(described, None, within)
        if len(within) >= _DEEPEST:
            return _show(value)
        inside = (*within, id(value))
        return _compose(
            value, lambda part: part if type(part) in _PLAIN else _plain(part, describe, inside)
        )
    except Exception:  # an object of the user's may raise anything from any method
        return {"$type": _type(value)}


def _scalar(value: str | float | None) -> Any:
    if isinstance(value, str):
        return str.__str__(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        # Python refuses to write out numbers of thousands of digits.
        return int(value) if abs(value) < _LARGEST else {"$int": hex(value)}
    return float(value) if math.isfinite(value) else {"$float": repr(float(value))}


def _compose(value: object, plain: Callable[[object], Any]) -> Any:
    if isinstance(value, dict | Mapping):
        for key in value:
            if not isinstance(key, str) or key.startswith("$"):
                break
        else:
            return {str.__str__(key): plain(part) for key, part in value.items()}
        return {"$pairs": _sort([plain(key), plain(part)] for key, part in value.items())}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, set | frozenset):
        return {"$set": _sort(plain(part) for part in value)}
    if isinstance(value, bytes | bytearray):
        return {"$bytes": sha256(value).hexdigest()}
    return _object(value, plain)


def _object(value: object, plain: Callable[[object], Any]) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        parts = {one.name: getattr(value, one.name) for one in fields(value) if one.compare}
        return {"$type": _type(value), "fields": plain(parts)}
    if isinstance(value, Enum):
        return {"$type": _type(value), "name": value.name}
    if (contents := _buffer(value)) is not None:
        return {"$type": _type(value), **contents}
    if type(value).__repr__ is object.__repr__ and hasattr(value, "__dict__"):
        return {"$type": _type(value), "fields": plain(vars(value))}
    return _show(value)


def _buffer(value: object) -> dict[str, object] | None:
    """Return an array, whose `repr` would leave out its middle."""
    try:
        view = memoryview(value)  # type: ignore[arg-type]
    except TypeError:
        return None
    if "O" in view.format:  # addresses of objects, which change from run to run
        return None
    shape = list(view.shape or ())
    return {"format": view.format, "shape": shape, "$bytes": sha256(view.tobytes()).hexdigest()}


def _show(value: object) -> dict[str, str]:
    return {"$type": _type(value), "repr": _ADDRESS.sub("", repr(value))}


def _type(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _sort(parts: Iterable[Any]) -> list[Any]:
    return sorted(parts, key=_text)
