"""HTTP endpoints, as a real server on this machine: kind, slow, broken and hostile."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import socket
import struct
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from trialwise.engine.ports import ServiceError, TrialContext
from trialwise.errors import InvalidArgument
from trialwise.model.trial import ErrorClass
from trialwise.services import HttpFailure, HttpService, MalformedReply, ReplyTooLarge

pytestmark = pytest.mark.anyio

Serve = Callable[[Callable[[Any], None]], str]
SECRET = "sk-very-secret-0123456789"
ENVIRONMENT = {"KEY": SECRET, "EMPTY": ""}


def trial(given: Any = "question") -> TrialContext:
    return TrialContext(index=3, input=given, seed=11)


def mirror(request: Any) -> None:
    """Say what was received."""
    seen = {
        "method": request.command,
        "path": request.path,
        "headers": {name.lower(): value for name, value in request.headers.items()},
        "body": request.received.decode(),
    }
    request.respond(200, json.dumps(seen), Content_Type="application/json")


async def once(service: HttpService, given: Any = "question") -> Any:
    """The value of one reply, with the service closed afterwards."""
    try:
        with anyio.fail_after(20):
            return await service.call(trial(given))
    finally:
        await service.aclose()


async def test_the_trial_is_filled_into_url_headers_and_body(serve: Serve) -> None:
    """Quoted in the URL, typed in JSON, and nothing is replaced twice."""
    service = HttpService(
        serve(mirror) + "/ask/{index}?q={input}",
        headers={"X-Seed": "s{seed}", "Authorization": "Bearer ${KEY}"},
        body={"data": "{input}", "text": "<{input}>", "seed": "{seed}", "fixed": [1, None]},
        extract="",
        environment=ENVIRONMENT,
    )

    seen = (await once(service, "a b/&?ü {seed} ${KEY}")).value

    assert ("POST", "/ask/3?q=a%20b%2F%26%3F%C3%BC%20%7Bseed%7D%20%24%7BKEY%7D") == (
        seen["method"],
        seen["path"],
    )
    assert ("s11", f"Bearer {SECRET}", "application/json") == (
        seen["headers"]["x-seed"],
        seen["headers"]["authorization"],
        seen["headers"]["content-type"],
    )
    text = "a b/&?ü {seed} ${KEY}"
    assert {"data": text, "text": f"<{text}>", "seed": 11, "fixed": [1, None]} == json.loads(
        seen["body"]
    )


async def test_without_a_body_given_the_input_is_one(serve: Serve) -> None:
    """An object under `input` where there is a body at all; text where the template is text."""
    url = serve(mirror)
    posted = await once(HttpService(url, extract="/body"), {"a": [1]})
    got = await once(HttpService(url, method="get", extract="/body"))
    text = await once(HttpService(url, body="Q: {input}", extract=""))

    assert {"input": {"a": [1]}} == json.loads(posted.value)
    assert "" == got.value
    assert ("Q: question", "text/plain; charset=utf-8") == (
        text.value["body"],
        text.value["headers"]["content-type"],
    )


async def test_the_reply_is_the_text_or_what_the_pointer_finds(serve: Serve) -> None:
    """With the status and the time it took."""
    url = serve(lambda r: r.respond(200, '{"a/b": [{"text": "555"}]}', Content_Type="text/json"))

    whole = await once(HttpService(url))
    part = await once(HttpService(url, extract="/a~1b/0/text"))

    assert '{"a/b": [{"text": "555"}]}' == whole.value
    assert "555" == part.value
    assert {"status": 200, "content_type": "text/json"} == part.details
    assert part.latency_s > 0


async def test_text_is_read_in_the_encoding_it_declares(serve: Serve) -> None:
    """An encoding that does not exist, or is none for text, is read as UTF-8."""
    latin = serve(
        lambda r: r.respond(
            200, "café".encode("latin-1"), Content_Type="text/plain; charset=latin-1"
        )
    )
    odd = serve(lambda r: r.respond(200, "café \udcff".encode(errors="surrogateescape"),
                                    Content_Type="text/plain; charset=hex"))  # fmt: skip

    assert "café" == (await once(HttpService(latin))).value
    assert "café \ufffd" == (await once(HttpService(odd))).value


@pytest.mark.parametrize("status", [400, 401, 404, 422, 302, 500])
async def test_any_other_status_is_no_reply_unless_it_is_accepted(
    serve: Serve, status: int
) -> None:
    """Nothing is looked for in an error's body, and nothing is followed."""
    url = serve(lambda r: r.respond(status, "no such thing", Location="http://127.0.0.1:1/"))

    reply = await once(HttpService(url, extract="/answer", accept_status=[status]))
    with pytest.raises(HttpFailure, match=f"answered {status}") as caught:
        await once(HttpService(url, extract="/answer"))

    assert ("no such thing", status) == (reply.value, reply.details["status"])
    refused = ErrorClass.NONE if status == 500 else ErrorClass.CONFIGURATION
    assert refused is caught.value.error_class


