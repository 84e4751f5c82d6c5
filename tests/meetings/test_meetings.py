"""Where features meet: suites in which every pair of features occurs, and what holds of all."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest
from tests.meetings.covering import PairCount, cover_pairs, list_pairs
from tests.meetings.features import (
    LEFT_OUT,
    SERVICES,
    VALUES,
    Feature,
    feature,
    list_features,
    list_keys,
    list_values,
    make_pair,
)
from tests.meetings.front_ends import Folder, enter
from tests.meetings.invariants import Judge, Meeting, Violation, list_score_options
from tests.meetings.made_suites import MadeSuite
from tests.plugin.conftest import Project, project  # noqa: F401 - a fixture

from trialwise.model.run import RunRecord

#: How many suites the slow test has; a few hundred by default.
_MANY = int(os.environ.get("TRIALWISE_MEETINGS", "240"))


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    """An empty folder that is the current one."""
    with enter(tmp_path) as entered:
        yield entered


@pytest.fixture
def judge(project: Project) -> Judge:  # noqa: F811 - the fixture
    """Run a marked test in a session of its own, and return the record of its run."""
    (project.path / "svc.py").write_text(SERVICES)

    def run_session(source: str) -> RunRecord | None:
        shutil.rmtree(project.path / ".trialwise", ignore_errors=True)
        project.write(source)
        with chdir(project.path):
            project.run("-q")
        return next(iter(project.records()), None)

    return run_session


def meet(
    folder: Folder, *features: Feature, executors: tuple[str, ...] = (), judge: Judge | None = None
) -> list[Violation]:
    """Return what does not hold of a suite that can be run."""
    meeting = Meeting(MadeSuite(features), folder)
    if not meeting.admits():
        return [Violation("the suite can be run", folder.type("check").output), *meeting.found]
    return meeting.examine(executors=executors, judge=judge)


# --- The generator ----------------------------------------------------------------------------


def test_every_key_takes_part() -> None:
    """Every key that is declared has values, or is left out with a reason."""
    keys = list(list_keys())
    without = [
        f"{place}.{key}"
        for place, key, kind in keys
        if (place, key) not in LEFT_OUT and not list_values(place, key, kind)
    ]
    gone = (VALUES.keys() | LEFT_OUT.keys()) - {(place, key) for place, key, _ in keys}

    assert [] == without
    assert set() == gone
    assert all(LEFT_OUT.values())


def test_the_suites_cover_pairs() -> None:
    """If every suite can be run, few suites hold every pair of features.

    n features for each of k keys need at least n² suites; the greedy ones are not many more.
    """
    counted = PairCount(len(list_pairs(list_features())))
    suites = list(cover_pairs(lambda _: True, suites=10_000, size=40, seed=1, counted=counted))

    assert counted.possible == len(counted.run)
    assert len(suites) < 200


def test_a_pair_that_is_always_refused_is_counted_so() -> None:
    """It is seen, though never in a run."""
    rule, correction = (
        feature("contract", "rule", "fisher"),
        feature("contract", "correction", "bh"),
    )
    counted = PairCount(len(list_pairs(list_features())))

    def admits(suite: MadeSuite) -> bool:
        return not {rule, correction} <= set(suite.features)

    list(cover_pairs(admits, suites=10_000, size=40, seed=1, counted=counted))

    assert {make_pair(rule, correction)} == counted.refused
    assert counted.possible == len(counted.run) + 1


# --- Meetings that went wrong once ------------------------------------------------------------

AT_LEAST = feature("criterion", "at_least", "80%")
SAMPLINGS = feature("inputs", "are", "two samplings")
GRADERS = feature("check", "is", "graders")

#: What each is about, and the features that meet.
ONCE_WRONG: dict[str, tuple[Feature, ...]] = {
    "two samplings with concurrency": (
        AT_LEAST,
        SAMPLINGS,
        feature("other", "criterion", {"at_least": "85%"}),
        feature("contract", "concurrency", 2),
        feature("service", "is", "perfect"),
    ),
    "never_fails in another sampling with concurrency": (
        AT_LEAST,
        SAMPLINGS,
        feature("other", "criterion", {"never_fails": True}),
        feature("contract", "concurrency", 8),
        feature("service", "is", "poor"),
        feature("contract", "keep_going", True),
    ),
    "never_fails with trials beside a criterion that runs on": (
        AT_LEAST,
        feature("other", "criterion", {"never_fails": True, "trials": 5}),
        feature("service", "is", "good"),
        feature("contract", "seed", 8),
    ),
    "a mean score of a service that never replies": (
        feature("criterion", "mean_at_least", 0.6),
        feature("criterion", "trials", 40),
        GRADERS,
        feature("service", "is", "dead"),
    ),
    "pass_at with a service that never replies": (
        AT_LEAST,
        feature("criterion", "pass_at", 0.5),
        GRADERS,
        feature("service", "is", "dead"),
    ),
    "scores that are only reported, of outages that count": (
        feature("criterion", "report_only", True),
        feature("criterion", "pass_at", 0.5),
        GRADERS,
        feature("other", "criterion", {"at_least": "85%"}),
        feature("contract", "analysis", "intent-to-treat"),
        feature("service", "is", "outages"),
    ),
    "a recorded outage": (
        AT_LEAST,
        feature("service", "is", "down"),
        feature("contract", "retries", 0),
    ),
    "a recorded refusal among replies": (
        AT_LEAST,
        feature("service", "is", "outages"),
        feature("contract", "retries", 0),
    ),
    "power with a correction": (
        feature("criterion", "at_least", "90%"),
        feature("criterion", "power", "80%"),
        feature("other", "criterion", {"at_least": "80%", "power": "80%"}),
        feature("contract", "correction", "holm"),
    ),
    "a report of a criterion that is only reported": (
        AT_LEAST,
        feature("other", "criterion", {"report_only": True}),
    ),
    "a report of a mean score": (
        feature("criterion", "mean_at_least", 0.6),
        feature("criterion", "trials", 120),
        GRADERS,
    ),
    "a report of a corpus": (
        AT_LEAST,
        feature("contract", "claim", {"population": "no-generalisation"}),
    ),
    "a report of graded replies": (AT_LEAST, feature("criterion", "pass_at", 0.5), GRADERS),
    "a report under the rule fisher": (AT_LEAST, feature("contract", "rule", "fisher")),
    "a report with metrics of each input": (
        AT_LEAST,
        feature("criterion", "trials", 120),
        feature(
            "contract",
            "metrics",
            {
                "k": [1, 2],
                "expect": [
                    {"target": "metrics.pass_hat.2", "matcher": {"schema": {"minimum": 0.1}}}
                ],
            },
        ),
    ),
    "gates with the number of trials on the command line": (
        AT_LEAST,
        feature("contract", "reliability", {}),
        feature("contract", "trials", 120),
    ),
    "a horizon of release gates in a page": (
        AT_LEAST,
        feature("contract", "horizon", {"gates": 6}),
    ),
    "trials that are asked again": (
        AT_LEAST,
        feature("criterion", "max_trials", 60),
        feature("contract", "retries", 0),
        feature("service", "is", "outages"),
    ),
    "several models": (AT_LEAST, feature("contract", "models", ["good", "perfect"])),
    "a baseline and enforced latency": (
        feature("criterion", "no_worse_than", "baseline"),
        feature("criterion", "trials", 120),
        feature("contract", "latency", {"p50": "1s", "enforced": True}),
    ),
}


@pytest.mark.parametrize("name", ONCE_WRONG)
def test_a_meeting_that_went_wrong_once(folder: Folder, name: str) -> None:
    """Every invariant holds of it, through every front end."""
    found = meet(folder, *ONCE_WRONG[name])

    assert [] == [str(one) for one in found]


@pytest.mark.parametrize(
    "features",
    [
        (AT_LEAST, feature("service", "is", "outages")),
        pytest.param(
            (AT_LEAST, SAMPLINGS, feature("other", "criterion", {"never_fails": True})),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["outages", "samplings"],
)
def test_worker_processes_decide_the_same(folder: Folder, features: tuple[Feature, ...]) -> None:
    """With one seed, the trials and the verdict are those of this process."""
    found = meet(folder, *features, executors=("processes:2",))

    assert [] == [str(one) for one in found]


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["dask", "ray"])
def test_a_cluster_decides_the_same(folder: Folder, executor: str) -> None:
    """With one seed, the trials and the verdict are those of this process."""
    pytest.importorskip(executor)
    more = feature("other", "criterion", {"never_fails": True})
    found = meet(folder, AT_LEAST, SAMPLINGS, more, executors=(executor,))

    assert [] == [str(one) for one in found]


#: Suites that a marker can ask for.
MARKED: dict[str, tuple[Feature, ...]] = {
    "sequential": (AT_LEAST,),
    "fixed": (AT_LEAST, feature("criterion", "trials", 120), feature("service", "is", "raising")),
    "a margin beside never_fails": (
        AT_LEAST,
        feature("criterion", "margin", "10%"),
        feature("other", "criterion", {"never_fails": True}),
        feature("service", "is", "poor"),
    ),
    "each input with a correction": (
        AT_LEAST,
        feature("criterion", "each_input", True),
        feature("contract", "correction", "holm"),
    ),
    "the rule wilson with concurrency": (
        AT_LEAST,
        feature("contract", "rule", "wilson"),
        feature("contract", "concurrency", 8),
    ),
}


@pytest.mark.parametrize("name", MARKED)
def test_pytest_decides_as_the_run_did(folder: Folder, judge: Judge, name: str) -> None:
    """A marked test with the keys of a suite has its verdict, with one seed."""
    found = meet(folder, *MARKED[name], judge=judge)

    assert [] == [str(one) for one in found]


@pytest.mark.parametrize("curtail", [True, False])
@pytest.mark.parametrize("service", ["perfect", "good", "poor"])
def test_score_decides_as_the_run_did(folder: Folder, service: str, *, curtail: bool) -> None:
    """The outcomes of a run whose every trial was made give its verdict again."""
    features = (
        AT_LEAST,
        feature("criterion", "trials", 40),
        feature("contract", "curtail", curtail),
        feature("service", "is", service),
    )
    asked = list_score_options(MadeSuite(features).document)
    found = meet(folder, *features)

    assert curtail == (asked is None)
    assert [] == [str(one) for one in found]


# --- Meetings of every pair -------------------------------------------------------------------


def examine_many(
    folder: Folder, *, suites: int, size: int, seed: int, judge: Judge | None = None
) -> list[str]:
    """Return what does not hold of suites that cover the pairs of features, with the suite."""
    counted = PairCount(len(list_pairs(list_features())))
    refusals: dict[str, MadeSuite] = {}

    def admits(suite: MadeSuite) -> bool:
        meeting = Meeting(suite, folder)
        admitted = meeting.admits()
        for one in meeting.found:
            refusals.setdefault(str(one), suite)
        return admitted

    wrong = [
        f"{one}\n  {suite}"
        for suite in cover_pairs(admits, suites=suites, size=size, seed=seed, counted=counted)
        for one in Meeting(suite, folder).examine(judge=judge)
    ]
    # pytest shows it with -rP, and where a test fails.
    sys.stdout.write(f"{counted}\n")
    return wrong + [f"{text}\n  {suite}" for text, suite in refusals.items()]


def test_pairs_of_features_meet(folder: Folder) -> None:
    """A fixed small set of suites; `make test-all` has a few hundred."""
    wrong = examine_many(folder, suites=12, size=16, seed=1)

    assert [] == wrong


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_every_pair_of_features_meets(folder: Folder, judge: Judge, part: int) -> None:
    """Suites with another order of pairs in each part."""
    wrong = examine_many(folder, suites=_MANY // 4, size=14, seed=2 + part, judge=judge)

    assert [] == wrong
