"""Not measured is not failed: errors of real servers and clients, from the call to the verdict."""

from __future__ import annotations

import itertools
import threading
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import ModuleType
from typing import Any

import httpx2
import pytest
import requests

import trialwise as tw
from trialwise.engine.error_classes import Reach, Trouble, classify_error
from trialwise.model.evidence import NoteKind, StopReason
from trialwise.model.trial import ErrorClass
from trialwise.services import ChatService, HttpService

Statuses = Iterator[int]
CHAT = b'{"choices": [{"message": {"role": "assistant", "content": "ok"}}]}'
#: Nobody listens on the port for discarded packets.
NOBODY = "http://127.0.0.1:9/ask"


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., str]]:
    """Start a server that answers with one status after another, the last one for ever."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    servers: list[ThreadingHTTPServer] = []

    def start(*statuses: int | Statuses, **headers: str) -> str:
        first = statuses[0]
        several = first if not isinstance(first, int) else iter(())
        given = several if not isinstance(first, int) else itertools.chain(
            statuses, itertools.repeat(statuses[-1])
        )  # fmt: skip

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                self.send_response(next(given))  # type: ignore[arg-type]
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("Content-Length", str(len(CHAT)))
                self.end_headers()
                self.wfile.write(CHAT)

            do_GET = do_POST  # noqa: N815

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_address[1]}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def run(service: Any, *criteria: tw.Criterion, **settings: Any) -> tw.Result:
    """A run of 20 trials on four inputs, without a store and without waiting for retries."""
    promised = criteria or (tw.Criterion("ok", tw.contains("ok"), at_least=0.5),)
    settings = {"trials": 20, "curtail": False, "retries": 0, "seed": 1} | settings
    contract = tw.Contract("x", service, promised)
    return tw.run(contract, inputs=["a", "b", "c", "d"], store=None, progress=False, **settings)


def decision(result: tw.Result) -> str:
    """PASS, FAIL or INCONCLUSIVE."""
    return str(result.decision)


# --- What a status is -----------------------------------------------------------------------------


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 422])
def test_a_url_that_only_refuses_stops_the_run_and_says_what_came_back(
    serve: Callable[..., str], status: int
) -> None:
    """0.1.0 took HTTP 404 for a reply, and `not_contains` passed."""
    url = serve(status) + "/v1"

    result = run(HttpService(url), tw.Criterion("polite", tw.not_contains("bad"), at_least=0.5))

    assert ("INCONCLUSIVE", StopReason.SERVICE) == (decision(result), result.verdict.stop)
    assert len(result.record.trials) <= 3
    assert f"POST {url} answered {status}" in result.verdict.aborted
    assert "check the address, the key" in result.verdict.aborted


def test_a_redirect_that_is_not_followed_stops_the_run_and_names_both_urls(
    serve: Callable[..., str],
) -> None:
    """0.1.0 took the page "moved" for the reply."""
    url = serve(302, Location="http://127.0.0.1:1/elsewhere")

    result = run(HttpService(url), tw.Criterion("fine", tw.not_contains("zzz"), at_least=0.5))

    assert StopReason.SERVICE is result.verdict.stop
    assert url in result.verdict.aborted
    assert "http://127.0.0.1:1/elsewhere" in result.verdict.aborted


def test_a_wrong_key_of_a_chat_model_stops_the_run_with_its_model(
    serve: Callable[..., str],
) -> None:
    """0.1.0 ran ten trials and was INCONCLUSIVE without a hint."""
    result = run(ChatService(serve(401), "small", api_key_env=None))

    assert StopReason.SERVICE is result.verdict.stop
    assert "(model small) answered 401" in result.verdict.aborted


def test_an_accepted_status_is_a_reply(serve: Callable[..., str]) -> None:
    """A service that is asked for what it does not have may be right to answer 404."""
    result = run(HttpService(serve(404), accept_status=[404]))

    assert "PASS" == decision(result)


def test_a_status_that_refuses_one_input_is_a_failure_where_others_were_answered(
    serve: Callable[..., str],
) -> None:
    """The first of 20 trials works, so that the address is right."""
    result = run(HttpService(serve(200, 422)))

    assert ("FAIL", 20) == (decision(result), len(result.record.trials))


def test_http_500_is_a_failure_of_the_service(serve: Callable[..., str]) -> None:
    """The application answered, and it answered wrong."""
    assert "FAIL" == decision(run(HttpService(serve(500))))


@pytest.mark.slow
def test_a_429_is_never_a_failure_of_content(serve: Callable[..., str]) -> None:
    """Every third request is refused, without a retry: the criterion that never fails still holds.

    Of 20 planned trials on a server that counts its requests, the refused ones are asked again
    until 20 are measured: 20 replies take 29 requests, since 9 of the first 29 are refused.
    """
    every_third = (429 if number % 3 == 0 else 200 for number in itertools.count(1))
    result = run(
        ChatService(serve(every_third), "m", api_key_env=None),
        tw.Criterion("answers", tw.contains("ok"), at_least=0.2),
        tw.Criterion("safe", tw.not_contains("sorry"), never_fails=True),
    )

    assert "PASS" == decision(result)
    assert 29 == len(result.record.trials)
    answers = result.verdict.findings[0]
    assert (20, 20) == (answers.tally.passed, answers.tally.trials)
    notes = [note.text for note in answers.notes if note.kind is NoteKind.NOT_MEASURED]
    assert len(notes) == 1
    assert notes[0].startswith("9 of 29 trials were not measured")
    assert "20 of 29 (69.0 %) pass" in notes[0]


def test_429_and_503_are_retried_twice_by_default(serve: Callable[..., str]) -> None:
    """Two refusals before each reply: every trial takes three requests, and Retry-After is kept."""
    pattern = itertools.cycle([429, 503, 200])
    service = HttpService(serve(pattern, Retry_After="0"))

    result = run(service, retries=tw.RunOptions().retries, trials=6)

    assert "PASS" == decision(result)
    assert [3] * 6 == [trial.attempts for trial in result.record.trials]


# --- Analyses -------------------------------------------------------------------------------------


def flaky(index: int) -> str:
    """Three of ten trials never reach the service."""
    if index % 10 < 3:
        raise ConnectionRefusedError("refused")
    return "ok"


def test_trials_that_were_not_measured_are_asked_again_and_disclosed_with_both_rates() -> None:
    """0.1.0 said that they "gave nothing to test and count as failures"."""
    finding = run(flaky).verdict.findings[0]

    # Of 20 planned trials 6 are not measured, of the 6 fresh ones (20 to 25) the first 3, and of
    # those that follow (26 to 28) none.
    assert (20, 20) == (finding.tally.passed, finding.tally.trials)
    assert finding.intent_to_treat is not None
    assert (29, 20) == (finding.intent_to_treat.trials, finding.intent_to_treat.passed)
    text = " ".join(note.text for note in finding.notes)
    assert "9 of 29 trials were not measured" in text
    assert "count as failures" not in text


def test_intent_to_treat_decides_on_the_rate_that_includes_them() -> None:
    """14 of 20 pass: at least 80 % of all requests is not shown, of the answered ones it is.

    6 or more failures of 20 happen at 80 % in 19.6 % of runs: that is no FAIL.
    """
    by_all = run(flaky, analysis="intent-to-treat")
    up = tw.Criterion("up", tw.contains("ok"), at_least=0.8, analysis="intent-to-treat")
    good = tw.Criterion("good", tw.contains("ok"), at_least=0.8)
    both = run(flaky, up, good, keep_going=True)

    assert (14, 20) == (by_all.verdict.findings[0].tally.passed, 20)
    assert 20 == len(by_all.record.trials)
    assert ["INCONCLUSIVE", "PASS"] == [str(one.decision) for one in both.verdict.findings]
    assert (14, 20) == (
        both.verdict.findings[0].tally.passed,
        both.verdict.findings[0].tally.trials,
    )


def test_each_input_gets_its_fresh_trials() -> None:
    """Five trials of each of four inputs, whatever was not measured on the way."""
    each = tw.Criterion("ok", tw.contains("ok"), at_least=0.3, each_input=True, trials=5)

    result = run(flaky, each, trials=None)

    assert "PASS" == decision(result)
    assert [5] * 4 == [part.tally.trials for part in result.verdict.findings[0].by_input]


def test_a_resumed_run_asks_again_what_was_not_measured(tmp_path: Any) -> None:
    """Three trials were not measured before the stop; they are asked again after it."""
    contract = tw.Contract(
        "x", flaky, [tw.Criterion("ok", tw.contains("ok"), at_least=0.5)]
    )  # fmt: skip
    given: dict[str, Any] = {
        "inputs": ["a", "b"],
        "trials": 10,
        "curtail": False,
        "retries": 0,
        "seed": 1,
    }

    first = tw.run(contract, store=tmp_path, budget=tw.Budget(trials=5), **given)
    again = tw.run(contract, store=tmp_path, resume=True, **given)

    # 10 planned, 3 not measured; the fresh ones 10 to 12 are not either, 13 to 15 are.
    assert (5, 16) == (len(first.record.trials), len(again.record.trials))
    assert 10 == again.verdict.findings[0].tally.trials
    assert "PASS" == decision(again)


# --- Clients of other packages --------------------------------------------------------------------


def by_urllib(_: str) -> str:
    with urllib.request.urlopen(NOBODY) as reply:
        return str(reply.status)


def by_requests(_: str) -> str:
    return requests.post(NOBODY).text


async def by_httpx(_: str) -> str:
    async with httpx2.AsyncClient() as client:
        return (await client.post(NOBODY)).text


def wrapped(_: str) -> str:
    try:
        return by_requests(_)
    except Exception as error:
        raise RuntimeError("the agent failed") from error


@pytest.mark.parametrize(
    "service", [by_urllib, by_requests, by_httpx, wrapped, HttpService(NOBODY)]
)
def test_a_service_that_is_not_running_is_inconclusive_by_any_client(service: Any) -> None:
    """0.1.0: FAIL for all of them but its own service, after four calls without a retry."""
    result = run(service, tw.Criterion("safe", tw.not_contains("4111"), never_fails=True))

    assert ("INCONCLUSIVE", 5) == (decision(result), len(result.record.trials))
    assert "Is it running" in result.verdict.aborted


def test_the_first_sentence_names_the_address_that_does_not_answer() -> None:
    """And no criterion FAILs on the way."""
    result = run(HttpService(NOBODY))

    assert f"Nothing answers at {NOBODY} (connection refused)" in result.verdict.aborted


def fake(module: str, name: str, *bases: type, **attributes: Any) -> BaseException:
    """An exception as a package defines it that is not installed here."""
    kind = type(name, bases or (Exception,), {"__module__": module, **attributes})
    error = kind("no")
    assert isinstance(error, BaseException)
    return error


class Grpc:
    """A code of gRPC, which is the member of an enumeration."""

    def __init__(self, name: str) -> None:
        self.name = name


def answered(status: int, **headers: str) -> ModuleType:
    """A response as requests, httpx and the clients built on them keep it."""
    response = ModuleType("response")
    response.status_code = status  # type: ignore[attr-defined]
    response.headers = headers  # type: ignore[attr-defined]
    return response


INFRASTRUCTURE, NONE = ErrorClass.INFRASTRUCTURE, ErrorClass.NONE
TIMEOUT, CONFIGURATION = ErrorClass.TIMEOUT, ErrorClass.CONFIGURATION
THROTTLED = {"Error": {"Code": "ThrottlingException"}, "ResponseMetadata": {"HTTPStatusCode": 400}}


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (fake("openai", "APIConnectionError"), INFRASTRUCTURE),
        (fake("openai", "RateLimitError", status_code=429), INFRASTRUCTURE),
        (fake("openai", "NotFoundError", status_code=404), CONFIGURATION),
        (fake("openai", "APITimeoutError"), TIMEOUT),
        (fake("anthropic", "InternalServerError", status_code=529), INFRASTRUCTURE),
        (fake("anthropic", "InternalServerError", status_code=500), NONE),
        (fake("aiohttp.client_exceptions", "ClientConnectionError", OSError), INFRASTRUCTURE),
        (fake("aiohttp.client_exceptions", "ClientResponseError", status=503), INFRASTRUCTURE),
        (fake("httpx", "HTTPStatusError", response=answered(401)), CONFIGURATION),
        (fake("grpc", "RpcError", code=lambda _: Grpc("UNAVAILABLE")), INFRASTRUCTURE),
        (fake("grpc", "RpcError", code=lambda _: Grpc("DEADLINE_EXCEEDED")), TIMEOUT),
        (fake("grpc", "RpcError", code=lambda _: Grpc("INTERNAL")), NONE),
        (fake("botocore.exceptions", "EndpointConnectionError", OSError), NONE),
        (fake("botocore.exceptions", "ConnectionError"), INFRASTRUCTURE),
        (fake("botocore.exceptions", "ClientError", response=THROTTLED), INFRASTRUCTURE),
        (fake("mine", "Busy", status_code=429), INFRASTRUCTURE),
        (fake("mine", "Odd", status_code="429"), NONE),
        (fake("mine", "Odd", code=503), NONE),
        (fake("mine", "ConnectionError"), NONE),
        (fake("mine", "Odd", error_class="x"), NONE),
        (RuntimeError("can't start new thread"), INFRASTRUCTURE),
        (OSError(101, "Network is unreachable"), INFRASTRUCTURE),
        (AssertionError("wrong"), NONE),
    ],
)
def test_exceptions_are_recognised_without_their_packages(
    error: BaseException, expected: ErrorClass
) -> None:
    """By module and class, by status, by code; nothing else is taken for an outage."""
    assert expected is classify_error(error).error_class


def test_an_error_is_what_it_was_raised_from_unless_it_is_an_assertion() -> None:
    """What was only handled on the way says nothing."""
    outer, beside, stated = RuntimeError("agent"), RuntimeError("agent"), AssertionError("wrong")
    outer.__cause__ = beside.__context__ = stated.__cause__ = ConnectionError("refused")

    found = [classify_error(error).error_class for error in (outer, beside, stated)]

    assert [INFRASTRUCTURE, NONE, NONE] == found


def test_retry_after_is_read_from_a_foreign_response() -> None:
    """From the headers that the client keeps."""
    busy = fake("openai", "RateLimitError", status_code=429, response=answered(429, **{"retry-after": "7"}))  # fmt: skip  # noqa: E501

    assert Trouble(INFRASTRUCTURE, 429, 7.0) == classify_error(busy)


def test_a_refusal_means_the_configuration_only_before_the_first_reply() -> None:
    """Afterwards it is an answer to this input; an expired key says nothing about any."""
    reach = Reach()
    refused, expired = Trouble(CONFIGURATION, 404), Trouble(CONFIGURATION, 401)
    before = reach.settle(refused)
    reach.note_reply()

    assert CONFIGURATION is before
    assert (NONE, ErrorClass.PRE_VALIDATION) == (reach.settle(refused), reach.settle(expired))


def test_exceptions_of_another_client_are_retried_as_well() -> None:
    """0.1.0 made no retry for `ConnectionError`, whatever `retries` said."""
    calls: list[str] = []

    def once_down(question: str) -> str:
        calls.append(question)
        if len(calls) == 1:
            raise ConnectionError("refused")
        return "ok"

    result = run(once_down, retries=1, trials=5)

    assert ("PASS", 6, 5) == (decision(result), len(calls), len(result.record.trials))


# --- Broken checks and odd exceptions -------------------------------------------------------------


class Panic(BaseException):
    """As a panic of Rust arrives in Python."""


@pytest.mark.parametrize("error", [Panic(), GeneratorExit(), BaseExceptionGroup("g", [Panic()])])
def test_whatever_a_service_raises_is_one_failed_trial(error: BaseException) -> None:
    """0.1.0 ended with a traceback and exit code 1."""

    def breaks(index: int) -> str:
        if index == 5:
            raise error
        return "ok"

    result = run(breaks)

    assert ("PASS", 20) == (decision(result), len(result.record.trials))
    assert 19 == result.verdict.findings[0].tally.passed


def forgets(text: str) -> None:
    _ = "yes" in text


def skips(text: str) -> bool:
    pytest.skip(text)


def raises(text: str) -> bool:
    raise TypeError(f"boom {text}")


def panics(text: str) -> bool:
    raise Panic(text)


@pytest.mark.parametrize(
    ("check", "problem"),
    [
        (forgets, "returned None and asserts nothing"),
        (raises, "raised TypeError: boom ok"),
        (panics, "raised Panic"),
        (skips, "raised Skipped"),
        (lambda text: 0.7, "returned 0.7, and nothing says which score passes"),  # noqa: ARG005
        (lambda text: (True, "why"), "a tuple"),  # noqa: ARG005
        (lambda text: "yes", "a str"),  # noqa: ARG005
    ],
)
def test_a_broken_check_stops_the_run_and_is_never_a_verdict(check: Any, problem: str) -> None:
    """0.1.0: PASS without `return`, FAIL for the others."""
    with pytest.raises(tw.BrokenCheck, match="is broken") as caught:
        run(lambda q: "ok", tw.Criterion("c", check, at_least=0.5))  # noqa: ARG005

    assert problem in caught.value.problem


def test_the_traceback_of_a_broken_check_shows_the_check() -> None:
    """Its own file and line, and no frame of the engine."""
    with pytest.raises(tw.BrokenCheck) as caught:
        run(lambda q: "ok", tw.Criterion("c", tw.not_(tw.predicate(raises)), at_least=0.5))  # noqa: ARG005

    assert 'raise TypeError(f"boom {text}")' in caught.value.traceback
    assert "predicates.py" not in caught.value.traceback


def must_say_ok(text: str) -> None:
    assert "ok" in text


def helped(text: str) -> None:
    must_say_ok(text)


class Strict:
    """A check as an object."""

    def __call__(self, text: str) -> None:
        if "ok" not in text:
            raise AssertionError(text)


@pytest.mark.parametrize("check", [must_say_ok, helped, Strict()])
def test_none_passes_where_the_function_or_what_it_calls_asserts(check: Any) -> None:
    """And an assertion that fails is a failure."""
    good = run(lambda q: "ok", tw.Criterion("c", check, at_least=0.5))  # noqa: ARG005
    bad = run(lambda q: "no", tw.Criterion("c", check, at_least=0.5))  # noqa: ARG005

    assert ("PASS", "FAIL") == (decision(good), decision(bad))


def test_a_check_that_cannot_reach_its_own_service_is_not_measured() -> None:
    """A check may ask a model of its own; that one being down says nothing about the reply."""

    def asks(text: str) -> bool:
        return bool(requests.post(NOBODY, data=text).text)

    result = run(
        lambda q: "ok",  # noqa: ARG005
        tw.Criterion("good", tw.contains("ok"), at_least=0.5),
        tw.Criterion("asked", asks, at_least=0.5),
    )

    good, asked = result.verdict.findings
    assert ("PASS", "INCONCLUSIVE") == (str(good.decision), str(asked.decision))


@pytest.mark.parametrize(
    "fields", [{"usage": {"input_tokens": 1}}, {"details": [1]}, {"setup": 3}, {"exit_code": "0"}]
)
def test_a_reply_of_an_odd_shape_is_a_failed_trial(fields: dict[str, Any]) -> None:
    """0.1.0 lost the run to an internal error."""
    result = run(lambda q: tw.Reply(value="ok", **fields))  # noqa: ARG005

    assert ("FAIL", 20) == (decision(result), len(result.record.trials))


def test_an_exception_with_an_error_class_of_its_own_is_a_failed_trial() -> None:
    """Only `ServiceError` says how a trial is classed."""

    class Odd(Exception):
        error_class = "x"

    def fails(_: str) -> str:
        raise Odd

    assert "FAIL" == decision(run(fails))


# --- What a chain of errors is --------------------------------------------------------------------


def error_of(package: str, name: str, *bases: type[BaseException], **fields: Any) -> Any:
    """An error whose class looks like that of another package, with its fields."""
    made = type(name, bases or (Exception,), {"__module__": f"{package}.exceptions"})
    error = made("as the package says it")
    for field, value in fields.items():
        setattr(error, field, value)
    return error


def chain(*errors: BaseException, by: str = "context") -> BaseException:
    """The first error, raised while the second was handled (or from it), and so on."""
    for outer, inner in itertools.pairwise(errors):
        if by == "cause":
            outer.__cause__ = inner
        outer.__context__ = inner
    return errors[0]


class Answer:
    """A response, as clients hand it over with their errors."""

    def __init__(self, status: int, **headers: str) -> None:
        self.status_code = status
        self.headers = headers


def litellm_error(name: str = "InternalServerError", status: int = 500) -> Any:
    """As litellm 1.7x makes it: a status, and a response that it makes up without headers."""
    base = type(name, (Exception,), {"__module__": "openai"})
    return error_of("litellm", name, base, status_code=status, response=Answer(status))


CONNECT: dict[str, Callable[[], BaseException]] = {
    "httpx": lambda: error_of("httpx", "ConnectError"),
    "openai": lambda: chain(
        error_of("openai", "APIConnectionError"), error_of("httpx", "ConnectError"), by="cause"
    ),
    "anthropic": lambda: chain(
        error_of("anthropic", "APIConnectionError"), error_of("httpx", "ConnectError"), by="cause"
    ),
    "requests": lambda: error_of("requests", "ConnectionError"),
    "aiohttp": lambda: error_of("aiohttp", "ClientConnectionError"),
    "builtin": lambda: ConnectionRefusedError("refused"),
}


@pytest.mark.parametrize("client", CONNECT)
@pytest.mark.parametrize("by", ["context", "cause"])
def test_a_status_that_a_wrapper_made_up_does_not_hide_an_outage(client: str, by: str) -> None:
    """litellm reports a refused connection as status 500, two levels above the client's error."""
    inner = CONNECT[client]()
    middle = error_of("litellm", "OpenAIError", status_code=500)

    found = classify_error(chain(litellm_error(), middle, inner, by=by))

    assert ErrorClass.INFRASTRUCTURE is found.error_class


