"""The report of a run as one self-contained page."""

from __future__ import annotations

from trialwise.reporters.html.report import render_html

__all__ = ["render_html"]
