"""Secrets stand in every place where a suite may write `${NAME}`, and are in no file and no output.

The places are found by walking the declarations, so that a new key without a canary fails here.
"""

from __future__ import annotations

import hmac
import json
import os
import re
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import trialwise as tw
from trialwise.cli.main import cli
from trialwise.declarations.resources import CommandLine
from trialwise.declarations.scalars import Data, Document, Kind, Object, Text
from trialwise.declarations.structures import Either, Listing, MapOf, Record, Short
from trialwise.redaction import redact_with
from trialwise.runtime.chosen_baselines import seal_stored, with_service_factors
from trialwise.stores.baselines import BaselineStore
from trialwise.suite import load_suite
from trialwise.suite.check_keys import DeclaredCheck
from trialwise.suite.keys import records

#: Places that hold a path. A path names a file that others see, and is shown.
PATHS = {
    *("suite.env_file", "suite.env_file[]", "store.runs", "store.baselines"),
    *("judge.gold", "judge.calibration", "judge.cache"),
    *("preference.gold", "preference.calibration", "preference.cache"),
    *("input-file.jsonl", "input-file.csv", "input-file.files", "input-file.files[]"),
    *("criterion.json_schema.schema", "criterion.tool_called_with.schema"),
    *("reports.gitlab", "reports.json", "reports.jsonl", "reports.junit"),
    *("reports.html", "reports.md", "reports.tap", "reports.transparent"),
    *("command.cwd", "server.cwd", "replay.source"),
}


def takes_environment(kind: Kind) -> bool:
    """Whether a value of this kind may refer to a variable."""
    mode = getattr(kind, "environment", None) or getattr(kind, "_environment", None)
    is_text = isinstance(kind, Data | Text) and mode in ("read", "template")
    return is_text or isinstance(kind, CommandLine | Document)


def list_places(kind: Any, path: str) -> Iterator[str]:
    """The places below a kind where a reference may stand; records are walked one by one."""
    if takes_environment(kind):
        yield path
    if isinstance(kind, Record):
        return
    if isinstance(kind, Either):
        for one in kind.kinds:
            yield from list_places(one, path)
    elif isinstance(kind, Listing):
        yield from list_places(kind.item, f"{path}[]")
    elif isinstance(kind, MapOf):
        yield from list_places(kind.kind, f"{path}.*")
    elif isinstance(kind, Short):
        yield from list_places(kind.record, path)
    elif isinstance(kind, Object):
        yield from list_places(kind._data, path)
    elif isinstance(kind, DeclaredCheck):
        for key in kind.keys:
            yield from list_places(key.kind, f"{path}.{key.name}")


PLACES = {
    place
    for record in records()
    for key in record.keys
    for place in list_places(key.kind, f"{record.name}.{key.name}")
}


def canary(place: str) -> str:
    """A secret of its own for each place, with quotes, which JSON and shells write otherwise."""
    number = sum(ord(one) * 7**at for at, one in enumerate(place)) % 10**8
    return f"Qz7{number:08d}it's\"{len(place)}-Kx9{number:08d}vw"


def variable(place: str) -> str:
    return "V_" + re.sub(r"\W", "_", place).upper()