def test_an_outage_through_a_wrapper_is_never_a_verdict() -> None:
    """The whole run: every call fails with a made-up 500 above a refused connection."""

    def ask(_question: str) -> str:
        try:
            raise error_of("httpx", "ConnectError")
        except Exception:
            raise litellm_error()  # noqa: B904 - as litellm raises it

    result = run(ask)

    assert "INCONCLUSIVE" == decision(result)
    assert "FAIL" not in {str(one.decision) for one in result.verdict.findings}


@pytest.mark.parametrize(
    ("inner", "expected"),
    [("ReadTimeout", ErrorClass.TIMEOUT), ("ConnectTimeout", ErrorClass.INFRASTRUCTURE)],
)
def test_a_timeout_of_a_wrapper_is_that_of_its_client(inner: str, expected: ErrorClass) -> None:
    """litellm's Timeout has the status 408 and is OpenAI's APITimeoutError by inheritance."""
    base = type("APITimeoutError", (Exception,), {"__module__": "openai"})
    outer = error_of("litellm", "Timeout", base, status_code=408)

    assert expected is classify_error(chain(outer, error_of("httpx", inner))).error_class


def test_a_real_500_below_a_wrapper_stays_the_failure_of_the_service() -> None:
    """The client's own error has the response, and nothing below it counts."""
    real = error_of("openai", "InternalServerError", status_code=500, response=Answer(500, a="b"))
    chain(real, ConnectionResetError("an earlier try"))

    assert Trouble(ErrorClass.NONE, 500) == classify_error(chain(litellm_error(), real))


