"""Secrets are sent through a run in every way there is, and looked for in everything it leaves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import trialwise as tw
from trialwise.model.trial_lines import write_trial
from trialwise.suite import Redaction

#: By `redact:`, by `${NAME}` and by an env file. A third of one, anywhere, is too much.
CANARIES = {
    "PATTERN": "CANARY-1f0e9d8c7b6a5f4e3d2c",
    "API_KEY": "Kz83jf-variable-0q9w8e7r6t",
    "FILE_KEY": "Pm55xq-envfile-1a2s3d4f5g",
}
SUITE = """\
name: canaries
env_file: keys.env
service: SERVICE
redact: ["CANARY-[0-9a-f]+"]
inputs: ["ask CANARY-1f0e9d8c7b6a5f4e3d2c", {value: b, expected: CANARY-1f0e9d8c7b6a5f4e3d2c}]
trials: 12
curtail: false
timeout: 20s
criteria:
  - {name: says, contains: never, at_least: 50%}
  - {name: whole, equals: "x", at_least: 50%}
  - {name: shape, json_path: {path: "$.said", equals: 5}, at_least: 50%}
  - {name: tools, tool_called: find, at_least: 50%}
  - {name: own, python: "agent:good", at_least: 50%}
"""
PYTHON = '{python: "agent:answer"}'
COMMAND = (
    f'{{command: {{run: [{sys.executable}, agent.py, "{{input}}", "{{index}}"], '
    'env: {ONE: "${API_KEY}", TWO: "Bearer ${FILE_KEY}"}}}'
)
AGENT = """\
import json, os, sys
ALL = " ".join(CANARIES)
VALUE = json.dumps({"said": ALL, ALL: 1, "pad": "." * 190 + ALL})
def answer(question, index):
    import trialwise as tw
    if index % 4 == 1: raise RuntimeError("broke " + "." * 150 + ALL)
    if index % 4 == 2: raise tw.ServiceError("refused " + ALL, tw.ErrorClass.TIMEOUT)
    call = {"name": "look", "args": {"key": ALL}, "result": ALL}
    details = {"tool_calls": [call], "conversation": [{"role": "user", "content": ALL}],
               "stderr": ALL, ALL: ALL}
    return tw.Reply(value=VALUE, details=details)
def good(reply):
    import trialwise as tw
    return tw.CheckResult.fail("saw " + ALL, evidence=ALL)
if __name__ == "__main__":
    print(VALUE)
    print("." * 190 + ALL, file=sys.stderr)
    sys.exit(int(sys.argv[2]) % 2)
