"""One HTTP request and its answer, with httpx2's exceptions translated once.

Shared by every service that speaks HTTP: connections are kept, cookies are not (a session would
tie the trials together), an answer is read up to a limit, and no message holds a secret.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from trialwise.engine.error_classes import retry_after
from trialwise.engine.ports import ServiceError
from trialwise.errors import InvalidArgument, TrialwiseError
from trialwise.model.trial import ErrorClass
from trialwise.redaction import LOOKED_AT, cut_text
from trialwise.services.failures import HttpFailure, MalformedReply, ReplyTooLarge
from trialwise.validation import require_count, require_positive

if TYPE_CHECKING:
    import httpx2

#: How many characters of an answer are shown in a message.
HEAD_LENGTH = 200


class Request(NamedTuple):
    """What is sent, secrets included; lives no longer than the call."""

    method: str
    url: str
    headers: dict[str, str]
    content: bytes | None

    def __repr__(self) -> str:
        # A traceback with local variables must not show the headers.
        return f"<{self.method} request>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back."""

    status: int
    body: bytes
    content_type: str
    encoding: str
    retry_after_s: float | None
    latency_s: float
    location: str = ""
    """Where a redirect points."""
    scrub: Callable[[str], str] = field(default=str, repr=False, compare=False)
    """Takes the secrets of the request out of a text."""

    @property
    def text(self) -> str:
        """The body as text, in the encoding it declares."""
        return self.body.decode(self.encoding, errors="replace")

    @property
    def head(self) -> str:
        """The beginning of the body, for a message, without secrets."""
        return _begin(self.body, self.encoding, self.scrub)


