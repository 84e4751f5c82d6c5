"""The description of the keys against what it describes: nothing missing, nothing invented."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import get_args

import pytest

from trialwise import checks, judges
from trialwise.checks.check_base import to_spec
from trialwise.checks.combine import from_spec, spellings
from trialwise.declarations.scalars import Choice
from trialwise.declarations.structures import Record
from trialwise.model.baseline import Covariate
from trialwise.model.claim import Claim, Input, Sampling
from trialwise.model.contract import Contract, Prevalence
from trialwise.model.criterion import Criterion
from trialwise.model.options import AbortRule, Budget, RunOptions
from trialwise.services import (
    AgentService,
    CallableService,
    ChatService,
    CommandService,
    HttpService,
    InputVia,
    McpServer,
)
from trialwise.suite.check_keys import CHECK_KINDS, DeclaredCheck
from trialwise.suite.keys import CONTRACT, CRITERION, records


def names(record: str) -> set[str]:
    """The keys of a record."""
    (found,) = [one for one in records() if one.name == record]
    return {key.name for key in found.keys}


def initial(kind: type) -> set[str]:
    """The fields that a dataclass is made of."""
    return {field.name for field in fields(kind) if field.init}


@pytest.mark.parametrize(
    ("kind", "record", "called", "missing"),
    [
        # A weight is written at each of the `graders`.
        (Criterion, "criterion", {"contract_ref": "ref", "category": "class"}, {"weights"}),
        (
            RunOptions,
            "contract",
            {"rate_per_s": "rate", "timeout_s": "timeout", "cost_per_trial_usd": "cost_per_trial"},
            set(),
        ),
        # Which factors are critical is written at each of them, in `factors`.
        (Contract, "contract", {"sampling": "inputs"}, {"samplings", "critical_factors"}),
        (Budget, "budget", {"seconds": "time", "usd": "money"}, set()),
        (AbortRule, "abort", {"to_fail": "to"}, set()),
        (Claim, "claim", {"population_name": "name"}, set()),
        (Covariate, "covariate", {"window_hours": "window"}, set()),
        (Prevalence, "prevalence", {}, set()),
        (Input, "input", {}, set()),
        # It is called what its key in `samplings` says.
        (Sampling, "sampling", {}, {"identifier"}),
    ],
)
def test_every_field_of_the_model_can_be_written(
    kind: type, record: str, called: dict[str, str], missing: set[str]
) -> None:
    """A field that is added to the model is missed here."""
    written = {called.get(name, name) for name in initial(kind) - missing}

    assert set() == written - names(record)


@pytest.mark.parametrize(
    ("service", "record", "called", "missing"),
    [
        (CallableService, "python", {}, {"clock"}),
        (CommandService, "command", {"argv": "run", "grace_s": "grace"}, {"clock"}),
        (HttpService, "http", {}, {"clock", "environment"}),
        (ChatService, "chat", {}, {"clock", "environment"}),
        (AgentService, "agent", {}, {"clock", "environment"}),
        (McpServer, "server", {}, set()),
    ],
)
def test_every_argument_of_a_service_can_be_written(
    service: type, record: str, called: dict[str, str], missing: set[str]
) -> None:
    """But for what the program passes in: the clock and the environment."""
    parameters = set(inspect.signature(service).parameters) - missing
    written = {called.get(name, name.removesuffix("_s")) for name in parameters}

    assert written == names(record)


def test_the_ways_of_an_input_are_those_of_the_command() -> None:
    """The one closed set that is written twice, since importing the service would cost too much."""
    (command,) = [one for one in records() if one.name == "command"]
    (kind,) = [key.kind for key in command.keys if key.name == "input_via"]

    assert isinstance(kind, Choice)
    assert get_args(InputVia) == kind.words


def test_every_postcondition_has_its_name_and_its_arguments() -> None:
    """As the registry spells them; a Python function is the suite's own affair."""
    assert {*spellings(), "python", "judge"} == set(CHECK_KINDS)
    for name, kind in CHECK_KINDS.items():
        if isinstance(kind, DeclaredCheck):
            function = getattr(judges if name == "similar" else checks, name)
            parameters = list(inspect.signature(function).parameters)
            assert parameters == [key.name for key in kind.keys], name
            assert all(key.doc.endswith((".", "…")) for key in kind.keys), name


def test_aliases_are_those_of_the_registry() -> None:
    """`min` for `minimum`, and so on."""
    assert to_spec(from_spec({"length": {"min": 1, "max": 2}})) == {
        "length": {"minimum": 1, "maximum": 2}
    }
    written = {
        (alias, key.name)
        for kind in CHECK_KINDS.values()
        if isinstance(kind, DeclaredCheck)
        for key in kind.keys
        for alias in key.aliases
    }
    words = {"min": "minimum", "max": "maximum", "name": "tool", "names": "tools"}
    assert set(words.items()) == written


def test_no_two_records_have_one_name() -> None:
    """A definition of the schema is found by it."""
    seen: dict[str, Record] = {}
    for record in records():
        assert seen.setdefault(record.name, record) is record


def test_no_key_has_two_meanings() -> None:
    """Neither in a criterion, where postconditions stand beside the rest, nor in a contract."""
    for record in (CRITERION, CONTRACT):
        words = [word for key in record.keys for word in (key.name, *key.aliases)]
        assert len(words) == len(set(words))


@pytest.mark.parametrize("record", records(), ids=lambda record: record.name)
def test_what_is_required_is_a_key(record: Record) -> None:
    """A rule about a key that does not exist could never be met."""
    known = {key.name for key in record.keys}

    assert {
        *record.required,
        *(name for group in (*record.one_of, *record.some_of) for name in group if name != "*"),
    } <= known