#: Values of places that must be something in particular.
SPECIAL = {
    "http.url": "canaryhost-qz71234567.invalid",
    "http.method": "CANARYMETHODQZ",
    "server.url": "http://canaryserver-qz7654.invalid:9/canaryserverpath",
    "chat.base_url": "http://127.0.0.1:PORT/canarypathqz71",
    "agent.base_url": "http://127.0.0.1:PORT/canarypathqz72",
}
#: One suite for every group of places that fit together. `<place>` becomes its `${NAME}`.
SUITES = {
    "http": """
service: {http: {url: "http://127.0.0.1:PORT/ask", method: "<http.method>",
    headers: {Authorization: "Bearer <http.headers.*>"},
    body: {key: "<http.body>", pad: "PAD", q: "{input}"}, extract: $.said}}
""",
    "short http": """
service: {http: {url: "http://127.0.0.1:PORT/ask", method: POST, body: "k=<http.body>"}}
""",
    "http host": """
service: {http: {url: "http://<http.url>/ask"}}
retries: 0
""",
    "chat": """
service: {chat: {base_url: "<chat.base_url>", model: "<chat.model>", system: "<chat.system>",
    extra: {user: "<chat.extra>"}, api_key_env: V_KEY,
    tools: [{type: function, function: {name: f, description: "<chat.tools[]>"}}]}}
""",
    "chat prompt": """
service: {chat: {base_url: "http://127.0.0.1:PORT", model: m, api_key_env: V_KEY,
    prompt: "<chat.prompt> {input}"}}
""",
    "chat prompts": """
service: {chat: {base_url: "http://127.0.0.1:PORT", model: m, api_key_env: V_KEY,
    prompt: [{role: user, content: "<chat.prompt[]> {input}"}]}}
""",
    "command": f"""
service: {{command: {{run: [{sys.executable}, agent.py, "<command.run[]>", "{{input}}"],
    env: {{ONE: "<command.env.*>"}}}}}}
""",
    "command as text": f"""
service: {{command: {{run: '{sys.executable} agent.py "<command.run>" PAD {{input}}'}}}}
""",
    "agent": f"""
service: {{agent: {{base_url: "<agent.base_url>", model: "<agent.model>",
    system: "<agent.system>", extra: {{user: "<agent.extra>"}}, api_key_env: V_KEY,
    servers: {{one: {{command: [{sys.executable}, agent.py, "<server.command[]>"],
        env: {{ONE: "<server.env.*>"}}}}}}}}}}
retries: 0
""",
    "agent by url": f"""
service: {{agent: {{base_url: "http://127.0.0.1:PORT", model: m, api_key_env: V_KEY,
    servers: {{one: {{url: "<server.url>", headers: {{Authorization: "<server.headers.*>"}}}},
        two: {{command: '{sys.executable} agent.py "<server.command>"'}}}}}}}}
retries: 0
""",
}
#: Services that never answer, so that no baseline can be measured.
UNREACHED = ("http host", "agent", "agent by url")
REST = """
name: places
inputs: [a, b]
intent: smoke
trials: 12
curtail: false
timeout: 20s
criteria:
  - {name: says, contains: never said, at_least: 50%}
  - {name: kept, not_contains: never said, no_worse_than: baseline}
arms: {other: {factors: {arm: other}}}
"""
JUDGED = """\
  - name: judged
    at_least: 50%
    judge: {rubric: It is right., jurors: JUROR}
"""
AGENT = """\
import os, sys
print(sys.argv, os.environ.get("ONE"))
print(sys.argv, os.environ.get("ONE"), file=sys.stderr)
"""
OUTPUTS = ("r.html", "r.md", "r.xml", "r.json", "r.jsonl", "r.tap", "r.txt")


def test_every_place_of_the_declarations_has_a_canary() -> None:
    """A key that takes a value of the environment is in one of the suites, or is a path."""
    written = set(re.findall(r"<([\w.*\[\]-]+)>", "".join(SUITES.values())))
    assert written == PLACES - PATHS
    assert PATHS <= PLACES


