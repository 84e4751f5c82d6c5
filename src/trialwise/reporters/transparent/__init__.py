"""The transparent-statistics report: all the reasoning behind a verdict (companion §10.2–10.4)."""

from trialwise.reporters.transparent.report import render_transparent

__all__ = ["render_transparent"]
