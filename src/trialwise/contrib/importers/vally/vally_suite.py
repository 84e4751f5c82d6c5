"""Convert an eval.yaml of vally into a suite: each stimulus is a sampling with its own criterion.

vally passes a trial if the weighted mean of its graders reaches the threshold, or if every grader
passes where there is no threshold. The executor, such as an agent of Copilot, is what no service
here starts: it is a function that is left to be written.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trialwise.contrib.importers.import_refusal import check
from trialwise.contrib.importers.imported_suite import Imported
from trialwise.contrib.importers.passing_sets import MOST_WEIGHED, combine_checks, find_passing_sets
from trialwise.contrib.importers.suite_converter import SuiteConverter
from trialwise.contrib.importers.suite_importer import ImportRequest, SuiteImporter
from trialwise.contrib.importers.vally.vally_graders import GraderRead, Graders
from trialwise.contrib.importers.yaml_mappings import is_number
from trialwise.declarations.written import Node
from trialwise.suite.yaml_reading import plain

__all__ = ["IMPORTER", "import_vally"]

_TIMEOUT = "2m"
_READ = (
    "name",
    "description",
    "version",
    "type",
    "tags",
    "config",
    "defaults",
    "scoring",
    "stimuli",
)
_DEFAULTS = ("runs", "timeout", "executor", "model", "judge_model")
_STIMULUS = ("name", "prompt", "graders", "tags", "rubric", "description", "category")
_RULE = (
    "Every trial of a stimulus has to pass; give `--at-least` to `import` to require a rate. vally "
    "compares the mean score with the threshold: `trialwise score --mean-at-least` decides that"
)


def import_vally(path: Path, *, at_least: float | None = None) -> Imported:
    """Convert an eval specification of vally.

    Args:
        path: Usually eval.yaml.
        at_least: The rate that each stimulus requires; without it, no trial may fail.

    Raises:
        ImportRefused: The file is wrong, or has no stimulus that can be carried over.
    """
    return _Converter(path, at_least).import_file()


@dataclass(frozen=True, slots=True)
class _Scoring:
    """What the kinds of graders weigh, and the score from which a trial passes."""

    weights: dict[str, float]
    threshold: float | None

    def weigh(self, grader: GraderRead) -> float:
        """Return the weight of a grader; 1 where the file does not say."""
        return self.weights.get(grader.kind, 1.0)


class _Converter(SuiteConverter):
    """One file of vally being read."""

    tool = "vally"

    def convert(self, root: Node) -> dict[str, Any] | None:
        """Convert the file, as far as it could be read."""
        if not root.is_mapping or "stimuli" not in root.entries:
            self.problems.add(root, "an eval of vally needs `stimuli`")
            return None
        for name, (key, _) in root.entries.items():
            if name not in _READ:
                self.notes.leave_out(f"`{name[:60]}`", f"line {key.line + 1}")
        settings = self._read_settings(root)
        scoring = self._read_scoring(root)
        graders = Graders(self.notes, self.functions)
        judge_model = settings.get("judge_model")
        if isinstance(judge_model, str) and judge_model:
            graders.judge_model = judge_model
        service = self._executor(root, settings)
        stimuli = root.entries["stimuli"][1]
        samplings: dict[str, Any] = {}
        criteria: list[dict[str, Any]] = []
        for node in stimuli.items() if stimuli.is_list else ():
            sampling, more = self._stimulus(node, graders, scoring, settings, set(samplings))
            samplings |= sampling
            criteria += more
        check(self.problems)
        if not criteria:
            self.problems.add(stimuli, "no stimulus with a grader can be carried over")
            return None
        if self.at_least is None:
            self.notes.add(_RULE)
        title = plain(root.entries["name"][1]) if "name" in root.entries else None
        name = " ".join(str(title or self.path.stem).split())[:80] or "vally"
        timeout = settings.get("timeout")
        return {
            "name": name,
            "service": service,
            "timeout": timeout if isinstance(timeout, str) else _TIMEOUT,
            "samplings": samplings,
            "keep_going": True,
            "curtail": False,
            "criteria": criteria,
        }

    def _read_settings(self, root: Node) -> dict[str, Any]:
        """Read `defaults`, which was called `config` before."""
        found: dict[str, Any] = {}
        for key in ("config", "defaults"):
            if key in root.entries:
                given = plain(root.entries[key][1])
                found |= given if isinstance(given, dict) else {}
                for name in given if isinstance(given, dict) else ():
                    if name not in _DEFAULTS:
                        where = f"line {root.entries[key][0].line + 1}"
                        self.notes.leave_out(f"`{str(name)[:60]}` of `{key}`", where)
        return found

    def _read_scoring(self, root: Node) -> _Scoring:
        given = plain(root.entries["scoring"][1]) if "scoring" in root.entries else {}
        scoring = given if isinstance(given, dict) else {}
        found = scoring.get("weights")
        weights = {
            str(name): float(weight)
            for name, weight in (found.items() if isinstance(found, dict) else ())
            if is_number(weight)
        }
        threshold = scoring.get("threshold")
        limit = float(threshold) if isinstance(threshold, int | float) else None
        return _Scoring(weights, limit)

    def _executor(self, root: Node, settings: dict[str, Any]) -> dict[str, Any]:
        name = str(settings.get("executor") or "copilot-sdk")
        function = self.functions.add_stub(
            "executor",
            "input",
            "Ask the agent and return its answer; `input` is the prompt.",
            f"executor {name}, model {settings.get('model') or 'of the command line'}",
        )
        self.notes.leave_out(
            f"the executor `{name[:60]}`: write `{function.partition(':')[2]}` in "
            f"{self.module}.py, or use another service, such as `command` or `agent`; until then "
            "every trial fails",
            f"line {root.line + 1}",
        )
        return {"python": function}

    def _stimulus(
        self,
        node: Node,
        graders: Graders,
        scoring: _Scoring,
        settings: dict[str, Any],
        taken: set[str],
    ) -> tuple[dict[str, list[str]], list[dict[str, Any]]]:
        """Read a stimulus: its sampling by name, and its criteria."""
        nothing: tuple[dict[str, list[str]], list[dict[str, Any]]] = ({}, [])
        where = f"line {node.line + 1}"
        given = plain(node)
        if not isinstance(given, dict) or not isinstance(given.get("name"), str):
            self.problems.add(node, "a stimulus must be a mapping with a `name`")
            return nothing
        name = " ".join(given["name"].split())[:80]
        if name in taken or not name:
            self.problems.add(node, f"two stimuli are called `{name}`: rename one")
            return nothing
        prompt = given.get("prompt")
        if not isinstance(prompt, str) or not prompt.strip():
            self.notes.leave_out("a stimulus of several turns, or without a prompt", where)
            return nothing
        for key in given:
            if key not in _STIMULUS:
                self.notes.leave_out(f"`{str(key)[:60]}` of a stimulus", where)
        rubric = given.get("rubric")
        lines = [one for one in rubric if isinstance(one, str)] if isinstance(rubric, list) else []
        nodes = node.entries["graders"][1] if "graders" in node.entries else None
        found = [
            graders.read(one, lines, f"line {item.line + 1}")
            for item in (nodes.items() if nodes is not None and nodes.is_list else ())
            if isinstance(one := plain(item), dict)
        ]
        if not found:
            self.notes.leave_out("a stimulus without a grader: vally does not score it", where)
            return nothing
        checks = self._combine(found, scoring, where)
        judges = [one.judge for one in found if one.judge is not None]
        runs = settings.get("runs")
        trials = runs if isinstance(runs, int) and not isinstance(runs, bool) and runs > 0 else 1
        rule: dict[str, Any] = {"never_fails": True, "trials": trials}
        if self.at_least is not None:
            rule = {"at_least": self.at_least}
        criteria: list[dict[str, Any]] = []
        if checks:
            asked = dict(checks[0]) if len(checks) == 1 else {"postconditions": checks}
            criteria.append({"name": name, **asked, **rule, "sampling": name})
        for number, judge in enumerate(judges, start=1):
            title = f"{name}: rubric" + (f" {number}" if number > 1 else "")
            criteria.append({"name": title, "judge": judge, **rule, "sampling": name})
        return {name: [prompt]}, criteria

    def _combine(
        self, found: list[GraderRead], scoring: _Scoring, where: str
    ) -> list[dict[str, Any]]:
        """Return the checks that have to hold, by the weights of their kinds."""
        graded = [one for one in found if one.check is not None]
        checks = [one.check for one in graded if one.check is not None]
        if scoring.threshold is None or not checks:
            return checks
        own = [scoring.weigh(one) for one in graded]
        others = sum(scoring.weigh(one) for one in found if one.judge is not None)
        sets: list[tuple[int, ...]] = []
        if len(own) <= MOST_WEIGHED and all(weight > 0 for weight in own):
            sets = find_passing_sets(own, scoring.threshold, given=others)
        if others:
            self.notes.add(
                "A score with a `threshold` counts a `prompt` grader as failed here, since its "
                "judge decides apart",
                where,
            )
        if not sets:
            self.notes.add("Every grader has to pass here, which is stricter than vally", where)
            return checks
        joined = combine_checks(checks, sets)
        return [] if joined is None else [joined]


def _find_role(root: Node) -> str | None:
    return "suite" if "stimuli" in root.entries else None


def _import_files(request: ImportRequest) -> Imported:
    return import_vally(request.files["suite"], at_least=request.at_least)


IMPORTER = SuiteImporter(
    name="vally", signs="has `stimuli`", find_role=_find_role, import_files=_import_files
)
