"""A program under test: one process per trial, without a shell."""

from __future__ import annotations

import errno
import os
import shlex
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, get_args

from trialwise.declarations.resources import CommandLine, Folder
from trialwise.declarations.signatures import Arg, Natural, Positive, Seconds
from trialwise.engine.ports import ServiceError, TrialContext
from trialwise.errors import InvalidArgument
from trialwise.model import ErrorClass, Reply, Trace
from trialwise.redaction import redact_values
from trialwise.services import _process, _reported_sessions, model_apis, service_factors
from trialwise.services.service_factors import MalformedReply, ReplyTooLarge
from trialwise.traces.trace_building import read_document
from trialwise.validation import require_choice, require_count, require_real

#: The environment variable that names the file for the session.
TRACE_VARIABLE = "TRIALWISE_TRACE_FILE"


class ProgramFiles:
    """The files of one trial, in a folder of their own."""

    def __init__(self) -> None:
        self.placeholders: dict[str, str] = {}
        """Values for the placeholders in the arguments."""
        self.environment: dict[str, str] = {}
        """Environment variables."""
        self.trace: Trace | None = None
        """The session, once the program has ended."""


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
    files = ProgramFiles()
    if not (has_scenario or has_trace):
        yield files
        return
    try:
        folder = Path(tempfile.mkdtemp(prefix="trialwise-"))
    except OSError as error:
        message = f"the command {program!r} cannot be started: {error}"
        raise ServiceError(message, ErrorClass.INFRASTRUCTURE) from error
    scenario, trace = folder / "scenario.json", folder / "trace.json"
    try:
        if has_scenario:
            told = {"input": trial.input, "index": trial.index, "seed": trial.seed}
            text = model_apis.encode(model_apis.to_json(told))
            try:
                scenario.write_bytes(text)
            except OSError as error:
                message = f"the scenario file cannot be written: {error}"
                raise ServiceError(message, ErrorClass.INFRASTRUCTURE) from error
            files.placeholders["scenario_file"] = str(scenario)
        if has_trace:
            files.environment[TRACE_VARIABLE] = str(trace)
        try:
            yield files
        finally:
            # A program that is ended has done what it wrote until then.
            if has_trace:
                missing = Trace(calls_unknown=f"the program wrote no file {TRACE_VARIABLE}")
                files.trace = read_document(trace).trace if trace.exists() else missing
    finally:
        # The command may have made a part of it unreadable; the trial does not fail for that.
        shutil.rmtree(folder, ignore_errors=True)


__all__ = ["CommandService", "InputVia"]

InputVia = Literal["argument", "stdin", "file", "environment"]
#: Which placeholder an argument must hold for the input to arrive at all.
_NEEDED = {"argument": "input", "file": "scenario_file"}


