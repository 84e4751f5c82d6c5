"""Classifies errors: what an error says about its trial, for every service and every caller.

| class          | examples                                                   | the trial     |
|----------------|------------------------------------------------------------|---------------|
| none           | the service's own exception, HTTP 500                      | failed        |
| timeout        | no answer in time, while the service worked                | failed        |
| infrastructure | refused connection, DNS, TLS, 429, 502, 503, 504           | asked again   |
| pre-validation | the request could not be made; a key that expired          | asked again   |
| configuration  | 400, 401, 403, 404, 405, 422, a redirect: before any reply | the run stops |

Clients of other packages are recognised by the names of their exceptions, so that none of them is
imported here. Three rules say what a chain of errors is:

- An error that was raised `from` another one is what that other one is, unless it says by itself
  what it is.
- A status counts at once if a client says it that reads it from a response, or if the headers of
  the response are there. Another error with a status may have made it up: litellm reports a refused
  connection as 500. It is what it was raised from or, failing that, what was being handled when it
  was raised, if that says what it is. `raise … from None` says that it has nothing to do with it.
- Any other error is not what was being handled when it was raised: a ValueError after a lost
  connection to a cache is an error of the service.

A group of errors is the service's own failure if any of its members is.
"""

from __future__ import annotations

import errno
import math
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from trialwise.engine.ports import ServiceError
from trialwise.model.trial import ErrorClass

#: The server, or one on the way to it, did not take the request: asking again may help.
UNREACHED_STATUSES = frozenset({408, 425, 429, 502, 503, 504, *range(520, 528), 529, 530, 598, 599})
#: The request is not what the server serves: the address, the key, the model or the body is wrong.
REFUSED_STATUSES = frozenset({400, 401, 402, 403, 404, 405, 406, 407, 410, 411, 415, 421, 422, 426})
#: Of those, what says nothing about an input even where others were answered.
_KEY_STATUSES = frozenset({401, 402, 407})

_INFRASTRUCTURE, _TIMEOUT = ErrorClass.INFRASTRUCTURE, ErrorClass.TIMEOUT
_CONFIGURATION = ErrorClass.CONFIGURATION


# By name and not by class: none of these packages is imported, and most are not installed.
def _list_names(**names: str) -> dict[str, ErrorClass]:
    """Return the class of each name; the names of a class are written as one text."""
    return {one: ErrorClass(kind) for kind, several in names.items() for one in several.split()}


_HTTPX = _list_names(
    timeout="ReadTimeout WriteTimeout",
    configuration="UnsupportedProtocol LocalProtocolError TooManyRedirects InvalidURL",
    infrastructure="ConnectError ConnectTimeout PoolTimeout NetworkError ProxyError "
    "RemoteProtocolError",
)
_SDK = _list_names(timeout="APITimeoutError", infrastructure="APIConnectionError")
#: Exceptions by the package that defines them. The most derived class of an error counts first.
_NAMES: Mapping[str, Mapping[str, ErrorClass]] = {
    **dict.fromkeys(("httpx", "httpx2", "httpcore", "httpcore2"), _HTTPX),
    "requests": _list_names(
        timeout="Timeout",
        configuration="TooManyRedirects MissingSchema InvalidSchema InvalidURL",
        infrastructure="ConnectTimeout ConnectionError ChunkedEncodingError",
    ),
    "urllib3": _list_names(
        timeout="ReadTimeoutError",
        configuration="LocationParseError",
        infrastructure="NewConnectionError ConnectTimeoutError MaxRetryError ProtocolError "
        "ProxyError SSLError",
    ),
    "aiohttp": _list_names(
        timeout="ServerTimeoutError",
        configuration="TooManyRedirects InvalidURL",
        infrastructure="ConnectionTimeoutError ClientConnectionError ClientPayloadError",
    ),
    **dict.fromkeys(("openai", "anthropic"), _SDK),
    "botocore": _list_names(
        timeout="ReadTimeoutError",
        configuration="NoCredentialsError PartialCredentialsError NoRegionError "
        "UnknownServiceError",
        infrastructure="HTTPClientError ConnectionError",
    ),
    "http": _list_names(
        configuration="InvalidURL",
        infrastructure="IncompleteRead BadStatusLine NotConnected ImproperConnectionState",
    ),
    "urllib": _list_names(infrastructure="URLError"),
    "websockets": _list_names(infrastructure="ConnectionClosed"),
}
#: gRPC's codes; all others are the service's own failure.
_GRPC = _list_names(
    timeout="DEADLINE_EXCEEDED",
    configuration="UNAUTHENTICATED PERMISSION_DENIED UNIMPLEMENTED NOT_FOUND INVALID_ARGUMENT",
    infrastructure="UNAVAILABLE RESOURCE_EXHAUSTED",
)
#: Packages whose exceptions keep an HTTP status as `status` or `code`.
_STATUS_PACKAGES = frozenset({*_NAMES, "google", "azure"})
_UNREACHABLE = frozenset(
    {
        *(errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EHOSTDOWN),
        # What this machine ran out of says nothing about the service.
        *(errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL),
    }
)
#: Of the members of a group the first of these counts: no outage excuses another error.
_GRAVEST = (ErrorClass.NONE, _TIMEOUT, _CONFIGURATION, ErrorClass.PRE_VALIDATION, _INFRASTRUCTURE)
#: More errors than this are a loop in the chain of causes.
_LONGEST_CHAIN = 20


