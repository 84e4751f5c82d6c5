"""Programs under test, as real processes: well-behaved, flooding, hanging, forking and dying."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from trialwise.engine.ports import ServiceError, TrialContext
from trialwise.errors import InvalidArgument
from trialwise.model.trial import ErrorClass
from trialwise.services import CommandService, ReplyTooLarge

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(os.name != "posix", reason="signals and process groups are POSIX"),
]

NASTY = "two  words 'single' \"double\" $HOME `id` ; rm \\ \n line two\ttab {seed} ünï 🎲 * ~ -x"
ECHO = "import sys, json; print(json.dumps(sys.argv[1:]))"


def trial(given: Any = "question", index: int = 3) -> TrialContext:
    return TrialContext(index=index, input=given, seed=11)


def python(code: str, *arguments: str, **options: Any) -> CommandService:
    """A service that runs a few lines of Python."""
    options.setdefault("input_via", "environment")
    return CommandService([sys.executable, "-I", "-c", code, *arguments], **options)


def is_running(pid: int) -> bool:
    """Whether a process exists and is not a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in {"Z", "X"}


def all_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def command_line(pid: int) -> bytes:
    """A process's arguments; a zombie has none."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


async def pids(file: Path, count: int) -> list[int]:
    """The process ids that a command has written, once all are there."""
    while True:
        lines = file.read_text(encoding="utf-8").split() if file.exists() else []
        if len(lines) >= count:
            return [int(line) for line in lines]
        await anyio.sleep(0.01)


#: A process and its child; both note their pid, ignore SIGTERM and wait for ever.
STUBBORN = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0 and "own-group" in sys.argv:
    os.setpgid(0, 0)
with open(sys.argv[1], "a") as file:
    file.write(f"{os.getpid()}\\n")
time.sleep(600)
"""


@pytest.mark.parametrize("given", ["plain", NASTY, "", "{input}", "--help", "a" * 100_000])
async def test_an_argument_arrives_as_it_is(given: str) -> None:
    """No shell, no splitting, no second replacement."""
    service = python(ECHO, "{input}", "x={input}", "a b", '{"k": {"{seed}": 1}}', "{index}",
                     input_via="argument", parse_json=True)  # fmt: skip

    reply = await service.call(trial(given))

    assert [given, f"x={given}", "a b", '{"k": {"11": 1}}', "3"] == reply.value
    assert 0 == reply.exit_code
    assert reply.latency_s > 0


async def test_an_input_that_is_not_text_is_passed_as_json() -> None:
    """A mapping is as good as a text."""
    given = {"city": "Zürich", "days": [1, 2]}
    reply = await python(ECHO, "{input}", input_via="argument", parse_json=True).call(trial(given))

    assert given == json.loads(reply.value[0])


async def test_a_large_input_goes_through_standard_input() -> None:
    """Far more than a pipe holds, to a program that answers only at the end."""
    given = NASTY * 50_000
    code = "import sys, hashlib; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())"
    from hashlib import sha256

    reply = await python(code, input_via="stdin").call(trial(given))

    assert sha256(given.encode()).hexdigest() == reply.value


async def test_a_program_need_not_read_its_standard_input() -> None:
    """Closing it early is not an error."""
    reply = await python("import os; os.close(0); print('no thanks')", input_via="stdin").call(
        trial("x" * 2**22)
    )

    assert "no thanks" == reply.value


async def test_without_an_input_there_standard_input_is_empty() -> None:
    """A program that reads it does not wait for a person."""
    reply = await python("import sys; print(repr(sys.stdin.read()))").call(trial())

    assert "''" == reply.value


async def test_the_scenario_file_is_there_for_as_long_as_the_program_runs() -> None:
    """JSON with the whole trial, gone afterwards together with what was put beside it."""
    code = """
import json, os, sys
path = sys.argv[1]
open(os.path.join(os.path.dirname(path), "more.txt"), "w").close()
print(json.dumps([path, json.load(open(path))]))
"""
    service = python(code, "{scenario_file}", input_via="file", parse_json=True)

    path, scenario = (await service.call(trial({"q": NASTY}))).value

    assert {"input": {"q": NASTY}, "index": 3, "seed": 11} == scenario
    assert not Path(path).parent.exists()


