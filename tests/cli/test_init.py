"""`trialwise init`: from an empty folder to a verdict, for every kind of service, offline."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click import FileError
from click.testing import CliRunner, Result

from trialwise.cli import project_commands as init
from trialwise.errors import TrialwiseError

SAMPLES = {
    "python": "sample_agent.py",
    "pytest": "test_sample_agent.py",
    "command": "sample_agent.py",
    "http": "sample_server.py",
    "openai": "sample_model.py",
    "agent": "sample_model.py",
}
#: What a kind writes beside its sample.
MORE = {"agent": {"sample_tools.py"}}
#: The kinds that a suite describes.
SUITES = [kind for kind in SAMPLES if kind != "pytest"]
SCHEMA = ".trialwise/trialwise.schema.json"
#: The programs of this interpreter first, as in an active environment.
PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to be in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", PATH)
    return tmp_path


def do_init(*arguments: str) -> Result:
    return CliRunner().invoke(init.init_command, arguments, standalone_mode=False)


def trialwise(folder: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own: a sample is imported under one name by all of them."""
    return subprocess.run(
        [sys.executable, "-m", "trialwise.cli.main", *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONUTF8": "1", "COLUMNS": "80"} | env,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        timeout=120,
    )


@contextmanager
def server(folder: Path, script: str) -> Iterator[str]:
    """A sample server on a free port, by the address it prints."""
    process = subprocess.Popen(
        [sys.executable, script, "0"], cwd=folder, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().split()[-1]
    finally:
        process.terminate()
        process.wait(10)
        process.stdout.close()


def check_and_run(folder: Path, **env: str) -> dict[str, Any]:
    """The next two commands, as printed; the seed is fixed so that the verdict is."""
    checked = trialwise(folder, "check", **env)
    assert (checked.returncode, checked.stderr) == (0, "")
    ran = trialwise(folder, "run", "--seed", "1", "--json", **env)
    assert ran.returncode == 0, ran.stderr
    report: dict[str, Any] = json.loads(ran.stdout)
    return report


# --- What it writes ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SAMPLES)
def test_every_kind_writes_its_files_and_names_them(folder: Path, kind: str) -> None:
    """And the next two commands; nothing is asked."""
    done = do_init("--from", kind)

    assert done.return_value == 0
    written = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    suite = {"trialwise.yaml", SCHEMA} if kind in SUITES else set()
    assert suite | {SAMPLES[kind], ".gitignore"} | MORE.get(kind, set()) == written
    for name in written:
        assert f" {name} " in done.stdout
    lines = [line.split("#")[0].strip() for line in done.stdout.splitlines()]
    by_suite, by_pytest = (
        ["trialwise check", "trialwise run"],
        ["pytest --trialwise-plan", "pytest"],
    )
    assert (by_suite if kind in SUITES else by_pytest) == lines[-2:]


@pytest.mark.parametrize("kind", SAMPLES)
def test_no_placeholder_is_left_and_python_compiles(folder: Path, kind: str) -> None:
    """What is written is whole."""
    do_init("--from", kind)

    for path in (one for one in folder.iterdir() if one.is_file()):
        text = path.read_text(encoding="utf-8")
        assert "@PYTHON@" not in text
        if path.suffix == ".py":
            compile(text, path.name, "exec")


@pytest.mark.parametrize("kind", SUITES)
def test_editors_find_a_schema_that_accepts_the_suite(folder: Path, kind: str) -> None:
    """The first line names a file beside the suite, as the YAML language server reads it."""
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
    from ruamel.yaml import YAML

    do_init("--from", kind)
    suite = (folder / "trialwise.yaml").read_text(encoding="utf-8")
    first = suite.splitlines()[0]
    assert first.startswith("# yaml-language-server: $schema=")
    schema = json.loads((folder / first.partition("=")[2]).read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)

    assert [] == [*Draft202012Validator(schema).iter_errors(YAML(typ="safe").load(suite))]


def test_a_folder_is_made_and_the_way_into_it_is_told(folder: Path) -> None:
    """With quotes where a shell needs them."""
    done = do_init("my checks", "--from", "command")

    assert (folder / "my checks" / "trialwise.yaml").is_file()
    assert "  cd 'my checks'\n" in done.stdout


def test_a_server_is_started_before_the_two_commands() -> None:
    """In another terminal, since it does not end."""
    done = do_init("--from", "http")
    steps = done.stdout.partition("Next:\n")[2].splitlines()

    assert ["sample_server.py", "check", "run"] == [step.split()[1] for step in steps]
    assert "another terminal" in steps[0]


def test_a_missing_sdk_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the command that installs it."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    done = do_init("--from", "agent")

    assert done.return_value == 0
    assert "pip install 'trialwise[mcp]'" in done.stderr


def test_a_missing_pytest_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not by ten failed trials."""
    monkeypatch.setenv("PATH", "/nowhere")
    done = do_init("--from", "pytest")

    assert done.return_value == 0
    assert "no `pytest` on the path" in done.stderr


# --- What it leaves alone ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["trialwise.yaml", "sample_agent.py"])
def test_a_file_that_is_there_is_named_and_nothing_is_written(folder: Path, name: str) -> None:
    """Not even the files that are not there."""
    (folder / name).write_text("mine", encoding="utf-8")
    done = do_init()

    assert isinstance(done.exception, TrialwiseError)
    assert name in str(done.exception)
    assert "nothing was written" in str(done.exception)
    assert [name] == [path.name for path in folder.iterdir()]
    assert "mine" == (folder / name).read_text(encoding="utf-8")


def test_every_file_in_the_way_is_named_at_once() -> None:
    """So that one look suffices."""
    do_init()
    done = do_init()

    assert "trialwise.yaml, sample_agent.py are there already" in str(done.exception)


def test_force_overwrites_its_own_files_and_no_other(folder: Path) -> None:
    """A note beside them stays, and so does what .gitignore says."""
    do_init()
    for name in ("trialwise.yaml", "sample_agent.py", "notes.md"):
        (folder / name).write_text("mine", encoding="utf-8")
    ignored = (folder / ".gitignore").read_text(encoding="utf-8")
    done = do_init("--force")

    assert done.return_value == 0
    assert "mine" not in (folder / "trialwise.yaml").read_text(encoding="utf-8")
    assert "def answer" in (folder / "sample_agent.py").read_text(encoding="utf-8")
    assert "mine" == (folder / "notes.md").read_text(encoding="utf-8")
    assert ignored == (folder / ".gitignore").read_text(encoding="utf-8")
    assert ".gitignore" not in done.stdout


@pytest.mark.parametrize("arguments", [(), ("--force",)])
def test_a_suite_of_the_other_name_is_not_doubled(folder: Path, arguments: tuple[str, ...]) -> None:
    """A folder with trialwise.yml and trialwise.yaml would have no suite at all."""
    (folder / "trialwise.yml").write_text("service: {}", encoding="utf-8")
    done = do_init(*arguments)

    assert "trialwise.yml is a suite already" in str(done.exception)
    assert ["trialwise.yml"] == [path.name for path in folder.iterdir()]


@pytest.mark.parametrize("before", ["", "dist/\n", "dist/"])
def test_gitignore_is_added_to_once(folder: Path, before: str) -> None:
    """Whatever it said stays, also without a line end."""
    path = folder / ".gitignore"
    if before:
        path.write_text(before, encoding="utf-8")
    do_init()
    once = path.read_text(encoding="utf-8")
    do_init("--force")

    assert once.startswith(before)
    assert 1 == once.splitlines().count(".trialwise/*")
    assert once == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("entry", [".trialwise", "/.trialwise/", ".trialwise/*"])
def test_an_entry_of_ones_own_is_respected(folder: Path, entry: str) -> None:
    """However it is spelled."""
    (folder / ".gitignore").write_text(f"{entry}\n", encoding="utf-8")
    do_init()

    assert f"{entry}\n" == (folder / ".gitignore").read_text(encoding="utf-8")


def test_git_ignores_runs_and_keeps_the_schema(folder: Path) -> None:
    """A clone has the schema that its suite names, and nobody's runs."""
    do_init()
    run = folder / ".trialwise" / "runs" / "2026" / "record.json"
    run.parent.mkdir(parents=True)
    run.write_text("{}", encoding="utf-8")
    subprocess.run(["git", "init", "-q", "."], cwd=folder, check=True)
    listed = subprocess.run(
        ["git", "ls-files", "--others", "--exclude-standard"],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()

    assert {".gitignore", SCHEMA, "sample_agent.py", "trialwise.yaml"} == {*listed}


def test_a_place_that_cannot_be_written_to_is_named(folder: Path) -> None:
    """Without a traceback: a file stands where the folder should be."""
    (folder / ".trialwise").write_text("", encoding="utf-8")
    done = do_init()

    assert isinstance(done.exception, FileError)
    assert ".trialwise" in str(done.exception.filename)


# --- What comes of it -------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["python", "command"])
def test_the_sample_passes_offline(folder: Path, kind: str) -> None:
    """With the two commands that were printed."""
    do_init("--from", kind)
    report = check_and_run(folder)

    assert "PASS" == report["decision"]
    assert 0 < report["spending"]["trials"] < 100


@pytest.mark.slow
def test_the_sample_tests_pass_in_one_process_without_a_margin(folder: Path) -> None:
    """
    The two commands that were printed; no test takes long enough to start pytest once more.
    """
    do_init("--from", "pytest")
    text = (folder / "test_sample_agent.py").read_text(encoding="utf-8")
    assert "@pytest.mark.trials(at_least=" in text
    assert "margin" not in text

    for option in ("--trialwise-plan", "--trialwise-seed=1"):
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", option],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout
    assert "test_reply_has_an_intent" in done.stdout
    assert "≥ 90 %" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "variable"),
    [("http", "AGENT_URL"), ("openai", "OPENAI_BASE_URL"), ("agent", "OPENAI_BASE_URL")],
)
def test_the_sample_server_passes_offline(folder: Path, kind: str, variable: str) -> None:
    """Over a real connection."""
    if kind == "agent":
        pytest.importorskip("mcp")
    do_init("--from", kind)
    with server(folder, SAMPLES[kind]) as address:
        report = check_and_run(folder, **{variable: address.removesuffix("/ask")})

    assert "PASS" == report["decision"]
    assert (report["spending"]["usd"] is not None) is (kind != "http")


def test_the_sample_agent_is_as_stochastic_as_it_says(folder: Path) -> None:
    """Wrong now and then by its seed alone: 1 % lose the format, 1 % of the rest the intent."""
    do_init()
    scope: dict[str, Any] = {}
    exec((folder / "sample_agent.py").read_text(encoding="utf-8"), scope)
    answers = [scope["answer"]("Where is my parcel?", seed) for seed in range(4000)]
    intents = [json.loads(one)["intent"] for one in answers if one.startswith("{")]

    assert answers == [scope["answer"]("Where is my parcel?", seed) for seed in range(4000)]
    # Four standard errors of a rate of 1 % in 4000 trials are 0.63 points.
    assert abs(1 - len(intents) / 4000 - 0.01) < 0.0065
    assert abs(intents.count("other") / len(intents) - 0.01) < 0.0065


@pytest.mark.slow
def test_a_run_without_its_server_says_so(folder: Path) -> None:
    """A run gives up after a few trials, and never passes."""
    do_init("--from", "http")
    with server(folder, "sample_server.py") as address:
        pass  # its port is free again
    ran = trialwise(folder, "run", "--quiet", AGENT_URL=address.removesuffix("/ask"))

    assert ran.returncode not in (0, 2)
    assert ran.stdout.startswith("Nothing answers at ")
    assert "Is it running" in ran.stdout
    assert "INCONCLUSIVE" in ran.stdout


def test_the_sample_model_speaks_the_protocol(folder: Path) -> None:
    """A completion has every field that clients read, and an error is one of the protocol's."""
    do_init("--from", "openai")
    asked = {"model": "m", "messages": [{"role": "user", "content": "Where is my parcel?"}]}
    with server(folder, "sample_model.py") as address:
        whole = post(f"{address}/chat/completions", asked | {"seed": 3})
        again = post(f"{address}/chat/completions", asked | {"seed": 3})
        broken = post(f"{address}/chat/completions", {"model": "m"})
        elsewhere = post(f"{address}/embeddings", asked)

    assert {"id", "object", "created", "model", "choices", "usage"} == {*whole}
    assert ("chat.completion", "m") == (whole["object"], whole["model"])
    assert "assistant" == whole["choices"][0]["message"]["role"]
    assert whole["choices"] == again["choices"]
    usage = whole["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    for failed in (broken, elsewhere):
        assert {"message", "type", "param", "code"} == {*failed["error"]}


def post(url: str, document: dict[str, Any]) -> dict[str, Any]:
    """The answer, whatever its status."""
    request = urllib.request.Request(url, json.dumps(document).encode(), method="POST")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=10) as response:
            answer: dict[str, Any] = json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            answer = json.load(error)
    return answer
