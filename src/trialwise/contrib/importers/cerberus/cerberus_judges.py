"""Judges of cerberus: a rubric, put to a panel of models by name, as a judge of a suite.

The panel asks the models in turn, and more than half of the votes must pass, so that a tie fails;
a judge of a suite does the same. cerberus and trialwise word their question differently.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trialwise.contrib.importers.model_endpoints import find_model_endpoint
from trialwise.contrib.importers.named_files import is_below
from trialwise.contrib.importers.yaml_mappings import Keys
from trialwise.regular_files import FileUnreadable, read_bytes
from trialwise.suite.suite_problems import Problems
from trialwise.suite.yaml_reading import MAX_BYTES

__all__ = ["Panel", "read_judge"]

#: Votes about one reply; more would be a mistake that costs money.
_MOST_VOTES = 100

#: How the names of models begin that cerberus knows a vendor of.
_PREFIXES = ("gpt-", "o1", "o3", "o4", "claude-", "gemini-")

_ADVISES = (
    "A judge contract without a gold set advises, here as in cerberus. A suite in which nothing "
    "else decides is INCONCLUSIVE here; cerberus lets it pass."
)
_VOTES = (
    "If votes of a judge do not arrive, cerberus decides by the others. Here the criterion fails "
    "for this trial if the missing votes could change the result."
)
_WORDS = (
    "The jurors get the rubric, the input and the reply in the words of trialwise, not in those of "
    "cerberus: their answers may differ."
)


@dataclass(frozen=True, slots=True)
class Panel:
    """The models that a cerberus file lists as its judges."""

    models: tuple[str, ...]
    folder: Path
    """The folder of the file, in which gold sets are looked for."""

    @classmethod
    def read(cls, keys: Keys, problems: Problems, folder: Path) -> Panel:
        """Read the `judges` of a file; a model of an unknown vendor is reported."""
        models: list[str] = []
        for node in keys.items("judges", "a list of judges", least=0):
            judge = Keys(node, problems, what="a judge", known=("model",), required=("model",))
            model = judge.text("model", "the name of a model")
            if model is None:
                continue
            if not model.startswith(_PREFIXES):
                judge.refuse(
                    "model",
                    f"`model`: cerberus knows no vendor of `{model}`; it knows models that begin "
                    "with gpt-, o1, o3, o4, claude- or gemini-",
                )
            models.append(model)
        return cls(tuple(models), folder)

    def seat(self, votes: int) -> tuple[str, ...]:
        """Return the models that are asked for some votes, in turn, as cerberus seats them."""
        return tuple(self.models[place % len(self.models)] for place in range(votes))


def read_judge(keys: Keys, panel: Panel) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Read a judge contract: the check that stands for it, and notes on what differs.

    Args:
        keys: The contract.
        panel: The models that the file lists.
    """
    rubric = keys.text("rubric", "what a reply must meet")
    votes = keys.whole("judge_panel", 1, _MOST_VOTES) or 1
    source = keys.text("source", "a reference text", blank=True)
    notes = [_ADVISES, _VOTES, _WORDS, *_read_measures(keys, panel)]
    if not panel.models:
        keys.refuse("type", "`type: judge`: judge contracts need at least one model in `judges`")
    if rubric is None or not panel.models:
        return {}, tuple(notes)
    if source:
        rubric = f"{rubric.rstrip()}\n\nReference source:\n{source.strip()}\n"
        notes.append(
            f"Line {keys.line('source')}: `source` stands at the end of the rubric; cerberus shows "
            "it in a section of its own."
        )
    seated = panel.seat(votes)
    jurors = list(dict.fromkeys(seated))
    if Counter(seated) != Counter(jurors[place % len(jurors)] for place in range(votes)):
        keys.refuse(
            "judge_panel",
            f"`judge_panel` asks {_count_votes(seated)}; jurors here are asked in turn: list each "
            "model once in `judges`",
        )
    judge: dict[str, Any] = {"rubric": rubric, "jurors": [_describe_juror(one) for one in jurors]}
    if votes != len(jurors):
        judge["votes"] = votes
    return {"judge": judge}, tuple(notes)


def _describe_juror(model: str) -> dict[str, Any]:
    endpoint = find_model_endpoint(model)
    return {} if endpoint is None else endpoint.describe_chat(model)


def _count_votes(seated: Sequence[str]) -> str:
    return ", ".join(f"{model} {count} times" for model, count in Counter(seated).items())


def _read_measures(keys: Keys, panel: Panel) -> list[str]:
    """Read what cerberus measures a judge by, and say why it is left out."""
    notes = []
    gold = keys.text("gold_set", "the path of a gold set")
    if gold is not None:
        if not is_below(panel.folder / gold, panel.folder):
            keys.refuse("gold_set", f"`gold_set`: {gold} is not below the folder of this file")
        elif (reason := _unreadable(panel.folder / gold)) is not None:
            keys.refuse("gold_set", f"`gold_set`: {panel.folder / gold} {reason}")
        notes.append(
            f"Line {keys.line('gold_set')}: `gold_set` is not carried over: it labels scenarios, "
            "and a judge here is measured on labelled outputs. Draw some with `trialwise judge "
            "draw`, label them and name them as `gold`; until then the judge advises."
        )
    if "alpha_split" in keys:
        split = Keys(
            keys.at("alpha_split"),
            keys.problems,
            what="`alpha_split`",
            known=("alpha_c", "alpha_a"),
            required=("alpha_c", "alpha_a"),
        )
        for name in ("alpha_c", "alpha_a"):
            split.number(name, 0, 1, open_ends=True)
        notes.append(
            f"Line {keys.line('alpha_split')}: `alpha_split` is not carried over: a calibrated "
            "judge here is decided by one test of the labels and the trials together."
        )
    return notes


def _unreadable(path: Path) -> str | None:
    try:
        read_bytes(path, limit=MAX_BYTES)
    except FileUnreadable as error:
        return error.reason
    return None
