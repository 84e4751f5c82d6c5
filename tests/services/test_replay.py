"""Recording and replaying: equal replies, the same errors, and nothing secret in the file."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialwise.engine.excerpts import error_text
from trialwise.engine.ports import Service, ServiceError, TrialContext
from trialwise.model.reply import Reply, Setup, Usage
from trialwise.model.trial import ErrorClass
from trialwise.services import (
    CallableService,
    ChatService,
    CommandService,
    HttpFailure,
    HttpService,
    RecordedFailure,
    RecordingError,
    RecordingService,
    ReplayService,
)
from trialwise.services.replay import encode_error, encode_line, encode_reply, input_hash

pytestmark = pytest.mark.anyio

Serve = Callable[[Callable[[Any], None]], str]
SECRET = "sk-very-secret-0123456789"


def trial(index: int = 0, asked: Any = "question", seed: int = 11) -> TrialContext:
    return TrialContext(index=index, input=asked, seed=seed)


class Scripted:
    """A service that does the next thing on a list."""

    def __init__(self, *script: Reply | Exception) -> None:
        self.script = list(script)
        self.closed = 0

    async def call(self, _: TrialContext) -> Reply:
        step = self.script.pop(0)
        if isinstance(step, Exception):
            raise step
        return step

    async def aclose(self) -> None:
        self.closed += 1


def say(*values: Any) -> Scripted:
    return Scripted(*(Reply(value=value) for value in values))


async def values(service: Service, *trials: TrialContext) -> list[Any]:
    return [(await service.call(one)).value for one in trials]


async def test_every_service_replays_as_it_was_recorded(serve: Serve, tmp_path: Path) -> None:
    """Function, command, endpoint and chat model give equal replies from the file alone."""

    def chat(request: Any) -> None:
        call = {"function": {"name": "add", "arguments": '{"a": 1}'}}
        choice = {"message": {"content": "ü", "tool_calls": [call]}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 3, "completion_tokens": 4}
        request.respond(200, json.dumps({"choices": [choice], "usage": usage}))

    url, environment = serve(chat), {"KEY": SECRET}
    services: list[Service] = [
        CallableService(lambda question: {"asked": question, "parts": [1, 2.5, None, True]}),
        CommandService([sys.executable, "-c", "import sys; sys.exit(print('{input}'))"]),
        HttpService(url, headers={"X": "${KEY}"}, environment=environment),
        ChatService(url, "small", api_key_env="KEY", environment=environment),
    ]
    for number, service in enumerate(services):
        file = tmp_path / "runs" / f"{number}.jsonl"
        recording = RecordingService(service, file)
        trials = [trial(index, f"q{index % 3}") for index in range(6)]

        recorded = [await recording.call(one) for one in trials]
        await recording.aclose()
        replay = ReplayService(file)

        assert recorded == [await replay.call(one) for one in trials]
        assert SECRET not in file.read_text(encoding="utf-8")


async def test_a_line_holds_the_trial_and_its_reply(tmp_path: Path) -> None:
    """Readable JSON; the input only by its hash."""
    file = tmp_path / "recording.jsonl"
    reply = Reply(
        setup=Setup(seconds=1.5, usage=Usage(input_tokens=9), cost_usd=0.25),
        value="x",
        latency_s=0.5,
        usage=Usage(input_tokens=1, output_tokens=2),
        cost_usd=0.1,
        exit_code=3,
        details={"a": [1]},
    )
    await RecordingService(Scripted(reply), file).call(trial(4, "private question"))

    (line,) = file.read_text(encoding="utf-8").splitlines()
    fields = json.loads(line)

    assert ["recording", "index", "input", "seed", "attempt", "reply", "checksum"] == list(fields)
    assert (4, 11) == (fields["index"], fields["seed"])
    assert "private question" not in line
    assert reply == await ReplayService(file).call(trial(4, "private question"))


async def test_a_reply_is_found_by_its_index_and_then_by_its_input_in_order() -> None:
    """Whatever order the trials come in, and with other indices the unused ones in turn."""
    lines: list[bytes] = []
    recording = RecordingService(say("a1", "b", "a0", "a2"), lines.append)
    for index, asked in ((1, "a"), (5, "b"), (0, "a"), (2, "a")):
        await recording.call(trial(index, asked))

    replay = ReplayService(lines)
    assert ["a2", "a0", "a1"] == await values(replay, trial(2, "a"), trial(0, "a"), trial(1, "a"))
    await replay.aclose()
    shifted = [trial(index, "a") for index in (7, 8, 9)]
    assert ["a0", "a1", "a2"] == await values(replay, *shifted)
    assert 4 == len(replay)


async def test_another_seed_or_order_of_keys_is_the_same_input() -> None:
    """The input is known by its content alone."""
    lines: list[bytes] = []
    await RecordingService(say("x"), lines.append).call(trial(0, {"a": 1, "b": 2}))

    assert ["x"] == await values(ReplayService(lines), trial(0, {"b": 2, "a": 1}, seed=99))


async def test_a_missing_reply_is_named() -> None:
    """Never another input's, never the same one twice."""
    lines: list[bytes] = []
    await RecordingService(say("x"), lines.append).call(trial(0, "a"))
    replay = ReplayService(lines)
    await replay.call(trial(0, "a"))

    for missing in (trial(0, "a"), trial(3, "other")):
        with pytest.raises(RecordingError, match=f"trial {missing.index}: '{missing.input}'") as e:
            await replay.call(missing)
        assert ErrorClass.PRE_VALIDATION is e.value.error_class