class Trouble(NamedTuple):
    """What an error says about its trial."""

    error_class: ErrorClass = ErrorClass.NONE
    status: int | None = None
    """The HTTP status that came back, if one did."""
    retry_after_s: float | None = None
    """How many seconds the service asked to wait before the next request."""


@dataclass(slots=True)
class Reach:
    """Whether a service was ever reached in a run, which decides what a refusal means.

    A service that refuses its first requests is set up wrongly. One that answered others refuses
    this input, and that is an answer of its own.
    """

    has_answered: bool = False
    """Whether anything came back at all, be it an error."""
    has_worked: bool = False
    """Whether there was a reply."""

    def learn(self, other: Reach) -> None:
        """Take note of what another process knows."""
        self.has_answered |= other.has_answered
        self.has_worked |= other.has_worked

    def note_reply(self) -> None:
        """Remember that there was a reply."""
        self.has_answered = self.has_worked = True

    def settle(self, trouble: Trouble) -> ErrorClass:
        """Return the class of an error, given what the run has seen so far."""
        self.has_answered |= trouble.status is not None
        if trouble.error_class is not ErrorClass.CONFIGURATION or not self.has_worked:
            return trouble.error_class
        # A key that has worked and works no longer has run out of credit or was revoked: that says
        # nothing about the input that was being asked.
        is_key = trouble.status in _KEY_STATUSES
        return ErrorClass.PRE_VALIDATION if is_key else ErrorClass.NONE


def classify_status(status: int) -> ErrorClass:
    """Return the class of an HTTP status that is not a reply.

    >>> [str(classify_status(status)) for status in (503, 404, 302, 500)]
    ['infrastructure', 'configuration', 'configuration', 'none']
    """
    if status in UNREACHED_STATUSES:
        return ErrorClass.INFRASTRUCTURE
    if status in REFUSED_STATUSES or 300 <= status < 400:
        return ErrorClass.CONFIGURATION
    return ErrorClass.NONE


def classify_error(error: BaseException) -> Trouble:
    """Return what an exception says about its trial, regardless of who raised it.

    >>> classify_error(ConnectionRefusedError("refused")).error_class
    <ErrorClass.INFRASTRUCTURE: 'infrastructure'>
    >>> classify_error(KeyError("answer")).error_class
    <ErrorClass.NONE: 'none'>
    """
    try:
        return _classify_chain(error, _LONGEST_CHAIN) or Trouble()
    except Exception:  # attributes of a foreign exception may raise anything
        return Trouble()


def innermost_error(error: BaseException) -> BaseException:
    """Return the only error of an exception group, in case the service used a task group."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _classify_chain(error: BaseException | None, room: int) -> Trouble | None:
    """Return what an error or one of its causes says, or None."""
    if error is None or not room:
        return None
    if isinstance(error, BaseExceptionGroup):
        # One connection that failed must not hide that another task found a wrong answer.
        found = [_classify_chain(one, room - 1) or Trouble() for one in error.exceptions]
        return min(found, key=lambda one: _GRAVEST.index(one.error_class))
    if isinstance(error, ServiceError):
        return Trouble(error.error_class, getattr(error, "status", None), error.retry_after_s)
    status = _find_status(error)
    told = None
    if status is not None:
        error_class = _INFRASTRUCTURE if _is_throttled(error) else classify_status(status)
        told = Trouble(error_class, status, _find_retry_after(error))
        if _package(type(error)) in _STATUS_PACKAGES or _find_headers(error):
            return told
    # From the outside in: what raised last knew most of what happened before.
    found_here = _find_grpc(error) or _find_named(error) or _classify_builtin(error)
    if found_here is not None:
        return found_here
    # An assertion is a statement about the reply, whatever it was raised from.
    inner = None if isinstance(error, AssertionError) else error.__cause__
    if told is not None:
        inner = _find_inner(error)
    return _classify_chain(inner, room - 1) or told


def _find_inner(error: BaseException) -> BaseException | None:
    """Return what a client's error was raised from, or what was being handled at that time."""
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _find_grpc(error: BaseException) -> Trouble | None:
    if _package(type(error)) != "grpc" and not hasattr(error, "trailing_metadata"):
        return None
    code = getattr(error, "code", None)
    name = getattr(code() if callable(code) else code, "name", "")
    return Trouble(_GRPC.get(name, ErrorClass.NONE))


