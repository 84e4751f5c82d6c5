"""What criteria say of a response, and what of it is kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import MappingProxyType
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialwise.checks import contains
from trialwise.engine.attempt import Response
from trialwise.engine.excerpts import Excerpts
from trialwise.engine.reply_checking import ReplyChecker
from trialwise.engine.run_state import TrialStart
from trialwise.model.claim import Input
from trialwise.model.criterion import Criterion
from trialwise.model.reply import Reply, Setup, Usage
from trialwise.model.trial import CheckResult, ErrorClass, FailReason, Trial
from trialwise.model.trial_lines import read_trial, write_trial


def score(
    reply: Reply | Response,
    *criteria: Criterion,
    activity: Callable[[Reply], bool] | None = None,
    given: Any = "question",
    expected: Any = None,
    limit: int = 4000,
    redact: Callable[[str], str] | None = None,
) -> Trial:
    scorer = ReplyChecker(
        "inputs",
        criteria or (criterion("c", contains("yes")),),
        activity=activity,
        excerpts=Excerpts(reply_limit=limit, redact=redact),
    )
    response = reply if isinstance(reply, Response) else Response(reply)
    one = Input(id="5", value=given, expected=expected)
    return scorer.trial(TrialStart(0, 4, 0, 99), one, response, 1.5)


def criterion(name: str, *checks: Any) -> Criterion:
    return Criterion(name, list(checks), at_least=0.9)


def test_a_trial_keeps_what_the_reply_reports() -> None:
    """Latency, usage and cost by the service's own measure, and setup apart from them."""
    usage, setup_usage = Usage(input_tokens=3, output_tokens=4), Usage(input_tokens=100)
    reply = Reply(
        value="yes",
        latency_s=0.25,
        usage=usage,
        cost_usd=0.01,
        exit_code=3,
        setup=Setup(seconds=2.0, usage=setup_usage, cost_usd=0.5),
    )

    trial = score(reply)

    assert (4, "5", 99, 1.5) == (trial.index, trial.input_id, trial.seed, trial.started_s)
    assert (0.25, usage, 0.01, 3) == (trial.latency_s, trial.usage, trial.cost_usd, trial.exit_code)
    assert (2.0, setup_usage, 0.5) == (trial.setup_s, trial.setup_usage, trial.setup_cost_usd)
    assert "yes" == trial.reply
    assert trial.passed


def test_the_first_postcondition_that_fails_names_the_failure() -> None:
    """Those after it are asked as well, and kept beside it where they do not hold."""
    asked: list[str] = []

    def note(text: str) -> bool:
        asked.append(text)
        return False

    trial = score(
        Reply(value="yes"),
        criterion("holds", contains("y")),
        criterion("fails", contains("y"), contains("no"), note),
    )

    assert [True, False] == [one.passed for one in trial.outcomes]
    assert contains("no").name == trial.outcome("fails").postcondition
    assert FailReason.CONDITION is trial.outcome("fails").result.reason
    assert ["yes"] == asked
    assert ["note"] == [one.postcondition for one in trial.outcome("fails").others]
    line = write_trial(trial)
    again = read_trial(line, experiment=trial.experiment, criteria=("holds", "fails"))
    assert trial == again


def test_a_plain_function_is_given_the_trials_input() -> None:
    """As is every postcondition, among the reply's details."""

    def echoes(text: str, input: str) -> bool:  # noqa: A002 - the name that is asked for
        return text == input

    assert score(Reply(value="question", details={"a": 1}), criterion("c", echoes)).passed
    assert not score(Reply(value="answer"), criterion("c", echoes)).passed


class Odd:
    """A postcondition of somebody's own."""

    name = "odd"

    def __init__(self, answer: Callable[[], Any]) -> None:
        self.answer = answer

    def check(self, reply: Reply) -> CheckResult:  # noqa: ARG002 - whatever it is
        return self.answer()  # type: ignore[no-any-return]


def leave() -> NoReturn:
    raise SystemExit(3)


async def later() -> CheckResult:
    return CheckResult.ok()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda: 1 / 0, "raised ZeroDivisionError: division by zero"),
        (leave, "raised SystemExit: 3"),
        (lambda: True, "returned bool"),
        (later, "returned coroutine"),
    ],
)
def test_a_postcondition_that_gives_no_result_fails_the_reply(
    answer: Callable[[], Any], said: str
) -> None:
    """What it raised is the reason; where it returned something else, the check is broken."""
    result = score(Reply(value="yes"), criterion("c", Odd(answer))).outcomes[0].result

    if said.startswith("raised"):
        assert FailReason.RAISED is result.reason
        assert f"check {said}" == f"{result.explanation}: {result.evidence}"
    else:
        assert FailReason.BROKEN is result.reason
        assert said in result.explanation


def test_no_reply_fails_every_criterion_for_want_of_a_value() -> None:
    """Whatever the class of the error."""
    response = Response(None, ErrorClass.INFRASTRUCTURE, "refused", 3, ("once", "twice"))

    trial = score(response, criterion("a", contains("x")), criterion("b", contains("y")))

    assert [FailReason.NO_VALUE] * 2 == [one.result.reason for one in trial.outcomes]
    assert [ErrorClass.INFRASTRUCTURE] * 2 == [one.error_class for one in trial.outcomes]
    assert (3, ("once", "twice"), "refused") == (trial.attempts, trial.attempt_errors, trial.error)
    assert trial.latency_s is None
    assert trial.reply is None
    assert trial.is_excused