"""
OUTPUTS = (
    *("r.html", "r.md", "r.xml", "r.json", "r.jsonl", "r.tap", "r.txt"),
    "gl-code-quality-report.json",
)


def write(folder: Path, service: str, suite: str = SUITE) -> None:
    """Write a suite; a Python service knows only what `redact` takes out."""
    (folder / "trialwise.yaml").write_text(suite.replace("SERVICE", service), encoding="utf-8")
    known = [*CANARIES.values()] if service == COMMAND else [CANARIES["PATTERN"]]
    (folder / "agent.py").write_text(AGENT.replace("CANARIES", repr(known)), encoding="utf-8")
    (folder / "keys.env").write_text(f"FILE_KEY={CANARIES['FILE_KEY']}\n", encoding="utf-8")


def call(folder: Path, *arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "trialwise.cli.main", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        errors="replace",
        env=os.environ
        | {"API_KEY": CANARIES["API_KEY"], "PYTHONUTF8": "1", "GITHUB_ACTIONS": "true"}
        | {"GITHUB_STEP_SUMMARY": str(folder / "summary.md")},
        check=False,
        timeout=60,
    )
    return done.returncode, done.stdout + done.stderr


def find_leaks(folder: Path, **printed: str) -> list[str]:
    """Name the places where a third of a secret stands, the user's own files apart."""
    own = {"agent.py", "trialwise.yaml", "keys.env", "gold.jsonl"}
    texts = {
        str(path.relative_to(folder)): path.read_bytes().decode("utf-8", "replace")
        for path in folder.rglob("*")
        if path.is_file() and path.name not in own and path.suffix != ".pyc"
    }
    texts |= printed
    assert any(texts.values())
    return [
        f"{place}: {name}"
        for place, text in texts.items()
        for name, secret in CANARIES.items()
        if secret[-9:] in text or secret[: len(secret) // 3 + 1] in text
    ]


def write_record(result: tw.Result) -> str:
    """Everything that a record holds, as one text."""
    texts = result.record.texts
    trials = [repr(write_trial(trial)) for trial in result.trials]
    return "\n".join([*trials, str(texts.inputs), str(texts.tracebacks), str(result.to_dict())])


@pytest.mark.parametrize(
    ("service", "where"),
    [
        (PYTHON, ""),
        (COMMAND, ""),
        pytest.param(COMMAND, "executor: processes\n", marks=pytest.mark.slow),
    ],
    ids=["python", "command", "processes"],
)
def test_no_artefact_of_a_run_holds_a_secret(tmp_path: Path, service: str, where: str) -> None:
    """Journal, record, recording, seven reports, annotations, terminal and what is shown later."""
    write(tmp_path, service, SUITE + where)
    outputs = [word for name in OUTPUTS for word in ("-o", name)]
    code, printed = call(tmp_path, "run", "-v", "--record", "tape.jsonl", *outputs)
    shown = {
        "show": call(tmp_path, "show", "--failures", "--trials", "50")[1],
        "json": call(tmp_path, "show", "--json", "--failures")[1],
        "transparent": call(tmp_path, "show", "--transparent")[1],
        "check": call(tmp_path, "check")[1],
        "doctor": call(tmp_path, "doctor")[1],
    }

    assert code == 1, printed
    for name in (*OUTPUTS, "tape.jsonl"):
        assert (tmp_path / name).stat().st_size > 100, name
    assert "[redacted]" in shown["show"]
    assert find_leaks(tmp_path, run=printed, **shown) == []


def test_a_baseline_holds_no_secret(tmp_path: Path) -> None:
    """It is made to be kept under version control."""
    write(tmp_path, COMMAND, SUITE.replace("at_least: 50%", "no_worse_than: baseline"))
    code, printed = call(tmp_path, "measure", "--trials", "12")

    assert code == 0, printed
    assert list(tmp_path.glob("baselines/*/*.json"))
    assert find_leaks(tmp_path, measure=printed) == []


def test_results_in_a_notebook_and_in_tables_hold_no_secret(tmp_path: Path) -> None:
    """The table of a cell, a frame and plain values show what the record holds."""
    secret = CANARIES["PATTERN"]

    def leaky(index: int) -> str:
        if index % 2:
            raise RuntimeError(f"broke {secret}")
        return f"said {secret}"

    contract = tw.Contract("c", leaky, [tw.Criterion("x", tw.equals("y"), at_least=0.5)])
    result = tw.run(
        contract,
        inputs=[f"ask {secret}"],
        trials=12,
        curtail=False,
        store=tmp_path,
        progress=False,
        redact=lambda text: text.replace(secret, "[redacted]"),
    )
    printed = {
        "cell": result._repr_html_(),
        "frame": result.to_frame().to_csv(),
        "dict": json.dumps(result.to_dict()),
        "text": result.transparent(),
        "record": write_record(result),
    }

    assert "[redacted]" in printed["frame"]
    assert find_leaks(tmp_path, **printed) == []


#: A quote, a line end, a backslash and another letter: JSON and `repr` write each otherwise.
QUOTED = 'zq1a"zq2b\nzq3c\\zq4d-ü-zq5e'


@pytest.mark.parametrize(
    "say",
    [
        str,
        repr,
        json.dumps,
        lambda text: json.dumps(text, ensure_ascii=False),
        lambda text: {"said": [text]},
        lambda text: {text: text, "pad": "." * 150 + text},
        lambda text: "." * 40 + text + "." * 40,
        lambda text: "." * 180 + text,
        lambda text: "\x1b" * 60 + text,
    ],
    ids=["text", "repr", "json", "utf-8", "value", "key", "short", "long", "escapes"],
)
def test_a_secret_is_recognised_however_it_is_written(say: Callable[[str], Any]) -> None:
    """In replies, evidence and errors, as text, JSON or `repr`."""

    def leaky(index: int) -> Any:
        if index % 2:
            raise RuntimeError(say(QUOTED))
        return say(QUOTED)

    checks = [tw.equals("y"), tw.contains("zzz"), tw.json_path("$.a"), tw.matches("^y")]
    criteria = [
        tw.Criterion(f"c{n}", check, at_least=0.5) for n, check in enumerate(checks, start=1)
    ]
    result = tw.run(
        tw.Contract("c", leaky, criteria),
        inputs=["a"],
        trials=12,
        curtail=False,
        store=None,
        progress=False,
        redact=Redaction((), {"KEY": QUOTED}),
    )
    left = write_record(result)

    assert "${KEY}" in left
    assert "zq" not in left


def test_a_pattern_of_redact_is_limited_in_time(tmp_path: Path) -> None:
    """A reply cannot hang a run by way of what takes secrets out of it: exit 4."""
    write(tmp_path, PYTHON, SUITE.replace("CANARY-[0-9a-f]+", "(a+)+x$"))
    (tmp_path / "agent.py").write_text(
        "def answer(q): return 'a' * 40\ndef good(reply): return True\n", encoding="utf-8"
    )
    code, printed = call(tmp_path, "run", "-q")

    assert code == 4, printed
    assert "redact '(a+)+x$'" in printed
    assert "Traceback" not in printed


def test_the_output_of_pytest_holds_no_secret(tmp_path: Path, echo: str) -> None:
    """A server repeats the key in its error page; terminal, JUnit file and store are without."""
    (tmp_path / "test_service.py").write_text(
        f"""
import trialwise as tw

def test_service(trialwise):
    service = tw.services.HttpService({echo!r}, headers={{"Authorization": "Bearer ${{API_KEY}}"}})
    criterion = tw.Criterion("c", tw.contains("x"), at_least=0.5)
    trialwise.verify(tw.Contract("s", service, [criterion]), inputs=["q"], trials=12)
""",
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-vv", "--junitxml=j.xml", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=os.environ | {"API_KEY": CANARIES["API_KEY"]},
        check=False,
        timeout=120,
    )

    assert done.returncode == 1, done.stdout
    assert "500" in done.stdout
    assert find_leaks(tmp_path, out=done.stdout, err=done.stderr) == []
