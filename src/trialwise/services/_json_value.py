"""Reading JSON that a stranger wrote, and finding one value in it.

A pointer (RFC 6901) is all that is needed to say where an answer stands in a response; queries
with several matches belong to the postconditions.
"""

from __future__ import annotations

from typing import Any, NoReturn

from trialwise.errors import InvalidArgument


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text; `ValueError` for whatever is not one.

    >>> parse_json('{"a": [1, null]}')
    {'a': [1, None]}
    """
    import json

    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def check_pointer(argument: str, pointer: object) -> tuple[str, ...]:
    """The steps of a pointer.

    >>> check_pointer("extract", "/choices/0/a~1b")
    ('choices', '0', 'a/b')
    """
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
        raise InvalidArgument(argument, pointer, "be empty or start with '/', as in '/data/0/text'")
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:])


def find(document: Any, steps: tuple[str, ...]) -> Any:
    """What stands at the end of the steps; `LookupError` says which step is missing.

    >>> find({"a": [10, 20]}, ("a", "1"))
    20
    """
    value = document
    for depth, step in enumerate(steps):
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            raise LookupError("nothing at /" + "/".join(steps[: depth + 1]))
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
