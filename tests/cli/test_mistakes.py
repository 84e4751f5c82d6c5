"""What a user reads after a mistake: each message names the place and what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from trialwise.cli.main import _run

SUITE = """
name: x
service: {python: "svc_of_mistakes:ask"}
inputs: [a, b]
criteria: [{name: ok, equals: ok, at_least: 90%}]
"""
SERVICE = """
def ask(input):
    return "ok"

def deaf():
    return "ok"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    import sys

    (tmp_path / "svc_of_mistakes.py").write_text(SERVICE)
    (tmp_path / "questions.csv").write_text("question,level\nwhy,1\nhow,2\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "svc_of_mistakes", raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


def trialwise(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """The exit code, and everything that was printed."""
    code = _run(list(arguments))
    done = capsys.readouterr()
    return code, " ".join((done.out + done.err).split())


def run(capsys: pytest.CaptureFixture[str], old: str = "", new: str = "") -> tuple[int, str]:
    assert old in SUITE
    Path("trialwise.yaml").write_text(SUITE.replace(old, new) if old else SUITE + new)
    return trialwise(capsys, "run", "-q")


@pytest.mark.usefixtures("folder")
class TestSuites:
    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            (
                "svc_of_mistakes:ask",
                "svc_of_mistakes:deaf",
                "`svc_of_mistakes:deaf` takes no input: give the function a parameter",
            ),
            ("inputs: [a, b]", "inputs: questions.txt", "a file that ends with .csv or .jsonl"),
            ("at_least: 90%", "at_least: 90%, margin: 0.01%", "margin must be wider"),
            (
                "at_least: 90%",
                "at_least: 99%, trials: 5",
                "trialwise.yaml:5: ok: 5 trials cannot show a rate above 0.99",
            ),
            ("at_least: 90%", "at_least: 99%, trials: 5", "for a quick check add `intent: smoke`"),
            (
                "",
                "claim: {population: superpopulation, representativeness: random draw}",
                "`name` must name the population",
            ),
            ("", "agents: {}", "unknown key `agents`: an agent is a service"),
            ("", "validity: {}", "`validity` lacks `days`"),
            ("", "pairwise: {}", "unknown key `pairwise`: variants are named under `arms`"),
        ],
    )
    def test_a_mistake_is_named_with_what_to_write(
        self, capsys: pytest.CaptureFixture[str], old: str, new: str, message: str
    ) -> None:
        code, text = run(capsys, old, new)

        assert code == 2
        assert message in text
        assert "did you mean" not in text

    def test_inputs_that_are_listed_twice_are_noted(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        code, text = run(capsys, "[a, b]", "[x, x]")

        assert code == 0
        assert "The 2 inputs hold 1 distinct value;" in text

    def test_a_table_without_the_column_is_one_problem_of_the_suite(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        code, text = run(capsys, "[a, b]", "{csv: questions.csv}")

        assert code == 2
        assert "trialwise.yaml:4:15: questions.csv has no column `value`" in text
        assert "its columns are `question`, `level`: say `value: question`" in text
        assert text.count("has no column") == 1
        assert run(capsys, "[a, b]", "{csv: questions.csv, value: question}")[0] == 0

    def test_a_file_of_inputs_is_named_by_its_path_alone(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        code, text = run(capsys, "[a, b]", "questions.csv")
        assert "say `inputs: {csv: questions.csv, value: question}`" in text
        assert code == 2

        Path("questions.csv").write_text("value,expected\nwhy,ok\nhow,ok\n")
        assert run(capsys, "[a, b]", "questions.csv")[0] == 0
        Path("questions.csv").write_text("question\nwhy\nhow\n")
        assert run(capsys, "[a, b]", "questions.csv")[0] == 0
        Path("questions.jsonl").write_text('"why"\n"how"\n')
        assert run(capsys, "[a, b]", "questions.jsonl")[0] == 0

    def test_a_suite_that_is_not_there(self, capsys: pytest.CaptureFixture[str]) -> None:
        code, text = trialwise(capsys, "run", "-s", "nope.yaml")

        assert (code, text) == (2, "trialwise: nope.yaml: no such file")

    def test_a_low_rate_can_be_required(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(capsys, "at_least: 90%", "at_least: 10%")[0] == 0


@pytest.mark.usefixtures("folder")
def test_a_score_that_is_neither_0_nor_1_is_one_problem(capsys: pytest.CaptureFixture[str]) -> None:
    Path("scores.csv").write_text("id,score\na,0.7\nb,0.2\nc,1\n")

    code, text = trialwise(capsys, "score", "scores.csv")

    assert code == 2
    assert "1 problem" in text
    assert "line 2: `score`: a score of 0.7 is neither 0 nor 1" in text
    assert "`--pass-at 0.7`" in text
    assert trialwise(capsys, "score", "scores.csv", "--pass-at", "0.7")[0] == 0


@pytest.mark.usefixtures("folder")
def test_a_promptfoo_suite_without_tests_is_pointed_to_score(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("promptfooconfig.yaml").write_text("prompts: [a]\nproviders: [b]\ntests: []\n")

    code, text = trialwise(capsys, "import", "promptfooconfig.yaml")

    assert code == 2
    assert "no test with an assertion can be carried over" in text
    assert "`trialwise score results.json`" in text


@pytest.mark.usefixtures("folder")
def test_variables_come_from_a_file_unless_they_are_set(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("svc_of_mistakes.py").write_text(
        "import os\ndef ask(input): return os.environ['TW_REPLY'] + os.environ['TW_SET']\n"
    )
    Path(".env").write_text("# replies\nexport TW_REPLY='o'  # half\nTW_SET=x\nTW_NAME=k\n")
    monkeypatch.setenv("TW_SET", "k")
    for name in ("TW_REPLY", "TW_NAME"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)

    named = 'store: {runs: "${TW_NAME}"}\n'
    code, text = run(capsys, "", named)
    assert (code, "TW_NAME is not set" in text) == (2, True)
    assert run(capsys, "", f"{named}env_file: .env\n")[0] == 0
    assert Path("k", "runs").is_dir()

    Path(".env").write_text("no variable\n")
    code, text = trialwise(capsys, "run", "-q")
    assert code == 2
    assert "the file has a line 1 that is not NAME=value" in text
