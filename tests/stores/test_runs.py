"""The store of runs: found again, gone on with, and never mixed up."""

from __future__ import annotations

import json
import os
import pickle
import re
import signal
import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.revising import replace

from trialwise.errors import (
    InvalidArgument,
    JournalDamaged,
    JournalInUse,
    RunNotFound,
    TrialwiseError,
)
from trialwise.model.claim import Claim, Intent, SamplingMode
from trialwise.model.evidence import StopReason, Tally, Threshold
from trialwise.model.fingerprint import plan_hash
from trialwise.model.options import Budget, RunOptions
from trialwise.model.plan import CriterionPlan, ExperimentPlan, Plan
from trialwise.model.trial import Analysis, CheckResult, ErrorClass, Outcome, Trial
from trialwise.model.trial_lines import write_trial
from trialwise.model.verdict import Decision, Verdict
from trialwise.procedures.compliance import decide_compliance
from trialwise.stats.sequential import SequentialDesign
from trialwise.stores import _files
from trialwise.stores.runs import RunStore, StoredRun, StoreUnusable

NOW = datetime(2026, 11, 15, 6, 25, 24, 500_000, UTC)


def experiment(name: str) -> ExperimentPlan:
    return ExperimentPlan(
        name=name,
        identifier=name,
        fingerprint="f1",
        input_ids=("1", "2"),
        repetitions=(1, 1),
        trials=100,
        draw="balanced",
        sampling_mode=SamplingMode.WITH_REPLACEMENT,
    )


def criterion(name: str, experiment_name: str) -> CriterionPlan:
    return CriterionPlan(
        criterion=name,
        experiment=experiment_name,
        procedure="SEQUENTIAL",
        rule="exact",
        decision_rule="sequential/optimal",
        alpha=0.05,
        beta=0.2,
        trials=50,
        design=SequentialDesign.optimal(0.9, 0.8, cap=50),
        threshold=Threshold(required_rate=0.9),
    )


PLAN = Plan(
    contract="support-agent",
    seed=7,
    intent=Intent.VERIFICATION,
    rule="wilson",
    analysis=Analysis.INTENT_TO_TREAT,
    claim=Claim(),
    options=RunOptions(),
    experiments=(experiment("inputs"), experiment("attacks")),
    criteria=(
        criterion("json", "inputs"),
        criterion("grounded", "inputs"),
        criterion("refuses", "attacks"),
    ),
)
VERDICT = Verdict(
    decision=Decision.PASS,
    findings=(decide_compliance("json", Tally(trials=100, passed=99), 0.9, rule="wilson"),),
    plan=PLAN,
)
INTERRUPTED = replace(VERDICT, decision=Decision.INCONCLUSIVE, stop=StopReason.INTERRUPTED)


def trial(
    index: int,
    name: str = "inputs",
    *,
    passed: bool = True,
    error_class: ErrorClass = ErrorClass.NONE,
) -> Trial:
    mine = [one.criterion for one in PLAN.criteria_of(name)]
    result = CheckResult.ok() if passed else CheckResult.fail("not “JSON”", evidence="{\n")
    return Trial(
        experiment=name,
        index=index,
        input_id=str(index % 2 + 1),
        seed=index * 31,
        outcomes=tuple(
            Outcome(criterion=one, result=result, error_class=error_class) for one in mine
        ),
        error_class=error_class,
        latency_s=0.1 + 0.2 * index,
    )


def add(run: StoredRun, *trials: Trial) -> None:
    for one in trials:
        run.journal.append(write_trial(one) | {"x": one.experiment})


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path / "project" / ".trialwise")


@pytest.fixture
def killed(store: RunStore) -> StoredRun:
    """A run of three trials without a verdict, that nobody holds."""
    with store.create(PLAN, NOW) as run:
        add(run, trial(0), trial(1), trial(2))
    return run


# --- One run ----------------------------------------------------------------------------------


