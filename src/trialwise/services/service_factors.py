"""What a service is made of, for the record: model, endpoint, prompt, parameters, tools, code.

A baseline keeps these factors, and a run that compares itself with it says which of them changed
(companion 1.3.1, 8.4.5). Long or private texts are recorded by a fingerprint. Secrets are taken out
first, also before a fingerprint: who knows the rest of a text could find them by trying.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from trialwise.catalogue import SERVICES as BUILT_IN
from trialwise.declarations.scalars import Text
from trialwise.declarations.signatures import Arg, Declaration
from trialwise.declarations.structures import Key, MapOf
from trialwise.engine.ports import ServiceError
from trialwise.errors import InvalidArgument, TrialwiseError
from trialwise.extensions import SERVICES, find_extension
from trialwise.model.fingerprint import canonical, fingerprint
from trialwise.model.trial import ErrorClass
from trialwise.redaction import redact_values

# What a service is called in a suite, which keys it takes and where it lives.
#
# A service is declared by its class: the signature of the constructor says which keys there are
# and its docstring what they mean. The catalogue says where the built-in ones live; the entry
# points of other distributions are asked only for a name that the catalogue does not have.


class ServiceDeclaration(Declaration):
    """A service as it is declared."""

    __slots__ = ()
    texts = "read"

    @property
    def main(self) -> Key:
        """The key that a service is called by where nobody named it: the first that is required."""
        return next((key for key in self.keys if key.is_required), self.keys[0])

    @property
    def is_short(self) -> bool:
        """Whether the main key's value alone describes the service."""
        required = [key for key in self.keys if key.is_required]
        return required == [self.keys[0]] and self.keys[0].is_positional


def service_names() -> tuple[str, ...]:
    """Return the names of the built-in services."""
    return tuple(BUILT_IN)


@cache
def find_service(name: str) -> ServiceDeclaration | None:
    """Return the declaration of a service, built in or of another distribution, if there is one.

    Raises:
        ExtensionError: Another distribution declares it, and it cannot be used.
    """
    if name in BUILT_IN:
        module, _, class_name = BUILT_IN[name].partition(":")
        return ServiceDeclaration(name, getattr(import_module(f"trialwise.{module}"), class_name))
    return find_extension(SERVICES, name, lambda loaded: _accept(name, loaded))


def _accept(name: str, loaded: object) -> ServiceDeclaration | None:
    """Return the declaration of a class or function that makes a service."""
    if not callable(loaded):
        return None
    declared = ServiceDeclaration(name, loaded)
    return declared if declared.keys else None


# Secrets come from the environment by name, so that no file, record or message holds one.
#
# `${NAME}` stands for an environment variable. Templates are kept and shown; values are looked up
# for each call and forgotten.