async def test_errors_are_raised_again_as_they_were_classed() -> None:
    """With the status and the time to wait; the service's own failures stay its own."""
    lines: list[bytes] = []
    errors = [
        HttpFailure("busy", status=429, retry_after_s=2.5),
        ServiceError("late", ErrorClass.TIMEOUT),
        KeyError("own"),
        ConnectionRefusedError("nobody there"),
    ]
    recording = RecordingService(Scripted(*errors), lines.append)
    for index, error in enumerate(errors):
        with pytest.raises(type(error)):
            await recording.call(trial(index))
    replay = ReplayService(lines)

    with pytest.raises(HttpFailure, match="busy") as busy:
        await replay.call(trial(0))
    with pytest.raises(ServiceError, match="late") as late:
        await replay.call(trial(1))
    with pytest.raises(RecordedFailure, match="own") as own:
        await replay.call(trial(2))
    with pytest.raises(RecordedFailure, match="nobody there") as refused:
        await replay.call(trial(3))

    assert (429, 2.5) == (busy.value.status, busy.value.retry_after_s)
    assert ErrorClass.TIMEOUT is late.value.error_class
    assert "builtins.KeyError" == own.value.original_type
    assert ErrorClass.NONE is own.value.error_class
    assert ErrorClass.INFRASTRUCTURE is refused.value.error_class
    assert "ConnectionRefusedError: nobody there" == error_text(refused.value)


async def test_a_recording_of_an_earlier_version_names_no_class_for_what_a_service_raised() -> None:
    """It plays as it did: a failure of the service's own."""
    fields = {"type": "builtins.KeyError", "message": "own", "class": None}
    line = encode_line(
        {"index": 0, "input": input_hash(trial().input), "seed": 11, "error": fields}
    )

    with pytest.raises(RecordedFailure) as own:
        await ReplayService([line]).call(trial())
    assert ErrorClass.NONE is own.value.error_class


async def test_attempts_at_one_trial_come_back_in_their_order() -> None:
    """A retry replays as a retry."""
    lines: list[bytes] = []
    recording = RecordingService(Scripted(HttpFailure("busy"), Reply(value="ok")), lines.append)
    with pytest.raises(HttpFailure):
        await recording.call(trial())
    await recording.call(replace(trial(), attempt=2))
    replay = ReplayService(lines)

    with pytest.raises(HttpFailure):
        await replay.call(trial())
    assert "ok" == (await replay.call(trial())).value


async def test_attempts_of_a_recording_without_their_numbers_come_back_in_their_order() -> None:
    """Version 0.1.0 did not number them."""
    lines = [
        encode_line({"index": 0, "input": input_hash("q"), "seed": 11} | outcome)
        for outcome in (
            {"error": encode_error(HttpFailure("busy"))},
            {"reply": encode_reply(Reply(value="ok"))},
        )
    ]
    replay = ReplayService(lines)

    with pytest.raises(HttpFailure):
        await replay.call(trial(0, "q"))
    assert "ok" == (await replay.call(trial(0, "q"))).value


async def test_a_cancelled_call_replays_as_a_timeout_unless_completed_later() -> None:
    """A timeout is part of a run; an interruption that was made good is not."""
    lines: list[bytes] = []

    async def hang() -> None:
        await anyio.sleep_forever()

    for index in (0, 1):
        with anyio.move_on_after(0.01):
            await RecordingService(CallableService(hang), lines.append).call(trial(index))
    await RecordingService(say("later"), lines.append).call(trial(1))
    replay = ReplayService(lines)

    with pytest.raises(ServiceError, match="cancelled after") as caught:
        await replay.call(trial(0))
    assert ErrorClass.TIMEOUT is caught.value.error_class
    assert "later" == (await replay.call(trial(1))).value


async def test_a_sink_that_fails_cannot_hide_a_cancellation() -> None:
    """The scope that was cancelled sees it."""

    def full(_: bytes) -> None:
        raise OSError(28, "No space left on device")

    with anyio.move_on_after(0.01) as scope:
        await RecordingService(CallableService(anyio.sleep_forever), full).call(trial())

    assert scope.cancelled_caught
    with pytest.raises(RecordingError, match="No space left") as caught:
        await RecordingService(say("x"), full).call(trial())
    assert ErrorClass.INFRASTRUCTURE is caught.value.error_class