def test_a_run_is_kept_with_its_plan_trials_and_verdict(store: RunStore, tmp_path: Path) -> None:
    """What comes back is what was judged, in issue order, experiment by experiment."""
    failing = trial(0, passed=False, error_class=ErrorClass.TIMEOUT)
    with store.create(PLAN, NOW) as run:
        add(run, trial(0, "attacks"), trial(2), failing, trial(1))
        path = run.write_record(VERDICT)

    record = store.load(run.run_id)

    folder = tmp_path / "project" / ".trialwise" / "runs" / run.run_id
    assert folder / "record.json" == path
    assert {"plan.json", "journal.jsonl", "record.json"} == set(os.listdir(folder))
    assert (failing, trial(1), trial(2), trial(0, "attacks")) == record.trials
    assert (run.run_id, PLAN, VERDICT) == (record.run_id, record.plan, record.verdict)


def test_a_name_sorts_by_time_and_says_which_contract(store: RunStore) -> None:
    """In UTC whatever the zone, with a suffix of chance."""
    from datetime import timezone

    local = NOW.astimezone(timezone(timedelta(hours=-7)))
    with store.create(PLAN, local) as run:
        assert re.fullmatch(r"2026-11-15T06-25-24Z-support-agent-[0-9a-f]{4}", run.run_id)
        assert NOW == run.started_at
        assert plan_hash(PLAN) == run.plan_hash
    with pytest.raises(InvalidArgument, match="time zone"):
        store.create(PLAN, datetime(2026, 11, 15))


def test_the_files_are_read_by_people(store: RunStore) -> None:
    """A boundary of numbers takes one line, a field another; and every text is what it is."""
    plan = replace(PLAN, contract="Bestellung prüfen")
    with store.create(plan, NOW) as run:
        text = (run.path / "plan.json").read_text(encoding="utf-8")

    assert '      "criterion": "json",\n' in text
    assert '    "contract": "Bestellung prüfen",\n' in text
    (line,) = {line for line in text.splitlines() if '"accept"' in line}
    assert 51 == len(json.loads(line.split(":")[1].rstrip(",")))
    assert {"trialwise.plan-record/2"} == {json.loads(text)["format"]}


def test_half_a_surrogate_pair_does_not_cost_the_verdict(store: RunStore) -> None:
    """What a model may say ends up in explanations."""
    verdict = replace(VERDICT, aborted="\ud83d and ü")
    with store.create(PLAN, NOW) as run:
        run.write_record(verdict)

    assert verdict == store.load(run.run_id).verdict


def test_a_run_is_opened_by_name_folder_or_file(store: RunStore, killed: StoredRun) -> None:
    """Whatever a user has at hand; none of it holds the journal."""
    for name in (killed.run_id, killed.path, killed.path / "plan.json", str(killed.path)):
        found = store.open(name)
        assert (killed.run_id, 3) == (found.run_id, len(found.trials()))
        with pytest.raises(RunNotFound, match="resume it to add trials"):
            assert found.journal
    with store.resume(killed.run_id, PLAN):
        assert 3 == len(store.open(killed.run_id).trials())


def test_a_run_without_a_verdict_says_how_to_go_on(store: RunStore, killed: StoredRun) -> None:
    """And how much is kept."""
    with pytest.raises(RunNotFound, match=f"after 3 trials.*resume='{killed.run_id}'"):
        store.load(killed.run_id)


