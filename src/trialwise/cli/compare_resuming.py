"""The command line of a comparison, kept with it, so that `compare --resume` needs no arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

#: What belongs to a single command: where it prints, and that it resumes.
_NOT_KEPT = ("as_json", "dry_run", "file", "markdown", "outputs", "quiet", "resume", "stored")


def describe_command(names: Sequence[str], given: Mapping[str, Any], suite: Path) -> dict[str, Any]:
    """Return what finds the arms and the question of a comparison again, as plain values."""
    options = {
        name: str(value) if isinstance(value, Path) else value
        for name, value in _list_written(given).items()
        if name not in _NOT_KEPT
    }
    return {"suite": str(suite.absolute()), "names": list(names), "options": options}


def recall_command(given: Mapping[str, Any]) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the names and options of the comparison to resume, as it was started.

    Raises:
        RunNotFound: There is none.
    """
    from trialwise.cli.stored import find_places
    from trialwise.stores.comparisons import ComparisonStore

    stored = ComparisonStore(find_places().runs).find_unfinished(
        given["resume"] or None, "comparison"
    )
    source = stored.head.source
    if "options" not in source:
        message = (
            f"{stored.comparison_id} was not started by `trialwise compare`: resume it where it was"
        )
        raise click.UsageError(message)
    options = {name: _restore(name, value) for name, value in source["options"].items()}
    suite = Path(given["file"] or source["suite"])
    # What is written now prevails, such as a larger budget.
    whole = {**given, **options, **_list_written(given)}
    return tuple(source["names"]), {**whole, "file": suite, "resume": stored.comparison_id}


def _list_written(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that somebody wrote."""
    return {name: value for name, value in given.items() if value not in (None, (), False)}


def _restore(name: str, value: Any) -> Any:
    """Return a value as click gave it: JSON has neither tuples nor paths."""
    if name in ("record", "replay"):
        return Path(value)
    if isinstance(value, list):
        return tuple(tuple(one) if isinstance(one, list) else one for one in value)
    return value
