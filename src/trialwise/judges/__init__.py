"""Judges: models that say whether a reply meets a rubric, and how often they are wrong.

A name loads its module on first use; type checkers read `__init__.pyi`.

    rubric, preference       a judge of one reply, and of which of two is better
    jurors, votes            how a juror is asked, what it is asked, and what it answered
    gold, calibrating, calibration   labelled outputs, and how often a judge agrees with them
    similarity               how alike two texts are, without a judge
"""

from __future__ import annotations

from trialwise.lazy_exports import lazy_names

#: Where each public name lives.
_MODULES = {
    "calibrating": "Judged NothingJudged calibrate calibrate_pairwise",
    "calibration": "Calibration CalibrationError GoldFiles read_calibration write_calibration",
    "gold": (
        "GoldSet GoldSetError GoldUnit PairGold PairUnit draw_unlabelled read_gold read_pair_gold"
    ),
    "jurors": "CacheUnusable Expenses Juror VoteCache",
    "preference": ("Comparison Pairwise Preference WinRate pairwise win_rate"),
    "rubric": "Judge judge",
    "similarity": "Similar similar",
    "votes": "Choice Vote decide_panel quorum_of read_choice read_vote votes_needed",
}
_EXPORTS, __getattr__, __dir__ = lazy_names(__name__, _MODULES)

__all__ = list(_EXPORTS)
