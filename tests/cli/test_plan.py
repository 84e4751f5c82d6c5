"""`trialwise plan`: what it prints and writes, and how it refuses."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from trialwise.cli.main import main
from trialwise.cli.process import ExitCode

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "plan.md"
#: The same commands with all that they print.
OUTPUTS = ROOT / "tests" / "cli" / "plan_outputs.md"

#: One plan a form; the first is the bare rate.
FORMS = {
    "rate": "90% --max-trials 50",
    "compliance": "95% --fixed --expect 97%",
    "regression": "regression --baseline 951/1000 --drop 3%",
    "latency": "latency --percentile 95 --baseline 935 --trials 192",
    "precision": "95% --estimate --margin 2%",
    "pairs": "compare --rate 90% --drop 5% --pairs 200",
}
#: A plan that takes little time.
QUICK = "80% --alternative 50% --max-trials 12"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIALWISE_CACHE", str(tmp_path / "cache"))


def code_of(arguments: str) -> int:
    """The exit code of `trialwise plan` with some arguments, in this process."""
    with pytest.raises(SystemExit) as left:
        main(["plan", *shlex.split(arguments)])
    assert isinstance(left.value.code, int)
    return int(left.value.code)


def planned(capsys: pytest.CaptureFixture[str], arguments: str) -> str:
    assert code_of(arguments) == ExitCode.PASS
    return capsys.readouterr().out


# --- What is printed --------------------------------------------------------------------------


def examples(page: Path) -> list[tuple[str, str]]:
    """Every command of a page with the output that stands below it."""
    blocks = re.findall(r"```console\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.S)
    pattern = r"\$ trialwise plan ([^\n]*)\n(.*?)(?=\n\$ |\Z)"
    return [found for block in blocks for found in re.findall(pattern, block, flags=re.S)]


@pytest.mark.slow(
    "90%",
    "90% -v --max-trials 50 --price 0.02 --seconds 3s",
    "page: 90%",
    "page: 90% -v --max-trials 50 --price 0.02 --seconds 3s",
)
@pytest.mark.parametrize(
    ("arguments", "output"),
    [*examples(OUTPUTS), *examples(PAGE)],
    ids=[*(a for a, _ in examples(OUTPUTS)), *(f"page: {a}" for a, _ in examples(PAGE))],
)
def test_the_page_shows_what_the_command_prints(
    arguments: str, output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Line by line, where "..." stands for lines that are left out."""
    lines = (
        r"(?:.*\n)*?" if one == "..." else re.escape(f"{one}\n") for one in output.splitlines()
    )
    printed = planned(capsys, arguments)
    if "\n...\n" not in f"\n{output}\n":
        assert printed.splitlines() == output.splitlines()
    assert re.fullmatch("".join(lines), printed)


