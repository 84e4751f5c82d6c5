"""A comparison for programs, in one versioned form: the verdict in full, its flips and inputs.

`comparison.schema.json` beside this file describes it (JSON Schema 2020-12). The fields of the
verdict stand at the top, as `ComparisonVerdict` names them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trialwise import __version__
from trialwise.model.codec import to_plain
from trialwise.model.run import RunRecord
from trialwise.model.trial import Trial
from trialwise.pages.comparison_flips import list_flips, read_whole, shorten_reply
from trialwise.pages.comparison_inputs import count_inputs
from trialwise.procedures.comparing.findings import ArmRun, ComparisonVerdict

#: Its number grows when a reader of the earlier form would misread the later one.
SCHEMA = "trialwise.comparison/1"
#: Flips that are written with their replies; the others are counted.
_MOST_FLIPS = 500


def describe_comparison(verdict: ComparisonVerdict, arms: Sequence[ArmRun] = ()) -> dict[str, Any]:
    """Describe a comparison as plain values, fit for JSON.

    Args:
        verdict: What was concluded.
        arms: The runs of the arms; without them there are no flips and no inputs.
    """
    flips, records = list_flips(verdict, arms), {one.label: one.record for one in arms}
    shown = flips[:_MOST_FLIPS]
    return {
        "schema": SCHEMA,
        "tool": {"name": "trialwise", "version": __version__},
        **to_plain(verdict),
        "records": {one.label: None if one.path is None else str(one.path) for one in arms},
        "inputs": list(_list_inputs(verdict, arms)),
        "flips": [
            {
                "arm": one.arm,
                "against": one.against,
                "input": one.pair.control.input_id,
                "lost": list(one.lost),
                "won": list(one.won),
                "control": _describe_trial(records[one.against], one.pair.control),
                "candidate": _describe_trial(records[one.arm], one.pair.candidate),
            }
            for one in shown
        ],
        "other_flips": len(flips) - len(shown),
    }


def read_comparison_schema() -> dict[str, Any]:
    """Read the JSON Schema of a comparison."""
    import json
    from importlib.resources import files

    text = files("trialwise.pages").joinpath("comparison.schema.json").read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def _list_inputs(verdict: ComparisonVerdict, arms: Sequence[ArmRun]) -> Iterator[Mapping[str, Any]]:
    counted = count_inputs(arms) if arms else {}
    for criterion in dict.fromkeys(one.criterion for one in verdict.findings):
        for row in counted.get(criterion, ()):
            counts = {
                label: {"passed": passed, "trials": trials}
                for label, (passed, trials) in row.counts.items()
            }
            yield {"criterion": criterion, "input": row.input_id, "arms": counts}


def _describe_trial(record: RunRecord, sketch: Trial) -> dict[str, Any]:
    trial = read_whole(record, sketch)
    return {
        "trial": trial.index,
        "seed": trial.seed,
        "reply": None if trial.reply is None else shorten_reply(trial.reply),
        "error": trial.error,
        "failed": {
            one.criterion: one.result.explanation for one in trial.outcomes if not one.passed
        },
    }
