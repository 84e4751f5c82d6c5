"""Arms: variants of a contract that say what they change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trialwise.suite import Suite, SuiteContract, SuiteError, load_suite

BASE = """
name: support
inputs: [a, b]
criteria: [{name: right, contains: x, at_least: 90%}]
"""
CHAT = """
service:
  chat:
    {model: small-1, base_url: "http://localhost:1/v1", api_key_env: null, system: Be long.,
     extra: {top_p: 1, stop: [a], deep: {x: 1, y: 2}}}
"""

Load = Callable[[str], Suite]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Write a suite and load it with its arms."""

    def write_and_load(text: str) -> Suite:
        path = tmp_path / "trialwise.yaml"
        path.write_text(text, encoding="utf-8")
        return load_suite(path, environment={"KEY": "k"}, with_arms=True)

    return write_and_load


def the_arms(suite: Suite) -> dict[str, SuiteContract]:
    (contract,) = suite.contracts
    return {one.arm: one for one in contract.arms}


def refusals(load: Load, text: str) -> list[tuple[int, str]]:
    with pytest.raises(SuiteError) as caught:
        load(text)
    return [(one.line, one.message) for one in caught.value.problems]


@pytest.mark.requirement(
    "statistical-ci lessons",
    "Variants of one thing are compared on the same inputs by the same criteria.",
    "`arms:` on a contract",
)
def test_an_arm_changes_what_it_says_and_nothing_else(load: Load) -> None:
    """Another prompt: the model, the inputs and the criteria are the contract's own."""
    suite = load(BASE + CHAT + "arms:\n  short: {service: {chat: {system: Be short.}}}\n")
    (contract,) = suite.contracts
    (arm,) = contract.arms

    assert (arm.name, arm.arm, arm.line) == ("support/short", "short", 11)
    assert arm.contract.criteria == contract.contract.criteria
    assert arm.contract.samplings == contract.contract.samplings
    ours, theirs = contract.contract.service.factors, arm.contract.service.factors
    assert {name for name in ours if ours[name] != theirs[name]} == {"prompt"}


@pytest.mark.parametrize(
    ("change", "parameters"),
    [
        ("temperature: 0.5", '{"deep":{"x":1,"y":2},"stop":["a"],"temperature":0.5,"top_p":1}'),
        ("extra: {deep: {x: 5}}", '{"deep":{"x":5,"y":2},"stop":["a"],"top_p":1}'),
        ("extra: {deep: {x: null}}", '{"deep":{"y":2},"stop":["a"],"top_p":1}'),
        ("extra: {stop: [b]}", '{"deep":{"x":1,"y":2},"stop":["b"],"top_p":1}'),
        ("extra: null", "{}"),
    ],
)
def test_mappings_are_joined_and_null_takes_away(load: Load, change: str, parameters: str) -> None:
    """As in a JSON merge patch, at every depth; lists are replaced."""
    arms = the_arms(load(BASE + CHAT + f"arms: {{new: {{service: {{chat: {{{change}}}}}}}}}"))

    assert arms["new"].contract.service.factors["parameters"] == parameters


def test_null_is_a_value_where_a_key_takes_it(load: Load) -> None:
    """`api_key_env: null` asks for no key, which is not the usual key."""
    base = CHAT.replace("api_key_env: null", "api_key_env: KEY")
    (arm,) = the_arms(
        load(BASE + base + "arms: {new: {service: {chat: {api_key_env: null}}}}")
    ).values()

    assert arm.service == load(BASE + CHAT).contracts[0].service


@pytest.mark.parametrize(
    ("service", "change", "command"),
    [
        ("[echo, '{input}']", "[cat, '{input}']", "cat '{input}'"),
        ("{run: [echo, '{input}'], env: {A: b}}", "[cat, '{input}']", "cat '{input}'"),
        ("[echo, '{input}']", "{env: {A: b}}", "echo '{input}'"),
    ],
)
def test_a_short_service_stands_for_its_main_key(
    load: Load, service: str, change: str, command: str
) -> None:
    """On either side."""
    text = (
        f"{BASE}service: {{command: {service}}}\narms: {{new: {{service: {{command: {change}}}}}}}"
    )

    assert the_arms(load(text))["new"].contract.service.factors["command"] == command


def test_a_service_may_be_replaced_by_another_kind_or_name(load: Load) -> None:
    """By name from `services`, on either side."""
    suite = load(
        """
services:
  small: {chat: {model: small-1, base_url: "http://localhost:1/v1", api_key_env: null}}
  shell: {command: [echo, "{input}"]}
contracts:
  - name: support
    service: small
    inputs: [a]
    criteria: [{name: right, contains: x, at_least: 90%}]
    arms:
      shell: {service: shell}
      cat: {service: {command: [cat, '{input}']}}
      large: {service: {chat: {model: large-1}}}
"""
    )
    arms = the_arms(suite)

    assert arms["shell"].contract.service.factors["command"] == "echo '{input}'"
    assert arms["cat"].contract.service.factors == {"command": "cat '{input}'"}
    assert arms["large"].contract.service.factors["model"] == "large-1"


