"""Judges in suite files and on the command line, over the wire."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from click import ClickException
from click.testing import CliRunner, Result
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from scipy.stats import beta

from trialwise.cli import judge_command as cli
from trialwise.cli.main import main
from trialwise.judges import Judge, read_calibration
from trialwise.judges.similarity import Similar
from trialwise.suite import SuiteError, load_suite, suite_schema

Start = Callable[[Callable[[Any], Any]], Any]
Says = Callable[..., str]

REST = """
service: {command: [echo, "{input}"]}
inputs: [good, bad]
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JUDGE_KEY", "sk-judge")
    return tmp_path


def suite(judge: str, **environment: str) -> Any:
    """The one postcondition of a suite with a judge."""
    Path("trialwise.yaml").write_text(
        f"{REST}criteria:\n  - {{name: polite, at_least: 80%, {judge}}}\n"
    )
    loaded = load_suite(Path("trialwise.yaml"), environment={"JUDGE_KEY": "k"} | environment)
    (check,) = loaded.contracts[0].contract.criteria[0].checks
    return check


JUROR = "{chat: {model: m, base_url: 'http://127.0.0.1:9/v1', api_key_env: JUDGE_KEY}}"
OTHER = "{chat: {model: m, base_url: 'http://127.0.0.1:9/v1', api_key_env: null, temperature: 0}}"


def test_the_shortest_judge_is_a_rubric_and_a_juror() -> None:
    """Everything else has its usual value, and it only advises."""
    found = suite(f"judge: {{rubric: Be kind., jurors: {JUROR}}}")

    assert isinstance(found, Judge)
    assert ("Be kind.", 1, None, True) == (
        found.rubric,
        found.votes,
        found.quorum,
        found.shows_input,
    )
    assert "no gold set" in found.advisory[0]


def test_every_key_arrives(folder: Path) -> None:
    """With the paths from the suite's folder."""
    (folder / "gold.yaml").write_text("provenance: by hand\nentries: [{output: x, label: pass}]\n")
    found = suite(
        f"judge: {{rubric: r, jurors: [{JUROR}, {OTHER}], votes: 3, quorum: 2/3, gold: gold.yaml, "
        "cache: votes, shows_input: false, output_limit: 50, timeout: 5s, retries: 0, name: kind}"
    )

    assert (3, Fraction(2, 3), False, 50, "kind") == (
        found.votes,
        found.quorum,
        found.shows_input,
        found.output_limit,
        found.name,
    )
    assert (5.0, 0) == (found.asking.timeout_s, found.asking.retries)
    assert "VoteCache('votes')" == repr(found.asking.cache)
    assert Path("gold.calibration.json") == found.files.calibration
    assert ("the judge was not calibrated yet: run `trialwise judge calibrate`",) == found.advisory


def test_another_temperature_is_another_juror() -> None:
    """What is written of a service is part of its name, so that a calibration cannot outlive it."""
    one, other = (suite(f"judge: {{rubric: r, jurors: {juror}}}") for juror in (JUROR, OTHER))

    assert one.identity != other.identity
    assert one.identity == suite(f"judge: {{rubric: r, jurors: {JUROR}}}").identity
    assert one.jurors[0].name.startswith("m#")


