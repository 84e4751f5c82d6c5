"""The keyword arguments of `run` and `measure`, as the options of a run."""

from __future__ import annotations

from trialwise.model.options import RunOptions
from trialwise.model.run_settings import RunSettings

__all__ = ["options_of"]


def options_of(options: RunOptions | None, settings: RunSettings) -> RunOptions:
    """The options given whole, changed by those given one by one."""
    from dataclasses import replace

    if options is None:
        return RunOptions(**settings)  # type: ignore[arg-type]
    return replace(options, **settings)  # type: ignore[arg-type]