@settings(max_examples=30)
@given(name=st.text(min_size=1, max_size=200))
def test_no_contract_leaves_the_folder(name: str) -> None:
    """Whatever it is called, its run is one folder among the runs."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        store = RunStore(Path(folder) / "deep" / "store")
        with store.create(replace(PLAN, contract=name), NOW) as run:
            assert Path(folder) / "deep" / "store" / "runs" == run.path.parent
        assert name == store.open(store.list()[0].run_id).plan.contract


# --- Several runs -----------------------------------------------------------------------------


def run_at(store: RunStore, seconds: float, verdict: Verdict | None, **changed: Any) -> str:
    with store.create(replace(PLAN, **changed), NOW + timedelta(seconds=seconds)) as run:
        if verdict is not None:
            run.write_record(verdict)
    return run.run_id


def test_runs_are_listed_newest_first_without_their_journals(store: RunStore) -> None:
    """By the moment, not by the name, where they began in one second."""
    names = [run_at(store, k / 10, VERDICT if k % 2 else None) for k in range(5)]
    later = run_at(store, 60, replace(VERDICT, decision=None), contract="other")
    for path in (store.latest().path.parent).glob("*/journal.jsonl"):
        path.write_text("damaged\nbeyond\nrecognition\n", encoding="utf-8")

    listed = store.list()

    assert [later, *reversed(names)] == [one.run_id for one in listed]
    assert [None, None, Decision.PASS] == [one.decision for one in listed[:3]]
    assert [True, False, True] == [one.is_decided for one in listed[:3]]
    assert ["other", "support-agent"] == [one.contract for one in listed[:2]]
    assert NOW + timedelta(seconds=0.4) == listed[1].started_at


def test_the_latest_is_of_a_contract_and_decided(store: RunStore) -> None:
    """So that a report shows a verdict; the list tells what a resumption finds."""
    first = run_at(store, 0, None)
    second = run_at(store, 1, VERDICT)
    third = run_at(store, 2, INTERRUPTED, contract="other")
    fourth = run_at(store, 3, None, contract="other")

    assert third == store.latest().run_id
    assert second == store.latest("support-agent").run_id
    assert [fourth, third, first] == [one.run_id for one in store.list() if one.is_unfinished]
    with pytest.raises(RunNotFound, match="no run with a verdict of 'none' is kept"):
        store.latest("none")


def test_a_missing_run_is_told_what_is_near(store: RunStore) -> None:
    """A slip of the finger, a part of the name, or nothing at all."""
    with pytest.raises(RunNotFound, match="no run is kept here; is this the project's folder"):
        store.open("2026")
    with pytest.raises(RunNotFound, match="no run with a verdict is kept here"):
        store.latest()
    name = run_at(store, 0, VERDICT)
    run_at(store, 9, VERDICT, contract="another")

    for slip in (name.replace("support", "suport"), name[-4:], name[:-1]):
        with pytest.raises(RunNotFound, match=f"no run '{slip}'. Near it: .*{name}"):
            store.open(slip)
    for nowhere in ("?", "", "..", "/nowhere/at/all"):
        with pytest.raises(RunNotFound, match="The newest is 2026-11-15T06-25-33Z-another"):
            store.open(nowhere)


def test_a_damaged_plan_is_listed_as_such(store: RunStore, killed: StoredRun) -> None:
    """One bad file hides neither itself nor the others."""
    other = run_at(store, 1, VERDICT)
    for text, message in (
        ("{", "not as it was written"),
        ("[]", "its format is None"),
        ('{"format": "trialwise.plan-record/9"}', "another version wrote it"),
        ('{"format": "trialwise.plan-record/2"}', "(plan must be a mapping|it has no 'run_id')"),
    ):
        (killed.path / "plan.json").write_text(text, encoding="utf-8")
        assert [other, killed.run_id] == [one.run_id for one in store.list()]
        assert store.list()[1].damage
        with pytest.raises(TrialwiseError, match=message):
            _ = store.open(killed.run_id).plan
        with pytest.raises(TrialwiseError):
            store.resume(killed.run_id, PLAN)
    content = json.loads((store.latest().path / "plan.json").read_text(encoding="utf-8"))
    content["plan"]["criteria"][1]["alpha"] = "5 %"
    (killed.path / "plan.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(StoreUnusable, match=r"plan\.json: .*plan\.criteria\[1\]\.alpha must be"):
        _ = store.open(killed.run_id).plan


# --- Going on ---------------------------------------------------------------------------------


def test_a_killed_run_goes_on_where_it_stopped(store: RunStore, killed: StoredRun) -> None:
    """With another pace and budget, which the record names."""
    plan = replace(PLAN, options=RunOptions(concurrency=4, budget=Budget(usd=1.0)))

    with store.resume(killed.run_id, plan) as run:
        assert (killed.run_id, NOW, 3) == (run.run_id, run.started_at, len(run.trials()))
        add(run, trial(3))
        run.write_record(VERDICT)
    record = store.load(killed.run_id)
    assert [0, 1, 2, 3] == [one.index for one in record.trials]
    assert plan == record.plan
    with pytest.raises(RunNotFound, match="is finished"):
        store.resume(killed.run_id, plan)


@pytest.mark.parametrize(
    ("verdict", "goes_on"),
    [
        (INTERRUPTED, True),
        (replace(INTERRUPTED, stop=StopReason.MONEY_BUDGET), True),
        (replace(INTERRUPTED, stop=StopReason.COMPLETE), False),
        (replace(INTERRUPTED, decision=Decision.FAIL), False),
        (replace(INTERRUPTED, decision=Decision.PASS), False),
        (VERDICT, False),
    ],
)
def test_only_what_is_undecided_goes_on(store: RunStore, verdict: Verdict, goes_on: bool) -> None:
    """A verdict that was reached is not tried again until it suits."""
    name = run_at(store, 0, verdict)

    assert goes_on is store.list()[0].is_unfinished
    if goes_on:
        with store.resume(name, PLAN) as found:
            assert name == found.run_id
    else:
        with pytest.raises(RunNotFound, match="is finished"):
            store.resume(name, PLAN)


def test_another_plan_does_not_go_on(store: RunStore, killed: StoredRun) -> None:
    """What differs is said; nothing is changed."""
    before = (killed.path / "journal.jsonl").read_bytes()
    other = replace(PLAN, seed=8, experiments=(replace(experiment("inputs"), fingerprint="f2"),))

    with pytest.raises(RunNotFound, match=r"What differs: seed \(seed: 7 there, 8 here\); inputs"):
        store.resume(killed.run_id, other)
    assert before == (killed.path / "journal.jsonl").read_bytes()
    store.resume(killed.run_id, PLAN).close()


def test_a_run_that_is_held_is_left_alone(store: RunStore, killed: StoredRun) -> None:
    """It is refused, and an older one can be resumed beside it, once."""
    with store.create(PLAN, NOW + timedelta(hours=1)) as running:
        with pytest.raises(JournalInUse, match="another run"):
            store.resume(running.run_id, PLAN)
        with store.resume(killed.run_id, PLAN) as found:
            assert killed.run_id == found.run_id
            with pytest.raises(JournalInUse, match="another run"):
                store.resume(killed.run_id, PLAN)


@given(order=st.permutations(range(8)), again=st.integers(0, 7))
def test_trials_are_read_in_the_order_of_inputs_however_they_came_back(
    order: list[int], again: int
) -> None:
    """With a gap or without, and each once."""
    with tempfile.TemporaryDirectory() as folder:
        store = RunStore(Path(folder))
        with store.create(PLAN, NOW) as run:
            add(run, *map(trial, order[:6]), trial(order[again % 6]))
            assert tuple(map(trial, sorted(order[:6]))) == run.trials()


def test_what_is_equal_between_trials_is_read_as_one_object(store: RunStore) -> None:
    """A run may have a million trials: their names and passing outcomes are shared."""
    with store.create(PLAN, NOW) as run:
        add(run, *(replace(trial(index), input_id="1", reply="5" * 40) for index in range(3)))
    first, *others = store.open(run.run_id).trials()

    for other in others:
        assert first.outcomes is other.outcomes
        assert first.input_id is other.input_id
        assert first.experiment is other.experiment


# --- Damage -----------------------------------------------------------------------------------


def test_a_trial_stands_once(store: RunStore) -> None:
    """The same line twice is read once; two that differ are no evidence of either."""
    with store.create(PLAN, NOW) as run:
        add(run, trial(0), trial(1), trial(0))
        assert (trial(0), trial(1)) == run.trials()
        add(run, trial(1, passed=False))
        with pytest.raises(JournalDamaged, match="line 4 "):
            run.trials()


@pytest.mark.parametrize(
    "changed",
    [
        {"x": "elsewhere"},
        {"x": None},
        {"ok": "1"},
        {"class": "tired"},
        {"failed": 3},
        {"in": ...},
        {"i": "1"},
    ],
)
def test_a_line_that_is_no_trial_of_the_plan_is_damage(
    store: RunStore, changed: dict[str, Any]
) -> None:
    """Named by its number."""
    line = write_trial(trial(1)) | {"x": "inputs"} | changed
    with store.create(PLAN, NOW) as run:
        add(run, trial(0))
        run.journal.append({key: value for key, value in line.items() if value is not ...})
        with pytest.raises(JournalDamaged, match="line 2 "):
            run.trials()


def test_a_verdict_is_not_shown_with_fewer_trials_than_it_was_reached_by(store: RunStore) -> None:
    """A journal cut off after the record was written."""
    with store.create(PLAN, NOW) as run:
        add(run, trial(0), trial(1))
        run.write_record(VERDICT)
    path = run.path / "journal.jsonl"
    path.write_bytes(path.read_bytes()[:-1])

    with pytest.raises(JournalDamaged, match="line 2 "):
        store.load(run.run_id)


@pytest.mark.parametrize(
    ("places", "kept"),
    [
        ((0, 1, 2), (0, 1, 2)),
        ((0, 2), (0, 2)),  # line 2 is lost, so that the number of line 3 no longer fits
        ((2,), (2,)),
        ((0, 1, 1, 2), (0, 1, 2)),  # a doubled line is one trial
        ((0, 0, 0), (0,)),
        ((0, 2, 1), (0, 2)),  # a line that has moved back is not where it was written
    ],
)
def test_a_repaired_journal_holds_each_line_once_and_in_order(
    killed: StoredRun, places: tuple[int, ...], kept: tuple[int, ...]
) -> None:
    """What a line's number says of its place decides, as far as the lines are whole."""
    path = killed.path / "journal.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[place] for place in places))

    repair = killed.repair()["journal.jsonl"]

    assert [trial(one) for one in kept] == list(killed.trials())
    assert (len(kept), len(places) - len(kept)) == (repair.kept, repair.damaged)
    assert (repair.aside is None) is (places == (0, 1, 2))