@pytest.mark.parametrize(
    ("written", "quorum"),
    [
        ("majority", None),
        ("2/3", Fraction(2, 3)),
        ("2 / 3", Fraction(2, 3)),
        ("75%", Fraction(3, 4)),
        ("0.67", Fraction(67, 100)),
        ("1", Fraction(1)),
    ],
)
def test_a_quorum_is_written_as_a_fraction(written: str, quorum: Fraction | None) -> None:
    """Exactly as it stands."""
    assert quorum == suite(f"judge: {{rubric: r, jurors: {JUROR}, quorum: {written}}}").quorum


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        ("judge: Be kind.", "must be a mapping (judge)"),
        (f"judge: {{jurors: {JUROR}}}", "lacks `rubric`"),
        ("judge: {rubric: r}", "lacks `jurors`"),
        (f"judge: {{rubric: r, jurors: {JUROR}, quorum: half}}", "`majority`, or a share"),
        (f"judge: {{rubric: r, jurors: {JUROR}, quorum: 3/2}}", "`majority`, or a share"),
        (f"judge: {{rubric: r, jurors: {JUROR}, quorum: 0}}", "`majority`, or a share"),
        (f"judge: {{rubric: r, jurors: {JUROR}, juror: x}}", "did you mean `jurors`?"),
        (
            f"judge: {{rubric: r, jurors: [{JUROR}, {JUROR}]}}",
            "`jurors` must have different names; `votes`",
        ),
        ("judge: {rubric: r, jurors: []}", "must be a list of services"),
        ("judge: {rubric: r, jurors: {chat: {model: m}}}", "a variable that is set"),
        (f"judge: {{rubric: r, jurors: {JUROR}, gold: none.yaml}}", "cannot be read"),
        (f"judge: {{rubric: r, jurors: {JUROR}, calibration: c.json}}", "goes with `gold`"),
        (f"not: {{judge: {{rubric: r, jurors: {JUROR}}}}}", "a judge cannot stand in `not`"),
        (f"all_of: [{{judge: {{rubric: r, jurors: {JUROR}}}}}]", "cannot stand in `all_of`"),
        (
            f"any_of: [{{named: {{name: n, check: {{judge: {{rubric: r, jurors: {JUROR}}}}}}}}}]",
            "cannot stand in `any_of`",
        ),
        ("similar: {text: x, minimum: 2}", "`minimum` must lie strictly between 0 and 1"),
    ],
)
def test_what_is_wrong_with_a_judge_is_said_where_it_stands(judge: str, said: str) -> None:
    """Before anything runs."""
    with pytest.raises(SuiteError) as caught:
        suite(judge)

    assert said in str(caught.value).replace("\n", " ")


def test_a_judge_may_have_a_name_of_ones_own() -> None:
    """Which is not a mixture."""
    judge = f"{{judge: {{rubric: r, jurors: {JUROR}}}}}"
    found = suite(f"postconditions: [{{named: {{name: kind, check: {judge}}}}}]")

    assert "kind" == found.name


def test_a_damaged_calibration_is_said_where_it_stands(folder: Path) -> None:
    """And a gold set that is none."""
    (folder / "gold.yaml").write_text("entries: [{output: x, label: pass}]")
    (folder / "gold.calibration.json").write_text("{}")
    with pytest.raises(SuiteError, match="not a calibration of a judge"):
        suite(f"judge: {{rubric: r, jurors: {JUROR}, gold: gold.yaml}}")
    (folder / "gold.yaml").write_text("entries: [{output: x, label: maybe}]")
    with pytest.raises(SuiteError, match="must be pass or fail"):
        suite(f"judge: {{rubric: r, jurors: {JUROR}, gold: gold.yaml}}")


def test_similarity_is_spelled_short_and_long() -> None:
    """One text, several, and the minimum."""
    pytest.importorskip("wordllama")

    assert Similar(("x",)) == suite("similar: x")
    assert Similar(("x", "y"), minimum=0.5) == suite("similar: {text: [x, y], minimum: 0.5}")


@pytest.mark.parametrize(
    ("judge", "is_valid"),
    [
        ({"rubric": "r", "jurors": {"chat": {"model": "m"}}, "quorum": "2/3"}, True),
        ({"rubric": "r", "jurors": [{"chat": {"model": "m"}}], "quorum": 0.5}, True),
        ({"rubric": "r"}, False),
        ({"rubric": "r", "jurors": {"chat": {"model": "m"}}, "quorum": "half"}, False),
        ({"rubric": "r", "jurors": {"chat": {"model": "m"}}, "jury": 1}, False),
    ],
)
def test_an_editor_knows_a_judge(judge: dict[str, Any], is_valid: bool) -> None:
    """By the schema alone."""
    document = {
        "service": {"python": "m:f"},
        "inputs": ["a"],
        "criteria": [{"name": "c", "at_least": 0.9, "judge": judge}],
    }

    assert is_valid == Draft202012Validator(suite_schema()).is_valid(document)


