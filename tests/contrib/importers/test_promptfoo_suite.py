"""A promptfoo file becomes a suite; what it cannot say is listed, and never passes silently."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from trialwise.contrib.commands.import_command import command
from trialwise.contrib.importers import ImportRefused, import_promptfoo, import_suite
from trialwise.errors import BrokenCheck
from trialwise.model.reply import Usage
from trialwise.model.verdict import Decision
from trialwise.suite import Suite

Write = Callable[[str, str], Path]
Load = Callable[..., Suite]

FILE = """\
description: Support bot
prompts: ["Answer briefly: {{question}}"]
providers: ["openai:chat:gpt-4o"]
defaultTest:
  assert: [{type: not-icontains, value: as an AI}]
tests:
  - description: knows the capital
    vars: {question: Capital of Australia?}
    assert: [{type: contains, value: Canberra}]
  - vars: {question: What is 15 * 37?}
    assert: [{type: contains, value: "555"}]
  - description: is kind
    vars: {question: My parcel is late.}
    assert: [{type: llm-rubric, value: Apologises for the delay.}]
"""


def convert(write: Write, **content: Any) -> Any:
    """Import a file with one test, changed as asked."""
    test = {"vars": {"q": "x"}, "assert": [{"type": "contains", "value": "a"}]}
    whole = {"prompts": ["{{q}}"], "providers": ["echo"], "tests": [test], **content}
    return import_promptfoo(write("promptfooconfig.yaml", json.dumps(whole)))


def test_a_file_becomes_a_contract_whose_tests_are_inputs(write: Write, load: Load) -> None:
    """The prompt fills from the input, and tests that differ in one text share a criterion."""
    imported = import_promptfoo(write("promptfooconfig.yaml", FILE))

    assert {
        "chat": {
            "model": "gpt-4o",
            "temperature": 0,
            "max_tokens": 1024,
            "prompt": "Answer briefly: {{ input.question }}",
        }
    } == imported.suite["service"]
    first, second = imported.suite["samplings"].values()
    assert [
        {"value": {"question": "Capital of Australia?"}, "expected": "Canberra"},
        {"value": {"question": "What is 15 * 37?"}, "expected": "555"},
    ] == first
    assert [{"value": {"question": "My parcel is late."}}] == second
    compared, kind, rubric = imported.suite["criteria"]
    not_said = {"not_contains": {"text": "as an AI", "ignore_case": True}}
    assert [not_said, {"as_expected": "contains"}] == compared["postconditions"]
    assert (True, 2) == (compared["never_fails"], compared["trials"])
    assert "is kind" == kind["name"]
    assert "Apologises for the delay." == rubric["judge"]["rubric"]
    assert rubric["judge"]["shows_input"] is False
    (contract,) = load(imported, {"OPENAI_API_KEY": "k"}).contracts
    assert "Support bot" == contract.name


def test_prompts_and_providers_are_contracts_of_their_own(write: Write, load: Load) -> None:
    """What promptfoo shows as columns; what they share stands at the top."""
    imported = convert(
        write,
        prompts=["Say {{q}}", "Shout {{q}}"],
        providers=["openai:gpt-4o", {"id": "anthropic:messages:claude-x", "label": "claude"}],
    )
    names = [one["name"] for one in imported.suite["contracts"]]

    assert 4 == len(names)
    assert "openai:gpt-4o · Say {{q}}" == names[0]
    assert "claude · Shout {{q}}" == names[-1]
    assert "criteria" in imported.suite
    keys = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}
    assert 4 == len(load(imported, keys).contracts)


@pytest.mark.parametrize(
    ("provider", "service"),
    [
        ("ollama:chat:llama3", {"base_url": "http://localhost:11434/v1", "api_key_env": None}),
        ("groq:llama-3.1", {"base_url": "https://api.groq.com/openai/v1"}),
        ("anthropic:claude-x", {"api": "anthropic", "temperature": 0, "max_tokens": 1024}),
        ("openai:responses:gpt-4o", {"model": "gpt-4o", "api": "responses"}),
        ("openai:o3-mini", {"model": "o3-mini"}),
        (
            {
                "id": "openai:chat:m",
                "config": {"temperature": 0.7, "top_p": 0.5, "apiBaseUrl": "u"},
            },
            {"temperature": 0.7, "extra": {"top_p": 0.5}, "base_url": "u", "max_tokens": 1024},
        ),
        (
            {"id": "openai:m", "config": {"apiKey": "{{ env.MY_KEY }}", "max_tokens": 5}},
            {"api_key_env": "MY_KEY", "max_tokens": 5},
        ),
    ],
)
def test_chat_models_are_called_as_promptfoo_calls_them(
    write: Write, provider: Any, service: dict[str, Any]
) -> None:
    """Endpoint, key, and the temperature and limit that promptfoo sends by itself."""
    chat = convert(write, providers=[provider]).suite["service"]["chat"]

    assert service.items() <= chat.items()


def test_a_key_that_is_written_down_is_not_copied(write: Write) -> None:
    """The suite may be published, so it names the variable instead."""
    imported = convert(write, providers=[{"id": "openai:m", "config": {"apiKey": "sk-secret"}}])

    assert "sk-secret" not in json.dumps(imported.suite)
    assert any("set OPENAI_API_KEY" in note for note in imported.notes)


def test_an_endpoint_gets_the_prompt_in_its_request(write: Write, load: Load) -> None:
    """Variables of the environment stay variables; the reply is what the expression selects."""
    imported = convert(
        write,
        prompts=["Q: {{q}}"],
        providers=[
            {
                "id": "https",
                "config": {
                    "url": "{{ env.BASE_URL }}/chat",
                    "headers": {"Authorization": "Bearer {{env.TOKEN}}"},
                    "body": {"messages": [{"content": "{{prompt}}"}]},
                    "transformResponse": "json.choices[0].message",
                },
            }
        ],
    )

    assert {
        "http": {
            "url": "${BASE_URL}/chat",
            "headers": {"Authorization": "Bearer ${TOKEN}"},
            "body": {"messages": [{"content": "{input}"}]},
            "extract": "/choices/0/message",
        }
    } == imported.suite["service"]
    assert ["Q: x"] == imported.suite["inputs"]
    load(imported, {"BASE_URL": "http://127.0.0.1", "TOKEN": "t"})


def test_a_provider_in_python_is_called_as_promptfoo_calls_it(write: Write, load: Load) -> None:
    """`call_api(prompt, options, context)`, with its tokens and its own errors."""
    from trialwise.runtime.running import run

    write(
        "bot.py",
        "def call_api(prompt, options, context):\n"
        "    if context['vars']['q'] == 'bad': return {'error': 'no answer'}\n"
        "    output = {'said': prompt, 'tone': options['config']['tone']}\n"
        "    usage = {'prompt': 3, 'completion': 4}\n"
        "    return {'output': output, 'tokenUsage': usage, 'cost': 0.5}\n",
    )
    assertion = {"type": "equals", "value": {"said": "Q: x", "tone": "dry"}}
    imported = convert(
        write,
        prompts=["Q: {{q}}"],
        providers=[{"id": "file://bot.py", "config": {"tone": "dry"}}],
        tests=[
            {"vars": {"q": "x"}, "assert": [assertion]},
            {"vars": {"q": "bad"}, "assert": [{"type": "not-contains", "value": "zzz"}]},
        ],
    )
    (contract,) = load(imported).contracts
    result = run(contract.contract, options=contract.options, store=None, progress=False)
    first, second = result.verdict.findings

    assert Decision.PASS is first.decision
    assert Decision.FAIL is second.decision
    (good,) = [trial for trial in result.trials if trial.usage is not None]
    assert Usage(input_tokens=3, output_tokens=4) == good.usage
    assert 0.5 == good.cost_usd


@pytest.mark.requirement(
    "statistical-ci import",
    "What an importer cannot carry over is listed, and nothing passes in its place.",
    "`trialwise import` writes a function to fill in, which stops the run until it is written",
)
@pytest.mark.parametrize(
    "assertion",
    [
        {"type": "javascript", "value": "output.split(' ').length < 5"},
        {"type": "javascript", "value": "output.length < 5 ? 1 : 0.5"},
        {"type": "javascript", "value": "output.parsed.n > 5"},
        {"type": "not-javascript", "value": "JSON.parse(output).n > 5"},
        {"type": "javascript", "value": "output > 5", "threshold": 0.5},
        {"type": "python", "value": "len(output) < 5"},
        {"type": "not-llm-rubric", "value": "is rude"},
        {"type": "levenshtein", "value": "abc"},
        {"type": "contains", "value": "a", "transform": "output.answer"},
        {"type": "contains", "value": "{% if q %}a{% endif %}"},
        {"type": "regex", "value": "(?<=a)b"},
        {"type": "is-json", "value": "file://schema.js"},
        {"type": "unheard-of", "value": 1},
    ],
)
def test_what_is_not_carried_over_stops_the_run(
    write: Write, load: Load, assertion: dict[str, Any]
) -> None:
    """A function that nobody has written is a broken check: never a PASS, whatever else holds."""
    from trialwise.runtime.running import run

    test = {"vars": {"q": "a"}, "assert": [{"type": "contains", "value": "a"}, assertion]}
    imported = convert(write, tests=[test])
    (contract,) = load(imported).contracts
    kind = assertion["type"]
    (note,) = [note for note in imported.notes if note.startswith(f"Not carried over: `{kind}`")]

    assert note.endswith("(line 1).")
    with pytest.raises(BrokenCheck, match="still to be written"):
        run(contract.contract, options=contract.options, store=None, progress=False)


def test_the_command_writes_the_functions_and_the_run_says_what_is_missing(tmp_path: Path) -> None:
    """Exit 4, which says that nothing was decided."""
    test = {"vars": {"q": "a"}, "assert": [{"type": "javascript", "value": "grade(output) > 5"}]}
    whole = {"prompts": ["{{q}}"], "providers": ["echo"], "tests": [test]}
    (tmp_path / "promptfooconfig.yaml").write_text(json.dumps(whole))
    program = [sys.executable, "-m", "trialwise.cli.main"]
    imported, ran = (
        subprocess.run([*program, *more], cwd=tmp_path, capture_output=True, text=True, check=False)
        for more in (["import", "promptfooconfig.yaml"], ["run", "--quiet"])
    )

    assert 0 == imported.returncode, imported.stderr
    assert "Not carried over: `javascript`" in imported.stderr
    assert "grade(output) > 5" in (tmp_path / "promptfoo_functions.py").read_text()
    assert 4 == ran.returncode, ran.stdout
    assert "javascript_1 is still to be written" in ran.stderr


def test_a_provider_that_is_not_carried_over_fails_every_trial(write: Write, load: Load) -> None:
    """Its tests are kept, so that only one function has to be written."""
    from trialwise.runtime.running import run

    test = {"vars": {"q": "a"}, "assert": [{"type": "not-contains", "value": "zzz"}]}
    imported = convert(write, providers=["file://bot.js"], tests=[test])
    (contract,) = load(imported).contracts
    result = run(contract.contract, options=contract.options, store=None, progress=False)

    assert any("the provider `file://bot.js`" in note for note in imported.notes)
    assert Decision.PASS is not result.verdict.decision


def test_tests_come_from_tables_and_files(write: Write) -> None:
    """CSV with `__expected`, YAML and lines of JSON, with lists of variables unfolded."""
    write(
        "cases.csv",
        'q,__expected,__description\n2+2,4,sums\n"3+3",contains:6,\nhi,"contains-any:a,b",greets\n',
    )
    write("more.yaml", "- vars: {q: [one, two]}\n  assert: [{type: equals, value: '{{q}}'}]\n")
    write("lines.jsonl", '{"vars": {"q": "z"}, "assert": [{"type": "is-json"}]}\n')
    imported = convert(write, tests=["cases.csv", "file://more.yaml", "lines.jsonl"])
    samplings = imported.suite["samplings"]

    assert {
        "tests-1": [
            {"value": "2+2", "expected": "4"},
            {"value": "one", "expected": "one"},
            {"value": "two", "expected": "two"},
        ],
        "tests-2": ["3+3"],
        "tests-3": ["hi"],
        "tests-4": ["z"],
    } == samplings
    checks = [
        {key: one for key, one in criterion.items() if key not in ("never_fails", "trials")}
        for criterion in imported.suite["criteria"]
    ]
    assert {"as_expected": "equals"}.items() <= checks[0].items()
    assert {"contains": "6"}.items() <= checks[1].items()
    assert {"any_of": [{"contains": "a"}, {"contains": "b"}]}.items() <= checks[2].items()


def test_many_inputs_are_written_into_a_file(write: Write, load: Load) -> None:
    """A table of hundreds of rows would make the suite unreadable."""
    write("cases.csv", "q,__expected\n" + "".join(f"q{n},a{n}\n" for n in range(200)))
    imported = convert(write, tests="file://cases.csv")
    (name,) = imported.files

    assert {"jsonl": name} == imported.suite["inputs"]
    assert 200 == len(imported.files[name].splitlines())
    (contract,) = load(imported).contracts
    (sampling,) = contract.contract.samplings.values()
    assert 200 == len(sampling.inputs)


def test_templates_and_default_variables_are_followed(write: Write) -> None:
    """`$ref`, `defaultTest.vars` and `disableDefaultAsserts`."""
    imported = convert(
        write,
        prompts=["{{greeting}} {{q}}"],
        assertionTemplates={"polite": {"type": "icontains", "value": "please"}},
        defaultTest={
            "vars": {"greeting": "Hello"},
            "assert": [{"$ref": "#/assertionTemplates/polite"}],
        },
        tests=[
            {"vars": {"q": "you"}},
            {
                "vars": {"q": "me"},
                "options": {"disableDefaultAsserts": True},
                "assert": [{"type": "is-json"}],
            },
        ],
    )
    first, second = imported.suite["criteria"]

    assert {"text": "please", "ignore_case": True} == first["contains"]
    assert "json" == second["parses"]
    assert ["Hello you"] == imported.suite["samplings"]["tests-1"]


def test_a_rate_is_required_where_somebody_asks_for_one(write: Write) -> None:
    """`--at-least` replaces the rule of promptfoo, that nothing may fail."""
    path = str(write("promptfooconfig.yaml", FILE))
    asked = CliRunner().invoke(command, [path, "--stdout", "--at-least", "90%"])
    wrong = CliRunner().invoke(command, [path, "--stdout", "--at-least", "90"])

    assert "at_least: 0.9" in asked.stdout
    assert "never_fails" not in asked.stdout
    assert 2 == wrong.exit_code
    assert "write 90% or 0.9" in wrong.output + wrong.stderr


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"tests": []}, "no test with an assertion"),
        ({"tests": "absent.csv"}, "absent.csv cannot be read"),
        ({"tests": "../up.csv"}, "up.csv is not below the folder"),
        ({"tests": "file://*.csv"}, "finds no file"),
        ({"tests": 5}, "`tests` must be a list of tests"),
        ({"prompts": ["file://absent.txt"]}, "absent.txt cannot be read"),
        ({"prompts": ["file:///etc/passwd"]}, "not below the folder"),
        ({"prompts": ["{% for x in y %}"]}, "no prompt can be carried over"),
        ({"prompts": [5]}, "a prompt must be a text"),
        ({"tests": [{"vars": {"q": "x"}}]}, "no test with an assertion"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_its_place(
    write: Write, content: dict[str, Any], message: str
) -> None:
    """File and line, everything at once, and never a traceback."""
    with pytest.raises(ImportRefused, match=r"promptfooconfig\.yaml:1:") as caught:
        convert(write, **content)

    assert any(message in one.message for one in caught.value.problems), str(caught.value)


def test_a_red_team_file_is_told_what_to_do(write: Write) -> None:
    """It has no tests before promptfoo generates them."""
    path = write("promptfooconfig.yaml", "targets: [echo]\nredteam: {plugins: [pii]}\n")

    with pytest.raises(ImportRefused, match="trialwise score"):
        import_suite(path)