ITSELF: list[Any] = []
ITSELF.append(ITSELF)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (object(), "value is a object"),
        ((1, 2), "value is a tuple"),
        ({"a": [1, {2}]}, r"value\['a'\]\[1\] is a set"),
        ({1: "a"}, "a dict with the key 1"),
        (float("nan"), "value is nan"),
        (b"x", "value is a bytes"),
        ([10**5000], "thousands of digits"),
        (ITSELF, "within itself"),
    ],
)
async def test_what_json_would_change_is_refused(value: Any, message: str) -> None:
    """With the place where it stands; in the details and the input as well."""
    lines: list[bytes] = []
    with pytest.raises(RecordingError, match=message):
        await RecordingService(say(value), lines.append).call(trial())
    with pytest.raises(RecordingError, match="details"):
        await RecordingService(
            Scripted(Reply(value="x", details={"extra": value})), lines.append
        ).call(trial())
    never_asked = say("x")
    with pytest.raises(RecordingError, match="the input") as caught:
        await RecordingService(never_asked, lines.append).call(trial(0, value))

    assert ErrorClass.PRE_VALIDATION is caught.value.error_class
    assert 1 == len(never_asked.script)
    assert [] == lines


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(value=PLAIN, asked=PLAIN)
def test_whatever_is_recorded_comes_back_equal(value: Any, asked: Any) -> None:
    """Line separators, half surrogate pairs and all."""
    lines: list[bytes] = []
    anyio.run(RecordingService(say(value), lines.append).call, trial(0, asked))

    (line,) = lines
    assert 1 == line.count(b"\n")
    assert value == anyio.run(ReplayService(lines).call, trial(0, asked)).value


async def test_a_changed_line_is_refused_by_its_number(tmp_path: Path) -> None:
    """A recording is evidence."""
    file = tmp_path / "recording.jsonl"
    recording = RecordingService(say("first", "555"), file)
    await recording.call(trial(0))
    await recording.call(trial(1))
    text = file.read_text(encoding="utf-8")

    file.write_text(text.replace("555", "554"), encoding="utf-8")
    with pytest.raises(RecordingError, match=r"line 2 .* checksum"):
        ReplayService(file)
    file.write_text(text + '{"some": "thing"}\n', encoding="utf-8")
    with pytest.raises(RecordingError, match=r"line 3 .* is not one"):
        ReplayService(file)
    with pytest.raises(RecordingError, match="cannot be read"):
        ReplayService(tmp_path / "none.jsonl")


async def test_a_last_line_cut_off_at_any_byte_never_counted(tmp_path: Path) -> None:
    """A killed run leaves a recording that replays and that can be continued."""
    file = tmp_path / "recording.jsonl"
    recording = RecordingService(say("zero", "one"), file)
    await recording.call(trial(0))
    await recording.call(trial(1))
    whole = file.read_bytes()
    first = whole.index(b"\n") + 1

    for length in range(len(whole)):
        file.write_bytes(whole[:length])
        complete = 1 if length >= first else 0
        assert complete == len(ReplayService(file))
        if length % 7 == 0:
            await RecordingService(say("again"), file).call(trial(1))
            assert "again" == (await ReplayService(file).call(trial(1))).value
            assert complete + 1 == len(ReplayService(file))


async def test_a_file_that_is_no_recording_is_left_as_it_is(tmp_path: Path) -> None:
    """A wrong path costs nobody a file."""
    file = tmp_path / "thesis.txt"
    file.write_text("years of work", encoding="utf-8")

    with pytest.raises(RecordingError, match="is not a recording"):
        await RecordingService(say("x"), file).call(trial())

    assert "years of work" == file.read_text(encoding="utf-8")


async def test_closing_closes_what_is_recorded() -> None:
    """As often as it is asked to."""
    service = say()
    lines: list[bytes] = []
    recording = RecordingService(service, lines.append)
    await recording.aclose()
    await recording.aclose()

    assert 2 == service.closed
    assert repr(recording).startswith("RecordingService(")


async def test_one_file_may_hold_several_contracts() -> None:
    """Each is played its own replies, and those of lines that name none."""
    lines: list[bytes] = []
    for contract, value in (("agent [a]", "A"), ("agent [b]", "B"), (None, "anyone's")):
        recording = RecordingService(say(value), lines.append, contract=contract)
        await recording.call(trial(0, "q"))

    again = [trial(0, "q"), trial(1, "q")]

    assert ["A", "anyone's"] == await values(ReplayService(lines, contract="agent [a]"), *again)
    assert ["B", "anyone's"] == await values(ReplayService(lines, contract="agent [b]"), *again)
    assert 3 == len(ReplayService(lines))