# --- The command line -------------------------------------------------------------------


def do(*arguments: str) -> Result:
    return CliRunner().invoke(cli.command, [*arguments], standalone_mode=False)


def write_suite(folder: Path, url: str, gold: str = ", gold: gold.jsonl") -> None:
    """A suite whose judge has a gold set of 30 good and 20 bad outputs."""
    (folder / "trialwise.yaml").write_text(
        f"{REST}criteria:\n  - name: polite\n    at_least: 50%\n    trials: 20\n"
        f"    judge: {{rubric: It is good., retries: 0, cache: votes, jurors: {{chat: {{model: m, "
        f"base_url: '{url}/v1', api_key_env: null, prices: {{input: $1, output: $2}}}}}}{gold}}}\n"
    )
    lines = [{"provenance": "two people, May"}] + [
        {"id": f"{kind}-{place}", "input": "?", "output": f"{kind} {place}", "label": label}
        for kind, label, count in (("good", "pass", 30), ("bad", "fail", 20))
        for place in range(count)
    ]
    (folder / "gold.jsonl").write_text("\n".join(map(json.dumps, lines)))


def good(says: Says, *wrong: str) -> Callable[[Any], str]:
    def script(asked: Any) -> str:
        output = asked.sections["OUTPUT"]
        return says(output.startswith("good") != (output in wrong))

    return script


def test_calibrating_makes_a_judge_one_that_decides(folder: Path, juror: Start, says: Says) -> None:
    """Asked once, written beside the gold set, found by the next run."""
    one = juror(good(says, "bad 3"))
    write_suite(folder, one.url)

    result = do("calibrate")

    assert 0 == result.return_value
    for part in (
        "polite: 49 of 50 labels agree",
        "Krippendorff's alpha  0.958",
        "sensitivity           1.000",
        "specificity           0.950",
        "to add to its rates   -0.020",
        "it differs on         bad-3",
        "50 questions, 55,000 tokens, $0.0600",
        "its verdict           may decide",
        "written to            gold.calibration.json",
    ):
        assert part in result.output, result.output
    found = read_calibration(folder / "gold.calibration.json")
    assert (30, 1, 19, 0) == (
        found.confusion.true_pass,
        found.confusion.false_pass,
        found.confusion.true_fail,
        found.confusion.false_fail,
    )
    (check,) = (
        load_suite(folder / "trialwise.yaml", environment={})
        .contracts[0]
        .contract.criteria[0]
        .checks
    )
    assert isinstance(check, Judge)
    assert () == check.advisory
    again = json.loads(do("calibrate", "--json").stdout)["calibrations"][0]
    assert (0, 50, []) == (again["asked"], again["cached"], again["advisory"])
    assert 50 == len(one.asked)


def test_fifty_labels_of_which_two_differ_do_not_certify_a_judge(
    folder: Path, juror: Start, says: Says
) -> None:
    """Alpha is estimated as 0.917; the labels show less than 0.800, and the result says so."""
    write_suite(folder, juror(good(says, "bad 3", "good 7")).url)

    result = do("calibrate")

    differing = float(beta.ppf(0.95, 3, 48))
    shown = 1 - differing / (2 * 60 * 40 / (100 * 99))
    assert 3 == result.return_value
    assert shown < 0.8
    assert f"; the labels show at least {shown:.3f}\n" in (result.output)
    said = " ".join(result.output.split())
    assert f"at least {shown:.3f} is shown, 0.800 is needed; about 9" in said


def test_a_judge_that_disagrees_with_people_fails(folder: Path, juror: Start, says: Says) -> None:
    """Exit code 1, and the calibration is written all the same."""
    one = juror(lambda _: says(True))
    write_suite(folder, one.url)

    result = do("calibrate")

    assert 1 == result.return_value
    assert "it agrees with people too little" in result.output
    assert (folder / "gold.calibration.json").exists()


