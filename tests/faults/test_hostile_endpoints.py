"""HTTP services that answer badly, slowly or not at all, through whole runs of the command."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.faults.command_runs import YES, call, decisions, read_records, write

HTTP = """\
name: s
service: {{http: {{url: "{url}/ask"}}}}
inputs: [a, b]
trials: 20
curtail: false
concurrency: 4
{more}
criteria: [{{name: c, {check}, at_least: 50%}}]
"""
CHAT = """\
name: s
service: {{chat: {{base_url: "{url}", model: m, api_key_env: null}}}}
inputs: [a, b]
trials: 20
curtail: false
criteria: [{{name: c, {check}, at_least: 50%}}]
"""

Respond = Callable[[Any, int], None]


class _Handler(BaseHTTPRequestHandler):
    """Answers as the test's function does, with the number of the request."""

    respond: Respond
    count = 0
    lock = threading.Lock()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        with self.lock:
            number = type(self).count
            type(self).count += 1
        type(self).respond(self, number)

    do_GET = do_POST  # noqa: N815 - the name that http.server looks for

    def send(self, status: int, body: str | bytes = "", **headers: str) -> None:
        data = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        for name, value in ({"Content_Length": str(len(data))} | headers).items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.fixture
def serve() -> Iterator[Callable[[Respond], str]]:
    """Starts a server that answers as a function does; returns its address."""
    servers = []

    def start(respond: Respond) -> str:
        handler = type("Handler", (_Handler,), {"respond": staticmethod(respond), "count": 0})
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def run(
    folder: Path, url: str, check: str = 'equals: "yes"', more: str = "", suite: str = HTTP
) -> tuple[int, str, str]:
    """Return exit code, output and messages of a run against the server."""
    write(folder, suite=suite.format(url=url, check=check, more=more))
    return call(folder, "run", "-q")


@pytest.mark.slow
def test_a_page_of_html_is_a_wrong_answer(tmp_path: Path, serve: Any) -> None:
    """A proxy's page with status 200 is a reply, and it is not the one required: FAIL, exit 1."""
    page = "<html><body>Welcome</body></html>"
    url = serve(lambda request, _: request.send(200, page, Content_Type="text/html"))

    assert run(tmp_path, url)[0] == 1
    assert decisions(tmp_path) == ["FAIL"]


@pytest.mark.slow
def test_half_a_body_is_not_measured(tmp_path: Path, serve: Any) -> None:
    """The connection ends before the promised length: nothing is decided, exit 3."""
    url = serve(lambda request, _: request.send(200, "ye", Content_Length="100"))

    code, output, _ = run(tmp_path, url, "not_contains: zzz", "retries: 0")
    assert (code, decisions(tmp_path)) == (3, ["INCONCLUSIVE"]), output


@pytest.mark.slow
def test_a_rate_limit_is_waited_for(tmp_path: Path, serve: Any) -> None:
    """429 with Retry-After at first: every trial is answered in the end, and none is a failure."""

    def respond(request: Any, number: int) -> None:
        if number < 4:
            request.send(429, "slow down", Retry_After="0")
        else:
            request.send(200, "yes")

    assert run(tmp_path, serve(respond))[0] == 0
    (record,) = read_records(tmp_path)
    assert record["verdict"]["findings"][0]["tally"]["passed"] == 20


@pytest.mark.slow
def test_a_rate_limit_beyond_the_time_budget_ends_the_run(tmp_path: Path, serve: Any) -> None:
    """No wait begins that would end after the limit: exit 3 at once."""
    url = serve(lambda request, _: request.send(429, "", Retry_After="590"))

    code, output, _ = run(tmp_path, url, more="retries: 1\nbudget: {time: 5s}")
    assert (code, decisions(tmp_path)) == (3, ["INCONCLUSIVE"])
    assert "ends before the service may be asked again" in output


@pytest.mark.slow
def test_a_storm_of_500_is_failures_of_the_service(tmp_path: Path, serve: Any) -> None:
    """An application that answers and then breaks: its errors count, exit 1."""

    def respond(request: Any, number: int) -> None:
        request.send(*((200, "yes") if number < 4 else (500, "Traceback: boom")))

    code, output, _ = run(tmp_path, serve(respond), more="retries: 0")
    assert (code, decisions(tmp_path)) == (1, ["FAIL"]), output


def test_a_gateway_that_is_down_is_not_measured(tmp_path: Path, serve: Any) -> None:
    """503 for ever says nothing about the service: exit 3."""
    url = serve(lambda request, _: request.send(503, "maintenance"))

    code, output, _ = run(tmp_path, url, more="retries: 0")
    assert (code, decisions(tmp_path)) == (3, ["INCONCLUSIVE"]), output


