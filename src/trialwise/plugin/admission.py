"""A marked test with its contract and its plan, made when it is collected and refused there."""

from __future__ import annotations

import ast
import copy
import inspect
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from trialwise.checks.criterion_scopes import describe_function, find_node, source_of, write_node
from trialwise.errors import BaselineError, DesignRefused, TrialwiseError
from trialwise.model import Contract, Plan, RunOptions
from trialwise.model.criterion import Check
from trialwise.model.fingerprint import fingerprint
from trialwise.plugin.session import Asked, MarkerError, Settings, is_ours, read_marker
from trialwise.runtime import earlier_runs
from trialwise.runtime.earlier_runs import EarlierRun, EarlierRuns

#: Fixtures that change or catch what belongs to the whole process.
_PROCESS_WIDE = frozenset(
    {"capfd", "capfdbinary", "caplog", "capsys", "capsysbinary", "capteesys", "monkeypatch"}
    | {"recwarn", "pytester", "testdir"}
)


#: Fixtures that a body has in a worker as well; a worker has an event loop of asyncio.
_ANYWHERE = frozenset({"trial", "anyio_backend"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One marked test, ready to run."""

    contract: Contract
    options: RunOptions
    plan: Plan


CASE = pytest.StashKey[Case]()


def is_marked(item: pytest.Item) -> bool:
    """Return whether a test is marked `trials`, with arguments of ours."""
    marker = item.get_closest_marker("trials")
    return marker is not None and is_ours(marker.kwargs)


def admit(items: Sequence[pytest.Item], settings: Settings) -> list[str]:
    """Plan marked tests; what is wrong with any of them, each with its place."""
    errors: list[str] = []
    read: list[tuple[pytest.Item, Contract, RunOptions]] = []
    for item in items:
        if CASE not in item.stash:
            with _noting(item, errors):
                read.append((item, *_read_test(item, settings)))
    sizes = [options for _, _, options in read]
    # A family is sized together: each decision needs to know how many belong to it.
    if any(options.correction != "none" for options in sizes):
        from trialwise.procedures.families import size_families

        sizes = size_families([(contract, options) for _, contract, options in read])
    for (item, contract, _), options in zip(read, sizes, strict=True):
        with _noting(item, errors):
            plan = _plan(contract, options, settings)
            item.stash[CASE] = Case(contract=contract, options=options, plan=plan)
    return errors


@contextmanager
def _noting(item: pytest.Item, errors: list[str]) -> Iterator[None]:
    """Note what is wrong with a test, with its place."""
    try:
        yield
    except TrialwiseError as error:
        path, line, name = item.location
        place = path if line is None else f"{path}:{line + 1}"
        reasons = error.reasons if isinstance(error, DesignRefused) else (str(error),)
        errors.append(f"{place}: {name}: {'; '.join(reasons)}")


def _read_test(item: pytest.Item, settings: Settings) -> tuple[Contract, RunOptions]:
    if not isinstance(item, pytest.Function):
        raise MarkerError("@pytest.mark.trials is for test functions and methods")
    marker = _marker(item)
    asked = read_marker(marker.args, marker.kwargs, settings=settings, body=body_of(item.function))
    for conflict in _conflicts(item, asked):
        raise MarkerError(conflict)
    item.extra_keyword_matches.update(asked.tags)
    contract = Contract(
        item.nodeid, item.function, asked.criteria, sampling=asked.sampling, **asked.parts
    )
    return contract, asked.options


def _plan(
    contract: Contract,
    options: RunOptions,
    settings: Settings,
    *,
    now: datetime | None = None,
    seed: int | None = None,
) -> Plan:
    from trialwise.runtime.preparing import prepare

    try:
        return prepare(
            contract, options, settings.baselines, now=now, seed=seed, measuring=settings.measure
        )
    except BaselineError as error:
        how = f"With pytest: pytest --trialwise-measure {contract.name!r}"
        raise BaselineError(f"{error} {how}") from None


def _marker(item: pytest.Function) -> pytest.Mark:
    """Return the marker that counts: a parameter's own one, or the nearest."""
    # `pytest.param(..., marks=...)` is more specific than a decorator, whatever pytest's order.
    callspec = getattr(item, "callspec", None)
    marks: list[pytest.Mark] = [*getattr(callspec, "marks", ())]
    of_case = [mark for mark in marks if mark.name == "trials"]
    if of_case:
        return of_case[-1]
    own = [mark for mark in item.own_markers if mark.name == "trials"]
    if len(own) > 1:
        raise MarkerError("the test is marked trials twice: put both questions into one marker")
    found = item.get_closest_marker("trials")
    assert found is not None
    return found


def _conflicts(item: pytest.Function, asked: Asked) -> Iterator[str]:
    options = asked.options
    if any(getattr(one, "__unittest_expecting_failure__", False) for one in (item.obj, item.cls)):
        yield (
            "@unittest.expectedFailure and @pytest.mark.trials exclude each other: use "
            "@pytest.mark.xfail, which expects the verdict to be FAIL"
        )
    # The decorator of the plugin flaky leaves its settings at the function.
    if item.get_closest_marker("flaky") is not None or hasattr(item.obj, "_flaky_max_runs"):
        yield (
            "@pytest.mark.flaky and @pytest.mark.trials exclude each other: running a marked test "
            "again until it passes would bias its rate. Lower the threshold instead"
        )
    if options.executor != "local":
        yield from _list_bound(item, options.executor)
    shared = sorted(_PROCESS_WIDE & set(item.fixturenames))
    if options.concurrency > 1 and shared:
        yield (
            f"concurrency={options.concurrency} cannot go with {', '.join(shared)}: it changes or "
            "catches what belongs to the whole process, so that trials side by side would disturb "
            "each other. Drop the concurrency, or use a fixture of a wider scope"
        )
    callspec = getattr(item, "callspec", None)
    backend = str(getattr(callspec, "params", {}).get("anyio_backend", ""))
    if options.concurrency > 1 and "trio" in backend:
        yield "concurrency needs asyncio: anyio's trio backend runs one trial after the other"
    # A test that takes `request` may ask for the trial later.
    takes = "trial" in item.fixturenames or "request" in item._fixtureinfo.argnames
    if asked.has_inputs and not takes:
        yield (
            "the marker has inputs, and the test never uses them: take the fixture `trial` and use "
            "trial.input, or drop inputs="
        )


def _list_bound(item: pytest.Function, executor: str) -> Iterator[str]:
    """List what binds the body of a test to this process."""
    if getattr(item, "nofuncargs", False):
        yield f"executor={executor!r} cannot run a method of unittest.TestCase"
    info = item._fixtureinfo
    params = getattr(getattr(item, "callspec", None), "params", {})
    for name in dict.fromkeys((*info.argnames, *item.fixturenames)):
        found = info.name2fixturedefs.get(name, ())
        # A definition that only hands on what `parametrize` gives.
        direct = [one.func.__name__ == "get_direct_param_fixture_func" for one in found]
        if name in _ANYWHERE or (name in params and all(direct)):
            continue
        # What a plugin does around every test is not the body's concern.
        if name not in info.argnames and not any(_is_own(one, item) for one in found):
            continue
        shown = re.sub(r"^_xunit_(setup_\w+?)_fixture.*", r"\1", name)
        yield (
            f"executor={executor!r} runs the body in other processes, and the fixture {shown!r} "
            "belongs to this one: a test has `trial` and the arguments of parametrize there. Make "
            "what it needs in the body, or take the fixture `trialwise` and call "
            f"trialwise.run(contract, executor={executor!r})"
        )


def _is_own(definition: pytest.FixtureDef[Any], item: pytest.Function) -> bool:
    """Return whether a fixture is the project's own, and not one of an installed plugin."""
    if definition.argname.startswith("_xunit_"):
        return True
    path = Path(definition.func.__code__.co_filename)
    return path.is_relative_to(item.config.rootpath) and "site-packages" not in path.parts


def find_earlier(case: Case, settings: Settings, runs: EarlierRuns | None) -> EarlierRun:
    """Return what the newest run of a test contributes, where earlier sessions are resumed.

    A test that has changed gets a new run, with a note: a session cannot refuse one of its tests
    for what an earlier session did.

    Args:
        case: The test.
        settings: The session's.
        runs: The runs of earlier sessions; None where nothing is resumed.
    """

    def make_plan(now: datetime | None, seed: int | None) -> Plan:
        if now is None:
            return case.plan
        return _plan(case.contract, case.options, settings, now=now, seed=seed)

    purpose = "measure" if settings.measure else "test"
    name = case.contract.name
    return earlier_runs.find_earlier(runs, name, make_plan, purpose, settings.store)


def body_of(function: object) -> Check:
    """Return a test's function as the postcondition that its criteria are known by."""
    plain = inspect.unwrap(function) if callable(function) else function
    contents = ""
    if isinstance(plain, FunctionType):
        contents = fingerprint({**describe_function(plain), "source": _unmarked_source(plain)})
    return partial(body, getattr(plain, "__qualname__", ""), contents)


def body(name: str, contents: str) -> None:
    """Stands for a test's function in a fingerprint; pytest is who runs the function itself."""


def _unmarked_source(function: FunctionType) -> str:
    try:
        node: Any = find_node(function.__code__)
    except (OSError, TypeError, ValueError, SyntaxError, RecursionError):
        node = None
    if node is None:
        return source_of(function.__code__)
    plain = copy.copy(node)
    # The marker says what is asked; a new threshold must not make another criterion of the body.
    plain.decorator_list = [one for one in node.decorator_list if not _is_mark(one)]
    return write_node(plain)


def _is_mark(decorator: ast.expr) -> bool:
    """Return whether a decorator is `pytest.mark.…`, called or not, however pytest was imported."""
    node: ast.expr = decorator.func if isinstance(decorator, ast.Call) else decorator
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    parts.append(node.id if isinstance(node, ast.Name) else "")
    return "mark" in parts[1:]
