"""Convert a suite of mcptest: each agent test is a contract with the same runs and gates.

mcptest runs an agent test `runs` times, every run has to meet every expectation, and `stability`
and `reliability` are gates over the runs. The gates have the same targets and matchers here. Tests
of single tools, resources and prompts call no model; they stay with mcptest.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from trialwise.contrib.importers.import_refusal import check
from trialwise.contrib.importers.imported_suite import Imported
from trialwise.contrib.importers.mcptest.target_matching import MATCHERS, TARGETS
from trialwise.contrib.importers.model_endpoints import ENDPOINTS, find_model_endpoint
from trialwise.contrib.importers.suite_converter import SuiteConverter
from trialwise.contrib.importers.suite_importer import ImportRequest, SuiteImporter
from trialwise.contrib.importers.yaml_mappings import Keys
from trialwise.declarations.written import Node
from trialwise.errors import InvalidArgument
from trialwise.suite.yaml_reading import plain

__all__ = ["IMPORTER", "import_mcptest"]

_MOST_RUNS = 10_000
_AGENT = (
    *("name", "model", "models", "servers", "prompt", "system", "runs", "expect", "stability"),
    *("reliability", "temperature", "max_tokens", "max_turns"),
)
_SERVER = ("command", "args", "url", "env", "headers", "cwd")
_RULE = (
    "As in mcptest, every run has to meet every expectation. To require a rate instead, give "
    "`--at-least` to `import`, or replace `never_fails` by it"
)


def import_mcptest(path: Path, *, at_least: float | None = None) -> Imported:
    """Convert the agent tests of a suite of mcptest.

    Args:
        path: Usually mcptest.yaml.
        at_least: The rate of runs that has to meet the expectations; without it, all of them.

    Raises:
        ImportRefused: The file is wrong, or has no agent test.
    """
    return _Converter(path, at_least).import_file()


class _Converter(SuiteConverter):
    """One suite of mcptest being read."""

    tool = "mcptest"

    def convert(self, root: Node) -> dict[str, Any] | None:
        """Convert the file, as far as it could be read."""
        if not root.is_mapping or not {"agents", "servers"} <= set(root.entries):
            self.problems.add(
                root, "a suite of mcptest needs `servers` and `agents` to be imported"
            )
            return None
        for name, (key, _) in root.entries.items():
            if name not in ("servers", "agents", "$schema"):
                where = f"line {key.line + 1}"
                self.notes.leave_out(
                    f"`{name[:60]}`: let mcptest run it, and decide its JUnit report by "
                    "`trialwise score`",
                    where,
                )
        servers = self._servers(root.entries["servers"][1])
        node = root.entries["agents"][1]
        if not node.is_list or not node.value:
            self.problems.add(node, "`agents` must be a list of agent tests")
            return None
        contracts = [one for item in node.items() for one in self._agent(item, servers)]
        check(self.problems)
        names = [one["name"] for one in contracts]
        for name in sorted({one for one in names if names.count(one) > 1}):
            self.problems.add(node, f"two agent tests are called `{name}`: rename one")
        self.notes.add(_RULE)
        return contracts[0] if len(contracts) == 1 else {"contracts": contracts}

    def _servers(self, node: Node) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        if not node.is_mapping:
            self.problems.add(node, "`servers` must be a mapping of servers by name")
            return found
        for name, (_, item) in node.entries.items():
            keys = Keys(item, self.problems, what="a server", known=_SERVER)
            given = plain(item) if item.is_mapping else {}
            server = {key: given[key] for key in ("url", "env", "headers", "cwd") if given.get(key)}
            if "command" in given:
                command = given["command"]
                words = command if isinstance(command, list) else str(command).split()
                more = given.get("args")
                words = [*words, *(more if isinstance(more, list) else [])]
                server["command"] = [str(word) for word in words]
            if ("url" in server) == ("command" in server):
                keys.refuse("command", f"the server `{name}` needs either `command` or `url`")
            found[name] = server
        return found

    def _agent(self, node: Node, servers: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
        keys = Keys(
            node, self.problems, what="an agent test", known=(*_AGENT, *self._note_rest(node))
        )
        name = keys.text("name", "the name of the test") or "?"
        prompt = keys.text("prompt", "the prompt")
        if keys.is_mapping and prompt is None and "prompt" not in keys:
            self.problems.add(node, "an agent test needs `prompt`")
        models = [keys.text("model", "the name of a model")] if "model" in keys else []
        models += [one.value for one in keys.items("models", "a list of models")]
        if not models and keys.is_mapping:
            self.problems.add(node, "an agent test needs `model` or `models`")
        runs = keys.whole("runs", 0, _MOST_RUNS)
        used = [str(one.value) for one in keys.items("servers", "a list of servers")]
        for one in used:
            if one not in servers:
                keys.refuse("servers", f"there is no server `{one}`")
        trials = max(1, 1 if runs is None else runs)
        gates = self._gates(keys, trials)
        checks = self._expectations(keys)
        rest: dict[str, Any] = {"inputs": [prompt or "?"], "trials": trials, "curtail": False}
        if checks:
            asked = dict(checks[0]) if len(checks) == 1 else {"postconditions": checks}
            rule: dict[str, Any] = {"never_fails": True}
            if self.at_least is not None:
                rule = {"at_least": self.at_least}
            rest["criteria"] = [{"name": "expectations", **asked, **rule}]
        elif not gates:
            self.problems.add(node, "an agent test without expectations decides nothing")
        else:
            # A run that ends with an answer is the least that mcptest asks of it.
            rest["criteria"] = [{"name": "answers", "length": {"minimum": 1}, "never_fails": True}]
        return [
            {
                "name": f"{name} [{model}]" if len(models) > 1 else name,
                "service": self._service(
                    keys, str(model), {one: servers.get(one, {}) for one in used}
                ),
                **rest,
                **gates,
            }
            for model in models
        ]

    def _note_rest(self, node: Node) -> list[str]:
        """Return the keys that are left out, after saying so."""
        extra = [name for name in (node.entries if node.is_mapping else ()) if name not in _AGENT]
        for name in extra:
            line = node.entries[name][0].line + 1
            self.notes.leave_out(f"`{name[:60]}` of an agent test", f"line {line}")
        return extra

    def _service(
        self, keys: Keys, model: str, servers: dict[str, dict[str, Any]]
    ) -> dict[str, Any]:
        endpoint = find_model_endpoint(model)
        if endpoint is None:
            self.notes.add(
                f"No vendor of `{model[:60]}` is known: say `base_url` and `api_key_env`",
                f"line {keys.line()}",
            )
            endpoint = ENDPOINTS["openai"]
        given = {
            name: plain(keys.at(name))
            for name in ("system", "temperature", "max_tokens", "max_turns")
            if name in keys
        }
        chat = endpoint.describe_chat(model, **given)["chat"]
        return {"agent": {**chat, "servers": servers}}

    def _gates(self, keys: Keys, trials: int) -> dict[str, Any]:
        """Return the gates over the runs, whose grammar is the same."""
        gates: dict[str, Any] = {}
        for name in ("stability", "reliability"):
            if name in keys:
                gates[name] = plain(keys.at(name)) or {}
                if trials < 2:
                    keys.refuse(name, f"`{name}` needs `runs` of at least 2, as in mcptest")
        return gates

    def _expectations(self, keys: Keys) -> list[dict[str, Any]]:
        checks = []
        for node in keys.items("expect", "a list of expectations", least=0):
            given = plain(node)
            target = given.get("target") if isinstance(given, dict) else None
            matcher = given.get("matcher") if isinstance(given, dict) else None
            if not isinstance(target, str) or not isinstance(matcher, dict) or not matcher:
                self.problems.add(node, "an expectation needs `target` and `matcher`")
                continue
            checks.append(self._expectation(node, target, matcher))
        return checks

    def _expectation(self, node: Node, target: str, matcher: dict[str, Any]) -> dict[str, Any]:
        where = f"line {node.line + 1}"
        reason = ""
        if re.split(r"[.\[]", target)[0] not in TARGETS:
            reason = f"the target `{target[:60]}`"
        elif unknown := _find_unknown(matcher):
            reason = f"the matcher `{unknown[:60]}`"
        else:
            reason = _find_mistake(target, matcher)
        if not reason:
            module = "trialwise.contrib.importers.mcptest.target_matching"
            function = self.functions.add_value(
                "expect", f"expect({target!r}, {matcher!r})", f"from {module} import expect"
            )
            return {"python": function}
        function = self.functions.add_stub(
            "expect",
            "reply",
            "Return whether the session is as expected; `reply.details` has its trace.",
            f"{where}: {target} {matcher}",
        )
        self.notes.leave_out(
            f"{reason}. Write its function in {self.module}.py; until then the run stops with an "
            "error",
            where,
        )
        return {"python": function}


def _find_unknown(matcher: Any) -> str:
    """Return the first matcher that is not carried over, or nothing."""
    if not isinstance(matcher, dict) or not matcher:
        return "?"
    for name, given in matcher.items():
        if name not in MATCHERS:
            return str(name)
        inner = given if name in ("all_of", "any_of") else [given] if name == "not" else []
        if not isinstance(inner, list):
            return str(name)
        for one in inner:
            if unknown := _find_unknown(one):
                return unknown
    return ""


def _find_mistake(target: str, matcher: dict[str, Any]) -> str:
    """Return why an expectation cannot be checked here, or nothing."""
    from trialwise.contrib.importers.mcptest.target_matching import expect

    try:
        expect(target, matcher)
    except (InvalidArgument, re.error, TypeError) as error:
        return f"a matcher that cannot be used ({str(error)[:120]})"
    return ""


def _find_role(root: Node) -> str | None:
    return "suite" if {"agents", "servers"} <= set(root.entries) else None


def _import_files(request: ImportRequest) -> Imported:
    return import_mcptest(request.files["suite"], at_least=request.at_least)


IMPORTER = SuiteImporter(
    name="mcptest",
    signs="has `servers` and `agents`",
    find_role=_find_role,
    import_files=_import_files,
)