@pytest.mark.parametrize(
    ("status", "header", "seconds"),
    [(429, "7", 7.0), (503, "0.5", 0.5), (502, None, None), (429, "soon", None), (503, "-3", 0.0)],
)
async def test_busy_and_broken_servers_are_infrastructure(
    serve: Serve, status: int, header: str | None, seconds: float | None
) -> None:
    """The status and how long to wait are kept for whoever retries."""
    headers = {} if header is None else {"Retry_After": header}
    url = serve(lambda r: r.respond(status, "busy", **headers))

    with pytest.raises(HttpFailure, match=f"answered {status}: 'busy'") as caught:
        await once(HttpService(url))

    failure = pickle.loads(pickle.dumps(caught.value))
    assert ErrorClass.INFRASTRUCTURE is failure.error_class
    assert (status, seconds) == (failure.status, failure.retry_after_s)


async def test_retry_after_may_be_a_date(serve: Serve) -> None:
    """Then it is the time from now on."""
    from email.utils import formatdate

    url = serve(lambda r: r.respond(429, Retry_After=formatdate(time.time() + 100, usegmt=True)))

    with pytest.raises(HttpFailure) as caught:
        await once(HttpService(url))

    assert caught.value.retry_after_s is not None
    assert 80 < caught.value.retry_after_s <= 100


async def test_which_statuses_are_infrastructure_can_be_said(serve: Serve) -> None:
    """A 503 may be the property under test."""
    url = serve(lambda r: r.respond(503, "oops"))

    with pytest.raises(HttpFailure) as own:
        await once(HttpService(url, infrastructure_statuses=()))
    with pytest.raises(HttpFailure) as theirs:
        await once(HttpService(url, infrastructure_statuses=[503, 418]))

    assert (ErrorClass.NONE, ErrorClass.INFRASTRUCTURE) == (
        own.value.error_class,
        theirs.value.error_class,
    )


def reset(request: Any) -> None:
    """Close the connection with RST instead of an answer."""
    linger = struct.pack("ii", 1, 0)
    request.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    os.close(request.connection.detach())
    request.close_connection = True


def cut_off(request: Any) -> None:
    """Promise more than is sent."""
    request.send_response(200)
    request.send_header("Content-Length", "100")
    request.end_headers()
    request.wfile.write(b"half")
    request.close_connection = True


def garbage(request: Any) -> None:
    """Speak something else."""
    request.wfile.write(b"220 smtp ready\r\n\r\n")
    request.close_connection = True


@pytest.mark.parametrize("handler", [reset, cut_off, garbage])
async def test_a_connection_that_breaks_is_infrastructure(
    serve: Serve, handler: Callable[[Any], None]
) -> None:
    """Whatever broke, no reply arrived."""
    with pytest.raises(HttpFailure, match="gave no answer") as caught:
        await once(HttpService(serve(handler)))

    assert ErrorClass.INFRASTRUCTURE is caught.value.error_class
    assert caught.value.status is None


async def test_nobody_there_is_infrastructure() -> None:
    """A port on which nothing listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    with pytest.raises(HttpFailure, match=r"nothing answers at .* \(connection refused\)"):
        await once(HttpService(f"http://127.0.0.1:{port}/"))


@pytest.mark.parametrize("body", ["{not json", '{"other": 1}', '{"answer": NaN}', "", '"text"'])
async def test_a_response_without_the_promised_value_fails(serve: Serve, body: str) -> None:
    """A failure of the service's own, not of the infrastructure."""
    url = serve(lambda r: r.respond(200, body))

    with pytest.raises(MalformedReply, match="holds no reply"):
        await once(HttpService(url, extract="/answer"))


async def test_a_response_that_cannot_be_decoded_fails(serve: Serve) -> None:
    """Bytes that are not what their encoding says."""
    url = serve(lambda r: r.respond(200, b"not gzip", Content_Encoding="gzip"))

    with pytest.raises(MalformedReply, match="cannot be read"):
        await once(HttpService(url))


