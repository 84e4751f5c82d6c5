"""The port that every executor fulfils, and how one is opened by its name.

An executor of another distribution is declared by an entry point:

    [project.entry-points."trialwise.executors"]
    slurm = "my_package.slurm:open_pool"

The function takes what `PoolOpener` describes. `trialwise.testing.check_executor` runs the tests
that every executor must pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Protocol, cast

from trialwise.errors import ExecutorUnusable, TrialwiseError
from trialwise.executors.jobs import Batch, EndedBatch, Job
from trialwise.extensions import EXECUTORS, extension_names, find_extension

#: The modules of the built-in executors; each has a function `open_pool`.
_MODULES = {
    "processes": "trialwise.executors.process_pool",
    "dask": "trialwise.contrib.executors.dask_pool",
    "ray": "trialwise.contrib.executors.ray_pool",
}


class PoolLost(TrialwiseError):
    """The pool as a whole is gone, such as the scheduler of a cluster; the run can be resumed."""


class WorkerPool(Protocol):
    """Workers that run batches of trials."""

    @property
    def slots(self) -> int:
        """How many batches can run at once."""
        ...

    def submit(self, number: int, batch: Batch) -> None:
        """Send a batch to a worker; does not wait.

        Args:
            number: Names the batch when it comes back.
            batch: The trials.
        """
        ...

    def wait(self, timeout_s: float) -> Sequence[EndedBatch]:
        """Return the batches that have ended; nothing if none has within the time.

        Every batch comes back once, also one whose worker has died, except after `cancel`.

        Raises:
            PoolLost: No batch will ever come back.
        """
        ...

    def cancel(self) -> None:
        """End every batch that was submitted; none of them need come back."""
        ...

    def close(self) -> None:
        """Release the workers; called once, whatever happened before."""
        ...


class PoolOpener(Protocol):
    """Opens the workers of an executor."""

    def __call__(self, address: str, job: Job, *, concurrency: int) -> WorkerPool:
        """Open workers that are ready to run a job.

        Args:
            address: What stands behind the executor's name; empty where nothing does.
            job: What workers need; `Job.pack_for` sends it.
            concurrency: How many trials the run wants in flight at once. A pool may offer more
                slots, so that no worker is idle.

        Raises:
            ExecutorUnusable: It cannot run this job.
        """
        ...


def find_opener(name: str) -> PoolOpener:
    """Return what opens an executor.

    Args:
        name: Its name, such as `processes`.

    Raises:
        ExecutorUnusable: There is no such executor, or something that it needs is not installed.
    """
    if name in _MODULES:
        try:
            # Every executor sends functions to workers with it.
            import_module("cloudpickle")
            module = import_module(_MODULES[name])
        except ImportError as error:
            raise ExecutorUnusable(
                f"the executor {name} needs a package that is not installed ({error}). Install "
                f"trialwise[{name}]"
            ) from error
        return cast(PoolOpener, module.open_pool)
    other = find_extension(EXECUTORS, name, _accept)
    if other is not None:
        return other
    known = ", ".join(["local", *_MODULES, *extension_names(EXECUTORS)])
    raise ExecutorUnusable(f"there is no executor {name!r}; the executors are {known}")


def open_pool(executor: str, job: Job, *, concurrency: int) -> WorkerPool:
    """Open the workers that an executor's text names.

    Args:
        executor: A name, or a name and an address: `dask:tcp://scheduler:8786`.
        job: What workers need.
        concurrency: How many trials the run wants in flight at once.

    Raises:
        ExecutorUnusable: There is no such executor, or it cannot run this job.
    """
    name, _, address = executor.partition(":")
    return find_opener(name)(address, job, concurrency=concurrency)


def _accept(found: object) -> PoolOpener | None:
    return cast(PoolOpener, found) if callable(found) else None
