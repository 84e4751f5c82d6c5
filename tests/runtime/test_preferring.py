"""A judge's preference between two arms' replies, as one more criterion of a comparison."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import comb
from pathlib import Path
from random import Random
from typing import Any

import anyio
import pytest
from tests.cli.suite_folders import enter_folder, type_command

import trialwise as tw
from trialwise.judges import (
    Calibration,
    GoldSetError,
    PairGold,
    PairUnit,
    calibrate_pairwise,
    pairwise,
    read_pair_gold,
)
from trialwise.model.verdict import Decision
from trialwise.procedures.comparing.assessment import PreferenceVotes, assess_preference
from trialwise.procedures.comparing.findings import ComparisonQuestion
from trialwise.runtime.answers import Comparison
from trialwise.services import CallableService, ChatService, Prices
from trialwise.stats import Confusion, CorrectedRate, rogan_gladen_rate
from trialwise.stats.judged_tests import JudgedTest

RIGHT = tw.Criterion("right", tw.contains("answer"), at_least=0.5)
INPUTS = [f"question {k}" for k in range(10)]
NOW = datetime(2026, 5, 1, tzinfo=UTC)
_SECTION = re.compile(r"<<(FIRST|SECOND)[^\n]*>>\n(.*?)\n<<END \1 ", re.DOTALL)


class _Server(ThreadingHTTPServer):
    daemon_threads = True


@pytest.fixture
def juror(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., ChatService]]:
    """Start an OpenAI-compatible server that prefers by a function of the two texts."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    servers: list[_Server] = []

    def start(prefer: Callable[[str, str], str]) -> ChatService:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                shown = dict(_SECTION.findall(body["messages"][1]["content"]))
                better = prefer(shown["FIRST"], shown["SECOND"])
                message = {"role": "assistant", "content": json.dumps({"better": better})}
                content = json.dumps(
                    {
                        "id": "1",
                        "object": "chat.completion",
                        "model": "juror",
                        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                        "usage": {"prompt_tokens": 1000, "completion_tokens": 0},
                    }
                ).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        server = _Server(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return ChatService(
            f"http://127.0.0.1:{server.server_port}/v1",
            "juror",
            api_key_env=None,
            prices=Prices(input_usd=1.0, output_usd=1.0),
        )

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def polite(first: str, second: str) -> str:
    """Prefer the politer text, whatever its place."""
    manners = "please" in first, "please" in second
    return {(True, False): "first", (False, True): "second"}.get(manners, "equal")


def reply_when(is_polite: Callable[[int], bool]) -> Callable[[str, int], str]:
    return lambda _, index: "answer, please" if is_polite(index) else "answer"


def compare(preference: Any, *, trials: int = 30, **settings: Any) -> Comparison:
    """A is polite in every tenth trial, B in all but every fifth."""
    control = tw.Contract(
        "agent", reply_when(lambda index: index % 10 == 0), [RIGHT], sampling=INPUTS
    )
    candidate = control.with_service(reply_when(lambda index: index % 5 != 0))
    return tw.compare(
        control,
        candidate,
        labels=("A", "B"),
        trials=trials,
        seed=4,
        preference=preference,
        **({"store": None} | settings),
    )


def calibration(comparing: Any, **counts: int) -> Calibration:
    return Calibration(
        judge=comparing.identity,
        gold="g",
        provenance="by hand",
        confusion=Confusion(**counts),
        is_oriented=True,
    )


def render(found: Comparison) -> str:
    from trialwise.renderers.document_text import render_document_text

    return " ".join(render_document_text(found.build_page()).split())


@pytest.mark.requirement(
    "scoring around",
    "A judge prefers one of two arms' replies, in both orders, with ties.",
    "`tw.compare(preference=tw.judges.pairwise(...))`; `compare: {preference: ...}` in a suite",
)
def test_a_preference_is_one_more_criterion_with_wins_losses_and_ties(
    juror: Callable[..., ChatService],
) -> None:
    """
    Of 30 pairs B is politer in 24 and A in 3; in 3 neither is. The sign test of 24 to 3.
    """
    found = compare(pairwise("The politer one is better.", juror(polite)))
    (result,) = found.verdict.preferences
    finding = next(one for one in found.findings if one.criterion == "preference")

    assert (24, 3, 3, 0, 0) == (
        result.wins,
        result.losses,
        result.ties,
        result.inconsistent,
        result.missing,
    )
    assert result.rate == (24 + 3 / 2) / 30
    assert result.interval is not None
    assert result.interval.low > 0.5
    assert finding.p_value == 2 * sum(comb(27, k) for k in range(24, 28)) / 2**27
    assert finding.contrast == "better"
    assert result.usd == pytest.approx(60 * 1000 / 1e6)
    assert "preferred B in 24, A in 3 and neither in 3 of 30 pairs" in " ".join(finding.caveats)


def test_a_judge_whose_errors_nobody_measured_only_advises(
    juror: Callable[..., ChatService],
) -> None:
    """
    The other criterion is undecided, so is the comparison, however clear the preference is.
    """
    found = compare(pairwise("The politer one is better.", juror(polite)))
    finding = next(one for one in found.findings if one.criterion == "preference")

    assert finding.advisory
    assert "nobody measured" in finding.advisory[0]
    assert Decision.PASS is finding.decision
    assert Decision.INCONCLUSIVE is found.decision
    assert found.verdict.statement.endswith(" preference: only advises.")
    other = next(one for one in found.findings if one.criterion == "right")
    assert other.adjusted_p_value == other.p_value


def test_an_order_that_decides_is_a_tie(juror: Callable[..., ChatService]) -> None:
    found = compare(pairwise("Which?", juror(lambda _, __: "first")))
    (result,) = found.verdict.preferences

    assert (0, 0, 30, 30) == (result.wins, result.losses, result.ties, result.inconsistent)
    assert 0.5 == result.rate


def test_a_judge_that_does_not_answer_in_the_form_decides_nothing(
    juror: Callable[..., ChatService],
) -> None:
    """
    Every answer is missing; the other criterion is compared all the same.
    """
    found = compare(pairwise("Politer.", juror(lambda _, __: "both"), retries=0), trials=10)
    (result,) = found.verdict.preferences
    finding = next(one for one in found.findings if one.criterion == "preference")

    assert (0, 10, None) == (result.wins, result.missing, result.rate)
    assert "the judge answered about no pair" in finding.statement
    assert Decision.INCONCLUSIVE is finding.decision
    assert "without an answer" in render(found)


def test_measured_errors_are_corrected_for_and_the_judge_decides(
    juror: Callable[..., ChatService],
) -> None:
    """
    24 of 27 decided pairs, a sensitivity of 98/100 and a specificity of 97/100.
    """
    service = juror(polite)
    errors = {"true_pass": 98, "false_fail": 2, "true_fail": 97, "false_pass": 3}
    measured = calibration(pairwise("Politer.", service), **errors)
    found = compare(pairwise("Politer.", service, calibration=measured))
    (result,) = found.verdict.preferences
    finding = next(one for one in found.findings if one.criterion == "preference")
    expected = rogan_gladen_rate(24, 27, Confusion(**errors))

    assert () == finding.advisory
    assert result.corrected_rate == pytest.approx((24 / 27 + 0.97 - 1) / (0.98 + 0.97 - 1))
    assert isinstance(expected, CorrectedRate)
    assert result.corrected_interval is not None
    assert tuple(result.corrected_interval) == pytest.approx(tuple(expected.interval))
    assert result.corrected_interval.low > 0.5
    assert finding.p_value is not None
    plain = 2 * sum(comb(27, k) for k in range(24, 28)) / 2**27
    assert plain < finding.p_value <= 0.05
    assert Decision.PASS is finding.decision
    assert "labelled pairs" in " ".join(finding.caveats)
    assert "people would prefer B in" in render(found)


@pytest.mark.slow
def test_a_judge_that_is_hardly_better_than_chance_shows_little(
    juror: Callable[..., ChatService],
) -> None:
    """
    With a sensitivity and a specificity of 60 %, it cannot be certified and only advises.
    """
    service = juror(polite)
    weak = {"true_pass": 60, "false_fail": 40, "true_fail": 60, "false_pass": 40}
    measured = calibration(pairwise("Politer.", service), **weak)
    found = compare(pairwise("Politer.", service, calibration=measured))
    finding = next(one for one in found.findings if one.criterion == "preference")

    assert "agrees with people too little" in finding.advisory[0]


def test_a_preference_shares_the_level_with_the_other_criteria(
    juror: Callable[..., ChatService],
) -> None:
    """
    Holm over two tests: the smaller p-value counts twice.
    """
    service = juror(polite)
    errors = {"true_pass": 98, "false_fail": 2, "true_fail": 97, "false_pass": 3}
    measured = calibration(pairwise("Politer.", service), **errors)
    found = compare(pairwise("Politer.", service, calibration=measured))
    finding = next(one for one in found.findings if one.criterion == "preference")

    assert finding.p_value is not None
    assert finding.adjusted_p_value == pytest.approx(2 * finding.p_value)


def test_after_an_early_stop_the_preference_only_advises(juror: Callable[..., ChatService]) -> None:
    """
    The number of pairs then depends on what was seen: a bet on each pair stays valid.
    """
    service = juror(polite)
    errors = {"true_pass": 98, "false_fail": 2, "true_fail": 97, "false_pass": 3}
    measured = calibration(pairwise("Politer.", service), **errors)
    control = tw.Contract("agent", lambda _: "nothing", [RIGHT], sampling=INPUTS)
    found = tw.compare(
        control,
        control.with_service(lambda _: "answer, please"),
        labels=("A", "B"),
        seed=4,
        store=None,
        preference=pairwise("Politer.", service, calibration=measured),
    )
    finding = next(one for one in found.findings if one.criterion == "preference")

    assert "preference/anytime-bet" == finding.decision_rule
    assert "fix the number of pairs" in finding.advisory[-1]
    assert Decision.PASS is found.decision


def test_a_kept_comparison_holds_its_preferences(
    juror: Callable[..., ChatService], tmp_path: Path
) -> None:
    found = compare(pairwise("Politer.", juror(polite)), store=tmp_path)
    assert found.path is not None
    kept = json.loads((found.path / "verdict.json").read_text(encoding="utf-8"))

    assert 24 == kept["verdict"]["preferences"][0]["wins"]


@pytest.mark.parametrize("ending", ["html", "md", "xml", "json", "txt"])
def test_every_report_shows_the_preference(
    juror: Callable[..., ChatService], tmp_path: Path, ending: str
) -> None:
    found = compare(pairwise("Politer.", juror(polite), name="manners"), trials=10)

    text = found.write(tmp_path / f"comparison.{ending}").read_text(encoding="utf-8")
    assert "manners" in text
    assert "manners" in set(found.to_frame("findings")["criterion"])
    assert {"right"} == set(found.to_frame("pairs")["criterion"])


@pytest.mark.anyio
async def test_in_an_event_loop_the_judge_is_asked_as_well(
    juror: Callable[..., ChatService],
) -> None:
    control = tw.Contract("agent", reply_when(lambda _: False), [RIGHT], sampling=INPUTS)
    found = await tw.acompare(
        control,
        control.with_service(reply_when(lambda _: True)),
        trials=10,
        seed=4,
        store=None,
        preference=pairwise("Politer.", juror(polite)),
    )

    assert 10 == found.verdict.preferences[0].wins


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


# --- How often the judge prefers what people prefer ---------------------------------------------


def test_calibrating_counts_how_often_the_judge_prefers_what_people_prefer(
    juror: Callable[..., ChatService],
) -> None:
    """
    40 pairs whose politer text people prefer, 2 in which they do not, and 3 without manners.
    """
    said = {"first": ("Wait, please.", "Wait."), "second": ("Wait.", "Wait, please.")}
    units = [
        PairUnit(id=f"{k}", first=texts[0], second=texts[1], better=better)
        for k, (better, texts) in enumerate([*said.items()] * 20)
    ]
    units += [
        PairUnit(id=f"odd {k}", first="Go, please.", second="Go.", better="second")
        for k in range(2)
    ]
    units += [PairUnit(id=f"tie {k}", first="Go.", second="Go.", better="first") for k in range(3)]
    gold = PairGold(units=tuple(units), provenance="two people")

    async def measure() -> Calibration:
        return await calibrate_pairwise(pairwise("Politer.", juror(polite)), gold, measured_at=NOW)

    found = anyio.run(measure)
    counts = found.confusion
    assert (20, 20, 2, 0) == (
        counts.true_pass,
        counts.true_fail,
        counts.false_pass,
        counts.false_fail,
    )
    assert ("odd 0", "odd 1") == found.wrong
    assert gold.fingerprint == found.gold


_FAVOUR, _PAIRS = 0.05, 300


def favour_style(messages: Any) -> str:
    """Prefer the reply of the higher quality, a little quality counting for a styled one."""
    shown = dict(_SECTION.findall(messages[1]["content"]))
    first, second = (
        float(shown[name].split()[1]) + _FAVOUR * shown[name].startswith("styled")
        for name in ("FIRST", "SECOND")
    )
    return json.dumps({"better": "first" if first > second else "second"})


def draw_pair(chance: Random) -> tuple[str, str, bool]:
    """Draw replies of two equal arms, the candidate's styled, and whether people prefer it."""
    ours, theirs = chance.random(), chance.random()
    return f"styled {ours:.6f}", f"plain {theirs:.6f}", ours > theirs


async def ask_about_equal_arms(seed: int, *, oriented: bool) -> tuple[Calibration, Any]:
    """Calibrate a judge by pairs in random order, and let it prefer between two equal arms."""
    chance, units = Random(seed), []
    for k in range(200):
        candidate, control, is_better = draw_pair(chance)
        swapped = chance.random() < 0.5
        units.append(
            PairUnit(
                id=str(k),
                first=control if swapped else candidate,
                second=candidate if swapped else control,
                better="first" if is_better is not swapped else "second",
                candidate=("second" if swapped else "first") if oriented else None,
            )
        )
    judge = pairwise("Better.", CallableService(favour_style))
    gold = PairGold(units=tuple(units), provenance="people")
    measured = await calibrate_pairwise(judge, gold, measured_at=NOW)
    pairs = [draw_pair(chance) for _ in range(_PAIRS)]
    compared = [await judge.compare(candidate, control) for candidate, control, _ in pairs]
    certified = replace(judge, calibration=measured)
    votes = PreferenceVotes(
        criterion="preference",
        arm="B",
        against="A",
        experiment="inputs",
        choices=tuple(one.preference.value for one in compared),
        inputs=tuple(map(str, range(_PAIRS))),
        errors=certified.errors,
        advisory=certified.advisory,
    )
    found, _ = assess_preference(votes, ComparisonQuestion())
    return measured, found


def test_errors_to_the_side_of_a_style_are_counted_there_whatever_the_order_of_gold_pairs() -> None:
    """
    A judge that favours the candidate's style never prefers the other where people do not.
    """
    measured, _ = anyio.run(partial(ask_about_equal_arms, 1, oriented=True))
    counts = measured.confusion
    assert (0, True) == (counts.false_fail, counts.false_pass > 0)
    blind, _ = anyio.run(partial(ask_about_equal_arms, 1, oriented=False))
    assert blind.confusion.false_fail > 0
    assert blind.confusion.disagreements == counts.disagreements


@pytest.mark.slow
def test_equal_arms_are_called_better_no_oftener_than_stated_by_a_judge_that_favours_a_style() -> (
    None
):
    """
    The gold pairs stand in random order and say which side is the candidate's.

    Each side is wrong in at most 2.5 %; of 24 comparisons 4 or more would be so in 1 of 300 cases.
    With the errors counted as if every first reply were the candidate's, more are.
    """
    wrong = mistaken = decided = 0
    for seed in range(24):
        measured, found = anyio.run(partial(ask_about_equal_arms, seed, oriented=True))
        if found.advisory:
            continue  # by chance its labels show too little
        decided += 1
        wrong += found.p_value <= 0.05 and found.favours_candidate
        # In random order the errors of both sides are alike.
        half = measured.confusion.disagreements // 2
        right = 100 - half
        alike = Confusion(true_pass=right, false_fail=half, true_fail=right, false_pass=half)
        pairs = found.pairs
        blind = JudgedTest(pairs.only_b, pairs.discordant, alike, "rogan-gladen")
        mistaken += blind.shows_above(0.5, 0.025)
    assert decided >= 12
    assert wrong <= 3
    assert mistaken > wrong


def test_gold_pairs_that_cannot_be_oriented_let_the_judge_only_advise() -> None:
    """
    The correction would be for another error than the judge makes between these arms.
    """
    measured, found = anyio.run(partial(ask_about_equal_arms, 1, oriented=False))

    assert not measured.is_oriented
    assert "which side is the candidate's" in found.advisory[-1]
    assert found.decision_rule == "preference/sign"


def test_a_gold_set_of_pairs_is_read_with_its_problems(tmp_path: Path) -> None:
    path = tmp_path / "pairs.yaml"
    path.write_text(
        "provenance: two people\nentries:\n"
        "  - {first: Wait., second: 'Wait, please.', better: second, input: When?}\n",
        encoding="utf-8",
    )
    (unit,) = read_pair_gold(path).units
    assert ("When?", False) == (unit.input, unit.prefers_first)
    path.write_text(
        "entries:\n  - {first: a, second: b, better: both}\n  - {first: a, better: first}\n",
        encoding="utf-8",
    )
    with pytest.raises(GoldSetError, match=r"entry 1: `better` must .*; entry 2 lacks `second`"):
        read_pair_gold(path)


# --- In a suite ---------------------------------------------------------------------------------


SERVICE = """
def plain(question, index):
    return "answer, please" if index % 10 == 0 else "answer"

def polite(question, index):
    return "answer, please" if index % 5 else "answer"
"""
SUITE = """
contracts:
  - name: plain
    service: {python: "svc:plain"}
    inputs: [one, two, three]
    criteria: [{name: right, contains: answer, at_least: 50%}]
  - name: polite
    service: {python: "svc:polite"}
    inputs: [one, two, three]
    criteria: [{name: right, contains: answer, at_least: 50%}]
compare:
  control: plain
  candidates: [polite]
  trials: 30
  preference:
    rubric: The politer reply is better.
    juror: {chat: {base_url: URL, model: juror, api_key_env: null}}
    gold: pairs.json
    cache: votes
"""


@pytest.mark.slow
def test_a_suite_names_the_judge_and_the_page_shows_its_preference(
    juror: Callable[..., ChatService], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    First it only advises; once it is calibrated its preference counts.
    """
    enter_folder(tmp_path, monkeypatch, SERVICE)
    pairs = [("Go, please.", "Go.", "first"), ("Go.", "Go, please.", "second")] * 60
    entries = [
        {"id": f"{k}", "first": first, "second": second, "better": better, "candidate": "first"}
        for k, (first, second, better) in enumerate(pairs)
    ]
    gold = {"provenance": "two people", "entries": entries}
    (tmp_path / "pairs.json").write_text(json.dumps(gold), encoding="utf-8")
    url = re.findall("'(http.*?)'", repr(juror(polite)))[0]
    suite = SUITE.replace("URL", url)

    before = " ".join(type_command(suite, "compare", "--quiet").output.split())
    assert "nobody measured how often the judge prefers what people prefer yet" in before
    assert "the judge prefers polite to plain in 24 of 30 pairs" in before
    calibrated = type_command(suite, "judge", "calibrate")
    assert (0, True) == (calibrated.exit_code, "120 of 120 labels agree" in calibrated.output), (
        calibrated.output
    )
    after = " ".join(type_command(suite, "compare", "--quiet").output.split())
    assert "nobody measured" not in after
    assert "people would prefer polite in 88.9 %" in after


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("preference: {rubric: r}", "juror"),
        ("preference: {rubric: r, juror: {python: 'svc:plain'}, gold: none.json}", "none.json"),
    ],
)
def test_a_preference_in_a_suite_is_refused_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str, message: str
) -> None:
    enter_folder(tmp_path, monkeypatch, SERVICE)
    head = SUITE.split("compare:", maxsplit=1)[0]

    with pytest.raises(Exception, match=message):
        type_command(f"{head}compare:\n  {wrong}\n", "compare", "plain", "polite", "--quiet")


def test_preferences_are_kept_with_the_comparison(
    juror: Callable[..., ChatService], tmp_path: Path
) -> None:
    """What a judge was paid for is loaded again, and asked for once only."""
    from trialwise.runtime.comparing import load_comparison
    from trialwise.runtime.verifying import verify_stored_comparison

    asked: list[str] = []

    def prefer(first: str, second: str) -> str:
        asked.append(first)
        return polite(first, second)

    judge = pairwise("The politer one is better.", juror(prefer))
    found = compare(judge, store=tmp_path)
    paid = len(asked)
    assert found.path is not None
    again = compare(judge, store=tmp_path, resume=found.path.name)

    assert paid == len(asked) > 0
    assert found.verdict == again.verdict
    assert found.verdict == load_comparison(found.path.name, store=tmp_path).verdict
    assert verify_stored_comparison(found.path.name, store=tmp_path).matches
