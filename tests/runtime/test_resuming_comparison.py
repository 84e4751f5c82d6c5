"""A comparison that is killed and continued: nothing is lost, nothing is made twice."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import trialwise as tw
from trialwise.runtime.verifying import verify
from trialwise.stores.comparisons import ComparisonStore
from trialwise.stores.runs import RunStore

SCRIPT = """
import os, sys
import anyio
import trialwise as tw

store, calls, concurrency = sys.argv[1], sys.argv[2], int(sys.argv[3])

def service(name, bad):
    async def answer(question, seed):
        with open(calls, "a") as file:
            file.write(f"{name} {seed}\\n")
        await anyio.sleep(0.002)
        return "no" if seed // 2 % bad == 0 else "yes"
    return answer

criteria = [tw.Criterion("right", tw.equals("yes"), at_least=0.9)]
old, new, newer = (
    tw.Contract("agent", service(name, bad), criteria, sampling=["a", "b", "c"])
    for name, bad in (("old", 5), ("new", 6), ("newer", 7))
)
def compare(resume):
    return tw.compare(
        old, new, newer, labels=["old", "new", "newer"], seed=3, max_trials=120,
        concurrency=concurrency, store=store, resume=resume,
    )
try:
    compare(True)
except tw.errors.RunNotFound:
    compare(False)
"""


def start(script: Path, store: Path, calls: Path, concurrency: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, str(script), str(store), str(calls), str(concurrency)]
    return subprocess.Popen(command)


def count_trials(store: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in store.glob("runs/*/journal.jsonl"))


def read_end(store: Path) -> tuple[dict[str, Any], list[tw.model.RunRecord]]:
    (comparison,) = ComparisonStore(store).list()
    verdict = comparison.verdict()
    assert verdict is not None
    assert not comparison.is_unfinished
    return verdict, [RunStore(store).load(name) for name in comparison.head.runs]


def seen(verdict: dict[str, Any]) -> list[Any]:
    names = ("criterion", "arm", "decision", "contrast", "p_value", "interval", "pairs")
    return [verdict["decision"], [[one[name] for name in names] for one in verdict["findings"]]]


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="kill -9 is POSIX")
@pytest.mark.parametrize("concurrency", [1, 5])
def test_kill_9_at_any_moment_loses_and_doubles_nothing(tmp_path: Path, concurrency: int) -> None:
    """Killed after random numbers of trials, the verdict is that of one run to the end."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    whole, store, calls = tmp_path / "whole", tmp_path / "store", tmp_path / "calls"
    assert 0 == start(script, whole, tmp_path / "other", concurrency).wait(60)

    chance, kills = random.Random(concurrency), 0
    for _ in range(3):
        process, before = start(script, store, calls, concurrency), count_trials(store)
        wanted = before + chance.randrange(5, 60)
        while count_trials(store) < wanted and process.poll() is None:
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        kills += process.wait(60) == -signal.SIGKILL
    assert kills >= 2
    (interrupted,) = ComparisonStore(store).list()
    assert interrupted.is_unfinished
    assert 0 == start(script, store, calls, concurrency).wait(60)

    once, again = read_end(whole), read_end(store)
    assert seen(once[0]) == seen(again[0])
    for first, second in zip(once[1], again[1], strict=True):
        assert [] == [str(one) for one in verify(second).differences]
        replies = [[(t.index, t.seed, t.passed) for t in one.trials] for one in (first, second)]
        # With several workers the last trials before the decision may differ.
        shared = min(map(len, replies)) if concurrency > 1 else None
        assert replies[0][:shared] == replies[1][:shared]
    asked = Counter(calls.read_text().split("\n")[:-1])
    kept = sum(len(one.trials) for one in again[1])
    # What was in flight at a kill is asked again; nothing else is. What was let go is not kept.
    assert sum(asked.values()) - kept <= (kills + 1) * concurrency
    assert len(RunStore(store).list()) == 3


def service(trial: Any) -> str:
    return "yes" if trial.seed // 2 % 4 else "no"


def contract(answer: Any = service) -> tw.Contract:
    criteria = [tw.Criterion("right", tw.equals("yes"), at_least=0.9)]
    return tw.Contract("agent", answer, criteria, sampling=["a", "b", "c"])


