"""An eval of vally becomes a suite: the same graders, weights and threshold for each trial."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from trialwise.checks import Check
from trialwise.contrib.importers import ImportRefused, import_suite, import_vally
from trialwise.errors import BrokenCheck
from trialwise.model.reply import Reply
from trialwise.model.verdict import Decision
from trialwise.suite import Suite

Write = Callable[[str, str], Path]
Load = Callable[..., Suite]

FILE = """\
name: greeter
defaults: {runs: 4, timeout: 5m, executor: copilot-sdk, model: m}
scoring: {threshold: 0.75, weights: {output-contains: 2}}
stimuli:
  - name: says hello
    prompt: Say hello.
    graders:
      - {type: output-contains, config: {substring: hello}}
      - {type: output-matches, config: {pattern: "(?i)world"}}
      - {type: completed}
  - name: is kind
    prompt: Be kind.
    rubric: [The answer is kind.]
    graders: [{type: prompt, config: {prompt: Grade it.}}, {type: completed}]
"""


TWICE = "- {name: a, prompt: p, graders: [{type: completed}]}\n"


def convert(write: Write, *graders: dict[str, Any], **more: Any) -> Any:
    """Import one stimulus with some graders."""
    whole = {"stimuli": [{"name": "s", "prompt": "p", "graders": list(graders)}], **more}
    return import_vally(write("eval.yaml", json.dumps(whole)))


def holds(criterion: Any, reply: Reply) -> bool:
    """Whether all checks of a criterion hold."""
    checks = [one for one in criterion.checks if isinstance(one, Check)]
    return all(one.check(reply).passed for one in checks)


@pytest.mark.requirement(
    "scoring stimulus",
    "An eval.yaml of vally is imported: stimuli, graders, weights and threshold.",
    "`trialwise import eval.yaml`",
)
def test_a_stimulus_becomes_a_sampling_with_its_runs(write: Write, load: Load) -> None:
    """Its graders are one criterion, and the model that grades is another."""
    imported = import_suite(write("eval.yaml", FILE))

    assert "vally" == imported.format
    assert {"says hello": ["Say hello."], "is kind": ["Be kind."]} == imported.suite["samplings"]
    assert [4, 4, 4] == [one["trials"] for one in imported.suite["criteria"]]
    rubric = imported.suite["criteria"][2]["judge"]
    assert "Grade it.\n- The answer is kind." == rubric["rubric"]
    assert "5m" == imported.suite["timeout"]
    keys = {"ANTHROPIC_API_KEY": "k"}
    (contract,) = load(imported, keys).contracts
    assert "greeter" == contract.name
    # Of weights 2, 1 and 1 at least three quarters have to pass, by hand.
    for hello, world, text in product((0, 1), (0, 1), (1,)):
        output = " ".join(["hello"] * hello + ["World"] * world + ["."] * text)
        expected = (2 * hello + world + text) / 4 >= 0.75
        assert expected is holds(contract.contract.criteria[0], Reply(value=output)), output


@pytest.mark.parametrize(
    ("grader", "passing", "failing"),
    [
        ({"type": "output-not-contains", "config": {"substring": "bad"}}, "good", "bad"),
        ({"type": "output-matches", "config": {"pattern": "^a", "negate": True}}, "b", "a"),
        ({"type": "output-not-matches", "config": {"pattern": "(?i)panic"}}, "ok", "PANIC"),
        ({"type": "output-matches", "config": {"pattern": "(?s)a.b"}}, "a\nb", "ab"),
        ({"type": "output-matches", "config": {"pattern": "(?im)^done$"}}, "x\nDONE\ny", "undone"),
        ({"type": "completed"}, "x", ""),
    ],
)
def test_graders_of_the_output_pass_the_same_outputs(
    write: Write, load: Load, grader: dict[str, Any], passing: str, failing: str
) -> None:
    """By their documented meaning, with inline flags of JavaScript."""
    (contract,) = load(convert(write, grader)).contracts
    (criterion,) = contract.contract.criteria

    assert holds(criterion, Reply(value=passing))
    assert not holds(criterion, Reply(value=failing))


@pytest.mark.parametrize(
    ("grader", "check"),
    [
        ({"type": "wall-time", "config": {"max": "30s"}}, {"max_latency": "30s"}),
        ({"type": "token-budget", "config": {"max": 500}}, {"max_tokens": 500}),
        ({"type": "turn-count", "config": {"max": 5}}, {"max_turns": 5}),
        ({"type": "tool-call-count", "config": {"max": 3}}, {"tool_call_count": {"maximum": 3}}),
        (
            {"type": "tool-calls", "config": {"disallowed": [{"name": "^rm$"}]}},
            {"tool_not_called": "rm"},
        ),
    ],
)
def test_graders_of_the_session_become_checks_of_it(
    write: Write, load: Load, grader: dict[str, Any], check: dict[str, Any]
) -> None:
    """Limits, and tools by their whole names."""
    imported = convert(write, grader)
    (criterion,) = imported.suite["criteria"]

    assert check.items() <= criterion.items()
    load(imported)


def answer(input: str) -> str:  # noqa: A002 - the name that a service asks for
    """Stands for an executor that somebody has written."""
    return f"an answer to {input}"


@pytest.mark.parametrize(
    "grader",
    [
        {"type": "file-exists", "config": {"path": "a.js"}},
        {"type": "skill-invocation", "config": {"required": ["x"]}},
        {"type": "run-command", "config": {"command": "true"}},
        {"type": "tool-calls", "config": {"required": [{"name": "bash", "command": "x"}]}},
        {"type": "output-matches", "turn": 2, "config": {"pattern": "a"}},
        {"type": "output-matches", "config": None},
    ],
)
def test_a_grader_that_is_not_carried_over_stops_the_run(
    write: Write, load: Load, grader: dict[str, Any]
) -> None:
    """Never a PASS in its place, once the executor is written."""
    from trialwise.runtime.running import run

    imported = convert(write, {"type": "completed"}, grader)
    (contract,) = load(imported).contracts
    functions = import_module("vally_functions")
    functions.executor_1.__code__ = answer.__code__
    assert any(f"Not carried over: `{grader['type']}`" in note for note in imported.notes)
    with pytest.raises(BrokenCheck, match="still to be written"):
        run(contract.contract, options=contract.options, store=None, progress=False)


def test_an_executor_that_nobody_wrote_fails_every_trial(write: Write, load: Load) -> None:
    """And the note says where to write it."""
    from trialwise.runtime.running import run

    imported = convert(write, {"type": "output-not-contains", "config": {"substring": "z"}})
    (contract,) = load(imported).contracts
    verdict = run(contract.contract, options=contract.options, store=None, progress=False).verdict

    assert any("the executor `copilot-sdk`: write `executor_1`" in one for one in imported.notes)
    assert Decision.PASS is not verdict.decision


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("stimuli: []\n", "no stimulus with a grader"),
        ("stimuli: 5\n", "no stimulus with a grader"),
        ("stimuli: [5]\n", "a stimulus must be a mapping"),
        ("stimuli: [{name: a, turns: []}]\n", "no stimulus with a grader"),
        (f"stimuli:\n{TWICE}{TWICE}", "two stimuli are called `a`"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(write: Write, text: str, message: str) -> None:
    """With file and line."""
    with pytest.raises(ImportRefused, match=message) as caught:
        import_vally(write("eval.yaml", text))

    assert all(one.line >= 1 for one in caught.value.problems)
