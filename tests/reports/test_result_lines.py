"""The digest: red exactly where the verdict is no PASS, failures grouped by what they say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reports.short_reports import result_lines, totals_of
from tests.revising import replace

from trialwise.documents.results import LineKind, Status
from trialwise.model.evidence import Guard, Severity, Spending
from trialwise.model.run import RunRecord
from trialwise.model.trial import CheckResult
from trialwise.model.verdict import Decision, Dimension, LatencyFinding
from trialwise.pages.results import list_run_notes
from trialwise.pages.suite_totals import pick_suite_status, sum_spending
from trialwise.procedures.composite import compose

Runs = dict[str, RunRecord]
DECISIONS = st.sampled_from(Decision)


@given(
    functional=st.lists(DECISIONS, min_size=1, max_size=4),
    timing=st.lists(DECISIONS, max_size=3),
    advisory=st.frozensets(st.sampled_from(Dimension)),
)
def test_a_line_is_red_exactly_where_the_verdict_is_no_pass(
    runs: Runs, functional: list[Decision], timing: list[Decision], advisory: frozenset[Dimension]
) -> None:
    """Whatever is decided, enforced or advisory; and no run line where another says it."""
    record = runs["pass"]
    (finding,) = record.verdict.findings
    findings = [
        replace(finding, criterion=f"c{i}", decision=decision)
        for i, decision in enumerate(functional)
    ]
    latency = [
        LatencyFinding(
            constraint=f"p{i}",
            decision_rule="latency/raw-percentile",
            decision=decision,
            percentile=0.5,
            alpha=0.05,
            trials=10,
        )
        for i, decision in enumerate(timing)
    ]
    verdict = compose(findings, latency, advisory=advisory)
    entries = result_lines(replace(record, verdict=verdict))

    assert any(entry.is_red for entry in entries) is (verdict.decision is not Decision.PASS)
    assert len(functional) + len(timing) == len(entries)


def test_lines_stand_in_the_contracts_order(runs: Runs) -> None:
    """A criterion, then its inputs; latency last."""
    kinds = [entry.kind for entry in result_lines(runs["inputs"])]

    assert [LineKind.CRITERION, LineKind.INPUT, LineKind.INPUT, LineKind.INPUT] == kinds
    assert LineKind.LATENCY is result_lines(runs["fail"])[-1].kind


@pytest.mark.parametrize(
    ("said", "groups"),
    [
        (["found 1", "found 22"], [2]),
        (["'a' is missing", "'b' is missing", "too long"], [2, 1]),
        (['"a" and 1', '"bc" and 2'], [2]),
        (["it isn't there, can't be", "it wasn't there, can't be"], [1, 1]),
        (["late", "early", "late"], [2, 1]),
    ],
)
def test_failures_are_grouped_by_what_they_say(
    runs: Runs, said: list[str], groups: list[int]
) -> None:
    """Numbers and quoted text vary within one reason; the most frequent comes first."""
    record = runs["pass"]
    trials = list(record.trials)
    for place, explanation in enumerate(said):
        outcome = replace(trials[place].outcomes[0], result=CheckResult.fail(explanation))
        trials[place] = replace(trials[place], outcomes=(outcome,))
    (entry,) = result_lines(replace(record, trials=tuple(trials)))

    assert groups == [group.count for group in entry.failures]


def test_many_reasons_are_counted_beyond_the_first_five(runs: Runs) -> None:
    """Seven reasons: five told with an example, two trials left."""
    record = runs["pass"]
    trials = list(record.trials)
    for place, letter in enumerate("abcdefg"):
        outcome = replace(trials[place].outcomes[0], result=CheckResult.fail(f"says {letter}"))
        trials[place] = replace(trials[place], outcomes=(outcome,))
    (entry,) = result_lines(replace(record, trials=tuple(trials)))

    assert 11 == len(entry.failure_lines)
    assert "2 x other reasons" == entry.failure_lines[-1]


def test_a_refused_line_claims_nothing(runs: Runs) -> None:
    """Nothing was decided, so there is nobody it speaks of."""
    (entry,) = result_lines(runs["refused"])

    assert (Status.REFUSED, "") == (entry.status, entry.claim)


def test_notes_of_a_run_are_said_once(runs: Runs) -> None:
    """A guard that is also a caveat, and one that belongs to a criterion."""
    verdict = replace(
        runs["fail"].verdict,
        guards=(
            Guard(code="a", severity=Severity.MAJOR, message="whole", overridden=True),
            Guard(code="b", severity=Severity.MAJOR, message="part", criterion="grounded"),
        ),
        aborted="Stopped.",
    )

    assert ("Stopped.", "major caveat, admitted by override: whole [a]") == list_run_notes(verdict)
    assert "part" in result_lines(replace(runs["fail"], verdict=verdict))[1].notes


def test_a_suite_in_figures(suite: list[RunRecord]) -> None:
    """An advisory breach is counted apart; inputs are part of their criterion."""
    expected = "2 of 3 contracts failed, 1 refused, 120 trials, 51 s, $0.61"

    assert expected == totals_of(suite)
    assert Status.FAIL is pick_suite_status(one.verdict for one in suite)


def test_money_is_known_where_some_run_knows_it(runs: Runs) -> None:
    """$0.41 and nothing said are $0.41; nothing said twice is nothing."""
    assert 0.41 == sum_spending([runs["fail"].verdict, runs["pass"].verdict]).usd
    assert sum_spending([runs["pass"].verdict, runs["pass"].verdict]).usd is None
    assert Spending() == sum_spending([runs["refused"].verdict])
