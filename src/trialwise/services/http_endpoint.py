"""An HTTP endpoint under test."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated, Any, ClassVar, NamedTuple

from trialwise.declarations.resources import Url
from trialwise.declarations.scalars import Count
from trialwise.declarations.signatures import Arg, Positive, Seconds
from trialwise.declarations.structures import Listing
from trialwise.engine import error_classes
from trialwise.engine.ports import ServiceError, TrialContext
from trialwise.errors import InvalidArgument, TrialwiseError
from trialwise.model import ErrorClass, Reply
from trialwise.redaction import LOOKED_AT, cut_text
from trialwise.services import model_apis, service_factors
from trialwise.services._reported_sessions import ReportingService
from trialwise.services.service_factors import HttpFailure, MalformedReply, ReplyTooLarge
from trialwise.validation import require_count, require_given, require_positive

__all__ = ["HttpService"]

_WITH_BODY = ("POST", "PUT", "PATCH")

_STATUSES = Listing(Count(100), "a list of HTTP statuses")
Unreached = Annotated[Collection[int], Arg(kind=_STATUSES, default="429, 502, 503, 504 and alike")]
"""Statuses of a service that was not reached."""
Accepted = Annotated[Collection[int], Arg(kind=_STATUSES, default="2xx only")]
"""Statuses that are replies, beside 2xx."""


# --- One HTTP request and its answer, with httpx2's exceptions translated once --------------------
#
# Shared by every service that speaks HTTP: connections are kept, cookies are not (a session would
# tie the trials together), an answer is read up to a limit, and no message holds a secret.

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
        # Secrets go first: half of one would not be recognised any more.
        text = self.body[:LOOKED_AT].decode(self.encoding, errors="replace")
        return cut_text(text, HEAD_LENGTH, scrub=self.scrub)


@dataclass(kw_only=True, eq=False, repr=False)
class EndpointService(ABC):
    """A service that is asked over HTTP: its connections, opened when first needed."""

    timeout_s: Seconds | None = None
    connect_timeout_s: Seconds = 10.0
    response_limit: Positive = 2**20
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    clock: Callable[[], float] = time.perf_counter
    _client: Any = field(default=None, init=False)

    def __post_init__(self) -> None:
        require_given(self, "timeout_s connect_timeout_s", require_positive)
        require_count("response_limit", self.response_limit, minimum=1)

    @property
    @abstractmethod
    def where(self) -> str:
        """The endpoint as messages show it."""

    @property
    @abstractmethod
    def templates(self) -> list[str]:
        """The texts that refer to secrets."""

    def scrub(self, text: str) -> str:
        """Return a message without the secrets of the request."""
        return service_factors.scrub(text, self.templates, self.environment)

    async def send(self, request: Request) -> Answer:
        """Return the answer to a request, whatever its status."""
        # Judges are made where a suite is only checked: the first question loads the event loop.
        import anyio

        with anyio.move_on_after(self.timeout_s):
            answer = await self._answer(request)
            if isinstance(answer, Answer):
                return answer
            # Raised here and not where it was caught: httpx2's exceptions hold the request.
            raise _translate(answer, self.where, self.scrub)
        message = f"{self.where} did not answer within {self.timeout_s} s"
        raise HttpFailure(message, ErrorClass.TIMEOUT)

    async def aclose(self) -> None:
        """Close the connections; a later call opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _answer(self, request: Request) -> Answer | Exception:
        import httpx2

        started = self.clock()
        try:
            async with self._open().stream(
                request.method, request.url, headers=request.headers, content=request.content
            ) as response:
                body = bytearray()
                async for chunk in response.aiter_bytes():
                    body += chunk
                    # Checked while it arrives: an endless answer would fill the memory before it
                    # ends.
                    if len(body) > self.response_limit:
                        head = body[:LOOKED_AT].decode(errors="replace")
                        return ReplyTooLarge(self.response_limit, head)
                asked_to_wait = response.headers.get("retry-after")
                return Answer(
                    status=response.status_code,
                    body=bytes(body),
                    content_type=response.headers.get("content-type", ""),
                    encoding=_known_encoding(response.charset_encoding),
                    retry_after_s=error_classes.retry_after(asked_to_wait, time.time()),
                    latency_s=max(0.0, self.clock() - started),
                    location=response.headers.get("location", ""),
                    scrub=self.scrub,
                )
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, UnicodeError) as error:
            return error

    def _open(self) -> Any:
        if self._client is None:
            from http.cookiejar import CookieJar, DefaultCookiePolicy

            import httpx2

            self._client = httpx2.AsyncClient(
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
                timeout=httpx2.Timeout(None, connect=self.connect_timeout_s),
                # The engine decides how many trials run at once.
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=100),
            )
        return self._client


