"""A services file is checked as its format says, and its models are asked the same way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trialwise.contrib.importers import ImportRefused, import_suite

Write = Callable[[str, str], Path]

HEAD = "format: mavai-services/1\nservices:\n  s:\n"


def model(configuration: str, more: str = "") -> str:
    return f"{HEAD}    type: language-model\n    configuration: {{{configuration}}}\n{more}"


def service(write: Write, text: str, **given: Any) -> dict[str, Any]:
    imported = import_suite(write("services.yaml", text), **given)
    assert not imported.is_whole
    found: dict[str, Any] = imported.suite["services"]["s"]
    return found


PROMPT = "system-prompt: Be kind."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("format: mavai-services/2\nservices: {s: {}}\n", "1:9 `format` must be mavai-services/1"),
        ("format: mavai-services/1\n", "1:1 a services file needs `services`"),
        ("format: mavai-services/1\nservices: {}\n", "2:11 `services` must hold at least one"),
        (HEAD + "    type: language-model\n", "4:5 the service `s` needs `configuration`"),
        (HEAD + "    configuration: {}\n", "4:5 the service `s` needs `type`"),
        (
            HEAD + "    type: langage-model\n    configuration: {}\n",
            "did you mean `language-model`?",
        ),
        (model(PROMPT, "    model: x\n"), "6:5 `model` belongs in `configuration`"),
        (model(PROMPT, "    colour: x\n"), "6:5 unknown key `colour`"),
        (model("model: x"), "5:20 `configuration` of `s` needs `system-prompt`"),
        (model(PROMPT + ", prompt: x"), "unknown key `prompt`"),
        (model("system-prompt: {file: absent}"), "absent cannot be read"),
        (model("system-prompt: {path: x}"), "unknown key `path` in `system-prompt`"),
        (model(PROMPT + ", provider: acme"), "`provider` must be one of openai"),
        (model(PROMPT + ", top-p: 0"), "`top-p` must be a number above 0"),
        (model(PROMPT + ", temperature: warm"), "`temperature` must be a number, got `warm`"),
        (model(PROMPT + ", thinking: deep"), "`thinking` must be one of adaptive, none"),
        (model(PROMPT + ", prompt-caching: yes"), "`prompt-caching` must be true or false"),
        (model(PROMPT + ", max-tokens: 16001"), "`max-tokens` must be a whole number"),
        (model(PROMPT + ", deadline-ms: 0"), "`deadline-ms` must be a whole number"),
        (model(PROMPT + ", response-schema: x"), "`response-schema` must be a mapping"),
        (model(PROMPT + ", capabilities: []"), "`capabilities` must be a list of at least one"),
        (model(PROMPT + ", capabilities: [image-input, image-input]"), "names each once"),
        # What a provider cannot be asked for.
        (
            model(PROMPT + ", provider: openai, thinking: adaptive"),
            "cannot be asked of the provider",
        ),
        (model(PROMPT + ", provider: mistral, prompt-caching: true"), "`prompt-caching` cannot be"),
        (model(PROMPT + ", provider: apertus, response-schema: {}"), "`response-schema` cannot be"),
        (model(PROMPT + ", provider: ollama, capabilities: [audio-input]"), "cannot be sent to"),
        (
            model(PROMPT + ", provider: anthropic, thinking: adaptive, temperature: 1"),
            "goes with neither `temperature` nor `top-p`",
        ),
        (
            model(PROMPT + ", provider: anthropic, thinking: adaptive, max-tokens: 1000"),
            "`max-tokens` must be above 1024",
        ),
        (
            model(PROMPT + ", provider: anthropic, response-schema: {a: b}"),
            "cannot be carried over",
        ),
        # Experiments.
        (model(PROMPT, "    explorations: []\n"), "`explorations` must be a list of at least one"),
        (model(PROMPT, "    explorations: [{}]\n"), "must be a mapping of parameters"),
        (model(PROMPT, "    explorations: [{temperature: }]\n"), "`temperature` has no value"),
        (model(PROMPT, f"    explorations: [{{{PROMPT}}}]\n"), "is the same as the configuration"),
        (
            model(PROMPT, "    explorations: [{max-tokens: 4096}]\n"),
            "is the same as the configuration",
        ),
        (
            model(PROMPT, "    explorations: [{temperature: 1}, {temperature: 1.0}]\n"),
            "is the same as exploration 1",
        ),
        (model(PROMPT, "    optimizations: [{max-iterations: 5}]\n"), "needs `stepper`"),
        (
            model(PROMPT, "    optimizations: [{stepper: prompt-engineer}]\n"),
            "needs `max-iterations`",
        ),
        (
            model(PROMPT, "    optimizations: [{stepper: climb, max-iterations: 5}]\n"),
            "there is no stepper `climb`",
        ),
        (
            model(PROMPT, "    optimizations: [{stepper: linear-sweep, max-iterations: 5}]\n"),
            "`linear-sweep` needs `stepper-config`",
        ),
        (
            model(
                PROMPT,
                "    optimizations: [{stepper: linear-sweep, max-iterations: 5,\n"
                "      stepper-config: {key: warmth, step: 1, stop: 2}}]\n",
            ),
            "`key` must name a parameter that the configuration has",
        ),
        (
            model(
                PROMPT,
                "    optimizations: [{id: a/b, stepper: prompt-engineer, max-iterations: 5}]\n",
            ),
            "`id` must be made of letters",
        ),
        (
            model(
                PROMPT,
                "    optimizations:\n"
                "      - {stepper: prompt-engineer, max-iterations: 5, scorer: best}\n",
            ),
            "there is no scorer `best`",
        ),
    ],
)
def test_a_wrong_services_file_is_refused(write: Write, text: str, expected: str) -> None:
    """Every rule that the format states, by a file that breaks it alone."""
    with pytest.raises(ImportRefused) as caught:
        import_suite(write("services.yaml", text))

    found = [f"{one.line}:{one.column} {one.message}" for one in caught.value.problems]
    assert any(expected in one for one in found), found


@pytest.mark.parametrize(
    ("provider", "base_url", "key"),
    [
        ("openai", "https://api.openai.com/v1", "OPENAI_API_KEY"),
        ("mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
        ("ollama", "http://localhost:11434/v1", None),
        ("apertus", "https://api.publicai.co/v1", "PUBLICAI_API_KEY"),
    ],
)
def test_models_behind_the_common_protocol(
    write: Write, provider: str, base_url: str, key: str | None
) -> None:
    """The same prompt, parameters and limit; the key by the vendor's own variable."""
    text = model(
        f"{PROMPT}, provider: {provider}, model: m, temperature: 0.5, top-p: 0.9, deadline-ms: 1500"
    )
    chat = service(write, text)["chat"]

    assert (base_url, key, "m", 0.5) == (
        chat["base_url"],
        chat["api_key_env"],
        chat["model"],
        chat["temperature"],
    )
    assert ("Be kind.", "1500ms", 0.9) == (chat["system"], chat["timeout"], chat["extra"]["top_p"])
    limit = chat.get("max_tokens", chat["extra"].get("max_completion_tokens"))
    assert 4096 == limit


