"""What holds of every suite, whichever features meet in it.

1. No command ends with an internal error.
2. A suite is refused before the first trial, with its place, or decided.
3. `check` and `run` state the same.
4. The verdict is the same through every front end and executor with one seed.
5. Rate and interval are of one sample, and agree with the verdict.
6. The record verifies, and replays and resumes to the same verdict.
7. Every report fits its schema, and every format can be written.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from tests.meetings.front_ends import Done, Folder, move_to_options, write_marked_test
from tests.meetings.made_suites import MadeSuite

import trialwise as tw
from trialwise.model.codec import to_plain
from trialwise.model.run import RunRecord
from trialwise.model.trial import NOT_MEASURED
from trialwise.pages.json_report import describe_report, read_report_schema
from trialwise.procedures.chances import forecast
from trialwise.stores.runs import RunStore
from trialwise.suite import load_suite

_VALIDATOR = Draft202012Validator(read_report_schema())
_FORMATS = ("r.json", "r.html", "r.md", "r.xml", "r.tap", "r.txt", "r.jsonl")
#: A place in the suite file.
_PLACE = re.compile(r"trialwise\.yaml:\d+")


class Violation(NamedTuple):
    """An invariant that does not hold for a suite."""

    invariant: str
    what: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.what}"


class Statement(NamedTuple):
    """What one criterion, or one input of it, came to."""

    decision: str | None
    passed: int = 0
    trials: int = 0
    is_counted: bool = False
    """Whether the counts are those that decided, so that they are the same in every way."""
    is_aborted: bool = False
    """Whether too many trials could not be measured."""
    is_settled: bool = False
    """Whether the FAIL of another criterion ended it; how far it got by then is chance."""


Judge = Callable[[str], RunRecord | None]
Verdicts = dict[str, Statement]
"""The statements by contract and criterion."""


class Meeting:
    """One suite, run in every way.

    Args:
        suite: The features that meet.
        folder: Where it is run.
    """

    def __init__(self, suite: MadeSuite, folder: Folder) -> None:
        self.suite, self.folder = suite, folder
        self.found: list[Violation] = []

    # --- The steps ---------------------------------------------------------------------------

    def admits(self) -> bool:
        """Return whether `check` accepts the suite; a refusal has its place."""
        self._begin()
        done = self.folder.type("check", "--json")
        if done.code not in (0, 2):
            self._report("no internal error", f"check: {_shorten(done.output)}")
        elif done.code == 2 and not _PLACE.search(done.output):
            self._report("a refusal has its place", _shorten(done.output))
        return done.code == 0

    def examine(
        self, *, executors: tuple[str, ...] = (), judge: Judge | None = None
    ) -> list[Violation]:
        """Run a suite that was admitted in every way, and return what does not hold.

        Args:
            executors: Where it is run beside this process.
            judge: Runs a test of pytest, and returns the record of its run.
        """
        self._begin()
        checked = self.folder.type("check", "--json")
        outputs = [part for name in _FORMATS for part in ("-o", name)]
        done = self._run("run", *outputs, "--record", "replies.jsonl")
        if done is None:
            return self.found
        report = self._read_report()
        if report is None:
            return self.found
        self._check_statements(checked)
        verdicts = read_verdicts(report)
        for line in _list_disagreements(report, self.suite):
            self._report("rate, interval and verdict agree", line)
        self._verify()
        self._resume(verdicts)
        self._compare("replay", verdicts, "--replay", "replies.jsonl")
        self._compare_concurrency(verdicts)
        self._compare_options(verdicts)
        self._compare_python(verdicts)
        self._compare_score(verdicts)
        source = write_marked_test(self.suite.document)
        if judge is not None and source is not None:
            self._compare_pytest(verdicts, judge(source))
        for executor in executors:
            self._compare(f"executor {executor}", verdicts, "--executor", executor)
        return self.found

    # --- How ----------------------------------------------------------------------------------

    def _report(self, invariant: str, what: str) -> None:
        self.found.append(Violation(invariant, what))

    def _begin(self) -> None:
        """Write the suite into the folder, forget its runs, and measure the baseline it needs."""
        (self.folder.path / "replies.jsonl").unlink(missing_ok=True)
        for name in (".trialwise", "baselines"):
            shutil.rmtree(self.folder.path / name, ignore_errors=True)
        self.folder.write(self.suite)
        if self.suite.needs_baseline:
            measuring = self.folder.path / "measuring"
            measuring.touch()
            done = self.folder.type("measure", "--trials", "240", "-q")
            measuring.unlink()
            if done.code == 4:
                self._report("no internal error", f"measure: {_shorten(done.output)}")
            self._forget_runs()

    def _forget_runs(self) -> None:
        shutil.rmtree(self.folder.path / ".trialwise", ignore_errors=True)

    def _run(self, *arguments: str) -> Done | None:
        """Type `run`; None where it has no verdict, which is reported."""
        done = self.folder.type(*arguments, "-q")
        shown = " ".join(one for one in arguments if not one.startswith(("-o", "r.")))
        if done.code == 2:
            self._report("check and run agree", f"{shown} is refused: {_shorten(done.output)}")
            return None
        if done.code not in (0, 1, 3):
            self._report("no internal error", f"{shown}: {_shorten(done.output)}")
            return None
        return done

    def _read_report(self) -> dict[str, Any] | None:
        """Return the JSON report, which has to fit its schema."""
        report: dict[str, Any] = self.folder.read("r.json")
        for error in list(_VALIDATOR.iter_errors(report))[:2]:
            self._report("every report fits its schema", _explain(error))
        for name in _FORMATS:
            path = self.folder.path / name
            if not path.exists() or not path.stat().st_size:
                self._report("every format can be written", name)
        if any(one["decision"] is None for one in report["runs"]):
            self._report("refused or decided", "a run has no decision")
            return None
        return report

    def _check_statements(self, checked: Done) -> None:
        """`check` says of the plan what the stored plan says, and no more trials are run."""
        stated = {one["contract"]: one for one in _read_json(checked.output)["contracts"]}
        store = RunStore(self.folder.path / ".trialwise")
        for listed in store.list():
            record = store.load(listed.run_id)
            mine = stated[record.plan.contract]
            planned = [to_plain(one) for one in forecast(record.plan)]
            if planned != mine["criteria"]:
                self._report("check and run agree", "the plan's chances are not those of `check`")
            lost = sum(one.error_class in NOT_MEASURED for one in record.trials)
            measured = len(record.trials) - lost
            # What was not measured is asked again, at most once for each planned trial.
            if measured > mine["max_trials"] or lost > 2 * mine["max_trials"]:
                said = f"at most {mine['max_trials']} trials stated, {measured} were measured"
                self._report("check and run agree", f"{said}, {lost} not")
            limit = record.plan.options.budget.trials
            if limit is not None and len(record.trials) > limit:
                self._report("a budget is kept", f"{len(record.trials)} trials of {limit}")

    def _verify(self) -> None:
        done = self.folder.type("show", "--all", "--verify")
        if done.code != 0 or "VERIFIED" not in done.output:
            self._report("the record verifies", _shorten(done.output))

    def _resume(self, verdicts: Verdicts) -> None:
        """Cut the journal in half, as a kill would, and go on."""
        for run in self.folder.list_runs():
            journal, record = run / "journal.jsonl", run / "record.json"
            if not journal.exists() or not record.exists():
                continue
            lines = journal.read_bytes().splitlines(keepends=True)
            journal.write_bytes(b"".join(lines[: max(1, len(lines) // 2)]))
            record.unlink()
        self._compare("resume", verdicts, "--resume", forget=False)

    def _compare(self, way: str, verdicts: Verdicts, *arguments: str, forget: bool = True) -> None:
        """Run the suite in another way, and compare what is decided."""
        if forget:
            self._forget_runs()
        if self._run("run", *arguments, "-o", "r.json") is not None:
            report = self._read_report()
            if report is not None:
                self._compare_verdicts(way, verdicts, read_verdicts(report))

    def _compare_verdicts(self, way: str, verdicts: Verdicts, others: Verdicts) -> None:
        for name, one in verdicts.items():
            other = others.get(name)
            if way == "resume" and any(each.is_aborted for each in others.values()):
                # What was in flight at a kill is asked first, and outages take longest.
                continue
            if one.is_settled or (other is not None and other.is_settled):
                continue
            if other is None or one.decision != other.decision:
                self._report("the same verdict in every way", f"{way}: {name} {one}, {other}")
            elif one.is_counted and other.is_counted and one != other:
                self._report("the same counts in every way", f"{way}: {name} {one}, {other}")

    def _compare_concurrency(self, verdicts: Verdicts) -> None:
        given = self.suite.of("contract").get("concurrency", 1)
        self._compare("concurrency", verdicts, "--concurrency", "4" if given == 1 else "1")

    def _compare_options(self, verdicts: Verdicts) -> None:
        """A setting says the same on the command line as in the file."""
        document, options = move_to_options(self.suite.document)
        self.folder.write(document)
        self._compare("options", verdicts, *options)
        self.folder.write(self.suite)

    def _compare_python(self, verdicts: Verdicts) -> None:
        """`tw.run` decides a contract as the command does."""
        suite = load_suite(self.folder.path / "trialwise.yaml", environment={})
        if len(suite.contracts) > 1:  # the command gives each of several a seed of its own
            return
        (one,) = suite.contracts
        result = tw.run(
            one.contract,
            options=one.options,
            store=None,
            baselines=suite.baselines_folder,
            progress=False,
        )
        self._compare_verdicts("Python", verdicts, read_verdicts(describe_report([result.record])))

    def _compare_pytest(self, verdicts: Verdicts, record: RunRecord | None) -> None:
        """A marked test decides its criteria as a suite with the same keys does."""
        if record is None:
            self._report("the same verdict in every way", "pytest: there is no run")
            return
        found = read_verdicts(describe_report([record]))
        others = {f"meeting: {name.rpartition(': ')[2]}": one for name, one in found.items()}
        mine = {name: one for name, one in verdicts.items() if name.startswith("meeting: ")}
        self._compare_verdicts("pytest", mine, others)

    def _compare_score(self, verdicts: Verdicts) -> None:
        """`score` decides the outcomes of a run as the run did, where it takes the question."""
        document = self.suite.document
        question = list_score_options(document)
        if question is None:
            return
        self._forget_runs()
        if self._run("run", "-o", "r.json") is None:
            return
        store = RunStore(self.folder.path / ".trialwise")
        record = store.load(store.list()[0].run_id)
        rows = [
            {"input": one.input_id, "passed": one.outcomes[0].result.passed}
            for one in record.trials
        ]
        (self.folder.path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
        done = self.folder.type("score", "rows.jsonl", "--order", "file", *question, "-o", "r.json")
        if done.code not in (0, 1, 3):
            self._report("no internal error", f"score: {_shorten(done.output)}")
            return
        report = self._read_report()
        if report is not None:
            (said,) = [
                one["facts"]["decision"]
                for one in report["runs"][0]["results"]
                if one["kind"] == "criterion"
            ]
            if said != verdicts["meeting: first"].decision:
                self._report(
                    "the same verdict in every way",
                    f"score {' '.join(question)}: {said}, {verdicts['meeting: first']}",
                )


#: Keys of a criterion that `score` has options for, or that change nothing of a decision.
_SCORED = frozenset(
    ("name", "at_least", "never_fails", "trials", "confidence", "each_input", "contains", "origin")
)
#: Keys of a contract that change nothing of a decision on counts that are all there.
_UNSCORED = frozenset(
    ("name", "service", "inputs", "criteria", "seed", "rule", "trials", "description", "tags")
) | {"concurrency", "rate", "timeout", "factors", "validity", "keep_inputs", "before_each"}


#: Services that reply to every call.
_REPLYING = ("svc:perfect", "svc:good", "svc:poor", "svc:slow")


def list_score_options(document: dict[str, Any]) -> list[str] | None:
    """List the options of `score` that ask what a suite asks; None where there are none.

    Only runs whose every planned trial is made can be scored so: their size is fixed, nothing ends
    them early, and every call gets a reply.
    """
    (first, *others), rule = document["criteria"], document.get("rule", "exact")
    trials = first.get("trials") or document.get("trials")
    fits = not others and first.keys() <= _SCORED and document.keys() <= {*_UNSCORED, "curtail"}
    replies = document["service"].get("python") in _REPLYING
    if not fits or not replies or trials is None or document.get("curtail", True):
        return None
    if first.get("each_input"):
        return None  # a suite's number is of each input, and a file has one number
    question = ["--never-fails"] if first.get("never_fails") else ["--at-least", first["at_least"]]
    confidence = float(str(first.get("confidence", "95%")).rstrip("%")) / 100
    return [*question, "--trials", str(trials), "--rule", rule, "--confidence", str(confidence)]


def read_verdicts(report: dict[str, Any]) -> Verdicts:
    """Read the statements of a report; those about latency depend on the clock and are left out."""
    found: Verdicts = {}
    for run in report["runs"]:
        if all(one["kind"] != "latency" for one in run["results"]):
            found[run["contract"]] = Statement(run["decision"])
        split = {one["name"].partition(" [")[0] for one in run["results"] if one["kind"] == "input"}
        for one in run["results"]:
            facts, name = one["facts"], f"{run['contract']}: {one['name']}"
            if one["kind"] == "gate":
                found[name] = Statement(facts["decision"])
            elif one["kind"] in ("criterion", "input"):
                stop = facts["stop"]
                decided = facts["decision"] in ("PASS", "FAIL") and stop in _OF_DESIGN
                # What must never fail counts every trial that the others need.
                decided = decided and facts["procedure"] != "OBSERVATIONAL"
                found[name] = Statement(
                    facts["decision"],
                    *pick_counts(facts),
                    decided and one["name"] not in split,
                    stop == "error-rate",
                    stop == "settled",
                )
    return found


#: Ends of trials that the design itself chose.
_OF_DESIGN = ("decided", "curtailed", "complete")


def pick_counts(facts: dict[str, Any]) -> tuple[int, int]:
    """Pick the passes and the trials that decided."""
    if facts.get("decided_trials") is not None:
        return facts["decided_passed"], facts["decided_trials"]
    return facts.get("passed", 0), facts.get("trials", 0)


#: Within it two numbers are equal; what is shown is rounded nowhere in JSON.
_NEAR = 1e-9


def _list_disagreements(report: dict[str, Any], suite: MadeSuite) -> Iterator[str]:
    """List the results whose rate or interval does not fit their verdict (`docs/…/verdicts.md`)."""
    plain = not suite.of("contract").get("claim") and suite.of("contract").get("intent") != "smoke"
    corrected = suite.of("contract").get("correction", "none") != "none"
    written = {one["name"]: one for one in suite.document["criteria"]}
    for run in report["runs"]:
        for one in run["results"]:
            facts = one["facts"]
            if one["kind"] not in ("criterion", "input"):
                continue
            given = written[one["name"].partition(" [")[0]]
            passed, trials = pick_counts(facts)
            if given.get("never_fails") and facts["decision"] is not None:
                if facts["passed"] < facts["trials"] and facts["decision"] != "FAIL":
                    failed = facts["trials"] - facts["passed"]
                    yield f"{one['name']} must never fail, failed {failed} times: {facts['label']}"
                continue
            if facts["procedure"] == "MEAN" and facts.get("scores", trials) != facts["trials"]:
                yield f"{facts['trials']} trials of {one['name']} are {facts['scores']} scores"
            smoke = given.get("intent") == "smoke"
            if not plain or corrected or smoke or facts["procedure"] not in _OF_RATES:
                continue
            yield from _list_wrong_intervals(one["name"], facts, given, passed, trials)


#: Procedures that decide by a required rate.
_OF_RATES = ("SEQUENTIAL", "COMPLIANCE")


def _list_wrong_intervals(
    name: str, facts: dict[str, Any], given: dict[str, Any], passed: int, trials: int
) -> Iterator[str]:
    low, high, required = facts["interval_low"], facts["interval_high"], facts["required_rate"]
    if low is None or not trials or facts["estimate"] is None:
        return
    said = f"{name} {facts['label']} {passed}/{trials} [{low:.4f}, {high:.4f}] of {required}"
    if not low - _NEAR <= passed / trials <= high + _NEAR:
        yield f"the rate is outside of its interval: {said}"
    lowest = required - float(str(given.get("margin", "0%")).rstrip("%")) / 100
    shows_above, shows_below = low > lowest - _NEAR, high < required + _NEAR
    decision = facts["decision"]
    if decision == "PASS" and not shows_above:
        yield f"PASS, but the interval does not show it: {said}"
    if decision == "FAIL" and shows_above:
        yield f"FAIL, but the interval shows the rate: {said}"
    if decision == "FAIL" and facts["procedure"] == "SEQUENTIAL" and not shows_below:
        yield f"FAIL, but the interval does not show it: {said}"


def _explain(error: Any) -> str:
    """Explain an error by the deepest one that it holds."""
    while error.context:
        error = max(error.context, key=lambda one: len(one.absolute_path))
    return f"{error.json_path}: {error.message[:160]}"


def _read_json(output: str) -> Any:
    return json.loads(output[output.index("{") :])


def _shorten(output: str) -> str:
    lines = [line for line in output.strip().splitlines() if line.strip()]
    return " | ".join(lines[-3:])[-400:]
