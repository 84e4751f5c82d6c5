"""What a session is told on its command line and in its ini file.

The command line beats the marker, the marker beats the ini file: a file says what is usual, a
marker what one test needs, and a person at a keyboard what is wanted today.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from _trialwise_pytest import SESSION, SETTINGS
from trialwise.catalogue import OPTIONS
from trialwise.declarations.amounts import describe_option, read_option
from trialwise.errors import InvalidArgument
from trialwise.model.options import Budget

#: The kind of every setting, and the settings that a marker may say differently for its test.
_KINDS = {name.replace("-", "_"): kind for name, kind, _ in (*SETTINGS, *SESSION)}
_PER_TEST = tuple(name.replace("-", "_") for name, _, _ in SETTINGS)
_SIZES = ("trials", "max_trials")
#: The fields whose settings have another name.
_FIELDS = {name.replace("-", "_"): field for name, field, _, _ in OPTIONS}


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

    def merge(self, given: Mapping[str, Any], names: Iterable[str] | None = None) -> dict[str, Any]:
        """Merge the settings: the command line wins over the test, and the test over the ini file.

        Args:
            given: What the test says.
            names: The settings that count; all if None.
        """
        usual, forced = dict(self.usual), dict(self.forced)
        if names is not None:
            usual = {key: usual[key] for key in names if key in usual}
            forced = {key: forced[key] for key in names if key in forced}
        if any(given.get(size) is not None for size in _SIZES):
            usual = {key: value for key, value in usual.items() if key not in _SIZES}
        merged = {**usual, **given}
        if any(size in forced for size in _SIZES):
            merged = {key: value for key, value in merged.items() if key not in _SIZES}
        return {**merged, **forced}


def settings_of(config: pytest.Config) -> Settings:
    """Return what a session is told.

    Raises:
        pytest.UsageError: A value is not what its setting takes.
    """
    known = _Known(config)
    if "trials" in known.forced and "max_trials" in known.forced:
        raise pytest.UsageError("--trialwise-trials and --trialwise-max-trials exclude each other")
    if "trials" in known.usual and "max_trials" in known.usual:
        raise pytest.UsageError("trialwise_trials and trialwise_max_trials exclude each other")
    try:
        budget = Budget(
            trials=known.value("budget_trials"),
            usd=known.value("budget_usd"),
            seconds=known.value("budget_seconds"),
        )
    except InvalidArgument as error:
        raise pytest.UsageError(f"the session's budget: {error}") from None
    root = config.rootpath
    return Settings(
        forced=_per_test(known.forced),
        usual=_per_test(known.usual),
        budget=budget,
        store=root / (known.value("store") or ".trialwise"),
        baselines=root / (known.value("baselines") or "baselines"),
        inconclusive=known.value("inconclusive") or "fail",
        html=known.path("html"),
        summary=known.path("summary"),
        measure=config.getoption("trialwise_measure"),
        resume=config.getoption("trialwise_resume"),
    )


class _Known:
    """What the command line and the ini file say, each for itself."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self.forced: dict[str, Any] = {}
        self.usual: dict[str, Any] = {}
        for name in _KINDS:
            given = config.getoption(f"trialwise_{name}")
            if given is not None:
                self.forced[name] = _read(f"--trialwise-{name.replace('_', '-')}", name, given)
            written = config.getini(f"trialwise_{name}")
            if written not in (None, ""):
                self.usual[name] = _read(f"trialwise_{name}", name, str(written))

    def value(self, name: str) -> Any:
        return self.forced.get(name, self.usual.get(name))

    def path(self, name: str) -> Path | None:
        """Return a file, below the current folder or below the folder of the ini file."""
        if name in self.forced:
            return self._config.invocation_params.dir / str(self.forced[name])
        return self._config.rootpath / str(self.usual[name]) if name in self.usual else None


def _per_test(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that a marker may say, by the names of their fields."""
    return {_FIELDS[name]: given[name] for name in _PER_TEST if name in given}


def _read(where: str, name: str, text: str) -> Any:
    kind = _KINDS[name]
    if kind.isupper():
        return text  # a folder or a file
    value = read_option(kind, text)
    if value is None:
        raise pytest.UsageError(f"{where} must be {describe_option(kind)}, got {text!r}")
    return (value,) if kind == "names" else value
