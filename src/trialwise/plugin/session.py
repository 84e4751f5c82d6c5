"""What a session is told on its command line and in its ini file, and the budget it shares.

The command line beats the marker, the marker beats the ini file: a file says what is usual, a
marker what one test needs, and a person at a keyboard what is wanted today.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from _trialwise_pytest import SESSION, SETTINGS
from trialwise.catalogue import OPTIONS
from trialwise.declarations.amounts import describe_option, read_option
from trialwise.engine.spending_meter import find_used_up
from trialwise.errors import InvalidArgument
from trialwise.model.evidence import StopReason
from trialwise.model.options import Budget

_SIZES = ("trials", "max_trials")
#: The fields whose settings have another name.
_FIELDS = {name.replace("-", "_"): field for name, field, _, _ in OPTIONS}
_PER_TEST = [name.replace("-", "_") for name, _, _ in SETTINGS]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A session's settings, resolved."""

    forced: Mapping[str, Any]
    """From the command line, by the marker's names."""
    usual: Mapping[str, Any]
    """From the ini file, for markers that say nothing."""
    budget: Budget
    """The budget of the whole session."""
    store: Path
    baselines: Path
    inconclusive: str
    html: Path | None
    summary: Path | None
    measure: bool
    resume: bool

    def merge(
        self, given: Mapping[str, Any], names: Collection[str] | None = None
    ) -> dict[str, Any]:
        """Merge the settings: the command line wins over the test, and the test over the ini file.

        Args:
            given: What the test says.
            names: The settings that count; all if None.
        """
        merged: dict[str, Any] = {}
        for source in (self.usual, given, self.forced):
            # A size replaces the other kind of size, too: two of them would contradict each other.
            if any(source.get(size) is not None for size in _SIZES):
                merged = {key: value for key, value in merged.items() if key not in _SIZES}
            kept = source.keys() if names is None or source is given else names
            merged |= {key: value for key, value in source.items() if key in kept}
        return merged


def settings_of(config: pytest.Config) -> Settings:
    """Return what a session is told.

    Raises:
        pytest.UsageError: A value is not what its setting takes.
    """
    forced: dict[str, Any] = {}
    usual: dict[str, Any] = {}
    for name, kind, _ in (*SETTINGS, *SESSION):
        word = name.replace("-", "_")
        given, written = config.getoption(f"trialwise_{word}"), config.getini(f"trialwise_{word}")
        if given is not None:
            forced[word] = _read(f"--trialwise-{name}", kind, given)
        if written not in (None, ""):
            usual[word] = _read(f"trialwise_{word}", kind, str(written))
    for known, sizes in (
        (forced, "--trialwise-trials and --trialwise-max-trials"),
        (usual, "trialwise_trials and trialwise_max_trials"),
    ):
        if known.keys() >= {*_SIZES}:
            raise pytest.UsageError(f"{sizes} exclude each other")
    said, root = {**usual, **forced}, config.rootpath
    limits = {name: said.get(f"budget_{name}") for name in ("trials", "usd", "seconds")}
    # A file on the command line is meant from the folder at hand, one in the ini file from there.
    files = {
        name: (config.invocation_params.dir if name in forced else root) / said[name]
        for name in ("html", "summary")
        if name in said
    }
    try:
        budget = Budget(**limits)
    except InvalidArgument as error:
        raise pytest.UsageError(f"the session's budget: {error}") from None
    return Settings(
        # What a marker may say, too, by the names of fields.
        forced={_FIELDS[word]: forced[word] for word in _PER_TEST if word in forced},
        usual={_FIELDS[word]: usual[word] for word in _PER_TEST if word in usual},
        budget=budget,
        store=root / (said.get("store") or ".trialwise"),
        baselines=root / (said.get("baselines") or "baselines"),
        inconclusive=said.get("inconclusive") or "fail",
        html=files.get("html"),
        summary=files.get("summary"),
        measure=config.getoption("trialwise_measure"),
        resume=config.getoption("trialwise_resume"),
    )


def _read(where: str, kind: str, text: str) -> Any:
    if kind.isupper():
        return text  # a folder or a file
    value = read_option(kind, text)
    if value is None:
        raise pytest.UsageError(f"{where} must be {describe_option(kind)}, got {text!r}")
    return (value,) if kind == "names" else value


# --- The budget of a whole session: all marked tests and all workers share its limits -------------
#
# Without workers it is a few numbers in memory. With pytest-xdist it is a small file that workers
# lock for the moment of a change: a trial is counted before it starts, so that two workers cannot
# both start the last one.


@dataclass(slots=True)
class _Spent:
    """What the session has taken so far."""

    began_s: float
    """When the first trial started, on the machine's monotonic clock."""
    trials: int = 0
    usd: float = 0.0


class SessionBudget:
    """What is left of a session's budget.

    Args:
        budget: The session's limits.
        file: Where workers share what was spent; None for a session of one process.
        clock: The machine's monotonic clock, which all its processes read alike.
    """

    def __init__(
        self,
        budget: Budget,
        file: Path | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._budget = budget
        self._is_limited = budget != Budget()
        self._file = file
        self._clock = clock
        self._own: _Spent | None = None

    def take(self) -> tuple[StopReason, str] | None:
        """Pay for the start of one trial; or which limit forbids it, in words too."""
        if not self._is_limited:
            return None
        with self._share_spending() as spent:
            # Looked at and taken under one lock, so that two workers cannot both start the last
            # trial.
            forbidden = self._find_used_up(spent)
            if forbidden is None:
                spent.trials += 1
            return forbidden

    def pay(self, usd: float | None, trials: int = 0) -> None:
        """Count what a trial cost, or a run that was made in one piece."""
        if self._is_limited and (usd or trials):
            with self._share_spending() as spent:
                spent.trials += trials
                spent.usd += usd or 0.0

    def remaining(self) -> Budget | None:
        """Return what a run made in one piece may take; None where nothing is left.

        A run without limits of its own is given these.
        """
        if not self._is_limited:
            return self._budget
        with self._share_spending() as spent:
            if self._find_used_up(spent) is not None:
                return None
            limit = self._budget
            gone_s = self._clock() - spent.began_s
            return Budget(
                trials=None if limit.trials is None else limit.trials - spent.trials,
                usd=None if limit.usd is None else limit.usd - spent.usd,
                seconds=None if limit.seconds is None else limit.seconds - gone_s,
            )

    def _find_used_up(self, spent: _Spent) -> tuple[StopReason, str] | None:
        return find_used_up(
            self._budget,
            trials=spent.trials,
            seconds=self._clock() - spent.began_s,
            usd=spent.usd,
            name="the session's budget",
        )

    @contextmanager
    def _share_spending(self) -> Iterator[_Spent]:
        if self._file is None:
            # The clock starts with the first trial: collecting may take long and costs nothing.
            self._own = self._own or _Spent(self._clock())
            yield self._own
            return
        import fcntl

        with self._file.open("a+", encoding="utf-8") as shared:
            # Read and written while the lock is held, so that no worker sees half of it.
            fcntl.flock(shared, fcntl.LOCK_EX)
            shared.seek(0)
            text = shared.read()
            spent = _Spent(**json.loads(text)) if text else _Spent(self._clock())
            yield spent
            shared.truncate(0)
            shared.write(json.dumps(asdict(spent)))