class Exchange:
    """The connections to one endpoint, opened when first needed."""

    def __init__(
        self,
        *,
        timeout_s: float | None,
        connect_timeout_s: float,
        response_limit: int,
        clock: Callable[[], float],
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._timeout_s = None if timeout_s is None else require_positive("timeout_s", timeout_s)
        self._connect_timeout_s = require_positive("connect_timeout_s", connect_timeout_s)
        self._response_limit = require_count("response_limit", response_limit, minimum=1)
        self._clock = clock
        self._wall_clock = wall_clock
        self._client: httpx2.AsyncClient | None = None

    async def send(self, request: Request, *, where: str, scrub: Callable[[str], str]) -> Answer:
        """Return the answer, whatever its status.

        Args:
            request: What to send.
            where: The endpoint as messages show it.
            scrub: Takes secrets out of a message.
        """
        from anyio import move_on_after

        with move_on_after(self._timeout_s):
            answer = await self._answer(request)
            if isinstance(answer, Answer):
                return replace(answer, scrub=scrub)
            # Raised here and not where it was caught: httpx2's exceptions hold the request.
            raise _translate(answer, where, scrub)
        message = f"{where} did not answer within {self._timeout_s} s"
        raise HttpFailure(message, ErrorClass.TIMEOUT)

    async def aclose(self) -> None:
        """Close the connections; a later call opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _answer(self, request: Request) -> Answer | Exception:
        import httpx2

        started = self._clock()
        try:
            async with self._open().stream(
                request.method, request.url, headers=request.headers, content=request.content
            ) as response:
                body = bytearray()
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > self._response_limit:
                        head = body[:LOOKED_AT].decode(errors="replace")
                        return ReplyTooLarge(self._response_limit, head)
                return Answer(
                    status=response.status_code,
                    body=bytes(body),
                    content_type=response.headers.get("content-type", ""),
                    encoding=_known_encoding(response.charset_encoding),
                    retry_after_s=retry_after(
                        response.headers.get("retry-after"), self._wall_clock()
                    ),
                    latency_s=max(0.0, self._clock() - started),
                    location=response.headers.get("location", ""),
                )
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, UnicodeError) as error:
            return error

    def _open(self) -> httpx2.AsyncClient:
        if self._client is None:
            from http.cookiejar import CookieJar, DefaultCookiePolicy

            import httpx2

            self._client = httpx2.AsyncClient(
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
                timeout=httpx2.Timeout(None, connect=self._connect_timeout_s),
                # The engine decides how many trials run at once.
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=100),
            )
        return self._client


def describe_answer(answer: Answer, scrub: Callable[[str], str], said: str | None = None) -> str:
    """Describe what came back instead of a reply, for a message.

    Args:
        answer: What came back.
        scrub: Takes secrets out of a message.
        said: What it says, where somebody read it.
    """
    if 300 <= answer.status < 400 and answer.location:
        return f"{answer.status}, a redirect to {scrub(answer.location)} that is not followed"
    return (
        f"{answer.status}: {scrub(answer.head)!r}" if said is None else f"{answer.status}: {said}"
    )


def _begin(body: bytes, encoding: str, scrub: Callable[[str], str]) -> str:
    # Secrets go first: half of one would not be recognised any more.
    text = body[:LOOKED_AT].decode(encoding, errors="replace")
    return cut_text(text, HEAD_LENGTH, scrub=scrub)


def check_url(argument: str, url: str) -> str:
    """Return an http(s) URL without a password in it; the refusal does not repeat one."""
    from urllib.parse import urlsplit

    allowed = "be an http:// or https:// URL"
    if not isinstance(url, str):
        raise InvalidArgument(argument, url, allowed)
    try:
        parts = urlsplit(url)
    except ValueError:
        raise InvalidArgument(argument, url, allowed) from None
    if parts.username is not None or parts.password is not None:
        shown = f"{parts.scheme}://***@{parts.hostname}"
        raise InvalidArgument(argument, shown, "hold no user or password: use a header")
    if "${" in f"{parts.path}{parts.query}{parts.fragment}":
        # httpx2 writes every URL to its log.
        allowed = "take nothing from the environment after the host: a secret goes into a header"
        raise InvalidArgument(argument, url, allowed)
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise InvalidArgument(argument, url, allowed)
    try:
        _ = parts.port
    except ValueError:
        if "${" not in parts.netloc:  # else it is known only in a trial
            raise InvalidArgument(argument, url, "have a port from 0 to 65535") from None
    return url


def _known_encoding(name: str | None) -> str:
    import codecs

    try:
        # A codec that is not for text, such as "hex", would not decode to text; "idna" and others
        # know no replacement for what they cannot decode.
        if name and "".encode(name) == b"" and isinstance(b"\xff".decode(name, "replace"), str):
            return codecs.lookup(name).name
        return "utf-8"
    except (LookupError, ValueError):
        return "utf-8"


def _translate(error: Exception, where: str, scrub: Callable[[str], str]) -> TrialwiseError:
    import httpx2

    if isinstance(error, ReplyTooLarge):
        return ReplyTooLarge(error.limit_bytes, cut_text(error.head, HEAD_LENGTH, scrub=scrub))
    said = scrub(str(error)) or type(error).__name__
    if isinstance(error, (httpx2.DecodingError, httpx2.TooManyRedirects)):
        return MalformedReply(f"{where} sent what cannot be read: {said}")
    ours = (
        httpx2.InvalidURL,
        httpx2.UnsupportedProtocol,
        httpx2.LocalProtocolError,
        httpx2.StreamError,
        UnicodeError,
    )
    if isinstance(error, ours):
        # What these say repeats the header or the URL, in escapes that nothing would find.
        what = f"a header or the URL is not allowed in HTTP ({type(error).__name__})"
        message = f"the request to {where} cannot be sent: {what}"
        return ServiceError(message, ErrorClass.PRE_VALIDATION)
    if isinstance(error, (httpx2.ConnectError, httpx2.ConnectTimeout)):
        # Which method was used does not matter where nobody listens.
        address = where.rpartition(" ")[2]
        return HttpFailure(f"nothing answers at {address} ({_connection_trouble(error, said)})")
    return HttpFailure(f"{where} gave no answer: {type(error).__name__}: {said}")


def _connection_trouble(error: BaseException, said: str) -> str:
    """Return why there is no connection, in the system's words if it has any."""
    refused = [error]
    while refused:
        one = refused.pop()
        if isinstance(one, ConnectionRefusedError):
            return "connection refused"
        if isinstance(one, BaseExceptionGroup):
            refused += one.exceptions
        refused += [inner for inner in (one.__cause__, one.__context__) if inner is not None]
    return f"{type(error).__name__}: {said}"