# --- The disk ---------------------------------------------------------------------------------


def test_a_file_in_the_place_of_the_folder_is_named(tmp_path: Path) -> None:
    """With the path and a way out."""
    (tmp_path / ".trialwise").write_text("notes", encoding="utf-8")
    store = RunStore(tmp_path / ".trialwise")

    with pytest.raises(StoreUnusable, match=r"runs: cannot keep a run.*move it, or use") as caught:
        store.create(PLAN, NOW)
    assert isinstance(caught.value, TrialwiseError)
    assert isinstance(caught.value, OSError)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(caught.value), caught.value.errno) == (str(copy), copy.errno)
    assert () == store.list()


HEAD = """
import pickle, sys
from pathlib import Path
PLAN, TRIAL = pickle.loads(bytes.fromhex(sys.stdin.readline()))
"""
GIVEN = pickle.dumps((PLAN, trial(0))).hex() + "\n"


def in_process(script: str, *arguments: object) -> list[str]:
    """What a script in a process of its own says, with the plan above."""
    command = [sys.executable, "-c", HEAD + script, *map(str, arguments)]
    done = subprocess.run(command, input=GIVEN, capture_output=True, text=True, check=False)
    assert not done.stderr
    return done.stdout.splitlines()


FORBIDDEN = """
import os
from datetime import UTC, datetime
from trialwise.stores.runs import RunStore, StoreUnusable
os.chdir(sys.argv[1])
store = RunStore(Path("store"))
store.create(PLAN, datetime.now(UTC)).close()
os.chmod("store/runs", 0o555)
if os.geteuid() == 0:  # whom no permission stops
    os.setuid(65534)
try:
    store.create(PLAN, datetime.now(UTC))
except StoreUnusable as error:
    print(error)
"""


