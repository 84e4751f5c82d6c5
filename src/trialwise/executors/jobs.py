"""How the plan, the checks and the service reach a worker.

Functions go by import path where the worker can import their module, and by value where it cannot.
"""

from __future__ import annotations

import os
import pickle
import platform
import sys
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from trialwise import __version__, model
from trialwise.engine.attempt import Caller
from trialwise.engine.error_classes import Reach
from trialwise.engine.excerpts import is_own_file
from trialwise.engine.ports import Service
from trialwise.engine.run_state import TrialStart
from trialwise.engine.trial_runner import RunsTrials, TrialRunner
from trialwise.errors import ExecutorUnusable

MakeRunner: TypeAlias = Callable[[model.Plan, model.Contract, Caller], RunsTrials]


class JobContent(NamedTuple):
    """What a worker needs to run trials."""

    plan: model.Plan
    contract: model.Contract
    service: Service
    redact: Callable[[str], str] | None
    reply_limit: int | None
    """How many characters of a reply are kept; None for the usual number."""
    make_runner: MakeRunner = TrialRunner
    """Makes what runs the trials in a worker."""


class PackedJob(NamedTuple):
    """A job as it travels."""

    key: str
    """Tells jobs apart in a worker that serves several runs."""
    content: bytes
    paths: tuple[str, ...]
    """Where the driver imports modules from."""
    folder: str
    """The driver's current folder."""


class Job:
    """A run that can be sent to workers.

    Args:
        key: Tells it apart from other runs.
        content: What workers need.
        by_value: Packages and modules that are sent and not imported.
    """

    def __init__(self, key: str, content: JobContent, by_value: Collection[str] = ()) -> None:
        self._key = key
        self._content = content
        self._by_value = set(by_value)
        self.sends_own_modules = False
        """Whether the user's own modules are sent by value, for workers that outlive a run: they
        may have imported other modules of the same names, or earlier versions of them."""

    def pack(self) -> PackedJob:
        """Return the job as it travels.

        Raises:
            ExecutorUnusable: Something in it cannot be sent.
        """
        import cloudpickle

        modules = [
            module
            for name, module in list(sys.modules.items())
            # Under its own name: the main module has several, and is sent by value anyway.
            if name == getattr(module, "__name__", None) != "__main__"
            and self._is_sent(name, getattr(module, "__file__", None))
        ]
        for one in modules:
            cloudpickle.register_pickle_by_value(one)
        try:
            # A plain tuple: unpickling it needs no class of ours before the paths are set.
            content = cloudpickle.dumps(tuple(self._content))
        except Exception as error:  # whatever the user's objects raise when they are pickled
            raise ExecutorUnusable(
                f"the contract {self._content.contract.name!r} cannot be sent to a worker: "
                f"{type(error).__name__}: {error}. Open clients, locks and files inside of the "
                "service, when it is first called, and not in a global or a default argument"
            ) from error
        finally:
            for one in modules:
                cloudpickle.unregister_pickle_by_value(one)
        return PackedJob(self._key, content, tuple(sys.path), os.getcwd())

    def _is_sent(self, name: str, file: str | None) -> bool:
        """Return whether a module is sent by value."""
        if name.partition(".")[0] in self._by_value:
            return True
        return self.sends_own_modules and file is not None and is_own_file(file)

    def pack_for(self, load: Callable[[PackedJob], Sequence[LoadReport]]) -> PackedJob:
        """Return the job in a form that workers can load.

        A module that a worker cannot import is sent by value, if this process has it.

        Args:
            load: Tries to load a job in workers, and returns what each of them says.

        Raises:
            ExecutorUnusable: A worker cannot load it.
        """
        while True:
            packed = self.pack()
            reports = load(packed)
            for one in reports:
                _check_versions(one)
            report = next((one for one in reports if one.problem), None)
            if report is None:
                return packed
            missing = report.missing_module
            if not missing or missing in self._by_value or missing not in sys.modules:
                raise ExecutorUnusable(
                    f"a worker cannot load the contract {self._content.contract.name!r}: "
                    f"{report.problem}. Install the same packages there as here"
                )
            self._by_value.add(missing)