async def test_the_environment_carries_the_trial() -> None:
    """The input when asked, index and seed always, our own variables unless not wanted."""
    code = "import os, json; print(json.dumps(dict(os.environ)))"
    os.environ["TRIALWISE_TEST_OWN"] = "inherited"
    try:
        given = await python(code, parse_json=True, env={"MORE": "a b"}).call(trial(NASTY))
        bare = await python(code, parse_json=True, inherit_env=False).call(trial("x"))
    finally:
        del os.environ["TRIALWISE_TEST_OWN"]

    expected = {
        "TRIALWISE_INPUT": NASTY,
        "TRIALWISE_INDEX": "3",
        "TRIALWISE_SEED": "11",
        "MORE": "a b",
        "TRIALWISE_TEST_OWN": "inherited",
    }
    assert expected.items() <= given.value.items()
    assert "TRIALWISE_TEST_OWN" not in bare.value


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [
        ("import sys; print('no'); sys.exit(3)", 3),
        ("print('no', flush=True); import os; os.kill(os.getpid(), 9)", -9),
        ("print('no', flush=True); import os; os.abort()", -signal.SIGABRT),
    ],
)
async def test_however_a_program_ends_is_a_reply(code: str, exit_code: int) -> None:
    """An exit code may be the property under test; a death half-way keeps what was said."""
    reply = await python(code).call(trial())

    assert ("no", exit_code) == (reply.value, reply.exit_code)


@pytest.mark.parametrize(
    ("written", "value"),
    [("a\\n", "a"), ("a\\r\\n", "a"), ("a\\n\\n", "a\n"), ("a", "a"), ("", ""), ("\\n", "")],
)
async def test_the_line_end_that_closes_the_output_is_not_part_of_it(
    written: str, value: str
) -> None:
    """One of them, as printing adds one."""
    code = f"import sys; sys.stdout.buffer.write(b'{written}')"

    assert value == (await python(code).call(trial())).value


async def test_the_output_can_be_kept_to_the_byte() -> None:
    """For those who test line ends."""
    assert "a\n" == (await python("print('a')", strip_newline=False).call(trial())).value


async def test_output_that_is_not_utf8_is_shown_and_marked() -> None:
    """No exception; a replacement character that was really sent is not marked."""
    bad = await python("import sys; sys.stdout.buffer.write(b'caf\\xe9 \\xff')").call(trial())
    good = await python("import sys; sys.stdout.buffer.write(b'\\xef\\xbf\\xbd')").call(trial())

    assert ("caf\ufffd \ufffd", True) == (bad.value, bad.details["not_utf8"])
    assert "not_utf8" not in good.details


@pytest.mark.parametrize("said", ["{not json", "NaN", "[" * 100_000, ""])
async def test_output_that_is_not_json_stays_text(said: str) -> None:
    """With the reason beside it, and its exit code still to be judged."""
    service = CommandService(["cat"], input_via="stdin", parse_json=True)

    reply = await service.call(trial(said))

    assert said == reply.value
    assert reply.details["json_error"]


async def test_standard_error_is_kept_from_its_end() -> None:
    """That is where the reason stands; a flood of it neither blocks nor fills memory."""
    code = "import sys; sys.stderr.write('x' * 5_000_000 + 'the reason'); print('ok')"

    reply = await python(code, stderr_limit=1000).call(trial())

    assert "ok" == reply.value
    assert ("x" * 990 + "the reason", True) == (
        reply.details["stderr"],
        reply.details["stderr_truncated"],
    )


async def test_a_program_that_floods_is_ended_and_fails(tmp_path: Path) -> None:
    """It gets no chance to fill memory, even if it ignores SIGTERM."""
    code = """
import os, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(sys.argv[1], "w").write(str(os.getpid()))
while True:
    try:
        os.write(1, b"flood " * 10_000)
    except OSError:
        pass
"""
    service = python(code, str(tmp_path / "pid"), output_limit=100_000, grace_s=0.1)

    with anyio.fail_after(20):
        with pytest.raises(ReplyTooLarge, match=r"100,000 bytes.*'flood flood ") as caught:
            await service.call(trial())

    assert 100_000 == caught.value.limit_bytes
    assert not is_running(int((tmp_path / "pid").read_text(encoding="utf-8")))


