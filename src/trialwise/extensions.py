"""Find what other distributions add to trialwise through entry points.

A distribution declares an entry point in one of the groups below; its name is the word that users
write, and its object is what a built-in of that kind is:

    [project.entry-points."trialwise.checks"]
    is_sql = "my_package.checks:IsSql"

Callers look here only for a name that no built-in has, so that nobody else pays for the search.
A built-in can therefore not be replaced.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache

from trialwise.errors import TrialwiseError

# `typing` would cost more than all the rest; type checkers know the name.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from importlib.metadata import EntryPoint
    from typing import TypeVar

    T = TypeVar("T")

#: The groups of entry points that trialwise looks up.
CHECKS = "trialwise.checks"
SERVICES = "trialwise.services"
REPORTERS = "trialwise.reporters"
IMPORTERS = "trialwise.importers"
PROCEDURES = "trialwise.procedures"
EXECUTORS = "trialwise.executors"
COMMANDS = "trialwise.commands"
RESULTS = "trialwise.results"
GROUPS = (CHECKS, SERVICES, REPORTERS, IMPORTERS, PROCEDURES, EXECUTORS, COMMANDS, RESULTS)


class ExtensionError(TrialwiseError):
    """An installed distribution declares an extension that cannot be used.

    Args:
        group: The group of entry points, such as `trialwise.checks`.
        name: The name of the extension.
        distribution: The distributions that declare it, as `name version`.
        problem: What is wrong with it, as the rest of a sentence that starts with its name.
        remedy: What the user can do.
    """

    def __init__(
        self, group: str, name: str, distribution: str, problem: str, remedy: str = ""
    ) -> None:
        advice = remedy or f"Update or uninstall {distribution}."
        super().__init__(f"{group}: {name!r} of {distribution} {problem}. {advice}")


class ExtensionRaised(TrialwiseError):
    """An exception came out of an installed extension, so that it is not trialwise's to repair.

    Args:
        distribution: The distribution that it came out of, as `name version`.
        error: The exception.
        advice: What to do once the extension is repaired.
    """

    def __init__(self, distribution: str, error: BaseException, advice: str = "") -> None:
        from traceback import extract_tb

        where = extract_tb(error.__traceback__)[-1]
        super().__init__(
            f"the extension {distribution} raised {type(error).__name__}: {error} "
            f'(File "{where.filename}", line {where.lineno}, in {where.name}). '
            f"{advice or 'Report it to those who wrote the extension.'}"
        )


def blame_extension(error: BaseException) -> str | None:
    """Return the distribution of an extension that an exception came out of, as `name version`.

    The last frame of an extension counts: what it calls, it calls wrongly.
    """
    import sys

    distributions = _list_distributions(tuple(sys.path))
    found, entry = None, error.__traceback__
    while entry is not None:
        package = str(entry.tb_frame.f_globals.get("__name__")).partition(".")[0]
        found = distributions.get(package, found)
        entry = entry.tb_next
    return found


@contextmanager
def naming_extensions(advice: str = "") -> Iterator[None]:
    """Name the extension that an exception comes out of; every other exception stays as it is.

    Args:
        advice: What to do once the extension is repaired.

    Raises:
        ExtensionRaised: The exception came out of an extension.
    """
    try:
        yield
    except TrialwiseError:
        raise
    except Exception as error:  # a module of somebody else may raise anything
        extension = blame_extension(error)
        if extension is None:
            raise
        raise ExtensionRaised(extension, error, advice) from error


@cache
def _list_distributions(_: tuple[str, ...]) -> dict[str, str]:
    """Return the distributions that extend trialwise by the packages that they are imported as."""
    # It looks through the folders of all distributions: only a name that no built-in has pays.
    from importlib.metadata import entry_points

    return {
        one.module.partition(".")[0]: _distribution(one)
        for group in GROUPS
        for one in entry_points(group=group)
    }


def extension_names(group: str) -> tuple[str, ...]:
    """Return the names that installed distributions declare in a group, in order.

    Nothing is imported, so that the names can be listed in a message.
    """
    return tuple(sorted(_entry_points(group)))


def find_extension(group: str, name: str, accept: Callable[[object], T | None]) -> T | None:
    """Load the extension of a name, or return None where no distribution declares it.

    Args:
        group: The group of entry points.
        name: The name that the user wrote; no built-in has it.
        accept: Returns the loaded object as the type that the caller needs, or None where the
            object is something else.

    Raises:
        ExtensionError: It cannot be imported, is something else, or two distributions declare it.
    """
    declared = _entry_points(group).get(name)
    return None if declared is None else _load(group, name, declared, accept)


def load_extensions(group: str, accept: Callable[[object], T | None]) -> dict[str, T]:
    """Load all extensions of a group by name, for a schema or a reference that lists them.

    Raises:
        ExtensionError: One of them cannot be used.
    """
    declared = _entry_points(group)
    return {name: _load(group, name, declared[name], accept) for name in sorted(declared)}


def _entry_points(group: str) -> dict[str, list[EntryPoint]]:
    """Return the entry points of a group by name; one distribution counts once."""
    from importlib.metadata import entry_points

    found: dict[str, list[EntryPoint]] = {}
    for one in entry_points(group=group):
        same = found.setdefault(one.name, [])
        # A folder that is on the path twice shows each of its distributions twice.
        if all(one.value != other.value for other in same):
            same.append(one)
    return found


def _load(
    group: str, name: str, declared: list[EntryPoint], accept: Callable[[object], T | None]
) -> T:
    # Which of two is loaded would depend on the order of installation.
    if len(declared) > 1:
        several = " and ".join(map(_distribution, declared))
        raise ExtensionError(group, name, several, "is declared by both", "Uninstall one of them.")
    (one,) = declared
    try:
        loaded = one.load()
    except Exception as error:  # a module of somebody else may raise anything
        problem = f"cannot be imported from {one.value!r} ({type(error).__name__}: {error})"
        raise ExtensionError(group, name, _distribution(one), problem) from error
    accepted = accept(loaded)
    if accepted is None:
        problem = f"is not what this group holds: {one.value!r} is {type(loaded).__name__}"
        raise ExtensionError(group, name, _distribution(one), problem)
    return accepted


def _distribution(one: EntryPoint) -> str:
    return "an unnamed distribution" if one.dist is None else f"{one.dist.name} {one.dist.version}"