def test_a_budget_ends_a_comparison_that_can_be_continued(tmp_path: Path) -> None:
    """With more money it goes on from there, and ends as if it had never stopped."""

    def priced(answer: Any) -> Any:
        return lambda trial: tw.Reply(value=answer(trial), cost_usd=0.01)

    def compare(store: Path, usd: float, **more: Any) -> tw.Comparison:
        found: tw.Comparison = tw.compare(
            contract(priced(service)),
            contract(priced(lambda _: "yes")),
            seed=2,
            budget=tw.Budget(usd=usd),
            store=store,
            **more,
        )
        return found

    whole = compare(tmp_path / "whole", 5)
    part = compare(tmp_path / "part", 0.2)
    rest = compare(tmp_path / "part", 5, resume=True)

    assert tw.Decision.INCONCLUSIVE is part.decision
    assert 20 == sum(len(one.record.trials) for one in part.arms)
    assert whole.decision is rest.decision is tw.Decision.PASS
    assert whole.findings[0].pairs == rest.findings[0].pairs
    assert part.path == rest.path


def test_a_finished_comparison_is_handed_back(tmp_path: Path) -> None:
    """By its name nothing is run; without one there is nothing to resume."""
    calls: list[int] = []

    def counted(trial: Any) -> str:
        calls.append(trial.index)
        return "yes"

    first = tw.compare(contract(), contract(counted), seed=2, store=tmp_path)
    made = len(calls)
    assert first.path is not None
    again = tw.compare(
        contract(), contract(counted), seed=2, store=tmp_path, resume=first.path.name
    )

    assert first.verdict == again.verdict
    assert made == len(calls)
    with pytest.raises(tw.errors.RunNotFound, match="none to resume"):
        tw.compare(contract(), contract(counted), seed=2, store=tmp_path, resume=True)


def test_a_kill_between_the_records_of_two_arms_is_repaired(tmp_path: Path) -> None:
    """One arm has its record, the other and the comparison have none yet."""
    first = tw.compare(contract(), contract(lambda _: "yes"), seed=2, store=tmp_path)
    assert first.path is not None
    (first.path / "verdict.json").unlink()
    folder = first.arms[1].path
    assert folder is not None
    (folder / "record.json").unlink()
    again = tw.compare(contract(), contract(lambda _: "yes"), seed=2, store=tmp_path, resume=True)

    assert seen(first.to_dict()) == seen(again.to_dict())
    assert RunStore(tmp_path).load(folder.name).trials == first.candidate.trials


def test_what_was_asked_otherwise_is_not_continued(tmp_path: Path) -> None:
    def stop(trial: Any) -> str:
        if trial.index == 4:
            raise KeyboardInterrupt
        return "yes"

    with pytest.raises((tw.RunInterrupted, KeyboardInterrupt)):
        tw.compare(contract(), contract(stop), seed=2, store=tmp_path)
    with pytest.raises(tw.errors.RunNotFound, match="another question"):
        tw.compare(contract(), contract(), question="better", store=tmp_path, resume=True)
    with pytest.raises(tw.errors.RunNotFound, match="number of arms"):
        tw.compare(contract(), contract(), contract(), store=tmp_path, resume=True)
    changed = tw.Contract(
        "agent",
        service,
        [tw.Criterion("right", tw.equals("no"), at_least=0.9)],
        sampling=["a", "b", "c"],
    )
    with pytest.raises(tw.errors.RunNotFound, match="What differs"):
        tw.compare(changed, changed, store=tmp_path, resume=True)


def test_the_runs_say_which_comparison_they_belong_to(tmp_path: Path) -> None:
    found = tw.compare(contract(), contract(lambda _: "yes"), seed=2, store=tmp_path)
    assert found.path is not None
    name = found.path.name

    assert {name} == {one.comparison for one in RunStore(tmp_path).list()}
    record = json.loads((tmp_path / "runs" / found.control.run_id / "record.json").read_text())
    assert name == record["comparison"]
    with pytest.raises(tw.errors.RunNotFound, match=f"compare --resume {name}"):
        tw.run(contract(), store=tmp_path, resume=found.control.run_id)


def test_stored_arms_are_compared_again_by_their_own_rules(tmp_path: Path) -> None:
    """From the runs alone: the same verdict, since the comparison keeps its rules."""
    found = tw.compare(contract(), contract(lambda _: "yes"), seed=2, store=tmp_path)
    names = [one.record.run_id for one in found.arms]

    assert "paired/sequential" == found.findings[0].decision_rule
    assert found.verdict == tw.compare_runs(names[0], names[1], store=tmp_path).verdict
    other = tw.compare_runs(names[0], names[1], confidence=0.9, store=tmp_path)
    assert "paired/anytime-bet" == other.findings[0].decision_rule