@pytest.mark.slow
def test_a_server_that_says_nothing_is_a_timeout(tmp_path: Path, serve: Any) -> None:
    """It accepts the connection and never answers: the service is late, exit 1."""
    silent = threading.Event()
    url = serve(lambda _request, _number: silent.wait(20))

    code, output, _ = run(tmp_path, url, more="timeout: 50ms")
    silent.set()
    assert (code, decisions(tmp_path)) == (1, ["FAIL"]), output


@pytest.mark.slow
def test_a_redirect_that_is_not_followed_is_no_reply(tmp_path: Path, serve: Any) -> None:
    """The run stops with both addresses, exit 4."""
    url = serve(lambda request, _: request.send(302, "moved", Location="http://elsewhere.invalid/"))

    code, output, _ = run(tmp_path, url, "not_contains: zzz")
    assert (code, decisions(tmp_path)) == (4, ["INCONCLUSIVE"])
    assert f"{url}/ask" in output
    assert "http://elsewhere.invalid/" in output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "status"), [("http", 302), ("http", 307), ("chat", 303), ("chat", 308), ("judge", 307)]
)
def test_a_redirect_takes_no_credential_elsewhere(
    tmp_path: Path, serve: Any, monkeypatch: pytest.MonkeyPatch, kind: str, status: int
) -> None:
    """The other server hears nothing at all, by any method."""
    heard: list[str] = []

    def hear(request: Any, _: int) -> None:
        heard.append(str(request.headers))
        request.send(200, "yes")

    other = serve(hear)
    asked: list[str] = []

    def answer(request: Any, _: int) -> None:
        asked.append(request.headers.get("authorization", ""))
        request.send(status, "moved", Location=f"{other}/ask")

    url = serve(answer)
    monkeypatch.setenv("SECRET_KEY", "sk-canary-of-a-redirect")
    chat = f'{{chat: {{base_url: "{url}", model: m, api_key_env: SECRET_KEY}}}}'
    header = '{Authorization: "Bearer ${SECRET_KEY}"}'
    service = {
        "http": f'{{http: {{url: "{url}/ask", headers: {header}}}}}',
        "chat": chat,
        "judge": '{python: "agent:f"}',
    }[kind]
    check = (
        f"judge: {{rubric: Polite., retries: 0, jurors: {chat}}}"
        if kind == "judge"
        else "contains: yes"
    )
    write(
        tmp_path,
        YES,
        f"name: s\nservice: {service}\ninputs: [a]\ntrials: 8\nretries: 0\n"
        f"criteria: [{{name: c, {check}, at_least: 50%}}]\n",
    )
    code, output, errors = call(tmp_path, "run", "-q")

    assert code in (3, 4), output + errors
    assert "Bearer sk-canary-of-a-redirect" in asked
    assert heard == []
    assert "sk-canary" not in output + errors


@pytest.mark.slow("idna", "punycode", "undefined", "no-such")
@pytest.mark.parametrize("charset", ["idna", "hex", "punycode", "undefined", "no-such"])
def test_an_odd_charset_is_read_as_utf_8(tmp_path: Path, serve: Any, charset: str) -> None:
    """What the header says about the text must not break the reply: exit 0."""
    kind = f"text/plain; charset={charset}"
    url = serve(lambda request, _: request.send(200, "yes", Content_Type=kind))

    code, output, _ = run(tmp_path, url)
    assert (code, decisions(tmp_path)) == (0, ["PASS"]), output


@pytest.mark.slow
def test_a_usage_of_nan_is_unknown(tmp_path: Path, serve: Any) -> None:
    """The answer beside it is right, and counts: exit 0."""
    message = {"role": "assistant", "content": "yes"}
    body = {"choices": [{"message": message}], "usage": {"prompt_tokens": float("nan")}}
    url = serve(lambda request, _: request.send(200, json.dumps(body)))

    code, output, errors = run(tmp_path, url, suite=CHAT)
    assert (code, decisions(tmp_path)) == (0, ["PASS"]), output + errors


def test_a_judge_that_is_down_fails_nobody(tmp_path: Path, serve: Any) -> None:
    """The service answers, its judge does not: nothing is decided, exit 3."""
    url = serve(lambda request, _: request.send(503, "maintenance"))
    juror = f'{{chat: {{model: m, base_url: "{url}", api_key_env: null}}}}'
    suite = (
        'name: s\nservice: {python: "agent:f"}\n'
        "inputs: [a, b]\ntrials: 20\ncurtail: false\nretries: 0\n"
        "criteria:\n"
        f"  - {{name: c, judge: {{rubric: Polite., retries: 0, jurors: {juror}}}, at_least: 50%}}\n"
    )
    write(tmp_path, YES, suite)
    code, output, errors = call(tmp_path, "run", "-q")

    assert (code, decisions(tmp_path)) == (3, ["INCONCLUSIVE"]), output + errors