async def test_a_huge_response_is_cut_off(serve: Serve) -> None:
    """Sent in full or unpacked from a few bytes, it never fills memory."""
    plain = serve(lambda r: r.respond(200, b"x" * 5_000_000))
    bomb = serve(
        lambda r: r.respond(200, gzip.compress(b"x" * 50_000_000), Content_Encoding="gzip")
    )

    for url in (plain, bomb):
        with pytest.raises(ReplyTooLarge, match="10,000 bytes"):
            await once(HttpService(url, response_limit=10_000))


async def test_an_endless_response_is_cut_off(serve: Serve) -> None:
    """No length, no end."""

    def flood(request: Any) -> None:
        request.send_response(200)
        request.send_header("Connection", "close")
        request.end_headers()
        while True:
            request.wfile.write(b"x" * 10_000)

    with anyio.fail_after(20), pytest.raises(ReplyTooLarge):
        await once(HttpService(serve(flood)))


def drip_until(done: threading.Event) -> Callable[[Any], None]:
    """Send a byte now and then, so that no single read takes long."""

    def drip(request: Any) -> None:
        request.send_response(200)
        request.send_header("Content-Length", "100000")
        request.end_headers()
        while not done.wait(0.01):
            request.wfile.write(b"x")

    return drip


@pytest.mark.parametrize("kind", ["hang", "drip"])
async def test_a_slow_server_is_ended_by_the_callers_timeout(serve: Serve, kind: str) -> None:
    """Cancelling returns at once, and the service can be used again."""
    done, recovered = threading.Event(), threading.Event()
    drip = drip_until(done)

    def handler(request: Any) -> None:
        # Not the first request: a busy machine may cancel that one before it is sent.
        if recovered.is_set():
            request.respond(200, "ok")
        elif kind == "drip":
            drip(request)
        else:
            done.wait(20)

    service = HttpService(serve(handler))
    try:
        with pytest.raises(TimeoutError), anyio.fail_after(0.2):
            await service.call(trial())
        recovered.set()
        with anyio.fail_after(20):
            assert "ok" == (await service.call(trial())).value
    finally:
        done.set()
        await service.aclose()


async def test_its_own_timeout_covers_the_whole_exchange(serve: Serve) -> None:
    """A server that drips is as late as one that is silent; it was working, so it failed."""
    done = threading.Event()
    try:
        with anyio.fail_after(20), pytest.raises(HttpFailure, match=r"within 0\.2 s") as caught:
            await once(HttpService(serve(drip_until(done)), timeout_s=0.2))
    finally:
        done.set()

    assert ErrorClass.TIMEOUT is caught.value.error_class


async def test_connections_are_reused_and_sessions_are_not(serve: Serve) -> None:
    """One connection for trials in a row, and no cookie from one in the next."""
    ports: set[int] = set()
    cookies: list[str | None] = []

    def handler(request: Any) -> None:
        ports.add(request.client_address[1])
        cookies.append(request.headers.get("Cookie"))
        request.respond(200, "ok", Set_Cookie="session=1; Path=/")

    service = HttpService(serve(handler))
    for _ in range(5):
        await service.call(trial())
    await service.aclose()
    await service.aclose()

    assert 1 == len(ports)
    assert [None] * 5 == cookies


async def test_nothing_is_left_open_after_200_calls(serve: Serve) -> None:
    """Replies, failures and cancelled calls alike."""
    done = threading.Event()

    def handler(request: Any) -> None:
        if b"hang" in request.received:
            done.wait(20)
        request.respond(500 if b"fail" in request.received else 200, "ok")

    service = HttpService(serve(handler))

    async def use(count: int) -> None:
        for index in range(count):
            await service.call(trial())
            if index % 20 == 0:
                with pytest.raises(HttpFailure):
                    await service.call(trial("fail"))
                with anyio.move_on_after(0.02):
                    await service.call(trial("hang"))

    def count_sockets() -> int:
        found = 0
        for name in os.listdir("/proc/self/fd"):
            try:
                found += os.readlink(f"/proc/self/fd/{name}").startswith("socket:")
            except OSError:
                continue
        return found

    before = count_sockets()
    await use(200)
    await service.aclose()
    done.set()
    with anyio.fail_after(20):
        # The server's side of a connection closes a moment later.
        while count_sockets() > before:
            await anyio.sleep(0.01)


