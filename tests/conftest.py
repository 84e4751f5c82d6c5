"""Shared set-up: hypothesis without deadlines, since a busy machine is not a defect."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("trialwise", deadline=None, derandomize=True, max_examples=30)
#: `make test-all` asks for it.
settings.register_profile("thorough", deadline=None, derandomize=True, max_examples=100)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "trialwise"))