def test_the_page_shows_every_form() -> None:
    """A bare rate, with a fixed number of trials and estimated, and the others by their names."""
    shown = [arguments for arguments, _ in examples(PAGE)]
    first = {arguments.split()[0] for arguments in shown}

    assert {"regression", "latency", "compare"} <= first
    assert any(word.endswith("%") for word in first)
    assert all(any(option in one for one in shown) for option in ("--fixed", "--estimate"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("compliance 95% --better 97%", "95% --fixed --expect 97%"),
        ("precision --trials 100", "--estimate --trials 100"),
        ("choose --arms 2 --max-trials 40", "compare --question best --arms 2 --max-trials 40"),
    ],
)
def test_a_form_of_earlier_versions_says_what_replaced_it(
    old: str, new: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one line on standard error; the answer is the same."""
    assert code_of(old) == ExitCode.PASS
    out, err = capsys.readouterr()

    assert planned(capsys, new) == out
    assert len(err.splitlines()) == 1
    assert f"trialwise: `plan {old.split(maxsplit=1)[0]}` is now `plan " in err


@pytest.mark.slow("rate")
@pytest.mark.parametrize("form", FORMS)
def test_every_form_prints_json(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Versioned, named by its form, and nothing else on standard output."""
    data = json.loads(planned(capsys, f"{FORMS[form]} --json"))

    assert ("trialwise.plan/1", form) == (data["schema"], data["form"])


@pytest.mark.slow
def test_json_carries_the_numbers_that_text_rounds(capsys: pytest.CaptureFixture[str]) -> None:
    """The recommended design comes back as a design with its boundaries."""
    from trialwise.stats.sequential import SequentialDesign

    data = json.loads(planned(capsys, "90% --max-trials 50 --json"))

    best = next(entry for entry in data["methods"] if entry["method"] == data["recommended"])
    design = SequentialDesign.from_dict(best["design"])
    curve = design.operating_characteristic(0.9)
    assert best["false_fail"] == curve.fails
    assert best["inconclusive_required"] == curve.inconclusive
    assert data["shortfall"]["smallest_cap"] == 78


@pytest.mark.slow(
    "rate 80% --alternative 50% --max-trials 12", "'80 %' --max-trials 12 --alternative 5e-1"
)
@pytest.mark.parametrize(
    "same",
    [
        "rate 80% --alternative 50% --max-trials 12",
        *(
            pytest.param(one, marks=pytest.mark.slow)
            for one in (
                "0.8 --alternative 0.5 --max-trials 12",
                "--alternative 50% --max-trials 12 80%",
                ".8 --alternative=.5 --max-trials=12",
            )
        ),
        "'80 %' --max-trials 12 --alternative 5e-1",
    ],
)
def test_a_rate_is_written_as_one_likes(same: str, capsys: pytest.CaptureFixture[str]) -> None:
    """80% is 0.8, its form need not be named, and options may come first."""
    assert planned(capsys, same) == planned(capsys, QUICK)


@pytest.mark.slow(
    "--price 0.02 --seconds 3---price '$0.02' --seconds 3s",
    "--seconds 7200---seconds '2 h'",
    "--confidence 0.95 --power .8---confidence 95% --power '80 %'",
    "--batch 1 --criteria 1---correction none",
)
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("--price 0.02 --seconds 3", "--price '$0.02' --seconds 3s"),
        pytest.param("--seconds 0.5", "--seconds 500ms", marks=pytest.mark.slow),
        pytest.param("--seconds 120", "--seconds 2m", marks=pytest.mark.slow),
        ("--seconds 7200", "--seconds '2 h'"),
        ("--confidence 0.95 --power .8", "--confidence 95% --power '80 %'"),
        ("--batch 1 --criteria 1", "--correction none"),
    ],
)
def test_values_are_written_as_one_likes(
    one: str, other: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Dollars with their sign, times with their unit, rates in hundredths or of 1."""
    assert planned(capsys, f"{QUICK} {one}") == planned(capsys, f"{QUICK} {other}")


@pytest.mark.parametrize("percentile", ["95", "p95", "95%", "0.95"])
def test_a_percentile_is_written_as_one_likes(
    percentile: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """95 is p95 is 0.95."""
    assert "p95" in planned(capsys, f"latency --percentile {percentile}").splitlines()[0]


def test_a_limit_may_be_asked_for_without_naming_it(capsys: pytest.CaptureFixture[str]) -> None:
    """`--limit` alone plans a limit of whatever size."""
    named = planned(capsys, "latency --trials 100 --baseline 500 --limit 500ms")
    unnamed = planned(capsys, "latency --trials 100 --baseline 500 --limit")

    assert "99 of 100 latencies within 500 ms" in " ".join(named.split())
    assert "99 of 100 latencies within the limit" in " ".join(unnamed.split())


def test_percentiles_may_be_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    """One row each."""
    text = planned(capsys, "latency --percentile 50 --percentile 99")

    assert "latency at p50, p99" in text


# --- What is written --------------------------------------------------------------------------


@pytest.mark.slow("rate")
@pytest.mark.parametrize("form", FORMS)
def test_every_form_writes_a_page_and_its_charts(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beside the text on standard output; the files are well-formed."""
    page, charts = tmp_path / "plan.html", tmp_path / "plan.svg"

    code = code_of(f"{FORMS[form]} --html {page} --svg {charts}")
    out, err = capsys.readouterr()
    assert code == ExitCode.PASS
    assert out.startswith("Plan: ")
    assert f"wrote {page}" in err
    text = page.read_text(encoding="utf-8")
    ET.fromstring(re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL))
    assert ET.fromstring(charts.read_text(encoding="utf-8")).tag.endswith("svg")


