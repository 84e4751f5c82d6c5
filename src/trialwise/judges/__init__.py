"""Judges: models that say whether a reply meets a rubric, and how often they are wrong.

A name loads its module on first use; type checkers read `__init__.pyi`.
"""

from __future__ import annotations

from trialwise.lazy_exports import lazy_names

#: Where each public name lives.
_MODULES = {
    "cache": "CacheUnusable VoteCache",
    "calibrating": "Judged NothingJudged calibrate",
    "calibration": "Calibration CalibrationError GoldFiles read_calibration write_calibration",
    "drawing": "draw_unlabelled",
    "gold": "GoldSet GoldSetError GoldUnit read_gold",
    "jurors": "Expenses Juror",
    "panel": "decide_panel quorum_of votes_needed",
    "preference": "Comparison Pairwise Preference WinRate pairwise win_rate",
    "rubric": "Judge judge",
    "similarity": "Similar similar",
    "votes": "Choice Vote read_choice read_vote",
}
_EXPORTS, __getattr__, __dir__ = lazy_names(__name__, _MODULES)

__all__ = list(_EXPORTS)