def describe_answer(answer: Answer, said: str | None = None) -> str:
    """Describe what came back instead of a reply, for a message.

    Args:
        answer: What came back.
        said: What it says, where somebody read it.
    """
    if 300 <= answer.status < 400 and answer.location:
        location = answer.scrub(answer.location)
        return f"{answer.status}, a redirect to {location} that is not followed"
    return f"{answer.status}: {repr(answer.scrub(answer.head)) if said is None else said}"


def check_url(argument: str, url: str) -> str:
    """Return an http(s) URL without a password in it; the refusal does not repeat one."""
    from urllib.parse import urlsplit

    allowed = "be an http:// or https:// URL"
    try:
        parts = urlsplit(url)
    except (ValueError, TypeError, AttributeError):
        raise InvalidArgument(argument, url, allowed) from None
    # A URL is recorded and logged, by us and by libraries.
    if parts.username is not None or parts.password is not None:
        shown = f"{parts.scheme}://***@{parts.hostname}"
        raise InvalidArgument(argument, shown, "hold no user or password: use a header")
    if "${" in f"{parts.path}{parts.query}{parts.fragment}":
        # httpx2 writes every URL to its log.
        allowed = "take nothing from the environment after the host: a secret goes into a header"
        raise InvalidArgument(argument, url, allowed)
    if parts.scheme not in {"http", "https"} or not parts.netloc or not isinstance(url, str):
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
    unsendable = httpx2.UnsupportedProtocol, httpx2.LocalProtocolError
    if isinstance(error, (*unsendable, httpx2.InvalidURL, httpx2.StreamError, UnicodeError)):
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


# --- The service ------------------------------------------------------------


