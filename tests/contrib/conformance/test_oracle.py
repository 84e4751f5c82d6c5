"""The published reference cases, where a checkout has them beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from trialwise.contrib.conformance.case_runner import FolderResult, run_conformance
from trialwise.contrib.conformance.conformance_report import render_conformance
from trialwise.model.evidence import REFERENCE_RELEASES
from trialwise.stats.result_types import Rule

ORACLE = Path(__file__).resolve().parents[4] / "shared" / "oracle"
GENERATIONS: dict[str, Rule] = {"1.4": "wilson", "1.6": "fisher"}

pytestmark = pytest.mark.skipif(
    not all((ORACLE / generation).is_dir() for generation in GENERATIONS),
    reason="the published reference cases are not beside this checkout",
)


@pytest.fixture(scope="module", params=list(GENERATIONS))
def published(request: pytest.FixtureRequest) -> FolderResult:
    (result,) = run_conformance(ORACLE / request.param)
    return result


@pytest.mark.slow("1.6")
def test_every_published_case_matches(published: FolderResult) -> None:
    """Every binding field of every case, within its suite's tolerance."""
    assert not published.mismatches, render_conformance([published])
    assert published.passed
    assert sum(suite.count for suite in published.suites) > 50
    assert all(suite.matched == suite.count > 0 for suite in published.suites)


def test_every_published_suite_is_known(published: FolderResult) -> None:
    """None is unknown, no mandatory one is absent, and the status is earned."""
    assert published.unknown == []
    assert published.absent_mandatory == ()
    assert published.conformance_status["formulaValueFixtures"] == "passed"
    assert published.conformance_status["calibrationClaimPermitted"] is False


def test_reports_name_the_release_and_the_cases_that_matched(published: FolderResult) -> None:
    """What a report says of its rule set is what the cases give."""
    told = REFERENCE_RELEASES[GENERATIONS[published.path.name]]

    assert told.version == f"mavai-R {published.version}"
    assert told.cases == sum(suite.count for suite in published.suites)
    assert told.matched == sum(suite.matched for suite in published.suites)


def test_each_generation_is_judged_by_its_own_rule_set(published: FolderResult) -> None:
    """The two cannot be mixed."""
    assert {suite.rule for suite in published.suites} == {GENERATIONS[published.path.name]}


def test_the_informational_fields_agree_too(published: FolderResult) -> None:
    """All but the bootstrap comparison, which is an illustration and is not computed."""
    departing = {
        (suite.suite, difference.field)
        for suite in published.suites
        for case in suite.cases
        for difference in case.informational
    }

    assert departing <= {
        ("latency_threshold_bootstrap", field)
        for field in ("bootstrap_upper", "point_estimate", "diff")
    }


def test_the_deviation_is_far_below_the_tolerance(published: FolderResult) -> None:
    """Agreement by computation, not by a generous tolerance."""
    for suite in published.suites:
        assert suite.deviation <= max(suite.tolerance / 10, 1e-12), suite.suite