def test_a_reply_without_activity_is_an_empty_run() -> None:
    """It fails every criterion, whatever it says, and the per-protocol analysis excuses it."""

    def is_active(reply: Reply) -> bool:
        return bool(reply.details.get("tool_calls"))

    idle = score(Reply(value="yes", details={"tool_calls": []}), activity=is_active)
    busy = score(Reply(value="yes", details={"tool_calls": [{"name": "f"}]}), activity=is_active)

    assert (ErrorClass.EMPTY_RUN, True, False) == (idle.error_class, idle.is_excused, idle.passed)
    assert FailReason.NO_VALUE is idle.outcomes[0].result.reason
    assert busy.passed


def test_an_activity_that_raises_is_broken() -> None:
    """Counting it as active would let a broken signal pass for a working one."""
    trial = score(Reply(value="yes"), activity=lambda reply: reply.details["none"])

    assert FailReason.BROKEN is trial.outcomes[0].result.reason
    assert "raised KeyError" in trial.outcomes[0].result.explanation


def test_secrets_leave_every_text_that_is_kept() -> None:
    """Reply, explanation, evidence, error and tool calls, keys included."""

    def tells(text: str) -> CheckResult:
        return CheckResult.fail(f"found {text}", evidence=text)

    calls = [{"name": "f", "arguments": {"hunter2": ["my hunter2"]}}]
    trial = score(
        Reply(value="hunter2", details={"tool_calls": calls}),
        criterion("c", tells),
        redact=lambda text: text.replace("hunter2", "***"),
    )
    failed = score(Reply(value="hunter2"), criterion("c", tells))

    assert "hunter2" not in json.dumps(write_trial(trial))
    assert ({"name": "f", "arguments": {"***": ["my ***"]}},) == trial.tool_calls
    assert "hunter2" in json.dumps(write_trial(failed))  # without redaction it stays


def test_half_a_secret_is_not_left_by_shortening() -> None:
    """Redaction comes first."""
    trial = score(
        Reply(value="aaa hunter2"), limit=8, redact=lambda text: text.replace("hunter2", "***")
    )

    assert "aaa ***" == trial.reply


@pytest.mark.parametrize(
    ("limit", "kept"), [(4000, "abcdef"), (6, "abcdef"), (5, "abcd…"), (1, "…"), (0, None)]
)
def test_a_long_reply_is_shortened(limit: int, kept: str | None) -> None:
    """To the limit, with a sign that there was more; a limit of 0 keeps nothing."""
    assert kept == score(Reply(value="abcdef"), limit=limit).reply


@given(value=st.text(st.characters()), limit=st.integers(0, 30))
def test_whatever_text_is_kept_can_be_written(value: str, limit: int) -> None:
    """Lone surrogates and all: it encodes, it is no longer than allowed, and JSON returns it."""
    trial = score(Reply(value=value), criterion("c", lambda text: False), limit=limit)  # noqa: ARG005
    line = write_trial(trial)

    json.dumps(line, ensure_ascii=False, allow_nan=False).encode()
    assert len(trial.reply or "") <= limit
    back = read_trial(json.loads(json.dumps(line)), experiment="inputs", criteria=("c",))
    assert trial == back


def test_an_explanation_is_kept_where_no_reply_is() -> None:
    """And bounded by itself: a postcondition of one's own may say as much as it likes."""
    said = CheckResult.fail("why " * 5000, evidence="e")
    outcome = score(Reply(value="x"), criterion("c", Odd(lambda: said)), limit=0).outcomes[0]

    assert outcome.result.explanation.startswith("why why")
    assert 4000 == len(outcome.result.explanation)


def test_half_a_surrogate_pair_is_replaced_and_a_whole_one_joined() -> None:
    """A tokeniser that splits an emoji makes the first; JSON escapes make the second."""
    assert "a\ufffd" == score(Reply(value="a\ud83d")).reply
    assert "a😀" == score(Reply(value="a\ud83d\ude00")).reply


class Unprintable:
    def __str__(self) -> str:
        raise ValueError("no")


def test_a_value_that_cannot_be_shown_is_named() -> None:
    """Its kind is all there is to keep."""
    assert "<Unprintable, whose text raised ValueError>" == score(Reply(value=Unprintable())).reply


RECURSIVE: dict[str, Any] = {"name": "f"}
RECURSIVE["arguments"] = RECURSIVE


@pytest.mark.parametrize(
    "calls",
    [
        None,
        "f",
        [1],
        [{"name": object()}],
        [{"name": float("nan")}],
        [{1: "f"}],
        [{"n": 10**5000}],
        [RECURSIVE],
    ],
)
def test_tool_calls_that_are_not_plain_are_dropped(calls: Any) -> None:
    """The journal is JSON."""
    assert () == score(Reply(value="yes", details={"tool_calls": calls})).tool_calls


def test_tool_calls_in_any_mapping_are_kept() -> None:
    """A client library may hand out read-only views instead of dicts."""
    view = MappingProxyType({"n": MappingProxyType({"x": 1})})
    calls = [MappingProxyType({"name": "f", "arguments": view, "list": [view]})]
    kept = score(Reply(value="yes", details={"tool_calls": calls})).tool_calls

    plain = {"n": {"x": 1}}
    assert ({"name": "f", "arguments": plain, "list": [plain]},) == kept


def test_plain_tool_calls_are_kept_in_order() -> None:
    """With numbers, nulls and nesting as they are."""
    calls = [{"name": "f", "arguments": {"n": 1, "x": 0.5, "no": None, "ok": True}}, {"name": "g"}]

    assert tuple(calls) == score(Reply(value="yes", details={"tool_calls": calls})).tool_calls
