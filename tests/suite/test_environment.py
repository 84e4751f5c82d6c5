"""Values of the environment: filled in, marked, and never shown."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from trialwise.suite import Redaction, Suite, SuiteError
from trialwise.suite.reading_context import EnvironmentText

Load = Callable[..., Suite]
Refused = Callable[..., SuiteError]

SECRET = "sk-very-secret-12345"
REST = 'inputs: [one]\ncriteria: [{name: c, contains: "1", at_least: 90%}]\n'


def argv(suite: Suite) -> list[str]:
    """The arguments of the first contract's command."""
    service: Any = suite.contracts[0].contract.service
    return list(service.argv)


@pytest.mark.parametrize(
    ("written", "environment", "filled"),
    [
        ("${A}", {"A": "x"}, "x"),
        ("<${A}-${B}>", {"A": "x", "B": "y"}, "<x-y>"),
        ("${A:-d}", {}, "d"),
        ("${A:-d}", {"A": ""}, "d"),
        ("${A:-d}", {"A": "x"}, "x"),
        ("${A:-}z", {}, "z"),
        ("${A:-http://x:1/y}", {}, "http://x:1/y"),
        ("$${A}", {"A": "x"}, "${A}"),
        ("$A $ {A} $$", {"A": "x"}, "$A $ {A} $$"),
        ("<${A}>", {"A": "${B}", "B": "no"}, "<${B}>"),
    ],
)
def test_references_are_filled_as_a_shell_would(
    load: Load, written: str, environment: dict[str, str], filled: str
) -> None:
    """Once, from left to right: what a value holds is not looked at again."""
    suite = load(f"service: {{command: [run, '{{input}}', '{written}']}}\n{REST}", environment)

    assert filled == argv(suite)[2]


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("${MISSING}", "the environment variable MISSING is not set"),
        ("${A", "begins a reference"),
        ("${}", "begins a reference"),
        ("${1A}", "begins a reference"),
        ("${A:+x}", "begins a reference"),
        ("${A:-${B}}", "cannot hold a reference of its own"),
    ],
)
def test_a_reference_that_cannot_be_filled_is_an_error_with_its_place(
    refused: Refused, written: str, message: str
) -> None:
    """It is not left standing as text."""
    error = refused(f"service: {{command: [run, '{{input}}', '{written}']}}\n{REST}")

    assert message in error.problems[0].message
    assert 1 == error.problems[0].line


def test_a_text_is_split_before_it_is_filled(load: Load) -> None:
    """A value with spaces stays one argument."""
    text = f"service: {{command: 'run {{input}} ${{A}}'}}\n{REST}"

    assert ["run", "{input}", "x y"] == argv(load(text, {"A": "x y"}))


def test_numbers_and_words_come_from_the_environment_too(load: Load) -> None:
    """A CI job may change a number without another file."""
    text = (
        "service: {command: [run, '{input}']}\n"
        + REST
        + ("max_trials: ${N:-50}\ntimeout: ${T}\nintent: ${I:-smoke}\ncurtail: ${C}\n")
    )
    suite = load(text, {"T": "2m", "C": "false", "I": "smoke"})
    options = suite.contracts[0].options

    assert (50, 120.0, "SMOKE", False) == (
        options.max_trials,
        options.timeout_s,
        options.intent,
        options.curtail,
    )
    # Neither is a secret, and `false` may stand in any reply.
    assert "false smoke" == suite.redaction("false smoke")


def test_a_name_takes_nothing_from_the_environment(refused: Refused) -> None:
    """It is written into records, and a value might be a secret."""
    error = refused(
        "name: agent-${A}\nservice: {command: [run, '{input}']}\n" + REST, {"A": SECRET}
    )

    assert ["`name` takes nothing from the environment: it is written into records"] == [
        one.message for one in error.problems
    ]


def test_inputs_and_postconditions_are_data(load: Load) -> None:
    """A prompt about shells may hold ${HOME}."""
    suite = load(
        "service: {command: [run, '{input}']}\n"
        "inputs: ['What is ${HOME}?', {value: {q: '${A}'}}]\n"
        "criteria: [{name: c, contains: '${A}', at_least: 90%}]\n",
        {"A": SECRET, "HOME": "/root"},
    )
    contract = suite.contracts[0].contract

    assert ["What is ${HOME}?", {"q": "${A}"}] == [
        one.value for one in contract.samplings["inputs"].inputs
    ]
    assert SECRET not in repr(suite)
    assert {} == dict(suite.redaction.secrets)


SUITES = [
    f"service: {{command: [run, '{{input}}', '${{KEY}}']}}\n{REST}",
    f"service: {{command: 'run {{input}} ${{KEY}}'}}\n{REST}",
    f"service: {{command: {{run: 'run {{input}}', env: {{KEY: 'x ${{KEY}}'}}}}}}\n{REST}",
    f"service: {{http: {{url: 'http://h/', headers: {{X-Api-Key: '${{KEY}}'}}}}}}\n{REST}",
    f"service: {{http: {{url: 'http://h/', body: {{a: ['${{KEY}}']}}}}}}\n{REST}",
    f"service: {{chat: {{model: m, api_key_env: KEY}}}}\n{REST}",
    f"service: {{chat: {{model: m, api_key_env: null, extra: {{user: '${{KEY}}'}}}}}}\n{REST}",
    f"service: {{chat: {{model: '${{KEY}}', api_key_env: null}}}}\n{REST}",
]


