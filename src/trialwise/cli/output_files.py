"""The option `-o`, by which a command writes files whose names say their formats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click


def build_output_option(
    check: Callable[[Path], object], endings: Sequence[str], what: str = "Write a report"
) -> Callable[[Any], Any]:
    """Build the option for one kind of report.

    Args:
        check: Raises where a name asks for no such report, before anything is read or run.
        endings: What the help lists.
        what: What the help says that the command does.
    """

    def check_names(
        _: click.Context, __: click.Parameter, paths: tuple[Path, ...]
    ) -> tuple[Path, ...]:
        for path in paths:
            check(path)
        return paths

    return click.option(
        "-o",
        "--output",
        "outputs",
        multiple=True,
        type=click.Path(path_type=Path, dir_okay=False),
        callback=check_names,
        help=f"{what}: {' '.join(endings)}; may be repeated.",
    )


def require_folder(path: Path) -> None:
    """Refuse a file in a folder that is not there."""
    if not path.parent.is_dir():
        raise click.FileError(str(path), f"there is no folder {path.parent}")