async def test_exactly_the_limit_is_allowed() -> None:
    """The limit is the largest that passes."""
    reply = await python("print('x' * 999)", output_limit=1000).call(trial())

    assert "x" * 999 == reply.value


@pytest.mark.parametrize("where", ["same-group", "own-group"])
async def test_cancelling_leaves_nothing_running(tmp_path: Path, where: str) -> None:
    """Parent and child ignore SIGTERM, one has its own group; both are gone when the call is."""
    file = tmp_path / "pids"
    service = python(STUBBORN, str(file), where, grace_s=0.2)
    found: list[int] = []

    async with anyio.create_task_group() as group:
        group.start_soon(service.call, trial())
        with anyio.fail_after(20):
            found = await pids(file, 2)
        assert all(map(is_running, found))
        group.cancel_scope.cancel()

    assert 2 == len(set(found))
    assert [] == [pid for pid in found if is_running(pid)]


@pytest.mark.slow
async def test_cancelled_at_any_instant_nothing_is_left_running(tmp_path: Path) -> None:
    """While it starts, while it forks, while it waits: 60 instants, three calls at a time."""
    instants = random.Random(7)
    service = python(STUBBORN, str(tmp_path / "pids"), grace_s=0.0)

    async def cancelled() -> None:
        with anyio.move_on_after(instants.uniform(0.0, 0.06)):
            await service.call(trial())

    for _ in range(20):
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(cancelled)

    assert [] == [pid for pid in all_pids() if str(tmp_path).encode() in command_line(pid)]


async def test_a_timeout_gives_a_program_time_to_clean_up(tmp_path: Path) -> None:
    """SIGTERM comes first, and a program that heeds it is not waited for longer than it needs."""
    code = """
import signal, sys, time
def stop(*_):
    open(sys.argv[2], "w").write("cleaned up")
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
open(sys.argv[1], "w").write("1")
time.sleep(600)
"""
    service = python(code, str(tmp_path / "ready"), str(tmp_path / "note"), grace_s=30)
    cancelled = 0.0
    async with anyio.create_task_group() as group:
        group.start_soon(service.call, trial())
        with anyio.fail_after(20):
            await pids(tmp_path / "ready", 1)
        cancelled = time.perf_counter()
        group.cancel_scope.cancel()

    assert time.perf_counter() - cancelled < 15
    assert "cleaned up" == (tmp_path / "note").read_text(encoding="utf-8")


async def test_a_timeout_is_the_callers() -> None:
    """`fail_after` around the call raises as it does around anything."""
    before = set(Path(tempfile.gettempdir()).glob("trialwise-*"))
    service = python("import time; time.sleep(600)", "{scenario_file}", input_via="file")

    with pytest.raises(TimeoutError), anyio.fail_after(0.2):
        await service.call(trial())

    assert before == set(Path(tempfile.gettempdir()).glob("trialwise-*"))


#: A process that ends and leaves a child that ignores SIGTERM.
ORPHAN = """
import os, signal, sys, time
if os.fork() == 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    open(sys.argv[1], "w").write(f"{os.getpid()}\\n")
    time.sleep(600)
while not os.path.exists(sys.argv[1]) or not os.path.getsize(sys.argv[1]):
    time.sleep(0.01)
print("done")
"""


async def test_children_that_outlive_their_parent_are_ended(tmp_path: Path) -> None:
    """The parent's end is the reply; what it left holds neither the pipe nor the machine."""
    with anyio.fail_after(20):
        reply = await python(ORPHAN, str(tmp_path / "pid"), grace_s=0.1).call(trial())

    assert ("done", 0, True) == (reply.value, reply.exit_code, reply.details["left_children"])
    assert [False] == [is_running(pid) for pid in await pids(tmp_path / "pid", 1)]