@pytest.mark.parametrize("status", [500, 200])
async def test_no_secret_is_ever_shown(serve: Serve, status: int) -> None:
    """Not in the repr, nor in a failure's message, its traceback or what it holds."""
    url = serve(lambda r: r.respond(status, f"bad key {SECRET}"))
    service = HttpService(
        url, headers={"X-Api-Key": "${KEY}"}, extract="/answer", environment=ENVIRONMENT
    )

    with pytest.raises((HttpFailure, MalformedReply)) as caught:
        await once(service)

    shown = "".join(traceback.format_exception(caught.value)) + repr(vars(caught.value))
    assert "bad key ${KEY}" in shown
    assert SECRET not in shown + repr(service)


async def test_a_secret_that_cannot_be_sent_is_not_shown_either(serve: Serve) -> None:
    """A line end after the key is a common slip, and the library's message would repeat it."""
    for key in (f"{SECRET}\n", f"{SECRET}ü"):
        service = HttpService(
            serve(mirror), headers={"Authorization": "Bearer ${KEY}"}, environment={"KEY": key}
        )
        with pytest.raises(ServiceError, match="not allowed in HTTP") as caught:
            await once(service)
        assert SECRET not in "".join(traceback.format_exception(caught.value))


async def test_a_large_reply_that_repeats_a_secret_does_not_show_it(serve: Serve) -> None:
    """The beginning of it stands in the message."""
    url = serve(lambda r: r.respond(200, f"{SECRET} " * 100))
    service = HttpService(url, headers={"X": "${KEY}"}, environment=ENVIRONMENT, response_limit=500)

    with pytest.raises(ReplyTooLarge, match="begins") as caught:
        await once(service)

    assert SECRET not in str(caught.value) + caught.value.head


async def test_the_host_may_come_from_the_environment(serve: Serve) -> None:
    """The same suite against another machine."""
    host = serve(mirror).removeprefix("http://")

    reply = await once(HttpService("http://${HOST}/ask", environment={"HOST": host}))

    assert 200 == reply.details["status"]


async def test_no_secret_hides_in_the_chain_of_a_failure(serve: Serve) -> None:
    """The library's exception holds the request with its headers, so it is not chained."""
    service = HttpService(
        serve(reset), headers={"Authorization": "Bearer ${KEY}"}, environment=ENVIRONMENT
    )

    with pytest.raises(HttpFailure) as caught:
        await once(service)

    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("ftp://example.com", {}),
        ("example.com", {}),
        ("http://", {}),
        ("http://[bad", {}),
        ("http://h:99999/", {}),
        ("http://user:pass-word@h:99999/", {}),
        (None, {}),
        ("http://user:pass-word@example.com", {}),
        ("http://h/", {"headers": {"Authorization": "Bearer pass-word"}}),
        ("http://h/", {"headers": {"x-api-key": "pass-word"}}),
        ("http://h/", {"headers": {"X": 1}}),
        ("http://h/", {"headers": {"X": "${UNSET}"}}),
        ("http://${UNSET}/", {}),
        ("http://h/?k=${KEY}", {}),
        ("http://h/${KEY}", {}),
        ("http://h/", {"extract": "answer"}),
        ("http://h/", {"method": "P OST"}),
        ("http://h/", {"timeout_s": 0}),
        ("http://h/", {"response_limit": 0}),
    ],
)
def test_a_service_that_cannot_work_is_refused(url: Any, options: dict[str, Any]) -> None:
    """Before the first trial, without repeating a password."""
    with pytest.raises(InvalidArgument) as caught:
        HttpService(url, environment=ENVIRONMENT, **options)

    assert "pass-word" not in str(caught.value)


@pytest.mark.parametrize("given", [object(), "half \ud800 pair", {"x": float("nan")}])
async def test_an_input_that_cannot_be_sent_never_reached_the_service(given: Any) -> None:
    """Nothing is sent."""
    with pytest.raises(ServiceError) as caught:
        await once(HttpService("http://127.0.0.1:1/"), given)

    assert ErrorClass.PRE_VALIDATION is caught.value.error_class


@pytest.mark.parametrize("given", ["line\nbreak", "ünï 🎲"])
async def test_a_header_that_cannot_be_sent_never_reached_the_service(
    serve: Serve, given: str
) -> None:
    """Above all one that would smuggle in another header."""
    with pytest.raises(ServiceError) as caught:
        await once(HttpService(serve(mirror), headers={"X-Q": "{input}"}), given)

    assert ErrorClass.PRE_VALIDATION is caught.value.error_class


async def test_a_variable_that_vanishes_is_named(serve: Serve) -> None:
    """The environment is read for each call."""
    environment = {"KEY": "x"}
    service = HttpService(serve(mirror), headers={"X": "${KEY}"}, environment=environment)
    environment.clear()

    with pytest.raises(ServiceError, match="KEY is not set"):
        await once(service)