@dataclass(eq=False, repr=False)
class HttpService(EndpointService, ReportingService):
    """An endpoint that receives each input. Its response is the reply.

    `{input}`, `{index}` and `{seed}` in the URL (quoted), the headers and the body are replaced;
    in a JSON body a text that is nothing but a placeholder becomes the value itself. `${NAME}` in
    the headers (and in the URL's host) is the environment variable of that name: the only way to
    send a secret, so that none is ever shown, logged or recorded.

    Only a status of 2xx, or one of `accept_status`, is a reply, with `details["status"]`. A status
    such as 429 or 503, and a connection that fails, are infrastructure errors that keep the status
    and Retry-After. A redirect, and a status such as 401 or 404 before the first reply, mean that
    the service is set up wrongly. Any other status is a failure of the service. Connections are
    reused and cookies are not kept, so that trials stay independent.

    >>> HttpService("http://localhost:8000/ask", body={"q": "{input}"}, extract="/answer")
    HttpService('http://localhost:8000/ask', method='POST')

    Args:
        url: The URL. `{input}`, `{index}` and `{seed}` are replaced.
        method: The method of the request.
        headers: Headers of the request. Refer to secrets by name, as in `Bearer ${API_KEY}`.
        body: A JSON structure or text. The default is `{"input": "{input}"}` if the method has a
            body.
        extract: The place of the reply in the response, as a JSON Pointer (`/answer`) or a JSONPath
            (`$.answer`). Without it the whole text is the reply. It applies to 2xx responses.
        trace: The place of the agent's session in the response, such as `$.trace`, in any format
            that `read_trace` reads. With `$` and without `extract`, the reply is the session's
            answer. A session that cannot be read leaves its calls unknown.
        usage: The place of the tokens, such as `$.usage`. The default is those of the session.
        cost: The place of the cost in US dollars. The default is that of the session.
        setup: The place of what preparing took: seconds, or an object with `seconds`, `usage` and
            `cost_usd`.
        error: The place of an error that the service reports of itself: a text, or an object with a
            `class` such as `infrastructure`, a `status` or a `message`.
        accept_status: Further statuses whose responses are replies, such as 404.
        infrastructure_statuses: Statuses that count as infrastructure errors.
        timeout_s: Time limit for the whole request, in addition to the limit of the trial.
        connect_timeout_s: Time limit for the connection. After it, the endpoint counts as
            unreachable.
        response_limit: Maximum size of a response in bytes.
        environment: Read instead of the process's own.
        clock: Seconds from any origin, for the latency.
    """

    spelling: ClassVar[str] = "http"

    url: Annotated[str, Arg(kind=Url())]
    _: KW_ONLY
    method: str = "POST"
    headers: service_factors.Headers = field(default_factory=dict)
    body: Annotated[Any, Arg(default='`{input: "{input}"}`')] = None
    accept_status: Accepted = ()
    infrastructure_statuses: Unreached = error_classes.UNREACHED_STATUSES

    def __post_init__(self) -> None:
        EndpointService.__post_init__(self)
        ReportingService.__post_init__(self)
        self.url = check_url("url", self.url)
        method: object = self.method
        if not isinstance(method, str) or not method.isalpha():
            raise InvalidArgument("method", method, "be an HTTP method such as 'POST'")
        self.method = method.upper()
        self.headers = service_factors.check_headers(self.headers or {})
        service_factors.check_set("url", [self.url], self.environment)
        service_factors.check_set("headers", self.headers.values(), self.environment)
        if self.body is None and self.method in _WITH_BODY:
            self.body = {"input": "{input}"}

    async def call(self, trial: TrialContext) -> Reply:
        """Return the endpoint's reply to one trial."""
        answer = await self.send(self._request(trial))
        is_success = 200 <= answer.status < 300
        if not is_success and answer.status not in self.accept_status:
            raise self._failure(answer)
        reply = Reply(
            value=answer.text,
            latency_s=answer.latency_s,
            details={"status": answer.status, "content_type": answer.content_type},
        )
        if not self.reports or not is_success:
            return reply
        try:
            return self.read_report(answer.body, reply, trial)
        except MalformedReply as error:
            message = f"{error}; it begins {answer.head!r}"
            raise MalformedReply(self.scrub(message)) from None
        except service_factors.ReportedFailure as error:
            raise type(error)(self.scrub(str(error)), error.error_class) from None

    @property
    def where(self) -> str:
        """The endpoint as messages show it."""
        return f"{self.method} {self.url}"

    @property
    def templates(self) -> list[str]:
        """The texts that refer to secrets."""
        return [self.url, *self.headers.values()]

    @property
    def factors(self) -> dict[str, str]:
        """What it is made of, for the record."""
        asked = {"method": self.method, "body": self.body, "extract": self.steps.get("extract")}
        return {
            "endpoint": service_factors.name_endpoint(self.url),
            "parameters": service_factors.describe_value(asked),
        }

    def _failure(self, answer: Answer) -> HttpFailure:
        error_class = error_classes.classify_status(answer.status)
        if answer.status in self.infrastructure_statuses:
            error_class = ErrorClass.INFRASTRUCTURE
        elif error_class is ErrorClass.INFRASTRUCTURE:
            # A suite lists the statuses of its own gateway, and that list is meant to be all of
            # them.
            error_class = ErrorClass.NONE  # the suite says that this status is the service's own
        return HttpFailure(
            f"{self.where} answered {describe_answer(answer)}",
            error_class,
            status=answer.status,
            retry_after_s=answer.retry_after_s,
        )

    def _request(self, trial: TrialContext) -> Request:
        def fill(template: str, quote: Callable[[str], str] = str) -> str:
            return service_factors.resolve(
                template,
                self.environment,
                lambda text: model_apis.fill_text(text, trial, quote=quote),
            )

        headers = {name: fill(value) for name, value in self.headers.items()}
        content, content_type = self._content(trial)
        # A header of the suite's own prevails, in whatever case it is written.
        if content_type and not any(name.lower() == "content-type" for name in headers):
            headers["Content-Type"] = content_type
        return Request(self.method, fill(self.url, model_apis.quote_url), headers, content)

    def _content(self, trial: TrialContext) -> tuple[bytes | None, str]:
        if self.body is None:
            return None, ""
        if isinstance(self.body, str):
            text = model_apis.fill_text(self.body, trial)
            return model_apis.encode(text), "text/plain; charset=utf-8"
        text = model_apis.to_json(model_apis.fill_json(self.body, trial))
        return model_apis.encode(text), "application/json"

    def __repr__(self) -> str:
        return f"HttpService({self.url!r}, method={self.method!r})"