def test_few_labels_leave_it_open(folder: Path, juror: Start, says: Says) -> None:
    """Exit code 3."""
    one = juror(good(says))
    write_suite(folder, one.url)
    lines = (folder / "gold.jsonl").read_text().split("\n")
    (folder / "gold.jsonl").write_text("\n".join(lines[:10] + lines[-5:]))

    result = do("calibrate")

    assert 3 == result.return_value
    assert "14 labels, 20 are needed" in result.output


def test_a_changed_gold_set_or_rubric_makes_it_advise_again(
    folder: Path, juror: Start, says: Says
) -> None:
    """A calibration belongs to one judge and to one set of labels."""
    one = juror(good(says))
    write_suite(folder, one.url)
    do("calibrate")

    def reasons() -> tuple[str, ...]:
        suite = load_suite(folder / "trialwise.yaml", environment={})
        (check,) = suite.contracts[0].contract.criteria[0].checks
        assert isinstance(check, Judge)
        return check.advisory

    assert () == reasons()
    text = (folder / "gold.jsonl").read_text()
    (folder / "gold.jsonl").write_text(text.replace("good 1", "good one"))
    assert "gold set changed" in reasons()[0]
    (folder / "gold.jsonl").write_text(text)
    file = folder / "trialwise.yaml"
    file.write_text(file.read_text().replace("It is good.", "It is very good."))
    assert "another one" in reasons()[0]


@pytest.mark.parametrize(("trouble", "code"), [(401, 4), (500, 4)])
def test_a_juror_that_is_down_is_no_verdict(
    folder: Path, juror: Start, trouble: int, code: int
) -> None:
    """A runtime error, not a FAIL; nothing is written."""
    write_suite(folder, juror(lambda _: trouble).url)

    result = do("calibrate")

    assert code == result.return_value
    assert f"answered {trouble}" in result.output
    assert not (folder / "gold.calibration.json").exists()


