"""What goes into a request and what comes out of a response: placeholders, JSON and JSON Pointer.

`{input}`, `{index}` and `{seed}` are replaced in one pass, so that an input that happens to
contain `{seed}` stays as it is. Anything else in braces is left alone: JSON survives.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from trialwise.engine.ports import ServiceError, TrialContext
from trialwise.errors import InvalidArgument
from trialwise.model.trial import ErrorClass

#: A step of a JSONPath that names one place: `.name`, `[0]` or `['name']`.
_PATH_STEP = re.compile(r"""(\.([^\W\d][\w-]*)|\[(\d+)\]|\['([^'\\]*)'\])""")
_PLACEHOLDER = re.compile(r"\{(input|index|seed|scenario_file)\}")


def input_text(value: Any) -> str:
    """Return an input as text: text as it is, anything else as JSON.

    >>> input_text({"city": "Zürich"})
    '{"city":"Zürich"}'
    """
    return value if isinstance(value, str) else to_json(value)


def to_json(value: Any) -> str:
    """Compact JSON; what JSON cannot carry makes the trial one that never began."""
    import json

    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise ServiceError(
            f"the input cannot be written as JSON: {error}", ErrorClass.PRE_VALIDATION
        ) from None


def encode(text: str) -> bytes:
    """UTF-8; half a surrogate pair has none, and makes the trial one that never began."""
    try:
        return text.encode()
    except UnicodeError as error:
        message = f"the input cannot be written as UTF-8: {error}"
        raise ServiceError(message, ErrorClass.PRE_VALIDATION) from None


def quote_url(text: str) -> str:
    """Text as it may stand anywhere in a URL.

    >>> quote_url("a b/ü")
    'a%20b%2F%C3%BC'
    """
    from urllib.parse import quote

    return quote(encode(text), safe="")


def placeholders(texts: Sequence[str]) -> set[str]:
    """Return the names of the placeholders that occur."""
    return {name for text in texts for name in _PLACEHOLDER.findall(text)}


def fill_text(
    template: str,
    trial: TrialContext,
    *,
    quote: Callable[[str], str] = str,
    more: Mapping[str, str] | None = None,
) -> str:
    """Fill a text with its placeholders replaced.

    >>> trial = TrialContext(index=3, input="15 {seed} 37", seed=11)
    >>> fill_text('{"n": {index}, "q": "{input}"}', trial)
    '{"n": 3, "q": "15 {seed} 37"}'

    Args:
        template: The text.
        trial: Where the values come from.
        quote: Applied to each value, as a URL needs.
        more: Further values by name.
    """

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if more and name in more:
            return quote(more[name])
        return match[0] if name == "scenario_file" else quote(input_text(getattr(trial, name)))

    return _PLACEHOLDER.sub(value, template)


def fill_json(template: Any, trial: TrialContext) -> Any:
    """Fill a JSON structure with the placeholders in its texts replaced.

    A text that is one placeholder and nothing else becomes the value itself, whatever its type.

    >>> trial = TrialContext(index=0, input={"a": 1}, seed=7)
    >>> fill_json({"data": "{input}", "note": "seed {seed}", "seed": "{seed}"}, trial)
    {'data': {'a': 1}, 'note': 'seed 7', 'seed': 7}
    """
    if isinstance(template, str):
        whole = _PLACEHOLDER.fullmatch(template)
        if whole and whole[1] != "scenario_file":
            return getattr(trial, whole[1])
        return fill_text(template, trial)
    if isinstance(template, Mapping):
        return {key: fill_json(value, trial) for key, value in template.items()}
    if isinstance(template, (list, tuple)):
        return [fill_json(value, trial) for value in template]
    return template


def parse_json(text: str | bytes, *, allows_nan: bool = False) -> Any:
    """Parse the value of a JSON text; `ValueError` for whatever is not one.

    Args:
        text: The text.
        allows_nan: Whether NaN and infinity are read, as null; JSON has no such numbers.

    >>> parse_json('{"a": [1, null]}')
    {'a': [1, None]}
    """
    import json

    try:
        return json.loads(text, parse_constant=_read_null if allows_nan else _refuse)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def check_pointer(argument: str, pointer: object) -> tuple[str, ...]:
    """Return the steps of a JSON Pointer, or of a JSONPath that names one place.

    >>> check_pointer("extract", "/choices/0/a~1b"), check_pointer("extract", "$.choices[0].text")
    (('choices', '0', 'a/b'), ('choices', '0', 'text'))
    """
    allowed = "name one place: '/data/0/text', '$.data[0].text', or '$' for all of it"
    if not isinstance(pointer, str) or (pointer and pointer[0] not in "/$"):
        raise InvalidArgument(argument, pointer, allowed)
    if pointer.startswith("$"):
        steps = _PATH_STEP.findall(pointer)
        if "$" + "".join(text for text, *_ in steps) != pointer:
            raise InvalidArgument(argument, pointer, allowed)
        return tuple(name or number or quoted for _, name, number, quoted in steps)
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:])


def find(document: Any, steps: tuple[str, ...]) -> Any:
    """Return what stands at the end of the steps; `LookupError` says which step is missing.

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


def _read_null(_name: str) -> None:
    """Read a number that JSON does not have as unknown."""


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