def _find_named(error: BaseException | None) -> Trouble | None:
    for one in type(error).__mro__:
        found = _NAMES.get(_package(one), {}).get(one.__name__)
        # The clients of OpenAI and Anthropic say "timeout" also where no connection was made.
        if found is _TIMEOUT and error is not None and _package(one) in ("openai", "anthropic"):
            return _find_named(_find_inner(error)) or Trouble(found)
        if found is not None:
            return Trouble(found)
    return None


def _classify_builtin(error: BaseException) -> Trouble | None:
    if isinstance(error, TimeoutError):
        return Trouble(_TIMEOUT)
    # By name: `socket` and `ssl` take time to load, and most runs use neither.
    names = {one.__name__ for one in type(error).__mro__}
    is_infrastructure = (
        isinstance(error, ConnectionError)
        # asyncio joins the refusals of several addresses of one host to one text.
        or (type(error) is OSError and "Connect call failed" in str(error))
        or (isinstance(error, OSError) and error.errno in _UNREACHABLE)
        or (isinstance(error, OSError) and names & {"gaierror", "herror", "SSLError"})
        or (type(error) is RuntimeError and str(error).startswith("can't start new thread"))
    )
    return Trouble(_INFRASTRUCTURE) if is_infrastructure else None


def _find_status(error: BaseException) -> int | None:
    """Return the HTTP status of an exception, from one of the usual attributes."""
    response = getattr(error, "response", None)
    found = [getattr(error, "status_code", None), getattr(response, "status_code", None)]
    if any(_package(one) in _STATUS_PACKAGES for one in type(error).__mro__):
        found += [getattr(error, "status", None), getattr(error, "code", None)]
    if isinstance(response, Mapping):
        metadata = response.get("ResponseMetadata")
        found.append(metadata.get("HTTPStatusCode") if isinstance(metadata, Mapping) else None)
    for status in found:
        if isinstance(status, int) and not isinstance(status, bool) and 300 <= status < 600:
            return int(status)
    return None


def _is_throttled(error: BaseException) -> bool:
    """Return whether a service of AWS asks for patience, which some of them do with status 400."""
    response = getattr(error, "response", None)
    said = response.get("Error") if isinstance(response, Mapping) else None
    code = said.get("Code") if isinstance(said, Mapping) else None
    return isinstance(code, str) and ("Throttl" in code or "TooManyRequests" in code)


def _find_headers(error: BaseException) -> Any:
    """Return the headers of the response that an error is about; None without a response."""
    response = getattr(error, "response", None)
    return getattr(response, "headers", None) or getattr(error, "headers", None) or None


def _find_retry_after(error: BaseException) -> float | None:
    get = getattr(_find_headers(error), "get", None)
    value = (get("retry-after") or get("Retry-After")) if callable(get) else None
    return retry_after(value if isinstance(value, str) else None, time.time())


def _package(kind: type) -> str:
    return (getattr(kind, "__module__", None) or "").partition(".")[0]


def retry_after(value: str | None, now: float) -> float | None:
    """Return the seconds that a Retry-After header asks for, from its number or its date.

    >>> retry_after("2.5", 0.0), retry_after("Thu, 01 Jan 1970 00:01:00 GMT", 20.0)
    (2.5, 40.0)
    >>> retry_after("soon", 0.0) is None
    True
    """
    from email.utils import parsedate_to_datetime

    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - now
        except (ValueError, OverflowError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


# Finds out whether this process stood still: stopped by a signal, or on a machine that slept.
#
# A time limit that passed meanwhile says nothing about the service. An event loop cannot tell: it
# is late as well when a service blocks it. So a thread that does nothing but wake up notes when it
# last did. A service that blocks the loop does not block this thread.

_EVERY_S = 0.1
#: A thread that wakes up later than this was not merely waiting for its turn.
_LONGEST_WAIT_S = 0.75


class _Heartbeat:
    """Notes the last time that this process stood still."""

    def __init__(self) -> None:
        self._beat_s = time.monotonic()
        self._stalled_until_s = -1.0
        threading.Thread(target=self._beat, name="trialwise-heartbeat", daemon=True).start()

    def _beat(self) -> None:
        while True:
            time.sleep(_EVERY_S)
            self._note(time.monotonic())

    def _note(self, now_s: float) -> None:
        if now_s - self._beat_s > _LONGEST_WAIT_S:
            self._stalled_until_s = now_s
        self._beat_s = now_s

    def has_stalled_since(self, began_s: float) -> bool:
        # After a stop the event loop may run before the thread does.
        self._note(time.monotonic())
        return self._stalled_until_s >= began_s


#: By process: a fork has no threads of its parent.
_HEARTBEATS: dict[int, _Heartbeat] = {}


def watch_for_stalls() -> None:
    """Start to watch, if this process does not yet."""
    if os.getpid() not in _HEARTBEATS:
        _HEARTBEATS[os.getpid()] = _Heartbeat()


def has_stalled_since(began_s: float) -> bool:
    """Return whether the process stood still at some time since then.

    Args:
        began_s: By the monotonic clock.
    """
    heartbeat = _HEARTBEATS.get(os.getpid())
    return heartbeat is not None and heartbeat.has_stalled_since(began_s)