def test_without_a_gold_set_there_is_nothing_to_calibrate(
    folder: Path, juror: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    """A usage error that says so; and so is a suite without a judge."""
    write_suite(folder, juror(lambda _: 500).url, gold="")
    for arguments, said in (
        (["judge", "calibrate"], "has a `gold` set"),
        (["judge", "calibrate", "--criterion", "other"], "has a judge"),
    ):
        with pytest.raises(SystemExit) as left:
            main(arguments)
        assert 2 == left.value.code
        assert said in capsys.readouterr().err


@pytest.mark.slow
def test_a_judged_rate_is_corrected(folder: Path, juror: Start, says: Says) -> None:
    """Both ways, with what a decision still needs."""
    write_suite(folder, juror(good(says, "bad 3", "good 7")).url)
    do("calibrate")

    plain = do("correct", "gold.calibration.json", "--judged", "87/100")
    asked = do("correct", "gold.calibration.json", "--judged", "87/100", "--at-least", "82%")
    found = json.loads(
        do(
            "correct",
            "gold.calibration.json",
            "--judged=870/1000",
            "--at-least=0.5",
            "--method=score",
            "--json",
        ).output
    )

    assert (0, 3) == (plain.return_value, asked.return_value)
    assert "judged        0.870 of 100 trials" in plain.output
    assert "rectified     0.870 [" in plain.output
    assert "Rogan–Gladen  0.895 [" in plain.output  # (0.87 − 0.05)/(29/30 + 19/20 − 1)
    assert "labels in all would, trials would not" in asked.output
    assert ("PASS", "nothing") == (found["decision"], found["open_because"])
    assert found["rectified"]["low"] < 0.87 < found["rectified"]["high"]


@pytest.mark.slow
def test_labels_of_another_mix_are_noticed(folder: Path, juror: Start, says: Says) -> None:
    """60 % of the labels pass and 95 % of the trials: the rectifier does not hold, the other does.

    By hand: Rogan and Gladen give (0.95 − 0.05)/(29/30 + 19/20 − 1) = 0.982.
    """
    write_suite(folder, juror(good(says, "bad 3", "good 7")).url)
    do("calibrate")
    arguments = ("correct", "gold.calibration.json", "--judged", "950/1000", "--at-least", "60%")

    usual = do(*arguments)
    other = json.loads(do(*arguments, "--correction", "rogan-gladen", "--json").stdout)

    assert "The judge passes 60.0 % of the labelled outputs and 95.0 % of these" in usual.output
    assert "--correction rogan-gladen" in usual.output
    assert ("rogan-gladen", "PASS") == (other["correction"], other["decision"])
    assert 0.982 == round(other["rogan_gladen"]["value"], 3)
    assert "--correction" not in other["notes"][0]
    assert [] == json.loads(do(*arguments[:3], "30/50", "--json").stdout)["notes"]


@pytest.mark.slow
def test_a_calibration_that_only_advises_says_so_in_a_correction(
    folder: Path, juror: Start, says: Says
) -> None:
    """Whatever the numbers are."""
    write_suite(folder, juror(lambda _: says(True)).url)
    do("calibrate")

    found = do("correct", "gold.calibration.json", "--judged", "87/100")

    assert "it only advises: it agrees with people too little" in found.output


def test_two_judges_do_not_share_a_calibration(folder: Path, juror: Start, says: Says) -> None:
    """The second would undo the first; the same judge twice is one."""
    one = juror(good(says))
    write_suite(folder, one.url)
    file = folder / "trialwise.yaml"
    text = file.read_text()
    criterion = text[text.index("  - name: polite") :]
    file.write_text(
        text + criterion.replace("polite", "kind").replace("It is good.", "It is kind.")
    )

    assert "give one of them a `calibration` of its own" in str(do("calibrate").exception)
    assert [] == one.asked
    file.write_text(text + criterion.replace("polite", "kind"))
    assert 0 == do("calibrate").return_value


def test_one_judge_that_is_down_does_not_lose_another(
    folder: Path, juror: Start, says: Says
) -> None:
    """What was paid for is written and shown; the exit code says that something went wrong."""
    write_suite(folder, juror(good(says)).url)
    file = folder / "trialwise.yaml"
    text = file.read_text()
    criterion = text[text.index("  - name: polite") :].replace("polite", "kind")
    criterion = criterion.replace("gold: gold.jsonl", "gold: gold.jsonl, calibration: kind.json")
    broken = re.sub(r"http://127\.0\.0\.1:\d+", "http://127.0.0.1:9", criterion)
    file.write_text(text.replace("criteria:\n", f"criteria:\n{broken}"))

    result = do("calibrate")

    assert 4 == result.return_value
    assert "kind: the judge gave no verdict on any unit" in result.stderr
    assert "polite: 50 of 50 labels agree" in result.stdout
    assert (folder / "gold.calibration.json").exists()
    assert not (folder / "kind.json").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--judged", "87"],
        ["--judged", "x/100"],
        ["--judged", "101/100"],
        ["--judged", "0/0"],
        ["--judged", "5/10", "--at-least", "much"],
        ["--judged", "5/10", "--at-least", "100%"],
        ["--judged", "5/10", "--confidence", "2"],
    ],
)
def test_what_is_no_count_or_rate_is_refused(
    folder: Path, juror: Start, says: Says, arguments: list[str]
) -> None:
    """With exit code 2 and a message that names the option."""
    write_suite(folder, juror(good(says)).url)
    do("calibrate")

    result = do("correct", "gold.calibration.json", *arguments)

    assert isinstance(result.exception, ClickException)
    assert arguments[-2] in result.exception.format_message()


def test_a_suite_with_a_judge_runs(folder: Path, juror: Start, says: Says) -> None:
    """`trialwise run` with one: twenty trials of two outputs are two questions, from the cache."""
    one = juror(good(says))
    write_suite(folder, one.url)

    with pytest.raises(SystemExit) as left:
        main(["run", "--seed", "1", "--quiet"])

    assert left.value.code in (0, 1, 3)
    assert {"good", "bad"} == {asked.sections["OUTPUT"] for asked in one.asked}
    assert 2 == len(one.asked)