@dataclass(eq=False, repr=False)
class CommandService(_reported_sessions.ReportingService):
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

    argv: Annotated[Sequence[str], Arg(kind=CommandLine(), key="run")]
    _: KW_ONLY
    input_via: Annotated[
        InputVia | None, Arg(default="argument, or file where `{scenario_file}` stands")
    ] = None
    parse_json: bool = False
    strip_newline: bool = True
    cwd: Annotated[str | Path | None, Arg(kind=Folder(), default="the suite's folder")] = None
    env: service_factors.Variables = field(default_factory=dict)
    inherit_env: bool = True
    output_limit: Positive = 2**20
    stderr_limit: Natural = 2**16
    grace_s: Seconds = 5.0
    clock: Callable[[], float] = time.perf_counter

    def __post_init__(self) -> None:
        self._writes_trace = self.trace == "file"
        if self._writes_trace:
            self.trace = None
        super().__post_init__()
        self.argv = _check_argv(self.argv)
        found = model_apis.placeholders(self.argv)
        self._wants_file = "scenario_file" in found
        if self.input_via is None:
            self.input_via = "file" if self._wants_file else "argument"
        require_choice("input_via", self.input_via, get_args(InputVia))
        needed = _NEEDED.get(self.input_via)
        # The program would be called without its input, and answer every one alike.
        if needed is not None and needed not in found:
            allowed = f"hold {{{needed}}} in an argument when input_via is {self.input_via!r}"
            if needed == "input":
                allowed = 'hold "{input}" in an argument, or say `input_via: stdin`'
            raise InvalidArgument("argv", list(self.argv), allowed)
        if require_real("grace_s", self.grace_s) < 0:
            raise InvalidArgument("grace_s", self.grace_s, "be at least 0")
        self._limits = _process.Limits(
            output_bytes=require_count("output_limit", self.output_limit, minimum=1),
            stderr_bytes=require_count("stderr_limit", self.stderr_limit, minimum=0),
            grace_s=self.grace_s,
        )

    @property
    def files(self) -> list[str]:
        """The files that its arguments name, such as the script that an interpreter runs."""
        named = [os.path.join(self.cwd or "", argument) for argument in self.argv]
        return [path for path in named if os.path.isfile(path)]

    async def call(self, trial: TrialContext) -> Reply:
        """Return what the command wrote in reply to one trial."""
        has_stdin = self.input_via == "stdin"
        stdin = model_apis.encode(model_apis.input_text(trial.input)) if has_stdin else b""
        with open_files(
            self.argv[0], trial, has_scenario=self._wants_file, has_trace=self._writes_trace
        ) as files:
            if self._writes_trace:
                trial.keep(lambda: files.trace.to_reply() if files.trace else None)
            argv = [
                model_apis.fill_text(argument, trial, more=files.placeholders)
                for argument in self.argv
            ]
            environment = self._environment(trial) | files.environment
            started = self.clock()
            try:
                process = await _process.start_process(
                    argv, has_stdin=has_stdin, env=environment, cwd=self.cwd
                )
            except (OSError, ValueError) as error:
                raise _not_started(self.argv[0], error) from error
            finished = await _process.finish_process(
                process, stdin, limits=self._limits, clock=self.clock
            )
        reply = self._reply(finished, max(0.0, finished.ended - started))
        if not self.reports:
            return _reported_sessions.add_report(reply, files.trace)
        try:
            return self.read_report(finished.stdout, reply, trial, files.trace)
        except MalformedReply as error:
            ended = f"exit code {finished.exit_code}"
            raise MalformedReply(f"{error}; it begins {finished.head!r}, {ended}") from None

    @property
    def tells_cost(self) -> bool:
        """Whether replies may have a cost, so that a limit on money can be kept."""
        return super().tells_cost or self._writes_trace

    @property
    def factors(self) -> dict[str, str]:
        """What it is made of, for the record; the code is that of the files it names."""
        code = service_factors.describe_code(self.argv, self.cwd)
        return {
            "command": service_factors.describe_value(shlex.join(redact_values(list(self.argv)))),
            **({} if code is None else {"code": code}),
        }

    async def aclose(self) -> None:
        """Nothing is held between trials."""

    def _reply(self, finished: _process.Finished, latency_s: float) -> Reply:
        if finished.exit_code is None:
            raise ReplyTooLarge(self.output_limit, finished.head)
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
            value=self._parse(text, details),
            latency_s=latency_s,
            exit_code=finished.exit_code,
            details=details,
        )

    def _parse(self, text: str, details: dict[str, Any]) -> Any:
        if self.parse_json:
            try:
                return model_apis.parse_json(text)
            except ValueError as error:
                details["json_error"] = str(error)
        if self.strip_newline and text.endswith("\n"):
            return text[:-1].removesuffix("\r")
        return text

    def _environment(self, trial: TrialContext) -> dict[str, str]:
        environment = {**os.environ} if self.inherit_env else {}
        environment |= self.env or {}
        environment |= {"TRIALWISE_INDEX": str(trial.index), "TRIALWISE_SEED": str(trial.seed)}
        if self.input_via == "environment":
            environment["TRIALWISE_INPUT"] = model_apis.input_text(trial.input)
        return environment

    def __repr__(self) -> str:
        return f"CommandService({list(self.argv)!r}, input_via={self.input_via!r})"


def _check_argv(argv: Sequence[str]) -> tuple[str, ...]:
    allowed = "be a list of at least one text, the program first (no shell splits it)"
    no_list = isinstance(argv, (str, bytes)) or not isinstance(argv, Sequence)
    if no_list or not all(isinstance(one, str) for one in argv) or not any(argv[:1]):
        raise InvalidArgument("argv", argv, allowed)
    return tuple(argv)


def _not_started(program: str, error: OSError | ValueError) -> ServiceError:
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
