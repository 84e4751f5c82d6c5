"""Which arm is best, and arms described: real runs in turn, each kept like any other."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

import anyio
import pytest

import trialwise as tw
from trialwise.errors import InvalidArgument, RunNotFound
from trialwise.procedures.choice import CHOICE, ChoiceQuestion, expect_best_excess
from trialwise.runtime.answers import load_answer
from trialwise.runtime.verifying import verify, verify_stored_comparison
from trialwise.stats.binomial import binomial_pmf
from trialwise.stores._files import write_json

RIGHT = tw.Criterion("right", tw.equals("yes"), at_least=0.5)
QUESTIONS = ["one", "two", "three"]


def arm(name: str, rate: float) -> tw.Contract:
    def answer(_question: str, seed: int) -> str:
        return "yes" if Random(f"{name} {seed}").random() < rate else "no"

    return tw.Contract(name, answer, [RIGHT])


def arms() -> list[tw.Contract]:
    return [arm("small", 0.4), arm("large", 0.97), arm("medium", 0.6)]


def choose(*contracts: tw.Contract, **settings: Any) -> tw.results.Choice:
    return tw.compare(
        *contracts, question="best", inputs=QUESTIONS, **{"seed": 1, "store": None, **settings}
    )


def test_the_number_of_workers_changes_no_answer() -> None:
    one, many = (choose(*arms(), concurrency=workers) for workers in (1, 7))

    assert one.chosen == many.chosen == "large"
    assert (one.trials, one.verdict.rounds) == (many.trials, many.verdict.rounds)


def test_arms_that_are_out_are_no_longer_asked_and_all_get_the_same_inputs_and_seeds() -> None:
    choice = choose(*arms())
    trials = {run.label: list(run.record.trials) for run in choice.runs}

    assert len(trials["small"]) < len(trials["large"])
    seen = [(one.input_id, one.seed) for one in trials["large"]]
    for several in trials.values():
        assert [(one.input_id, one.seed) for one in several] == seen[: len(several)]


def test_the_records_alone_give_the_same_answer(tmp_path: Path) -> None:
    choice = choose(*arms(), store=tmp_path)
    again = CHOICE.decide(choice.runs, ChoiceQuestion())

    assert again == choice.verdict
    assert [] == [d for run in choice.runs for d in verify(run.record).differences]


def test_one_criterion_decides_or_all_together() -> None:
    """The long arm is right as often, and too long half of the time."""
    short = tw.Criterion("short", tw.equals("yes"), at_least=0.5)

    def contract(name: str, reply: str) -> tw.Contract:
        def answer(_question: str, seed: int) -> str:
            return reply if Random(f"{name} {seed}").random() < 0.7 else "yes"

        right = tw.Criterion("right", tw.contains("yes"), at_least=0.5)
        return tw.Contract(name, answer, [right, short])

    brief, long = contract("brief", "yes"), contract("long", "yes yes yes")

    together = choose(brief, long)
    assert (together.chosen, together.verdict.criteria) == ("brief", ("right", "short"))
    alone = choose(brief, long, criterion="right")
    assert (alone.outcome, alone.verdict.criteria) == ("tied", ("right",))


def test_a_budget_leaves_the_choice_undecided() -> None:
    choice = choose(*arms(), cost_per_trial_usd=1.0, budget=tw.Budget(usd=5.0))

    assert choice.outcome == "undecided"
    assert choice.chosen is None
    assert set(choice.verdict.remaining) == {"small", "large", "medium"}
    assert any("$5" in note for note in choice.verdict.notes)


def test_a_choice_in_the_running_loop_calls_async_services_there() -> None:
    async def good(_question: str) -> str:
        await anyio.sleep(0)
        return "yes"

    async def go() -> tw.results.Choice:
        contracts = [tw.Contract("good", good, [RIGHT]), arm("bad", 0.2)]
        return await tw.acompare(*contracts, question="best", inputs=QUESTIONS, seed=1, store=None)

    assert anyio.run(go).chosen == "good"


def test_what_has_no_meaning_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="two or more"):
        choose(arm("one", 0.5))
    with pytest.raises(InvalidArgument, match="a choice ends when it is known"):
        choose(*arms(), trials=10)
    with pytest.raises(InvalidArgument, match="smallest_difference"):
        choose(*arms(), smallest_difference=0)


def test_the_page_shows_itself_in_a_terminal_and_a_notebook() -> None:
    choice, out = choose(*arms()), io.StringIO()
    choice.show(stream=out)

    assert "large is the best arm or within 10 points of it (95 %)." in out.getvalue()
    assert "large is the best arm or within 10 points" in choice._repr_html_()
    assert repr(choice).startswith("<Choice chosen: large is the best arm or within 10 points")


def test_the_page_has_the_words_of_its_sentence_and_no_folders(tmp_path: Path) -> None:
    """An arm is best, tied or possibly best, or another arm is better and perhaps cheaper."""
    choice = choose(*arms(), store=tmp_path, cost_per_trial_usd=0.01)
    explored = tw.compare(*arms(), question="describe", inputs=QUESTIONS, seed=1, store=tmp_path)
    for page in (choice.render("transparent"), explored.render("transparent")):
        text = " ".join(page.split())
        assert "possibly best" in text
        assert "another arm is better" in text
        for word in ("chosen", "not best", "beaten", "nobody beats", "CHOSEN"):
            assert word not in text
        assert str(tmp_path) not in text
    assert "large, of 3 arms" in choice.render("markdown")
    names = [f"{run.label}: {run.path.name}" for run in choice.runs if run.path]
    assert [value for name, value in choice.build_page().facts if name == "run"] == names


KILLED = """
import sys, time
from random import Random
import trialwise as tw

