"""Renderers: pure functions from findings and verdicts to text; writing it is the caller's."""