def test_arms_of_a_matrix_are_arms_of_every_model(load: Load) -> None:
    """And factors are joined."""
    text = BASE + CHAT.replace("small-1", '"{model}"') + "models: [small, large]\n"
    suite = load(
        text + "factors: {team: red}\narms: {new: {service: {chat: {temperature: 0}}, "
        "factors: {prompt: 2}}}"
    )

    found = {one.name: one.contract.factors for each in suite.contracts for one in each.arms}
    assert found == {
        f"support [{model}]/new": {"team": "red", "prompt": "2", "model": model}
        for model in ("small", "large")
    }


def test_a_plain_run_does_not_need_what_its_arms_need(tmp_path: Path) -> None:
    """A module that is not there, or a key that is not set, is the comparison's affair."""
    path = tmp_path / "trialwise.yaml"
    path.write_text(
        BASE + "service: {command: [echo, '{input}']}\n"
        "arms: {new: {service: {python: 'nowhere:answer'}}, far: {service: {http: '${FAR}'}}}"
    )

    assert load_suite(path, environment={}).contracts[0].arms == ()
    with pytest.raises(SuiteError, match=r"no module `nowhere`(?s:.)*FAR"):
        load_suite(path, environment={"KEY": "k"}, with_arms=True)


@pytest.mark.parametrize(
    ("arms", "line", "message"),
    [
        ("new: {service: {model: large}}", 11, "`service: {chat: {model: …}}`"),
        ("new: {service: {chat: {sytem: x}}}", 11, "did you mean `system`?"),
        ("new: {service: {chat: {temperature: null}}}", 11, "null takes `temperature` away"),
        ("new: {service: {htpp: x}}", 11, "did you mean `http`?"),
        ("new: {service: larg}", 11, "there is no service `larg`"),
        ("new: {service: [a]}", 11, "must be the name of a service, or keys of a service"),
        (
            "new: {service: {chat: {model: x}}, criteria: []}",
            11,
            "the arms of a contract have its inputs and criteria",
        ),
        ("new: {servce: x}", 11, "did you mean `service`?"),
        ("new: {description: x}", 11, "`service`"),
        ("a/b: {service: {chat: {model: large}}}", 11, "has no `/`"),
        ("new: {service: {command: [nothing-of-this-name-is-here]}}", 11, "command"),
        ("new: {service: {chat: {model: 5}}}", 11, "`model`"),
    ],
)
def test_mistakes_have_a_place_and_a_hint(load: Load, arms: str, line: int, message: str) -> None:
    """The line is the arm's, never the contract's."""
    found = refusals(load, BASE + CHAT + f"arms:\n  {arms}\n")

    assert [(at, message in said) for at, said in found] == [(line, True)], found


def test_an_arm_may_be_the_same_beside_every_model(load: Load) -> None:
    """`run` takes such a suite, and so do `check` and `compare`; the model is no factor of it."""
    text = BASE + CHAT.replace("small-1", '"{model}"') + "models: [small, large]\n"
    suite = load(text + "arms:\n  new: {service: {chat: {model: fixed}}}\n")

    for contract, model in zip(suite.contracts, ("small", "large"), strict=True):
        (arm,) = contract.arms
        assert arm.contract.service.factors["model"] == "fixed"
        assert "model" not in arm.contract.factors
        assert contract.contract.factors["model"] == model


def test_a_function_that_takes_no_model_is_an_arm_of_every_model(
    load: Load, tmp_path: Path
) -> None:
    """The function of the contract itself has to take it."""
    code = "def named(text, model): return model\ndef plain(text): return text\n"
    (tmp_path / "arm_functions.py").write_text(code, encoding="utf-8")
    text = BASE + "models: [small, large]\nservice: {python: 'arm_functions:NAME'}\n"
    arms = "arms: {new: {service: {python: 'arm_functions:plain'}}}\n"
    suite = load(text.replace("NAME", "named") + arms)

    assert [len(one.arms) for one in suite.contracts] == [1, 1]
    ((_, said),) = refusals(load, text.replace("NAME", "plain"))
    assert "take a parameter `model`" in said


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("{question: not-worse}", "needs a `margin`"),
        ("{question: equivalent}", "needs a `margin`"),
        ("{question: different, margin: 2%}", "belongs to `question: better`"),
        ("{question: beter}", "did you mean `better`?"),
        ("{trials: 5, max_trials: 10}", "keep one"),
        ("{expect: [80%]}", "rates of the control and of the candidate"),
        ("{guardrails: {right: 2}}", "rate"),
        ("{marign: 2%}", "did you mean `margin`?"),
    ],
)
def test_mistakes_in_the_section_compare_are_named(load: Load, section: str, message: str) -> None:
    """With their line."""
    ((line, said),) = refusals(load, BASE + CHAT + f"compare: {section}\n")

    assert (line, message in said) == (10, True), said


def test_the_section_compare_is_read_in_full(load: Load) -> None:
    """Rates as everywhere in a suite."""
    section: Any = load(
        BASE + CHAT + "compare: {control: support, candidates: new, question: better, margin: 1%, "
        "guardrails: {right: 2%}, expect: [80%, 0.9], trials: 50, correction: bh, all_pairs: true}"
    ).compare

    assert (section.control, section.candidates) == ("support", ("new",))
    assert (section.question, section.margin) == ("better", 0.01)
    assert (section.guardrails, section.expect) == ({"right": 0.02}, (0.8, 0.9))
    assert (section.trials, section.max_trials, section.correction) == (50, None, "bh")
    assert section.all_pairs
