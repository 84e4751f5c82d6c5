"""Secrets come from the environment by name, so that no file, record or message holds one.

`${NAME}` stands for an environment variable. Templates are kept and shown; values are looked up
for each call and forgotten.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any

from trialwise.declarations.scalars import Text
from trialwise.declarations.signatures import Arg
from trialwise.declarations.structures import MapOf
from trialwise.engine.ports import ServiceError
from trialwise.errors import InvalidArgument
from trialwise.model.trial import ErrorClass

Headers = Annotated[
    Mapping[str, str],
    Arg(kind=MapOf(Text(environment="template"), "headers by name")),
]
"""Headers whose secrets are references to the environment."""
Variables = Annotated[
    Mapping[str, str], Arg(kind=MapOf(Text(environment="read"), "variables by name"))
]
"""Variables of a command's environment."""

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
#: Headers whose value is always a secret.
_SECRET_HEADERS = {
    "api-key",
    "authorization",
    "cookie",
    "proxy-authorization",
    "x-api-key",
    "x-auth-token",
}


def check_headers(headers: Mapping[Any, Any]) -> dict[str, str]:
    """Headers whose secrets are references; the refusal does not repeat the value."""
    for name, value in headers.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise InvalidArgument("headers", name, "map text to text")
        if name.lower() in _SECRET_HEADERS and not _REFERENCE.search(value):
            allowed = "take a secret from the environment, as in 'Bearer ${API_KEY}'"
            raise InvalidArgument(f"headers[{name!r}]", "a literal value", allowed)
    return dict(headers)


def check_set(argument: str, templates: Iterable[str], environment: Mapping[str, str]) -> None:
    """Every variable referred to exists: better refused now than failed in each trial."""
    for name in (name for text in templates for name in _REFERENCE.findall(text)):
        if name not in environment:
            allowed = f"refer to a variable that is set, and {name} is not"
            raise InvalidArgument(argument, f"${{{name}}}", allowed)


def resolve(
    template: str, environment: Mapping[str, str], literal: Callable[[str], str] = str
) -> str:
    """Resolve a template with its references replaced.

    >>> resolve("Bearer ${KEY}", {"KEY": "abc"})
    'Bearer abc'

    Args:
        template: The text.
        environment: Where the values come from.
        literal: Applied to what stands between the references. What it puts there is not looked
            at again, so that no input can ask for a secret.
    """
    parts = _REFERENCE.split(template)
    try:
        return "".join(
            environment[part] if place % 2 else literal(part) for place, part in enumerate(parts)
        )
    except KeyError as error:
        message = f"the environment variable {error.args[0]} is not set"
        raise ServiceError(message, ErrorClass.PRE_VALIDATION) from None


def scrub(text: str, templates: Iterable[str], environment: Mapping[str, str]) -> str:
    """Return a message with the value of every secret referred to replaced by its name.

    >>> scrub("bad key abc123", ["Bearer ${KEY}"], {"KEY": "abc123"})
    'bad key ${KEY}'
    """
    names = {name for template in templates for name in _REFERENCE.findall(template)}
    for name in sorted(names, key=lambda name: -len(environment.get(name, ""))):
        if environment.get(name):
            text = text.replace(environment[name], f"${{{name}}}")
    return text
