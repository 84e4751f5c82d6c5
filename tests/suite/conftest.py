"""A folder with a suite in it, and modules that leave no trace."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from pathlib import Path

import pytest

from trialwise.suite import Suite, SuiteError, load_suite

_NUMBERS = count()

#: A service and inputs that every suite may have without a file beside it.
SERVICE = 'service: {command: [echo, "{input}"]}\n'
BASE = SERVICE + "inputs: [one, two]\n"

Load = Callable[..., Suite]
Refused = Callable[..., SuiteError]
Module = Callable[[str], str]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Write a suite and load it."""

    def write_and_load(text: str | bytes, environment: Mapping[str, str] | None = None) -> Suite:
        path = tmp_path / "trialwise.yaml"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return load_suite(path, environment=environment or {})

    return write_and_load


@pytest.fixture
def refused(load: Load) -> Refused:
    """Write a suite that must be refused; the error's files are named without their folder."""

    def write_and_fail(
        text: str | bytes, environment: Mapping[str, str] | None = None
    ) -> SuiteError:
        with pytest.raises(SuiteError) as caught:
            load(text, environment)
        return caught.value

    return write_and_fail


@pytest.fixture
def module(tmp_path: Path) -> Iterator[Module]:
    """Write a module of the user's under a name that no other test has."""
    names: list[str] = []
    path = [*sys.path]

    def write(source: str) -> str:
        name = f"suite_module_{next(_NUMBERS)}"
        (tmp_path / f"{name}.py").write_text(source, encoding="utf-8")
        names.append(name)
        return name

    yield write
    sys.path[:] = path
    for name in names:
        sys.modules.pop(name, None)