def test_a_model_that_the_environment_names(write: Write) -> None:
    """Neither provider nor model: both are read from the environment when the suite is loaded."""
    write("prompt.md", "From a file.\n")
    chat = service(write, model("system-prompt: {file: prompt.md}"))["chat"]

    assert "${MAVAI_LLM_MODEL}" == chat["model"]
    assert "${MAVAI_LLM_BASE_URL}" == chat["base_url"]
    assert "From a file.\n" == chat["system"]


def test_a_model_with_a_protocol_of_its_own(write: Write) -> None:
    """One request for each trial, the answer taken from where that provider puts it."""
    text = model(f"{PROMPT}, provider: anthropic, model: m, prompt-caching: true, max-tokens: 100")
    http = service(write, text)["http"]

    assert {
        "model": "m",
        "max_tokens": 100,
        "system": [{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}],
        "messages": [{"role": "user", "content": "{input}"}],
    } == http["body"]
    assert "${ANTHROPIC_API_KEY}" == http["headers"]["x-api-key"]
    assert "/content/0/text" == http["extract"]


def test_a_type_registered_in_code(write: Write) -> None:
    """Found by its decorator, in a file that is parsed and never run."""
    bindings = write(
        "code.py",
        "raise SystemExit\n"
        "@registry.binding_factory('triage')\ndef make(tone, deep_thought=1):\n    ...\n"
        "@stepper('climb')\ndef climb():\n    ...\n",
    )
    text = (
        f"{HEAD}    type: triage\n    configuration: {{tone: dry, deep-thought: 2}}\n"
        "    explorations: [{tone: warm}]\n"
        "    optimizations: [{stepper: climb, max-iterations: 3}]\n"
    )
    imported = import_suite(write("services.yaml", text), bindings_path=bindings)

    assert {"python": "mavai_services:s"} == imported.suite["services"]["s"]
    assert (
        "_s = _bindings.make(**{'tone': 'dry', 'deep_thought': 2})"
        in imported.files["mavai_services.py"]
    )
    assert any("`explorations` of `s` (line 6)" in note for note in imported.notes)
    assert any("`optimizations` of `s` (line 7)" in note for note in imported.notes)


@pytest.mark.parametrize("source", ["def (", "\0", "(" * 100_000, "x = " + "-" * 100_000 + "1"])
def test_code_that_is_no_python_is_refused(write: Write, source: str) -> None:
    """Whatever the parser makes of it."""
    bindings = write("code.py", source)

    with pytest.raises(ImportRefused, match="this is not Python"):
        import_suite(write("services.yaml", model(PROMPT)), bindings_path=bindings)
