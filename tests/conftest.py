"""Shared set-up: hypothesis without deadlines, since a busy machine is not a defect."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("trialwise", deadline=None, derandomize=True)
settings.load_profile("trialwise")