class LoadReport(NamedTuple):
    """What a worker says after it tried to load a job."""

    trialwise: str
    python: str
    problem: str = ""
    missing_module: str = ""


#: How many jobs use each folder of a driver that was added to the path of this process.
_FOLDERS: Counter[str] = Counter()


def load_content(packed: PackedJob) -> JobContent:
    """Load a job in a worker, which ends with `forget_job`.

    Args:
        packed: As it travelled.
    """
    for folder in packed.paths:
        if folder in _FOLDERS or (folder not in sys.path and os.path.isdir(folder)):
            if folder not in _FOLDERS:
                # Behind the worker's own: a file of the driver must not shadow a package there.
                sys.path.append(folder)
            _FOLDERS[folder] += 1
    return JobContent(*pickle.loads(packed.content))


def forget_job(packed: PackedJob) -> None:
    """Forget the folders of a job and the modules from there: the next job has its own.

    Args:
        packed: What was loaded.
    """
    for folder in packed.paths:
        if folder in _FOLDERS:
            _FOLDERS[folder] -= 1
            if not _FOLDERS[folder]:
                del _FOLDERS[folder]
                sys.path.remove(folder)
                _forget_modules(folder)


def _forget_modules(folder: str) -> None:
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None) or ""
        # Installed packages stay: some of them cannot be loaded twice.
        if file.startswith(folder + os.sep) and is_own_file(file):
            del sys.modules[name]


def load_job(packed: PackedJob) -> tuple[LoadReport, JobContent | None]:
    """Load a job in a worker, and say what went wrong if it cannot be loaded.

    Args:
        packed: As it travelled.
    """
    content, problem, missing = None, "", ""
    try:
        content = load_content(packed)
    except ModuleNotFoundError as error:
        problem, missing = str(error), (error.name or "").partition(".")[0]
    except Exception as error:  # whatever the user's modules raise when they are imported
        problem = f"{type(error).__name__}: {error}"
    return LoadReport(__version__, platform.python_version(), problem, missing), content


def try_to_load(packed: PackedJob) -> LoadReport:
    """Say whether this process can load a job, and forget it.

    Args:
        packed: As it travelled.
    """
    try:
        return load_job(packed)[0]
    finally:
        forget_job(packed)


def _check_versions(report: LoadReport) -> None:
    """Refuse workers whose results could differ from those of this process."""
    here = platform.python_version()
    if report.trialwise != __version__:
        raise ExecutorUnusable(
            f"the workers have trialwise {report.trialwise}, and this process has {__version__}. "
            "Install the same version on both sides"
        )
    if report.python.split(".")[:2] != here.split(".")[:2]:
        raise ExecutorUnusable(
            f"the workers run Python {report.python}, and this process runs {here}. Functions "
            "cannot be sent between them: use the same minor version"
        )


# What the driver of a run sends to a worker, and what the worker sends back.


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Trials that one worker runs one after another."""

    starts: tuple[TrialStart, ...]
    began_s: float = 0.0
    """When it was sent, in seconds since the run began."""
    seconds_left: float | None = None
    """How long the run may still take; None for no limit."""
    reach: Reach = field(default_factory=Reach)
    """What the run knows of the service so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchResult:
    """What came of a batch; trials that it does not hold were not run."""

    trials: tuple[model.Trial, ...]
    tracebacks: dict[str, str] = field(default_factory=dict)
    """Where the service raised, by the hash that trials name."""
    abandoned: tuple[model.Reply, ...] = ()
    """What calls took that came to nothing; their values are left out."""
    run_s: float = 0.0
    """How long the batch took in the worker."""
    reach: Reach = field(default_factory=Reach)
    stop: str = ""
    """Why the run cannot continue."""
    out_of_time: str = ""
    """What the last attempt said where the time limit allows no further one."""
    fault: str = ""
    """What went wrong in the worker itself, with its traceback; no trial of the batch counts."""


class EndedBatch(NamedTuple):
    """A batch that a pool hands back."""

    number: int
    result: BatchResult | None
    """None where the worker died or the batch got lost."""
    problem: str = ""
    """What happened to the worker."""
    is_death: bool = True
    """Whether the worker died, which one of the trials may have caused; no broken connection."""