def test_a_folder_that_may_not_be_written_is_named(tmp_path: Path) -> None:
    """No traceback for somebody else's folder."""
    (said,) = in_process(FORBIDDEN, tmp_path)

    assert said.startswith("store/runs: cannot keep a run there: Permission denied. Change its per")


FULL = """
import resource, signal
from datetime import UTC, datetime
from trialwise.model.verdict import Verdict
from trialwise.stores.runs import RunStore, StoreUnusable
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = RunStore(Path(sys.argv[1]))
def limit(size): resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
limit(1000)
try:
    store.create(PLAN, datetime.now(UTC))
except StoreUnusable as error:
    print("create:", error)
limit(-1)
run = store.create(PLAN, datetime.now(UTC))
run.write_record(Verdict(decision=None, findings=(), aborted="first"))
limit(1000)
try:
    run.write_record(Verdict(decision=None, findings=(), aborted="second"))
except StoreUnusable as error:
    print("record:", error)
try:
    for index in range(1000):
        run.journal.append({"i": index})
except StoreUnusable as error:
    print("append:", error)
"""


def test_a_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    """No half plan that looks like a run, and the earlier record where a later one did not fit."""
    said = in_process(FULL, tmp_path)

    assert ["create", "record", "append"] == [line.split(":")[0] for line in said]
    for line, file in zip(said, ("plan.json", "record.json", "journal.jsonl"), strict=True):
        assert f"{file}: cannot" in line
        assert "File too large. Free some space and go on" in line
    (one,) = RunStore(tmp_path).list()
    record = json.loads((tmp_path / "runs" / one.run_id / "record.json").read_text("utf-8"))
    assert "first" == record["verdict"]["aborted"]
    assert [] == list(tmp_path.rglob("*.part"))