class Echo(BaseHTTPRequestHandler):
    """Says all that it heard, every third time as an error."""

    heard = 0

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        said = f"{self.command} {dict(self.headers)} {body}"
        type(self).heard += 1
        status = 500 if type(self).heard % 3 == 2 else 200
        message = {"role": "assistant", "content": said}
        answer = {"said": said, "choices": [{"message": message}], "error": None}
        content = json.dumps(answer if status == 200 else {"error": {"message": said}}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_GET = do_CANARYMETHODQZ = _answer  # noqa: N815

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


class Typed:
    """Commands that are typed in a folder, all that they print, and the secrets there."""

    def __init__(self, folder: Path, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(folder)
        monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        monkeypatch.delenv("TRIALWISE_KEY", raising=False)
        self.folder, self._port, self._patch = folder, port, monkeypatch
        self.secrets: dict[str, str] = {}
        self.printed: dict[str, str] = {}
        (folder / "agent.py").write_text(AGENT)

    def write(self, suite: str) -> None:
        """Write a suite, and put the secrets that it names into the environment."""
        written = suite.replace("PAD", "x" * 250)

        def refer(match: re.Match[str]) -> str:
            place = match[1]
            value = SPECIAL.get(place, canary(place)).replace("PORT", str(self._port))
            self.put(variable(place), value)
            return f"${{{variable(place)}}}"

        written = re.sub(r"<([\w.*\[\]-]+)>", refer, written)
        self.put("V_KEY", canary("key"))
        (self.folder / "trialwise.yaml").write_text(written.replace("PORT", str(self._port)))

    def put(self, name: str, value: str) -> None:
        self.secrets[name] = value
        self._patch.setenv(name, value)

    def do(self, *arguments: str) -> str:
        done = CliRunner().invoke(
            cli, list(arguments), env={"NO_COLOR": "1"}, standalone_mode=False
        )
        told = "" if done.exception is None else str(done.exception)
        self.printed[" ".join(arguments)] = done.output + told
        return done.output + told

    def find_leaks(self) -> list[str]:
        """Name the places where the beginning or the end of a secret stands."""
        own = {"agent.py", "trialwise.yaml"}
        texts = dict(self.printed)
        for path in self.folder.rglob("*"):
            if path.is_file() and path.name not in own and path.suffix != ".pyc":
                name = str(path.relative_to(self.folder))
                texts[name] = path.read_bytes().decode("utf-8", "replace")
        return [
            f"{place}: {name}"
            for place, text in texts.items()
            for name, secret in self.secrets.items()
            for part in _parts(secret)
            if part in text
        ]


def _parts(secret: str) -> set[str]:
    bare = secret.rpartition("/")[2] or secret
    return {bare[:11], bare[-9:]} if "canary" not in bare.lower() else {bare}


@pytest.fixture
def typed(tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch) -> Typed:
    return Typed(tmp_path, port, monkeypatch)


@pytest.mark.parametrize("name", SUITES)
def test_no_file_and_no_output_holds_what_a_suite_took_from_the_environment(
    typed: Typed, name: str
) -> None:
    """Checked, run, measured, recorded, replayed, compared, chosen, shown, reported, rerun."""
    typed.write(SUITES[name] + REST)
    outputs = [word for one in OUTPUTS for word in ("-o", one)]
    for command in (
        ("check",),
        ("doctor",),
        ("measure", "--trials", "12"),
        ("check",),
        ("run", "-v", "--record", "tape.jsonl", *outputs),
        ("run", "-v", "--replay", "tape.jsonl", "-o", "replayed.json"),
        ("show", "--failures", "--trials", "9"),
        ("show", "--json", "--failures"),
        ("show", "--transparent"),
        ("show", "--verify"),
        ("runs", "--json"),
        ("rerun", "--trial", "1"),
        ("report", "-o", "again.html", "-o", "again.json"),
        ("baseline", "list"),
        ("baseline", "list", "--json"),
        ("baseline", "show", "places"),
        ("compare", "--trials", "8", "-o", "c.html", "-o", "c.json", "-o", "c.md"),
        ("choose", "--max-trials", "4", "--json"),
        ("explore", "--trials", "4", "--json"),
    ):
        assert typed.do(*command), command
    kept = {path.name for path in typed.folder.rglob("*.json*")}

    assert typed.find_leaks() == []
    assert {"plan.json", "record.json", "journal.jsonl", "comparison.json"} <= kept
    if name not in UNREACHED:  # without a baseline nothing is tested
        assert {"r.json", "r.jsonl", "tape.jsonl", "c.json", "verdict.json"} <= kept
        assert list(typed.folder.glob("baselines/places/*.json"))


@pytest.mark.parametrize("name", ["http", "chat"])
def test_a_juror_leaks_nothing_either(typed: Typed, name: str) -> None:
    """A judge's endpoint takes the same keys as a service's; this one never votes."""
    juror = re.sub(r"^service: ", "", SUITES["chat"].strip())
    judged = REST.replace("arms:", JUDGED.replace("JUROR", " ".join(juror.split())) + "arms:")
    typed.write(SUITES[name] + judged)
    run = ("run", "-v", "-o", "r.html", "-o", "r.json")
    for command in (("measure", "--trials", "12"), ("check",), run, ("show", "--json")):
        assert typed.do(*command), command
    assert "judged" in typed.printed["show --json"], typed.printed
    assert typed.find_leaks() == []


def test_a_mistake_in_the_suite_shows_no_value(typed: Typed) -> None:
    """Refusals quote what was written, not what it stands for."""
    for service in (
        '{http: {url: "<http.url>/x", method: "<chat.model>"}}',
        '{chat: {model: 5, system: "<chat.system>", base_url: "<chat.model>"}}',
        '{command: {run: ["<command.run>"], cwd: "<chat.model>"}}',
        '{http: {url: "ftp://x", body: {a: "<http.body>"}, nope: "<chat.extra>"}}',
        '{replay: {source: "<chat.model>"}}',
    ):
        typed.write(f"service: {service}\n" + REST)
        for command in (("check",), ("run", "-v"), ("doctor",)):
            typed.do(*command)
            assert typed.find_leaks() == []


def test_factors_show_names_and_notice_a_change_of_the_value(typed: Typed) -> None:
    """The plan says `${NAME}`; another value is another factor, and the same value the same."""
    typed.write(SUITES["chat"] + REST)
    typed.do("measure", "--trials", "12")
    factors = [_factors(typed.folder)]
    assert "was measured, " not in typed.do("check")
    assert factors[0]["model"].startswith("${V_CHAT_MODEL} [sealed ")
    assert factors[0]["endpoint"].startswith("${V_CHAT_BASE_URL} [sealed ")

    typed.put("V_CHAT_MODEL", "another-model")
    changed = typed.do("check")
    typed.do("measure", "--trials", "12")
    factors.append(_factors(typed.folder))

    assert "Factor model: ${V_CHAT_MODEL}" in changed
    assert "two services" in changed.replace("\n", " ")
    assert factors[0]["model"] != factors[1]["model"]
    assert {name for name in factors[0] if factors[0][name] != factors[1][name]} == {"model"}
    assert typed.find_leaks() == []


def _factors(folder: Path) -> dict[str, str]:
    newest = max(folder.glob("baselines/places/*.json"), key=lambda path: path.stat().st_mtime_ns)
    factors: dict[str, str] = json.loads(newest.read_text())["factors"]
    return factors


def test_a_value_sealed_with_another_key_is_not_called_a_change(
    typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another machine has another key: the value may be the same, and the page says so."""
    typed.write(SUITES["chat"] + REST)
    typed.do("measure", "--trials", "12")
    monkeypatch.setenv("TRIALWISE_KEY", "a text that both machines have")
    elsewhere = " ".join(typed.do("check").split())

    assert "Nobody can tell whether the value is the same" in elsewhere
    assert "two services" not in elsewhere
    typed.do("measure", "--trials", "12")
    assert "when the baseline was measured" not in typed.do("check")


def test_the_key_is_made_once_is_the_users_own_and_is_in_no_file_of_a_run(typed: Typed) -> None:
    """Without it nobody can tell a right guess from a wrong one; with it the seal is an HMAC."""
    typed.write(SUITES["chat"] + REST)
    typed.do("measure", "--trials", "12")
    (key,) = [path for path in (typed.folder / "config").rglob("*") if path.is_file()]
    secret = key.read_bytes()
    model = _factors(typed.folder)["model"]
    whole = f"factor {typed.secrets['V_CHAT_MODEL']}".encode()

    assert (len(secret), key.stat().st_mode & 0o777) == (32, 0o600)
    assert hmac.digest(secret, whole, "sha256").hex()[:16] in model
    for path in typed.folder.rglob("*"):
        if path.is_file() and path != key:
            content = path.read_bytes()
            assert secret not in content
            assert secret.hex().encode() not in content


def test_a_baseline_of_an_earlier_version_with_the_value_in_clear_still_fits(typed: Typed) -> None:
    """0.1.0 wrote the value; the same value is no other factor, and is not repeated."""
    typed.write(SUITES["chat"] + REST)
    typed.do("measure", "--trials", "12")
    suite = load_suite(typed.folder / "trialwise.yaml", environment=os.environ)
    contract = suite.contracts[0].contract
    with redact_with(None):
        clear = with_service_factors(contract).factors
    assert clear["model"] == typed.secrets["V_CHAT_MODEL"]
    ((_, stored),) = BaselineStore(typed.folder / "baselines").all("places")
    old = replace(stored, factors=clear)

    with redact_with(suite.redaction):
        sealed = with_service_factors(contract).factors
        assert seal_stored(old).factors["model"] == sealed["model"]
        assert seal_stored(old).factors["parameters"] == sealed["parameters"]
    assert stored.factors == sealed


def test_factors_of_a_python_contract_pass_its_redaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`redact=` of `tw.run` holds for factors as for replies."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

    class Own:
        factors = {"model": "sk-secret-model"}  # noqa: RUF012

        async def call(self, trial: tw.TrialContext) -> tw.Reply:  # noqa: ARG002
            return tw.Reply(value="yes")

        async def aclose(self) -> None:
            """Hold nothing."""

    contract = tw.Contract(
        "c",
        Own(),
        [tw.Criterion("x", tw.equals("yes"), at_least=0.5)],
        factors={"region": "eu sk-secret-region"},
    )
    result = tw.run(
        contract,
        inputs=["a"],
        trials=12,
        store=tmp_path,
        progress=False,
        redact=lambda text: re.sub("sk-secret-[a-z]+", "***", text),
    )

    assert re.fullmatch(r"\*\*\* \[sealed \w{8}:\w{16}\]", result.record.plan.factors["model"])
    assert result.record.plan.factors["region"].startswith("eu *** [sealed ")
    assert not [
        path for path in tmp_path.rglob("*") if path.is_file() and b"sk-secret" in path.read_bytes()
    ]