@pytest.mark.parametrize(
    ("name", "start"),
    [("p.json", "{"), ("p.html", "<!DOCTYPE html>"), ("p.svg", "<svg"), ("p.txt", "Plan: ")],
)
def test_output_goes_by_the_ending(
    name: str, start: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file instead of standard output."""
    file = tmp_path / name

    assert planned(capsys, f"latency -o {file}") == ""
    assert file.read_text(encoding="utf-8").startswith(start)


@pytest.mark.slow
def test_a_design_is_kept_between_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A search is done once: the second run finds the design on disk."""
    first = planned(capsys, QUICK)
    kept = list((tmp_path / "cache" / "designs").iterdir())
    second = planned(capsys, QUICK)

    assert first == second
    # The design of the question, and those of the choices beside it.
    assert kept
    assert sorted(kept) == sorted((tmp_path / "cache" / "designs").iterdir())


# --- Refusing ---------------------------------------------------------------------------------

REFUSED = [
    ("100%", "RATE", "100%"),
    ("0%", "RATE", "0%"),
    ("90", "RATE", "'90'"),
    ("1.2", "RATE", "'1.2'"),
    ("9x%", "RATE", "'9x%'"),
    ("nan%", "RATE", "'nan%'"),
    ("complaince 95%", "FORM", "'complaince'"),
    ("90% --alternative 95%", "--alternative", "95%"),
    ("90% --alternative 90%", "--alternative", "90%"),
    ("90% --alternative 89.9%", "--alternative", "89.9%"),
    ("90% --alternative 89.99999999%", "--alternative", "89.99999999%"),
    ("90% --confidence 100%", "--confidence", "100%"),
    ("90% --power 5%", "--power", "5%"),
    ("90% --power high", "--power", "'high'"),
    ("90% --max-trials 0", "--max-trials", "'0'"),
    ("90% --max-trials 1e3", "--max-trials", "'1e3'"),
    ("90% --max-trials 20001", "--max-trials", "20001"),
    ("90% --price free", "--price", "'free'"),
    ("90% --price 0", "--price", "'0'"),
    ("90% --seconds 3x", "--seconds", "'3x'"),
    ("90% --seconds 1e999", "--seconds", "'1e999'"),
    ("90% --batch -1", "--batch", "'-1'"),
    ("90% --criteria 1.5", "--criteria", "'1.5'"),
    ("90% --concurrency none", "--concurrency", "'none'"),
    ("90% -o plan.doc", "--output", "plan.doc"),
    ("95% --fixed --expect 95%", "--expect", "95%"),
    ("regression --baseline 951", "--baseline", "'951'"),
    ("regression --baseline 5/4", "--baseline", "'5/4'"),
    ("regression --baseline 0/0", "--baseline", "'0/0'"),
    ("regression --baseline 5/50 --drop 20%", "--drop", "20%"),
    ("latency --percentile 97", "--percentile", "0.97"),
    ("latency --percentile 950", "--percentile", "'950'"),
    ("latency --success-rate 0%", "--success-rate", "0%"),
    ("latency --limit soon", "--limit", "'soon'"),
    ("95% --estimate --margin 60%", "--margin", "60%"),
    ("compare --rate 90% --drop 90%", "--drop", "90%"),
    ("compare --rate 90% --drop 5% --discordance 2%", "--discordance", "2%"),
    ("compare --rate 90% --drop 5% --pairs 60000", "--pairs", "60000"),
]


@pytest.mark.parametrize(("arguments", "option", "value"), REFUSED)
def test_a_value_is_refused_in_one_sentence(
    arguments: str, option: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Which option, what is allowed, what was given; exit 2, and never a traceback."""
    code = code_of(arguments)
    out, err = capsys.readouterr()

    assert (ExitCode.REFUSED, "") == (code, out)
    assert len(err.splitlines()) == 1
    assert err.startswith(f"Error: {option} must ")
    assert err.rstrip().endswith(f", got {value}")


@pytest.mark.parametrize(
    "arguments",
    [
        "90% 80%",
        "--nope 90%",
        "90% --batch",
        "90% --correction holm",
        "--fixed",
        "90% --trials 40",
        "90% --estimate --power 90%",
        "regression",
        "95% --estimate",
        "compare --rate 90%",
    ],
)
def test_usage_is_refused_with_a_pointer(
    arguments: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Missing and unknown things: exit 2, and what is wrong."""
    code = code_of(arguments)
    err = capsys.readouterr().err

    assert code == ExitCode.REFUSED
    assert "Error: " in err
    assert "Traceback" not in err


@pytest.mark.parametrize("option", ["--html", "--svg", "-o"])
def test_a_place_that_is_not_there_is_refused_before_the_search(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No folder, no file; nothing is printed."""
    code = code_of(f"90% {option} {tmp_path / 'nowhere' / 'plan.html'}")
    out, err = capsys.readouterr()

    assert (ExitCode.REFUSED, "") == (code, out)
    assert "nowhere" in err


@pytest.mark.parametrize(
    "arguments",
    [
        "regression --baseline 951/1000 --drop 2%",
        "regression --baseline 0/50",
        "95% --fixed --trials 40",
    ],
)
def test_a_refused_plan_is_shown_and_exits_two(
    arguments: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The reason and the numbers are the answer; the code says that there is no such design."""
    code = code_of(arguments)

    assert code == ExitCode.REFUSED
    assert "Refused: " in capsys.readouterr().out


@pytest.mark.slow
def test_a_budget_too_small_is_a_plan_all_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    """Three verdicts are a design; that some runs end open is said, not refused."""
    assert "INCONCLUSIVE (no rule leaves fewer" in " ".join(planned(capsys, FORMS["rate"]).split())


# --- Help and starting ------------------------------------------------------------------------


QUESTIONS = ("rate", "regression", "compare", "latency")


@pytest.mark.parametrize("form", ["", *QUESTIONS])
def test_every_help_page_has_an_example(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The first thing a person looks for; `plan --help` names all four questions."""
    text = planned(capsys, f"{form} --help")

    assert "Example" in text
    assert f"trialwise plan {'' if form in ('', 'rate') else form}" in text
    assert max(map(len, text.splitlines())) <= 80
    if not form:
        assert all(f"\n  {name} " in text for name in QUESTIONS if name != "rate")
        assert "--max-trials" in text


def process(*arguments: str, encoding: str = "utf-8") -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, which says at the end what it has imported."""
    code = (
        "import sys\n"
        "from trialwise.cli.main import main\n"
        "try:\n    main(sys.argv[1:])\n"
        "finally:\n    print('imported', *sys.modules, file=sys.stderr)"
    )
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        encoding=encoding,
        env=os.environ | {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"},
        check=False,
        timeout=120,
    )


def imported(done: subprocess.CompletedProcess[str]) -> set[str]:
    return set(done.stderr.splitlines()[-1].split()[1:])


@pytest.mark.slow
def test_a_shipped_design_is_planned_without_numpy() -> None:
    """Neither numpy nor scipy, nor any page that is not asked for."""
    done = process("plan", "90%")

    names = imported(done)
    assert done.returncode == 0
    assert "trialwise.procedures.sizing.sequential_sizing" in names
    assert not {name for name in names if name.split(".")[0] in ("numpy", "scipy")}
    assert not {name for name in names if name.startswith("trialwise.renderers.html")}


@pytest.mark.parametrize("arguments", [("--help",), ("plan", "--help"), ("plan", "90%", "--help")])
def test_help_loads_none_of_the_statistics(arguments: tuple[str, ...]) -> None:
    """Nor any procedure or reporter; the front page not even the command."""
    names = imported(process(*arguments))

    parts = (
        "trialwise.stats",
        "trialwise.procedures",
        "trialwise.pages",
        "trialwise.renderers",
        "trialwise.stores",
    )
    assert not {name for name in names if name.startswith(parts)}
    assert ("trialwise.cli.plan_command" in names) == (arguments != ("--help",))


@pytest.mark.slow("rate", "regression")
@pytest.mark.parametrize("form", FORMS)
def test_a_terminal_without_unicode_gets_ascii(form: str) -> None:
    """Where the stream cannot encode a symbol, its fallback is printed, within 80 columns."""
    done = process("plan", *shlex.split(FORMS[form]), encoding="ascii")

    assert done.returncode == 0
    assert done.stdout.startswith("Plan: ")
    assert done.stdout.isascii()
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.slow
def test_a_bare_rate_shows_the_choices_in_eleven_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """
    Strict, two margins and fixed trials, compared at the expected rate; -v shows the rest.
    """
    short, whole = planned(capsys, "90%"), planned(capsys, "90% -v")
    lines = short.splitlines()

    assert len(lines) == 11
    assert [line.split("  ")[1] for line in lines[4:8]] == [
        "at_least: 90%",
        "+ margin: 5%",
        "+ margin: 10%",
        "+ trials: 179",
    ]
    assert "-v adds" in short
    assert set(lines[:8]) <= set(whole.splitlines())
    assert "THE RULE (OPTIMAL)" in whole
    assert "-v adds" not in whole


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--max-trials 50", "--power 95%", "--seconds 3s"])
def test_what_is_said_about_the_design_is_answered(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    The choices do not depend on these options, so the recommendation stands above them.
    """
    assert "use the optimal design" in planned(capsys, f"90% {option}").lower()