async def test_cancelling_while_children_are_being_ended_still_ends_them(tmp_path: Path) -> None:
    """The parent has gone, the grace of its child has not."""
    found: list[int] = []
    async with anyio.create_task_group() as group:
        group.start_soon(python(ORPHAN, str(tmp_path / "pid"), grace_s=1.0).call, trial())
        with anyio.fail_after(20):
            found = await pids(tmp_path / "pid", 1)
        await anyio.sleep(0.3)
        group.cancel_scope.cancel()

    assert [False] == [is_running(pid) for pid in found]


async def test_a_daemon_that_holds_the_pipe_does_not_hold_the_trial(tmp_path: Path) -> None:
    """What moved to its own session is out of reach, but is not waited for."""
    code = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    open(sys.argv[1], "w").write(f"{os.getpid()}\\n")
    time.sleep(600)
while not os.path.exists(sys.argv[1]) or not os.path.getsize(sys.argv[1]):
    time.sleep(0.01)
print("done")
"""
    try:
        with anyio.fail_after(20):
            reply = await python(code, str(tmp_path / "pid")).call(trial())
    finally:
        for pid in await pids(tmp_path / "pid", 1):
            os.kill(pid, signal.SIGKILL)

    assert "done" == reply.value


@pytest.mark.parametrize("argv", [["/no/such/program", "{input}"], ["/", "{input}"]])
async def test_a_program_that_is_not_there_was_never_asked(argv: list[str]) -> None:
    """It is not a failure of the service, and asking again does not help."""
    with pytest.raises(ServiceError, match="cannot be started") as caught:
        await CommandService(argv).call(trial())

    assert ErrorClass.PRE_VALIDATION is caught.value.error_class


async def test_a_missing_folder_is_infrastructure(tmp_path: Path) -> None:
    """Like a missing program."""
    with pytest.raises(ServiceError, match="cannot be started"):
        await python("print(1)", cwd=tmp_path / "none").call(trial())


@pytest.mark.parametrize("given", ["nul \0 here", "half \ud800 pair", "x" * 2**22, object()])
async def test_an_input_that_cannot_be_passed_never_reached_the_service(given: Any) -> None:
    """The message says what would work."""
    with pytest.raises(ServiceError) as caught:
        await CommandService(["echo", "{input}"]).call(trial(given))

    assert ErrorClass.PRE_VALIDATION is caught.value.error_class


@pytest.mark.parametrize(
    ("argv", "options"),
    [
        ("echo {input}", {}),
        ([], {}),
        ([""], {"input_via": "stdin"}),
        (["echo", 1], {"input_via": "stdin"}),
        (["echo"], {}),
        (["echo"], {"input_via": "file"}),
        (["echo"], {"input_via": "pigeon"}),
        (["cat"], {"input_via": "stdin", "output_limit": 0}),
        (["cat"], {"input_via": "stdin", "grace_s": -1}),
    ],
)
def test_a_command_that_cannot_work_is_refused(argv: Any, options: dict[str, Any]) -> None:
    """Before the first trial, above all a text that somebody expects to be split."""
    with pytest.raises(InvalidArgument):
        CommandService(argv, **options)


async def test_nothing_is_left_open_after_200_calls() -> None:
    """Neither descriptors nor threads nor processes, cancelled calls included."""
    service = CommandService(["cat"], input_via="stdin")
    hanging = CommandService(["sleep", "600"], input_via="stdin")

    async def use(count: int) -> None:
        for index in range(count):
            assert str(index) == (await service.call(trial(str(index)))).value
            if index % 20 == 0:
                with anyio.move_on_after(0.01):
                    await hanging.call(trial("x" * 2**20))

    await use(5)
    descriptors, threads = len(os.listdir("/proc/self/fd")), threading.active_count()
    await use(200)
    await service.aclose()
    await service.aclose()

    assert len(os.listdir("/proc/self/fd")) <= descriptors
    assert threading.active_count() <= threads + 1


async def test_many_at_once_do_not_mix_their_output() -> None:
    """Each process has its own pipes."""
    service = python("import sys, os; print(os.environ['TRIALWISE_INDEX'])")
    said: dict[int, str] = {}

    async def one(index: int) -> None:
        said[index] = (await service.call(trial(index=index))).value

    async with anyio.create_task_group() as group:
        for index in range(30):
            group.start_soon(one, index)

    assert {index: str(index) for index in range(30)} == said
