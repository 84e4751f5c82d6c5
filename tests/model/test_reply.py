"""Replies, outcomes and check results cannot be built wrong."""

from __future__ import annotations

import pytest

from trialwise.errors import InvalidArgument
from trialwise.model.reply import Reply, Usage
from trialwise.model.trial import CheckResult, FailReason, Outcome


def test_a_reply_shows_what_is_not_text_as_python_would() -> None:
    """A callable may return anything."""
    assert "{'a': 1}" == Reply(value={"a": 1}).text
    assert "hello" == Reply(value="hello").text


def test_usage_adds_both_directions() -> None:
    """Tokens in and out."""
    assert 30 == Usage(input_tokens=10, output_tokens=20).total_tokens


@pytest.mark.parametrize("latency", [-0.1, float("nan"), float("inf")])
def test_a_latency_is_a_finite_duration(latency: float) -> None:
    """No reply came back before it was asked for."""
    with pytest.raises(InvalidArgument, match="latency_s"):
        Reply(value="", latency_s=latency)


def test_tokens_are_counts() -> None:
    """Half a token is a mistake somewhere."""
    with pytest.raises(InvalidArgument, match="output_tokens"):
        Usage(output_tokens=-1)


@pytest.mark.parametrize(("passed", "reason"), [(True, FailReason.CONDITION), (False, None)])
def test_a_failure_has_a_reason_and_a_pass_has_none(
    passed: bool, reason: FailReason | None
) -> None:
    """The two fields cannot contradict each other."""
    with pytest.raises(InvalidArgument, match="reason"):
        CheckResult(passed=passed, reason=reason)


def test_an_outcome_passes_with_its_result() -> None:
    """One is read from the other."""
    failed = CheckResult.fail("no value", reason=FailReason.NO_VALUE)

    assert Outcome(criterion="c", result=CheckResult.ok()).passed
    assert not Outcome(criterion="c", result=failed, postcondition="p").passed
