"""The styles and the script that stand beside this package's modules."""

from __future__ import annotations

from importlib.resources import files

__all__ = ["read_asset"]


def read_asset(name: str) -> str:
    """The text of a file, such as "page.css"."""
    return files("trialwise.renderers.html").joinpath(name).read_text("utf-8")
