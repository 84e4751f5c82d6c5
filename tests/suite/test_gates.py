"""Gates and models in a suite file: every form arrives, every mistake has its place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from trialwise.engine.ports import TrialContext
from trialwise.errors import DesignRefused
from trialwise.model.gate import Expectation, Metrics, Reliability, Stability
from trialwise.model.matcher import AllOf, AnyOf, Exact, Not, NumberSchema
from trialwise.runtime.preparing import prepare
from trialwise.stats.trace_stability import SUB_SCORES, StabilityFloors
from trialwise.suite import Suite, SuiteError, suite_schema
from trialwise.suite.gates import STABILITY
from trialwise.suite.suite_problems import Problems, Source
from trialwise.suite.yaml_reading import MAX_NODES, parse_yaml, plain

Load = Callable[..., Suite]
Refused = Callable[..., SuiteError]
Module = Callable[[str], str]

BASE = 'service: {command: [echo, "{input}"]}\ninputs: [one, two]\n'
CRITERIA = (
    "criteria:\n"
    '  - {name: c, contains: "1", at_least: 90%}\n'
    '  - {name: d, contains: "2", at_least: 90%}\n'
)
FIXED = BASE + CRITERIA + "trials: 60\n"
SCORE = "stability: {expect: [{target: stability.score, matcher: "
VALIDATOR = Draft202012Validator(suite_schema())


def contract(suite: Suite) -> Any:
    (one,) = suite.contracts
    return one.contract


def messages(error: SuiteError) -> list[str]:
    return [one.message for one in error.problems]


def is_valid(text: str) -> bool:
    """Whether the published schema takes a suite."""
    problems = Problems()
    root, _ = parse_yaml(Source(Path("x"), text), problems, room=MAX_NODES)
    problems.check()
    assert root is not None
    return bool(VALIDATOR.is_valid(plain(root)))


# --- What can be written ----------------------------------------------------------------------


def test_the_smallest_useful_block(load: Load) -> None:
    """`stability: {}` asks for a weakest score of at least 0.5."""
    text = FIXED + "stability: {}\n"

    assert Stability() == contract(load(text)).stability
    assert is_valid(text)


def test_the_block_that_the_document_shows(load: Load) -> None:
    """Three targets, each with its limits."""
    text = FIXED + (
        "stability:\n"
        "  expect:\n"
        "    - target: stability.score\n"
        "      matcher: { schema: { minimum: 0.7 } }\n"
        "    - target: stability.weakest_score\n"
        "      matcher: { schema: { minimum: 0.5 } }\n"
        "    - target: stability.variance\n"
        "      matcher: { schema: { maximum: 0.05 } }\n"
    )
    expected = Stability(
        expect=(
            Expectation(target="stability.score", matcher=NumberSchema(minimum=0.7)),
            Expectation(target="stability.weakest_score", matcher=NumberSchema(minimum=0.5)),
            Expectation(target="stability.variance", matcher=NumberSchema(maximum=0.05)),
        )
    )

    assert expected == contract(load(text)).stability
    assert is_valid(text)


def test_every_key_of_every_block(load: Load) -> None:
    """In the units that people write."""
    text = FIXED + (
        "reliability: {criterion: c, half_width: 2%, confidence: 99%, sampling: inputs,\n"
        "  expect: [{target: reliability.passhat_k, matcher: {exact: 100}}]}\n"
        "stability: {floors: {redundancy: 80%}, exclude: [tool_usage_stability],\n"
        "  tokens_per_call: 500, sampling: inputs, confidence: 0.9}\n"
        "metrics: {k: [1, 3], weights: {c: 1, d: 0.5}, threshold: 70%, sampling: inputs,\n"
        "  confidence: 90%,\n"
        "  expect: [{target: metrics.pass_hat.3, matcher: {schema: {minimum: 0.9}}}]}\n"
    )
    made = contract(load(text))

    assert (
        Reliability(
            criterion="c",
            half_width=0.02,
            confidence=0.99,
            sampling="inputs",
            expect=(Expectation(target="reliability.passhat_k", matcher=Exact(value=100)),),
        )
        == made.reliability
    )
    assert (
        Stability(
            floors=StabilityFloors(redundancy=0.8),
            exclude=("tool_usage_stability",),
            tokens_per_call=500,
            sampling="inputs",
            confidence=0.9,
        )
        == made.stability
    )
    assert (
        Metrics(
            k=(1, 3),
            weights={"c": 1, "d": 0.5},
            threshold=0.7,
            sampling="inputs",
            confidence=0.9,
            expect=(Expectation(target="metrics.pass_hat.3", matcher=NumberSchema(minimum=0.9)),),
        )
        == made.metrics
    )
    assert is_valid(text)


def test_matchers_nest(load: Load) -> None:
    """not, all_of and any_of, with exclusive limits."""
    text = FIXED + (
        "metrics:\n"
        "  k: 2\n"
        "  criterion: d\n"
        "  expect:\n"
        "    - target: metrics.flaky\n"
        "      matcher:\n"
        "        any_of:\n"
        "          - exact: 0\n"
        "          - all_of:\n"
        "              - {schema: {exclusiveMinimum: 1, exclusiveMaximum: 5}}\n"
        "              - {not: {exact: 3}}\n"
    )
    made = contract(load(text)).metrics
    inner = AllOf(
        matchers=(
            NumberSchema(exclusive_minimum=1, exclusive_maximum=5),
            Not(matcher=Exact(value=3)),
        )
    )

    assert ((2,), "d") == (made.k, made.criterion)
    assert AnyOf(matchers=(Exact(value=0), inner)) == made.expect[0].matcher
    assert is_valid(text)


def test_a_contract_takes_the_gates_of_the_top_or_its_own(load: Load) -> None:
    """A key of its own replaces the other whole."""
    suite = load(
        FIXED + "stability: {tokens_per_call: 100}\n"
        "contracts: [{name: a}, {name: b, stability: {exclude: [redundancy]}}]\n"
    )
    one, other = (each.contract.stability for each in suite.contracts)

    assert one == Stability(tokens_per_call=100)
    assert other == Stability(exclude=("redundancy",))


def test_the_names_of_sub_scores_are_those_of_the_statistics() -> None:
    """Written twice, since a suite without gates loads none of them."""
    (floors,) = [key.kind for key in STABILITY.keys if key.name == "floors"]

    assert SUB_SCORES == tuple(key.name for key in floors.keys)  # type: ignore[attr-defined]


# --- What cannot ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "reason"),
    [
        ("", "c, d may stop early: give `trials`, at least 2 for each input"),
        ("max_trials: 50\n", "c, d may stop early"),
        ("trials: 3\nintent: smoke\n", "some would get one: give at least 4 trials"),
        ("trials: 1\nintent: smoke\n", "some would get none"),
        ("trials: 60\ndraw: independent\n", "draw balanced"),
    ],
)
@pytest.mark.parametrize("block", ["stability", "reliability"])
def test_fewer_than_two_runs_are_refused_before_anything_runs(
    load: Load, block: str, size: str, reason: str
) -> None:
    """With the name of the block, whose place the suite knows."""
    text = BASE + CRITERIA + size
    (one,) = load(text + f"{block}: {{}}\n").contracts
    with pytest.raises(DesignRefused) as refused:
        prepare(one.contract, one.options, Path("baselines"))
    (message,) = refused.value.reasons

    assert reason in message
    assert message.startswith(f"{block}: it needs")
    assert one.places[block].endswith(f":{text.count(chr(10)) + 1}")


def test_an_estimate_of_k_trials_takes_k_runs(load: Load) -> None:
    """Sixty trials of two inputs are thirty each."""
    asked = "metrics: {{expect: [{{target: metrics.pass_hat.{}, matcher: {{exact: 1}}}}]}}\n"
    (enough,) = load(FIXED + asked.format(30)).contracts
    prepare(enough.contract, enough.options, Path("baselines"))

    (few,) = load(FIXED + asked.format(31)).contracts
    with pytest.raises(DesignRefused, match="at least 31 runs of each input, and some would get 3"):
        prepare(few.contract, few.options, Path("baselines"))


@pytest.mark.parametrize(
    "name", ["llm-judge", "llm-jury", "llm_judge", "similar", "judge", "embedding"]
)
def test_a_matcher_that_asks_a_model_is_refused(refused: Refused, name: str) -> None:
    """An error, not a silent pass; also inside another."""
    for matcher in (f"{{{name}: {{rubric: good}}}}", f"{{not: {{{name}: x}}}}"):
        text = f"stability: {{expect: [{{target: stability.score, matcher: {matcher}}}]}}\n"
        assert any(f"`{name}`: it asks a model" in one for one in messages(refused(FIXED + text)))
        assert not is_valid(FIXED + text)


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (
            "stability: {expect: [{target: stability.scores, matcher: {exact: 1}}]}",
            "there is no target `stability.scores` in `stability`; did you mean `stability.score`?",
        ),
        (
            "stability: {expect: [{target: reliability.runs, matcher: {exact: 1}}]}",
            (
                "there is no target `reliability.runs` in `stability`; there are stability.score, "
                "stability.weakest_score, stability.variance, stability.tool_usage_stability, "
                "stability.response_consistency, stability.redundancy, "
                "stability.cost_per_progress, stability.drifted"
            ),
        ),
        (
            "reliability: {expect: [{target: reliability.decay_curve, matcher: {exact: 1}}]}",
            (
                "there is no target `reliability.decay_curve` in `reliability`; there are "
                "reliability.runs, reliability.pass_at_k, reliability.passhat_k, "
                "reliability.variance_amplification, reliability.graceful_degradation"
            ),
        ),
        (
            f"{SCORE}{{schema: {{minimum: 2, maximum: 1}}}}}}]}}",
            "`schema` must leave room between its limits, got a mapping",
        ),
        (
            f"{SCORE}{{schema: {{}}}}}}]}}",
            "`schema` lacks one of `minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum`",
        ),
        (
            f"{SCORE}{{exact: 1, not: {{exact: 2}}}}}}]}}",
            "`exact` and `not` exclude one another: keep one",
        ),
        ("stability: {expect: [{target: stability.score}]}", "an item of `expect` lacks `matcher`"),
        ("stability: {expect: []}", "`expect` must be a list of expectations, it has 0"),
        (
            "stability:",
            (
                "`stability` has no value: it must be a mapping, or {} for a weakest score of at "
                "least 0.5"
            ),
        ),
        ("stability: {floor: 1}", "unknown key `floor`; did you mean `floors`?"),
        ("metrics: {criterion: e}", "`criterion` must be one of c, d, got `e`"),
        (
            "metrics: {weights: {c: 1}}",
            "`weights` must give one weight to each of c, d, got a mapping",
        ),
        ("reliability: {sampling: other}", "there is no sampling `other`; there are `inputs`"),
        (
            "reliability: {half_width: 60%}",
            "`half_width` must lie strictly between 0 and 0.5, got `60%`",
        ),
    ],
)
def test_a_mistake_has_its_place(refused: Refused, block: str, message: str) -> None:
    """And says what would be right."""
    error = refused(f"{FIXED}{block}\n")

    assert [message] == messages(error)
    assert error.problems[0].line > FIXED.count("\n")


# --- Models -----------------------------------------------------------------------------------


def test_one_contract_for_each_model(load: Load) -> None:
    """Called `name [model]`, with the model as a factor and a tag, and in the service."""
    text = (
        'name: echo\nservice: {command: [echo, "{model}", "{input}"]}\nmodels: [small-1, big/2]\n'
        "inputs: [one]\ntags: nightly\nfactors: {temperature: 0.5}\n"
        'criteria: [{name: c, contains: "1", at_least: 90%}]\n'
    )
    suite = load(text)

    assert ["echo [small-1]", "echo [big/2]"] == [one.name for one in suite.contracts]
    assert [("nightly", "small-1"), ("nightly", "big/2")] == [one.tags for one in suite.contracts]
    assert {"temperature": "0.5", "model": "big/2"} == dict(suite.contracts[1].contract.factors)
    replies = [
        anyio.run(one.contract.service.call, TrialContext(index=0, input="hello", seed=1)).value
        for one in suite.contracts
    ]
    assert ["small-1 hello", "big/2 hello"] == replies
    assert is_valid(text)


@pytest.mark.parametrize(
    ("service", "shown"),
    [
        ('{chat: {model: "{model}", api_key_env: null}}', "'m-1'"),
        ('{chat: {model: "org/{model}", api_key_env: null}}', "'org/m-1'"),
        ("{command: 'echo --model {model} {input}'}", "['echo', '--model', 'm-1', '{input}']"),
        ('{command: {run: cat, input_via: stdin, env: {M: "{model}"}}}', "cat"),
        ('{http: {url: "http://localhost/{model}"}}', "http://localhost/m-1"),
        ('{http: {url: "http://localhost/", body: {model: "{model}"}}}', "http://localhost/"),
    ],
)
def test_a_model_gets_wherever_a_service_has_room(load: Load, service: str, shown: str) -> None:
    """Filled in before the service is built."""
    suite = load(
        f"service: {service}\nmodels: [m-1]\ninputs: [a]\n"
        'criteria: [{name: c, contains: "1", at_least: 90%}]\n'
    )

    assert shown in repr(contract(suite).service)


def test_a_named_service_is_built_once_for_each_model(load: Load) -> None:
    """However many contracts share it."""
    suite = load(
        'services: {s: {command: [echo, "{model}", "{input}"]}}\nservice: s\nmodels: [a, b]\n'
        'inputs: [x]\ncriteria: [{name: c, contains: "1", at_least: 90%}]\n'
        "contracts: [{name: one}, {name: two}]\n"
    )
    services = [one.contract.service for one in suite.contracts]

    assert ["one [a]", "one [b]", "two [a]", "two [b]"] == [one.name for one in suite.contracts]
    assert services[0] is services[2]
    assert services[0] is not services[1]


def test_a_function_is_given_its_model(load: Load, module: Module, refused: Refused) -> None:
    """By name; one that takes none is refused."""
    agent = module(
        "def answer(question, model):\n    return f'{model}: {question}'\n"
        "def deaf(question):\n    return question\n"
    )
    rest = 'models: [a, b]\ninputs: [x]\ncriteria: [{name: c, contains: "1", at_least: 90%}]\n'
    suite = load(f'service: {{python: "{agent}:answer"}}\n{rest}')
    context = TrialContext(index=0, input="hi", seed=1)
    service = suite.contracts[1].contract.service

    assert "b: hi" == anyio.run(service.call, context).value
    assert f"{agent}:answer [b]" == suite.contracts[1].name
    (message,) = messages(refused(f'service: {{python: "{agent}:deaf"}}\n{rest}'))
    assert "take a parameter `model`" in message


def test_the_name_may_say_where_the_model_stands(load: Load) -> None:
    """As the label of a chat service does by itself."""
    suite = load(
        'service: {chat: {model: "{model}", api_key_env: null}}\nmodels: [a, b]\ninputs: [x]\n'
        'criteria: [{name: c, contains: "1", at_least: 90%}]\n'
    )

    assert ["a", "b"] == [one.name for one in suite.contracts]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("models: [a, a]", "the model `a` is there twice"),
        ("models: [a b]", "the name of a model has neither blanks nor braces"),
        ('models: ["{input}"]', "the name of a model has neither blanks nor braces"),
        ("models: []", "`models` must be a list of models, it has 0"),
        ("models: [a]\nfactors: {model: b}", "`models` gives the factor `model`: leave it out"),
    ],
)
def test_models_that_cannot_be_meant(refused: Refused, change: str, message: str) -> None:
    """Each with its reason."""
    text = (
        'service: {command: [echo, "{model}", "{input}"]}\ninputs: [x]\n'
        f'criteria: [{{name: c, contains: "1", at_least: 90%}}]\n{change}\n'
    )

    assert [message] == messages(refused(text))


def test_a_service_without_a_place_for_the_model_is_refused(refused: Refused) -> None:
    """Otherwise both cells would test the same thing, and nobody would know."""
    (message,) = messages(refused(FIXED + "models: [a, b]\n"))

    assert 'write "{model}" into it' in message
