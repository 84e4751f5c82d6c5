"""A program under test: one process per trial, without a shell."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, get_args

from trialwise.declarations.resources import CommandLine, Folder
from trialwise.declarations.signatures import Arg, Natural, Positive, Seconds
from trialwise.engine.ports import ServiceError, TrialContext
from trialwise.errors import InvalidArgument
from trialwise.model.reply import Reply
from trialwise.model.trial import ErrorClass
from trialwise.redaction import LOOKED_AT, cut_text, redact_values
from trialwise.services import _reported_sessions, model_apis, service_factors
from trialwise.services._process import Finished, Limits, finish_process, start_process
from trialwise.services.model_apis import encode, fill_text, input_text, parse_json, placeholders
from trialwise.services.service_factors import MalformedReply, ReplyTooLarge, Variables
from trialwise.validation import require_choice, require_count, require_real

if TYPE_CHECKING:
    from trialwise.model.trace import Trace


#: The environment variable that names the file for the session.
TRACE_VARIABLE = "TRIALWISE_TRACE_FILE"


class ProgramFiles:
    """The files of one trial, in a folder of their own.

    Args:
        folder: The folder; None where the program needs no files.
        trial: The trial.
        has_scenario: Whether the program is given a scenario file.
        has_trace: Whether the program may write its session.
    """

    def __init__(
        self, folder: Path | None, trial: TrialContext, *, has_scenario: bool, has_trace: bool
    ) -> None:
        self.placeholders: dict[str, str] = {}
        """Values for the placeholders in the arguments."""
        self.environment: dict[str, str] = {}
        """Environment variables."""
        self.trace: Trace | None = None
        """The session, once the program has ended."""
        self._trace_file: Path | None = None
        if folder is not None and has_scenario:
            scenario = model_apis.to_json(
                {"input": trial.input, "index": trial.index, "seed": trial.seed}
            )
            _write(folder / "scenario.json", scenario)
            self.placeholders["scenario_file"] = str(folder / "scenario.json")
        if folder is not None and has_trace:
            self._trace_file = folder / "trace.json"
            self.environment[TRACE_VARIABLE] = str(self._trace_file)

    def read_trace(self) -> None:
        """Read what the program has written of its session until now."""
        if self._trace_file is None:
            return
        from trialwise.services._reported_sessions import read_reported_trace, unreadable_trace

        if self._trace_file.exists():
            self.trace = read_reported_trace(self._trace_file)
        else:
            self.trace = unreadable_trace(f"the program wrote no file {TRACE_VARIABLE}")


@contextmanager
def open_files(
    program: str, trial: TrialContext, *, has_scenario: bool, has_trace: bool
) -> Iterator[ProgramFiles]:
    """Make the files of a trial, for as long as the program runs.

    Args:
        program: The name of the program, for a message.
        trial: The trial.
        has_scenario: Whether the program is given a scenario file.
        has_trace: Whether the program may write its session.
    """
    if not (has_scenario or has_trace):
        yield ProgramFiles(None, trial, has_scenario=False, has_trace=False)
        return
    import shutil
    import tempfile

    try:
        folder = Path(tempfile.mkdtemp(prefix="trialwise-"))
    except OSError as error:
        message = f"the command {program!r} cannot be started: {error}"
        raise ServiceError(message, ErrorClass.INFRASTRUCTURE) from error
    try:
        files = ProgramFiles(folder, trial, has_scenario=has_scenario, has_trace=has_trace)
        try:
            yield files
        finally:
            files.read_trace()
    finally:
        # The command may have made a part of it unreadable; the trial does not fail for that.
        shutil.rmtree(folder, ignore_errors=True)


def _write(file: Path, scenario: str) -> None:
    try:
        file.write_bytes(encode(scenario))
    except OSError as error:
        raise ServiceError(
            f"the scenario file cannot be written: {error}", ErrorClass.INFRASTRUCTURE
        ) from error


__all__ = ["CommandService", "InputVia"]

InputVia = Literal["argument", "stdin", "file", "environment"]
#: Which placeholder an argument must hold for the input to arrive at all.
_NEEDED = {"argument": "input", "file": "scenario_file"}
#: How much of a reply that is too large is worth showing.
_HEAD_LENGTH = 200


class CommandService:
    """A command whose standard output is the reply.

    Each argument is passed as it is, spaces and quotes included; `{input}`, `{index}`, `{seed}`
    and `{scenario_file}` in it are replaced. An input that is not text is passed as JSON. The
    scenario file is JSON with `input`, `index` and `seed`, in a folder of its own that is removed
    afterwards. The environment holds `TRIALWISE_INDEX` and `TRIALWISE_SEED` in every case.

    Any exit code is a reply: it may be the property under test. A program that is not there was
    never asked; one that the machine has no room for is an infrastructure error. A command that
    writes more than `output_limit` is ended and fails. When
    the command ends or is cancelled, what it left running in its process group gets SIGTERM and
    after `grace_s` SIGKILL; cancelling reaches its whole session. Only what deliberately moved to
    a session of its own, as a daemon does, stays.

    >>> import anyio
    >>> service = CommandService(["printf", "%s|", "a b", "{input}"])
    >>> anyio.run(service.call, TrialContext(index=0, input='it\\'s "here"', seed=1)).value
    'a b|it\\'s "here"|'

    Args:
        argv: The program and its arguments. No shell is used.
        input_via: How the program gets the input: in an argument with `{input}`, on standard input,
            in the file named by `{scenario_file}`, or as `TRIALWISE_INPUT` in the environment.
        parse_json: Whether JSON output is parsed. Other output stays text, with the reason in
            `details["json_error"]`.
        strip_newline: Whether the final newline of the output is removed, as a shell does.
        extract: The place of the reply in JSON output, as a JSON Pointer (`/answer`) or a JSONPath
            (`$.answer`). Without it the whole output is the reply.
        trace: The place of the agent's session in JSON output, such as `$.trace`, in any format
            that `read_trace` reads; or `file` where the program writes its session into the file
            that `TRIALWISE_TRACE_FILE` names. With `$` and without `extract`, the reply is the
            session's answer. A session that cannot be read leaves its calls unknown.
        usage: The place of the tokens, such as `$.usage`. The default is those of the session.
        cost: The place of the cost in US dollars. The default is that of the session.
        setup: The place of what preparing took: seconds, or an object with `seconds`, `usage` and
            `cost_usd`.
        error: The place of an error that the program reports of itself: a text, or an object with a
            `class` such as `infrastructure`, a `status` or a `message`.
        cwd: The working directory.
        env: Environment variables to add.
        inherit_env: Whether it inherits the environment of trialwise.
        output_limit: Maximum standard output in bytes.
        stderr_limit: How many bytes of standard error are kept, counted from the end.
        grace_s: The time between SIGTERM and SIGKILL.
        clock: Seconds from any origin, for the latency.
    """

    spelling: ClassVar[str] = "command"

    def __init__(
        self,
        argv: Annotated[Sequence[str], Arg(kind=CommandLine(), key="run")],
        *,
        input_via: Annotated[
            InputVia | None, Arg(default="argument, or file where `{scenario_file}` stands")
        ] = None,
        parse_json: bool = False,
        strip_newline: bool = True,
        extract: _reported_sessions.Pointer | None = None,
        trace: _reported_sessions.Pointer | None = None,
        usage: _reported_sessions.Pointer | None = None,
        cost: _reported_sessions.Pointer | None = None,
        setup: _reported_sessions.Pointer | None = None,
        error: _reported_sessions.Pointer | None = None,
        cwd: Annotated[str | Path | None, Arg(kind=Folder(), default="the suite's folder")] = None,
        env: Variables | None = None,
        inherit_env: bool = True,
        output_limit: Positive = 2**20,
        stderr_limit: Natural = 2**16,
        grace_s: Seconds = 5.0,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._argv = _check_argv(argv)
        found = placeholders(self._argv)
        if input_via is None:
            input_via = "file" if "scenario_file" in found else "argument"
        self._input_via = require_choice("input_via", input_via, get_args(InputVia))
        needed = _NEEDED.get(input_via)
        # The program would be called without its input, and answer every one alike.
        if needed is not None and needed not in found:
            allowed = f"hold {{{needed}}} in an argument when input_via is {input_via!r}"
            if needed == "input":
                allowed = 'hold "{input}" in an argument, or say `input_via: stdin`'
            raise InvalidArgument("argv", list(argv), allowed)
        self._wants_file = "scenario_file" in found
        self._parse_json = parse_json
        self._strip_newline = strip_newline
        self._wants_trace = trace == "file"
        place = None if self._wants_trace else trace
        self._places = _reported_sessions.ReportPlaces(
            extract=extract, trace=place, usage=usage, cost=cost, setup=setup, error=error
        )
        self._cwd = None if cwd is None else os.fspath(cwd)
        self._env = dict(env or {})
        self._inherit_env = inherit_env
        if require_real("grace_s", grace_s) < 0:
            raise InvalidArgument("grace_s", grace_s, "be at least 0")
        self._limits = Limits(
            output_bytes=require_count("output_limit", output_limit, minimum=1),
            stderr_bytes=require_count("stderr_limit", stderr_limit, minimum=0),
            grace_s=grace_s,
        )
        self._clock = clock

    @property
    def files(self) -> list[str]:
        """The files that its arguments name, such as the script that an interpreter runs."""
        named = [os.path.join(self._cwd or "", argument) for argument in self._argv]
        return [path for path in named if os.path.isfile(path)]

    async def call(self, trial: TrialContext) -> Reply:
        """Return what the command wrote in reply to one trial."""
        stdin = encode(input_text(trial.input)) if self._input_via == "stdin" else b""
        with open_files(
            self._argv[0], trial, has_scenario=self._wants_file, has_trace=self._wants_trace
        ) as files:
            if self._wants_trace:
                # A program that is ended has done what it wrote until then.
                trial.keep(lambda: _reported_sessions.report_trace(files.trace))
            argv = [fill_text(argument, trial, more=files.placeholders) for argument in self._argv]
            started = self._clock()
            try:
                process = await start_process(
                    argv,
                    has_stdin=self._input_via == "stdin",
                    env=self._environment(trial) | files.environment,
                    cwd=self._cwd,
                )
            except (OSError, ValueError) as error:
                raise _not_started(self._argv[0], error) from error
            finished = await finish_process(process, stdin, limits=self._limits, clock=self._clock)
        reply = self._reply(finished, max(0.0, finished.ended - started))
        if not self._places:
            return (
                reply if files.trace is None else _reported_sessions.add_report(reply, files.trace)
            )
        try:
            return self._places.read(finished.stdout, reply, trial, files.trace)
        except MalformedReply as error:
            head = cut_text(finished.stdout[:LOOKED_AT].decode(errors="replace"), _HEAD_LENGTH)
            ended = f"exit code {finished.exit_code}"
            raise MalformedReply(f"{error}; it begins {head!r}, {ended}") from None

    @property
    def tells_cost(self) -> bool:
        """Whether replies may have a cost, so that a limit on money can be kept."""
        return self._places.tells_cost or self._wants_trace

    @property
    def factors(self) -> dict[str, str]:
        """What it is made of, for the record; the code is that of the files it names."""
        code = service_factors.describe_code(self._argv, self._cwd)
        return {
            "command": service_factors.describe_value(shlex.join(redact_values(list(self._argv)))),
            **({} if code is None else {"code": code}),
        }

    async def aclose(self) -> None:
        """Nothing is held between trials."""

    def _reply(self, finished: Finished, latency_s: float) -> Reply:
        if finished.exit_code is None:
            head = cut_text(finished.stdout[:LOOKED_AT].decode(errors="replace"), _HEAD_LENGTH)
            raise ReplyTooLarge(self._limits.output_bytes, head)
        details: dict[str, Any] = {"stderr": finished.stderr.decode(errors="replace")}
        if finished.stderr_truncated:
            # The first line lost its beginning, and what is left of a secret is not recognised.
            details["stderr"] = details["stderr"].partition("\n")[2] or details["stderr"]
            details["stderr_truncated"] = True
        # For the record: a program that leaves servers behind makes trials depend on each other.
        if finished.left_children:
            details["left_children"] = True
        text = finished.stdout.decode(errors="replace")
        if "\ufffd" in text and text.encode() != finished.stdout:
            details["not_utf8"] = True
        return Reply(
            value=self._value(text, details),
            latency_s=latency_s,
            exit_code=finished.exit_code,
            details=details,
        )

    def _value(self, text: str, details: dict[str, Any]) -> Any:
        if self._parse_json:
            try:
                return parse_json(text)
            except ValueError as error:
                details["json_error"] = str(error)
        if self._strip_newline and text.endswith("\n"):
            return text[:-1].removesuffix("\r")
        return text

    def _environment(self, trial: TrialContext) -> dict[str, str]:
        environment = {**os.environ} if self._inherit_env else {}
        environment |= self._env
        environment |= {"TRIALWISE_INDEX": str(trial.index), "TRIALWISE_SEED": str(trial.seed)}
        if self._input_via == "environment":
            environment["TRIALWISE_INPUT"] = input_text(trial.input)
        return environment

    def __repr__(self) -> str:
        return f"CommandService({list(self._argv)!r}, input_via={self._input_via!r})"


def _check_argv(argv: Sequence[str]) -> tuple[str, ...]:
    allowed = "be a list of at least one text, the program first (no shell splits it)"
    if isinstance(argv, (str, bytes)) or not isinstance(argv, Sequence):
        raise InvalidArgument("argv", argv, allowed)
    if not argv or not all(isinstance(argument, str) for argument in argv) or not argv[0]:
        raise InvalidArgument("argv", argv, allowed)
    return tuple(argv)


def _not_started(program: str, error: OSError | ValueError) -> ServiceError:
    import errno

    if isinstance(error, OSError) and error.errno != errno.E2BIG:
        message = f"the command {program!r} cannot be started: {error}"
        # A program that is not there was never asked; a machine without room may have some later.
        is_missing = error.errno in (errno.ENOENT, errno.EACCES, errno.ENOEXEC, errno.ENOTDIR)
        class_ = ErrorClass.PRE_VALIDATION if is_missing else ErrorClass.INFRASTRUCTURE
        return ServiceError(message, class_)
    # Too long, a NUL, a lone surrogate: no process can be given this input this way.
    message = (
        f"the input cannot be passed to {program!r} ({error}); try input_via='stdin' or 'file'"
    )
    return ServiceError(message, ErrorClass.PRE_VALIDATION)
