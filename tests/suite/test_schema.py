"""The published schema: current, sound, and never stricter than the loader.

The other way round the loader is stricter, as it must be: it knows which rates make a claim, which
files and functions exist, which names are taken. It also reads more than the schema of one file can
show: what an `include` brings in, which a schema takes on trust.
"""

from __future__ import annotations

import copy
import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

import trialwise.suite
from trialwise.suite import Suite, SuiteError, load_suite, suite_schema
from trialwise.suite.keys import written_schema
from trialwise.suite.suite_problems import Problems, Source
from trialwise.suite.yaml_reading import MAX_NODES, parse_yaml, plain

Load = Callable[..., Suite]


def _suites() -> ModuleType:
    spec = importlib.util.spec_from_file_location("suites", Path(__file__).parent / "suites.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SUITES = _suites()
VALIDATOR = Draft202012Validator(suite_schema())


def as_json(text: str) -> Any:
    """A YAML text as the schema sees it."""
    problems = Problems()
    root, _ = parse_yaml(Source(Path("x"), text), problems, room=MAX_NODES)
    problems.check()
    assert root is not None
    return plain(root)


def test_the_shipped_file_is_the_generated_one() -> None:
    """Whoever changes a key writes it anew with `make stubs`."""
    shipped = Path(trialwise.suite.__file__).parent / "trialwise.schema.json"

    assert written_schema() == shipped.read_text(encoding="utf-8")


def test_the_schema_is_one() -> None:
    """By its own meta-schema, with every reference resolved."""
    schema = suite_schema()
    Draft202012Validator.check_schema(schema)
    text = json.dumps(schema)

    used = {part.split('"')[0] for part in text.split('"#/$defs/')[1:]}
    assert used == set(schema["$defs"])


def test_every_key_is_described() -> None:
    """An editor shows the sentence beside the key."""
    schema = suite_schema()
    objects = [schema, *schema["$defs"].values()]

    for one in objects:
        for name, value in one.get("properties", {}).items():
            assert name == "include" or value["description"].endswith((".", "…")), name


@pytest.mark.parametrize("document", [SUITES.WHOLE, SUITES.SHORT], ids=["whole", "short"])
def test_what_the_loader_takes_the_schema_takes(document: dict[str, Any], load: Load) -> None:
    """A suite that uses nearly every key."""
    load(json.dumps(document))

    assert [] == [error.message for error in VALIDATOR.iter_errors(document)]


@pytest.mark.parametrize("text", SUITES.documented())
def test_every_suite_that_is_shown_is_valid(text: str) -> None:
    """In the documents and in the examples."""
    assert [] == [error.message for error in VALIDATOR.iter_errors(as_json(text))]


@pytest.mark.parametrize(
    "change",
    [
        {"trails": 5},
        {"timeout": 30},
        {"trials": 0},
        {"intent": "Smoke"},
        {"criteria": []},
        {"criteria": [{"name": "c", "contains": "x"}]},
        {"criteria": [{"name": "c", "at_least": 0.9}]},
        {"criteria": [{"name": "c", "at_least": 95, "contains": "x"}]},
        {"criteria": [{"name": "c", "at_least": 0.9, "never_fails": True, "contains": "x"}]},
        {"criteria": [{"name": "c", "at_least": 0.9, "contains": {"txt": "x"}}]},
        {"service": {"python": "m:f", "http": "http://h/"}},
        {"inputs": [{"question": "x"}]},
        {"contracts": [{"name": "a"}], "name": "b"},
    ],
)
def test_an_editor_sees_the_usual_mistakes(change: dict[str, Any]) -> None:
    """The schema alone refuses them."""
    assert not VALIDATOR.is_valid(SUITES.SHORT | change)


# --- The two agree on documents that are nearly right --------------------------

_KEYS = sorted(
    {
        name
        for one in (suite_schema(), *suite_schema()["$defs"].values())
        for name in one.get("properties", {})
    }
)
_LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 101),
    st.floats(allow_nan=False, allow_infinity=False, width=16),
    st.sampled_from(
        ["", " ", "a", "90%", "5s", "5", "$2", "5/s", "${A}", "${A:-5s}", "m:f", "p95"]
    ),
    st.sampled_from(_KEYS),
)
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(_KEYS), inner, max_size=3)
    ),
    max_leaves=5,
)


def _places(document: Any) -> list[tuple[Any, Any]]:
    """Every container with each of its keys or indices."""
    found: list[tuple[Any, Any]] = []
    pairs = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in pairs:
        found.append((document, key))
        if isinstance(value, dict | list):
            found += _places(value)
    return found


@st.composite
def mutated(draw: st.DrawFn) -> Any:
    """A suite with a few changes anywhere in it."""
    document = copy.deepcopy(draw(st.sampled_from([SUITES.WHOLE, SUITES.SHORT])))
    for _ in range(draw(st.integers(1, 3))):
        places = _places(document)
        if not places:
            break
        container, key = draw(st.sampled_from(places))
        match draw(st.sampled_from(["replace", "remove", "add", "swap"])):
            case "replace":
                container[key] = draw(_VALUES)
            case "remove":
                del container[key]
            case "add" if isinstance(container, dict):
                container[draw(st.sampled_from(_KEYS))] = draw(_VALUES)
            case _:
                other, name = draw(st.sampled_from(places))
                container[key] = copy.deepcopy(other[name])
    return document


@pytest.mark.slow
@settings(
    max_examples=50,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(document=mutated())
def test_what_the_schema_refuses_the_loader_refuses(document: Any, tmp_path: Path) -> None:
    """On suites with a few changes anywhere in them; the loader never says anything else."""
    path = tmp_path / "trialwise.yaml"
    path.write_text(json.dumps(document), encoding="utf-8")
    try:
        load_suite(path, environment={})
    except SuiteError:
        return

    assert [] == [error.message for error in VALIDATOR.iter_errors(document)]