Headers = Annotated[
    Mapping[str, str], Arg(kind=MapOf(Text(environment="template"), "headers by name"))
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
    # The longest first: one secret may be the beginning of another.
    for name in sorted(names, key=lambda name: -len(environment.get(name, ""))):
        if environment.get(name):
            text = text.replace(environment[name], f"${{{name}}}")
    return text


_LOCAL = ("localhost", "127.0.0.1", "::1", "0.0.0.0")
#: From here on systems give ports at random, so that they say nothing about a service.
# Linux begins here (ip_local_port_range); IANA's dynamic ports begin later, at 49152 (RFC 6335).
_FIRST_RANDOM_PORT = 32768
#: Longer texts are recorded by a fingerprint.
_LONGEST = 200
#: A larger file is no script.
# A script is recorded by its content; a binary or a model of this size would take longer to read
# than the first trial.
_LARGEST = 2**24


def name_endpoint(url: str) -> str:
    """Name the address of a service; a port that the system gave on this machine is left out.

    >>> name_endpoint("https://api.example.com/v1"), name_endpoint("http://127.0.0.1:8931/v1")
    ('https://api.example.com/v1', 'http://localhost:8931/v1')
    >>> name_endpoint("http://127.0.0.1:40123/v1")
    'http://localhost/v1'
    """
    parts = urlsplit(url)
    if not parts.scheme:
        return url  # a reference stands for its beginning
    host = parts.netloc.rpartition("@")[2]
    # A test server has another port each time, and would be another endpoint in each baseline.
    if parts.hostname in _LOCAL:
        is_chosen = parts.port is not None and parts.port < _FIRST_RANDOM_PORT
        host = f"localhost:{parts.port}" if is_chosen else "localhost"
    return f"{parts.scheme}://{host}{parts.path}"


def describe_value(value: Any) -> str:
    """Describe a value as short text, or else its fingerprint."""
    value = redact_values(value)
    text = value if isinstance(value, str) else canonical(value)
    return text if len(text) <= _LONGEST and text.isprintable() else fingerprint(value)


def describe_code(arguments: Iterable[str], folder: str | Path | None) -> str | None:
    """Describe a fingerprint of the files that a command names; None where it names none."""
    found = []
    for one in arguments:
        path = Path(folder or ".") / one
        try:
            # The content counts and not the path: two clones of a repository are the same service.
            if path.is_file() and path.stat().st_size <= _LARGEST:
                found.append(fingerprint(path.read_bytes()))
        except (OSError, ValueError):  # what cannot be read cannot be known
            continue
    return fingerprint(found) if found else None


# The ways a service gives no usable reply, in one place because every adapter shares them.
#
# TrialwiseError
# ├── ServiceError                 the engine classes the trial by its error class
# │   ├── HttpFailure              no reply over HTTP; keeps the status and Retry-After
# │   ├── ReportedFailure          the service itself says that it failed, and how
# │   └── RecordingError           a recording cannot be written, read or matched
# ├── ReplyTooLarge                more output than allowed: the service's own failure
# ├── MalformedReply               a reply that is not in the form promised: likewise
# ├── RequestRefused               an endpoint that would not answer this input: likewise
# └── RecordedFailure              a failure of the service's own, played back

__all__ = ["HttpFailure", "MalformedReply", "RecordedFailure", "RecordingError"]
__all__ += ["ReplyTooLarge", "ReportedFailure", "RequestRefused"]


class HttpFailure(ServiceError):
    """No reply came over HTTP.

    Args:
        message: What happened, without anything secret in it.
        error_class: How the trial is classed.
        status: The HTTP status, where one arrived.
        retry_after_s: How long the server asked to be left alone.
    """

    def __init__(
        self,
        message: str,
        error_class: ErrorClass = ErrorClass.INFRASTRUCTURE,
        *,
        status: int | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message, error_class)
        self.status = status
        self.retry_after_s = retry_after_s


class ReportedFailure(ServiceError):
    """The service replied with an error of its own, at the place where the suite expects one."""


class RecordingError(ServiceError):
    """A recording cannot be written, cannot be read or holds no reply to this trial."""

    stops_run = True


class ReplyTooLarge(TrialwiseError):
    """The service said more than it may.

    Args:
        limit_bytes: The limit it passed.
        head: How the reply began.
    """

    def __init__(self, limit_bytes: int, head: str = "") -> None:
        super().__init__(
            f"the reply is larger than {limit_bytes:,} bytes and was cut off; it begins {head!r}"
        )
        self.limit_bytes = limit_bytes
        self.head = head


class MalformedReply(TrialwiseError):
    """The service replied, but not in the form it promised."""


class RequestRefused(TrialwiseError):
    """The endpoint refused this input, which is an answer of the service's own."""


class RecordedFailure(HttpFailure):
    """An exception of the service's own, played back from a recording.

    Args:
        message: What the original said.
        original_type: The original's qualified name.
        error_class: How its trial was classed.
        status: The HTTP status, where one arrived.
        retry_after_s: How long the server asked to be left alone.
    """

    def __init__(
        self,
        message: str,
        original_type: str,
        error_class: ErrorClass | str = ErrorClass.NONE,
        status: int | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        known = ErrorClass(error_class)
        super().__init__(message, known, status=status, retry_after_s=retry_after_s)
        self.original_type = original_type