@pytest.mark.parametrize("text", SUITES)
def test_what_the_suite_took_is_redacted_wherever_it_turns_up(load: Load, text: str) -> None:
    """Replies, errors and evidence show the variable's name; nothing of the suite's prints it."""
    suite = load(text, {"KEY": SECRET})

    assert "he said ${KEY}!" == suite.redaction(f"he said {SECRET}!")
    assert SECRET not in repr(suite)
    assert SECRET not in repr(suite.contracts[0].contract.service)
    assert SECRET not in suite.contracts[0].name


@pytest.mark.parametrize(
    "text",
    [
        f"service: {{command: [run, '${{KEY}}']}}\n{REST}",
        f"service: {{command: {{run: [run, '{{input}}'], cwd: '${{KEY}}'}}}}\n{REST}",
        f"service: {{http: '${{KEY}}'}}\n{REST}",
        f"service: {{chat: {{model: m, api_key_env: null, base_url: '${{KEY}}'}}}}\n{REST}",
        f"service: {{replay: '${{KEY}}'}}\n{REST}",
        f"service: {{command: [run, '{{input}}']}}\n{REST}timeout: '${{KEY}}'\n",
        f"service: {{command: [run, '{{input}}']}}\n{REST}seed: '${{KEY}}'\n",
        f"service: {{command: [run, '{{input}}']}}\n{REST}".replace("[one]", "{jsonl: '${KEY}'}"),
        f"service: {{command: [run, '{{input}}']}}\n{REST}".replace(
            "[one]", "{files: 'x/${KEY}*'}"
        ),
        f"service: {{command: [run, '{{input}}']}}\n{REST}".replace(
            'contains: "1"', "json_schema: '${KEY}'"
        ),
    ],
)
def test_no_error_shows_a_value_of_the_environment(refused: Refused, text: str) -> None:
    """Whatever the library or the system says of it."""
    error = refused(text, {"KEY": SECRET})

    assert SECRET not in str(error)
    assert SECRET not in repr(error.problems)


def test_a_literal_secret_in_a_header_is_refused_without_repeating_it(refused: Refused) -> None:
    """The excerpt ends where the value begins."""
    error = refused(
        "service:\n  http:\n    url: http://h/\n    headers:\n"
        f"      Authorization: Bearer {SECRET}\n{REST}"
    )

    assert "take a secret from the environment, as in 'Bearer ${API_KEY}'" in str(error)
    assert SECRET not in str(error)


def test_an_http_service_resolves_its_own_references(load: Load) -> None:
    """Its templates keep the names; a default is filled in at once."""
    suite = load(
        "service: {http: {url: 'http://${HOST:-localhost}/', "
        "headers: {X-A: 'v ${KEY:-none}', X-B: '${NOT:-d}'}}}\n" + REST,
        {"KEY": SECRET},
    )
    service: Any = suite.contracts[0].contract.service

    assert {"X-A": "v ${KEY}", "X-B": "d"} == service.headers
    assert "http://localhost/" == service.url


@pytest.mark.parametrize("environment", [{}, {"URL": "https://host-of-mine:1/v1"}])
def test_a_variable_may_hold_the_beginning_of_a_url(
    load: Load, environment: dict[str, str]
) -> None:
    """Scheme, host and all; the contract is called the same with and without it."""
    suite = load("service: {http: '${URL:-http://localhost}/ask'}\n" + REST, environment)
    service: Any = suite.contracts[0].contract.service

    assert environment.get("URL", "http://localhost") + "/ask" == service.url
    assert "URL" == suite.contracts[0].name
    assert "host-of-mine" not in repr(suite)


def test_what_a_variable_holds_is_no_reference(refused: Refused) -> None:
    """Otherwise one variable could ask for another."""
    error = refused(
        "service: {http: '${URL}/ask'}\n" + REST, {"URL": "http://${KEY}", "KEY": SECRET}
    )

    assert "the value of ${URL} holds a reference" in str(error)


def test_a_marked_text_is_its_value_and_prints_its_template() -> None:
    """It works wherever text does, and survives being sent elsewhere."""
    text = EnvironmentText(f"Bearer {SECRET}", "Bearer ${KEY}")

    assert f"Bearer {SECRET}" == text
    assert f'["Bearer {SECRET}"]' == json.dumps([text])
    assert "['Bearer ${KEY}']" == f"{[text]!r}"
    again = pickle.loads(pickle.dumps(text))
    assert (text, "Bearer ${KEY}") == (again, again.template)


def test_factors_and_covariates_record_a_variable_only_on_purpose(
    load: Load, refused: Refused
) -> None:
    """`environment:` is how to say that a value may be written down."""
    text = (
        "service: {command: [run, '{input}']}\n"
        + REST
        + (
            "factors: {model: {environment: MODEL}, temperature: 0.7, cached: true}\n"
            "covariates: [{name: region, kind: region, environment: REGION}]\n"
        )
    )
    contract = load(text, {"MODEL": "m-1"}).contracts[0].contract

    assert {"model": "m-1", "temperature": "0.7", "cached": "true"} == dict(contract.factors)
    assert "REGION" == contract.covariates[0].environment
    assert "the environment variable MODEL is not set" in str(refused(text))


def test_redaction_takes_the_longest_value_first() -> None:
    """A value that is the beginning of another leaves no rest of it."""
    redaction = Redaction((), {"A": "secret", "B": "secret-longer", "C": "1"})

    assert "${B} ${A} 1" == redaction("secret-longer secret 1")


def test_patterns_are_applied_after_the_values() -> None:
    """What matches is replaced whole."""
    assert "[redacted] and [redacted]" == Redaction((r"[0-9]{4}", "x+"))("1234 and xxx")