# --- Several processes ------------------------------------------------------------------------

CREATE = """
from datetime import UTC, datetime
from trialwise.stores import _files
from trialwise.stores.runs import RunStore
suffixes = iter([f"{k:04x}" for k in range(1000)])
_files.token_hex = lambda size: next(suffixes)
store = RunStore(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
for number in range(20):
    with store.create(PLAN, datetime(2026, 1, 1, tzinfo=UTC)) as run:
        run.journal.append({"process": sys.argv[2], "number": number})
    print(run.run_id, flush=True)
"""


@pytest.mark.slow
def test_processes_that_start_at_once_do_not_meet(tmp_path: Path) -> None:
    """Four that try the same names at the same moment: eighty runs, each with its own journal."""
    from trialwise.stores.journal import read_journal

    workers = [
        subprocess.Popen(
            [sys.executable, "-c", HEAD + CREATE, str(tmp_path), str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    for worker in workers:
        assert worker.stdin is not None
        assert worker.stdout is not None
        worker.stdin.write(GIVEN)
        worker.stdin.flush()
        assert "ready\n" == worker.stdout.readline()
    said = [(number, worker.communicate("\n")[0]) for number, worker in enumerate(workers)]

    assert [0, 0, 0, 0] == [worker.returncode for worker in workers]
    names = {name: (number, k) for number, out in said for k, name in enumerate(out.split())}
    assert 80 == len(names) == len(RunStore(tmp_path).list())
    for name, (number, k) in names.items():
        lines = read_journal(tmp_path / "runs" / name / "journal.jsonl")
        assert [{"process": str(number), "number": k}] == lines


def test_names_that_are_all_taken_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not an endless search."""
    monkeypatch.setattr(_files, "token_hex", lambda size: "same" * size)
    store = RunStore(tmp_path)
    store.create(PLAN, NOW).close()

    with pytest.raises(StoreUnusable, match="cannot name a run: every suffix of 2026-11-15T06"):
        store.create(PLAN, NOW)


KILLED = """
from datetime import UTC, datetime
from trialwise.model.trial_lines import write_trial
from trialwise.stores.runs import RunStore
store = RunStore(Path(sys.argv[1]))
there = store.list()
run = store.resume(there[0].run_id, PLAN) if there else store.create(PLAN, datetime.now(UTC))
for index in range(len(run.trials()), 100_000):
    run.journal.append(write_trial(TRIAL) | {"i": index, "x": "inputs"})
    print(index, flush=True)
"""


def test_a_run_killed_again_and_again_goes_on_in_one_folder(tmp_path: Path) -> None:
    """kill -9: every trial that was acknowledged is there once, and there is one run."""
    command = [sys.executable, "-c", HEAD + KILLED, str(tmp_path)]
    seen = -1
    for _ in range(3):
        with subprocess.Popen(
            command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as worker:
            assert worker.stdin is not None
            assert worker.stdout is not None
            worker.stdin.write(GIVEN)
            worker.stdin.flush()
            first = int(worker.stdout.readline())
            assert first > seen
            worker.send_signal(signal.SIGKILL)
            seen = int([str(first), *worker.stdout.read().split("\n")[:-1]][-1])

    (run,) = RunStore(tmp_path).list()
    trials = RunStore(tmp_path).open(run.run_id).trials()
    assert [*range(len(trials))] == [one.index for one in trials]
    assert seen < len(trials)