def contract(name, rate):
    def answer(question, seed):
        time.sleep(0.01)
        return "yes" if Random(f"{name} {seed}").random() < rate else "no"
    return tw.Contract(name, answer, [tw.Criterion("right", tw.equals("yes"), at_least=0.5)])

arms = [contract("small", 0.4), contract("large", 0.97), contract("medium", 0.6)]
choice = tw.compare(*arms, question="best", inputs=["one", "two", "three"], seed=1,
                    store=sys.argv[1], resume=len(sys.argv) > 2, progress=False)
print(choice.chosen, choice.trials)
"""


@pytest.mark.slow
def test_a_choice_that_was_killed_goes_on_and_loses_and_doubles_nothing(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(KILLED)
    store = tmp_path / "store"
    with subprocess.Popen([sys.executable, str(script), str(store)]) as process:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and not _count_lines(store) >= 12:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    done = subprocess.run(
        [sys.executable, str(script), str(store), "resume"],
        check=True,
        capture_output=True,
        text=True,
    )
    whole = choose(*arms())

    assert done.stdout.split() == [str(whole.chosen), str(whole.trials)]
    assert len(list((store / "runs").iterdir())) == 3


def _count_lines(store: Path) -> int:
    return sum(len(one.read_bytes().splitlines()) for one in store.glob("runs/*/journal.jsonl"))


def test_only_the_same_choice_is_resumed(tmp_path: Path) -> None:
    choose(*arms(), store=tmp_path, budget=tw.Budget(usd=5.0), cost_per_trial_usd=1.0)

    with pytest.raises(RunNotFound, match="started with another smallest_difference"):
        choose(*arms(), store=tmp_path, resume=True, smallest_difference=0.2)


def test_the_old_names_say_what_replaced_them() -> None:
    old: Any = tw
    settings: dict[str, Any] = {"inputs": QUESTIONS, "seed": 1, "store": None}
    with pytest.warns(DeprecationWarning, match=r'wise\.compare\(\.\.\., question="best"\)'):
        assert old.choose(*arms(), **settings).chosen == "large"
    with pytest.warns(DeprecationWarning, match=r'wise\.compare\(\.\.\., question="describe"\)'):
        assert old.explore(*arms(), **settings).arms[0].label == "large"

    async def go() -> Any:
        return await old.achoose(*arms(), **settings)

    with pytest.warns(DeprecationWarning, match=r'wise\.acompare\(\.\.\., question="best"\)'):
        assert anyio.run(go).chosen == "large"


def test_a_setting_of_another_question_is_refused() -> None:
    with pytest.raises(InvalidArgument, match=r'margin must be left out.*the question "best"'):
        choose(*arms(), margin=0.1)
    with pytest.raises(InvalidArgument, match=r'break_ties must be left out.*"different"'):
        tw.compare(*arms(), break_ties=True, inputs=QUESTIONS, store=None)


def test_exploring_ranks_arms_and_states_how_lucky_the_best_is() -> None:
    explored = tw.compare(
        *arms(), question="describe", inputs=QUESTIONS, trials=40, seed=1, store=None
    )

    assert [one.label for one in explored.arms] == ["large", "medium", "small"]
    assert [one.tally.trials for one in explored.arms] == [40, 40, 40]
    assert explored.found.unbeaten == ("large",)
    assert explored.build_page().badge is None


@pytest.mark.parametrize(("count", "trials", "rate"), [(2, 6, 0.8), (3, 5, 0.5)])
def test_the_luck_of_the_best_is_the_mean_of_the_largest_count(
    count: int, trials: int, rate: float
) -> None:
    """Every combination of counts is enumerated."""
    from itertools import product

    mean = 0.0
    for counts in product(range(trials + 1), repeat=count):
        probability = 1.0
        for one in counts:
            probability *= binomial_pmf(one, trials, rate)
        mean += probability * max(counts) / trials
    assert expect_best_excess(count, trials, rate) == pytest.approx(mean - rate)


OLD = Path(__file__).parents[1] / "data" / "comparisons-0.2.0.dev0"


def test_a_choice_of_an_earlier_edition_is_decided_again_by_its_own_rule() -> None:
    """The last arm was then named by all rounds, also by those before the others were dropped."""
    (kept,) = (OLD / "comparisons").iterdir()
    choice = load_answer(kept, store=OLD)

    assert isinstance(choice, tw.results.Choice)
    assert (choice.outcome, choice.chosen) == ("chosen", "two")
    assert "named in at most 40 %" in choice.verdict.guarantee
    assert verify_stored_comparison(kept, store=OLD).differences == ()
    now = CHOICE.decide(choice.runs, ChoiceQuestion(smallest_difference=0.4))
    assert now.outcome == "undecided"
    assert "named in at most 20 %" in now.guarantee


def test_a_choice_of_an_earlier_edition_is_resumed_by_its_own_rule(tmp_path: Path) -> None:
    choice = choose(arm("one", 0.7), arm("two", 0.7), store=tmp_path, max_trials=3)
    assert choice.path is not None
    file = choice.path / "comparison.json"
    kept = json.loads(file.read_text())
    del kept["question"]["edition"], kept["checksum"]
    write_json(file, kept)
    (choice.path / "verdict.json").unlink()

    resumed = choose(arm("one", 0.7), arm("two", 0.7), store=tmp_path, max_trials=3, resume=True)
    assert resumed.verdict.question.edition == 1
