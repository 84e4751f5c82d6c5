"""An HTTP endpoint under test."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any, ClassVar

from trialwise.declarations.resources import Url
from trialwise.declarations.scalars import Count
from trialwise.declarations.signatures import Arg, Positive, Seconds
from trialwise.declarations.structures import Listing
from trialwise.engine.error_classes import UNREACHED_STATUSES, classify_status
from trialwise.engine.ports import TrialContext
from trialwise.errors import InvalidArgument
from trialwise.model.reply import Reply
from trialwise.model.trial import ErrorClass
from trialwise.services._exchange import Answer, Exchange, Request, check_url, describe_answer
from trialwise.services._reported_sessions import Pointer, ReportPlaces, Unparsed
from trialwise.services.failures import HttpFailure, MalformedReply, ReportedFailure
from trialwise.services.model_apis import (
    encode,
    fill_json,
    fill_text,
    parse_json,
    quote_url,
    to_json,
)
from trialwise.services.service_factors import (
    Headers,
    check_headers,
    check_set,
    describe_value,
    name_endpoint,
    resolve,
    scrub,
)

__all__ = ["HttpService"]

_WITH_BODY = ("POST", "PUT", "PATCH")

Statuses = Annotated[
    Collection[int],
    Arg(
        kind=Listing(Count(100), "a list of HTTP statuses"), default="429, 502, 503, 504 and alike"
    ),
]
"""Statuses of HTTP."""
Accepted = Annotated[
    Collection[int], Arg(kind=Listing(Count(100), "a list of HTTP statuses"), default="2xx only")
]
"""Statuses that are replies, beside 2xx."""


class HttpService:
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

    def __init__(
        self,
        url: Annotated[str, Arg(kind=Url())],
        *,
        method: str = "POST",
        headers: Headers | None = None,
        body: Annotated[Any, Arg(default='`{input: "{input}"}`')] = None,
        extract: Pointer | None = None,
        trace: Pointer | None = None,
        usage: Pointer | None = None,
        cost: Pointer | None = None,
        setup: Pointer | None = None,
        error: Pointer | None = None,
        accept_status: Accepted = (),
        infrastructure_statuses: Statuses = UNREACHED_STATUSES,
        timeout_s: Seconds | None = None,
        connect_timeout_s: Seconds = 10.0,
        response_limit: Positive = 2**20,
        environment: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._url = check_url("url", url)
        self._method = _check_method(method)
        self._headers = check_headers(headers or {})
        self._environment = os.environ if environment is None else environment
        check_set("url", [url], self._environment)
        check_set("headers", self._headers.values(), self._environment)
        if body is None and self._method in _WITH_BODY:
            body = {"input": "{input}"}
        self._body = body
        self._places = ReportPlaces(
            extract=extract, trace=trace, usage=usage, cost=cost, setup=setup, error=error
        )
        self._accepted = frozenset(accept_status)
        self._infrastructure = frozenset(infrastructure_statuses)
        self._exchange = Exchange(
            timeout_s=timeout_s,
            connect_timeout_s=connect_timeout_s,
            response_limit=response_limit,
            clock=clock,
        )

    async def call(self, trial: TrialContext) -> Reply:
        """Return the endpoint's reply to one trial."""
        where = f"{self._method} {self._url}"
        answer = await self._exchange.send(self._request(trial), where=where, scrub=self._scrub)
        if not 200 <= answer.status < 300 and answer.status not in self._accepted:
            raise self._failure(answer, where)
        reply = Reply(
            value=answer.text,
            latency_s=answer.latency_s,
            details={"status": answer.status, "content_type": answer.content_type},
        )
        if not self._places or not 200 <= answer.status < 300:
            return reply
        try:
            return self._places.read(_parse(answer), reply, trial)
        except MalformedReply as error:
            message = f"{error}; it begins {answer.head!r}"
            raise MalformedReply(self._scrub(message)) from None
        except ReportedFailure as error:
            raise ReportedFailure(self._scrub(str(error)), error.error_class) from None

    @property
    def tells_cost(self) -> bool:
        """Whether replies may have a cost, so that a limit on money can be kept."""
        return self._places.tells_cost

    @property
    def factors(self) -> dict[str, str]:
        """What it is made of, for the record."""
        asked = {"method": self._method, "body": self._body, "extract": self._places.extract}
        return {"endpoint": name_endpoint(self._url), "parameters": describe_value(asked)}

    async def aclose(self) -> None:
        """Close the connections; a later call opens new ones."""
        await self._exchange.aclose()

    def _failure(self, answer: Answer, where: str) -> HttpFailure:
        error_class = classify_status(answer.status)
        if answer.status in self._infrastructure:
            error_class = ErrorClass.INFRASTRUCTURE
        elif error_class is ErrorClass.INFRASTRUCTURE:
            error_class = ErrorClass.NONE  # the suite says that this status is the service's own
        return HttpFailure(
            f"{where} answered {describe_answer(answer, self._scrub)}",
            error_class,
            status=answer.status,
            retry_after_s=answer.retry_after_s,
        )

    def _request(self, trial: TrialContext) -> Request:
        environment = self._environment
        url = resolve(self._url, environment, lambda text: fill_text(text, trial, quote=quote_url))
        headers = {
            name: resolve(value, environment, lambda text: fill_text(text, trial))
            for name, value in self._headers.items()
        }
        content, content_type = self._content(trial)
        if content_type and not any(name.lower() == "content-type" for name in headers):
            headers["Content-Type"] = content_type
        return Request(self._method, url, headers, content)

    def _content(self, trial: TrialContext) -> tuple[bytes | None, str]:
        if self._body is None:
            return None, ""
        if isinstance(self._body, str):
            return encode(fill_text(self._body, trial)), "text/plain; charset=utf-8"
        return encode(to_json(fill_json(self._body, trial))), "application/json"

    def _scrub(self, text: str) -> str:
        return scrub(text, [self._url, *self._headers.values()], self._environment)

    def __repr__(self) -> str:
        return f"HttpService({self._url!r}, method={self._method!r})"


def _parse(answer: Answer) -> Any:
    try:
        return parse_json(answer.body)
    except ValueError as error:
        return Unparsed(str(error), answer.body)


def _check_method(method: object) -> str:
    if not isinstance(method, str) or not method.isalpha():
        raise InvalidArgument("method", method, "be an HTTP method such as 'POST'")
    return method.upper()