def test_a_status_with_the_headers_of_a_response_counts_whatever_was_handled() -> None:
    """A second server was asked after the first one refused, and it answered 500."""
    answered = error_of("mine", "ApiError", status_code=500, response=Answer(500, server="nginx"))

    assert ErrorClass.NONE is classify_error(chain(answered, ConnectionError())).error_class


def test_a_status_raised_from_none_has_nothing_to_do_with_what_was_handled() -> None:
    """`raise … from None` is how an author says so."""
    outer = chain(error_of("mine", "ApiError", status_code=500), ConnectionError())
    outer.__suppress_context__ = True

    assert ErrorClass.NONE is classify_error(outer).error_class


def test_an_error_of_the_service_is_not_excused_by_an_outage_that_it_handled() -> None:
    """A cache is away, and the code that does without it has a mistake."""

    def ask(_question: str) -> str:
        try:
            raise ConnectionRefusedError("the cache")
        except ConnectionError:
            return str(int("not a number"))

    result = run(ask)

    assert "FAIL" == decision(result)


def test_an_outage_two_levels_below_an_unrelated_error_excuses_nothing() -> None:
    """The wrapper's status is made up, but what it wraps is a ValueError of the service."""
    unrelated = chain(ValueError("bad JSON"), ConnectionError("handled before"))

    assert Trouble(ErrorClass.NONE, 500) == classify_error(chain(litellm_error(), unrelated))


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ([ConnectionError(), ConnectionResetError()], ErrorClass.INFRASTRUCTURE),
        ([ConnectionError(), ValueError()], ErrorClass.NONE),
        ([ConnectionError(), TimeoutError()], ErrorClass.TIMEOUT),
        ([ExceptionGroup("inner", [ConnectionError(), KeyError()])], ErrorClass.NONE),
        ([TimeoutError(), KeyError()], ErrorClass.NONE),
    ],
)
def test_a_group_is_an_outage_only_if_all_of_its_members_are(
    members: list[Exception], expected: ErrorClass
) -> None:
    """Two calls side by side: an outage of one does not excuse a mistake in the other."""
    assert expected is classify_error(ExceptionGroup("calls", members)).error_class
    wrapped = chain(OSError("All connection attempts failed"), ExceptionGroup("x", members))
    wrapped.__cause__ = wrapped.__context__
    assert expected is classify_error(wrapped).error_class


def test_a_host_with_two_addresses_that_both_refuse_was_not_reached() -> None:
    """asyncio joins what the addresses of `localhost` say to one error without a number."""
    import asyncio

    async def connect() -> BaseException:
        try:
            await asyncio.open_connection("localhost", 9)
        except OSError as error:
            return error
        raise AssertionError("somebody listens on port 9")

    assert ErrorClass.INFRASTRUCTURE is classify_error(asyncio.run(connect())).error_class
    both = OSError("Multiple exceptions: [Errno 111] Connect call failed ('::1', 9, 0, 0), [Er…")
    assert ErrorClass.INFRASTRUCTURE is classify_error(both).error_class


def test_a_chain_without_end_is_no_loop() -> None:
    """Two errors that name each other as their cause."""
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__cause__ = two, one

    assert Trouble() == classify_error(one)
