"""Procedures are found by name, and nobody pays for those that are not asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

from trialwise.documents.blocks import Facts
from trialwise.errors import InvalidArgument
from trialwise.model.evidence import Tally
from trialwise.procedures.observational import decide_observational
from trialwise.procedures.registry import find_procedure, procedure_of


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("COMPLIANCE", "false-compliance"),
        ("CORPUS", "false-compliance"),
        ("REGRESSION", "false-degradation"),
        ("SEQUENTIAL", "false-rejection"),
        ("OBSERVATIONAL", None),
    ],
)
def test_every_built_in_has_a_name_a_question_and_an_error_family(name: str, family: str) -> None:
    """The object says what an enumeration and four tables said."""
    found = find_procedure(name)

    assert found.name == name
    assert found.question.endswith("?")
    assert found.error_family == family
    assert found.claims_rate is (name != "OBSERVATIONAL")


def test_an_unknown_name_is_refused_with_those_that_exist() -> None:
    """The message lists what can be asked for."""
    with pytest.raises(InvalidArgument, match=r"be one of ANYTIME, COMPLIANCE, .*got 'BAYES'"):
        find_procedure("BAYES")


def test_a_finding_is_explained_by_its_procedure() -> None:
    """Blocks of a document, whatever the procedure."""
    finding = decide_observational("no-pii", Tally(trials=20, passed=20))

    (section,) = procedure_of(finding).explain(finding)
    (facts,) = section.blocks

    assert isinstance(facts, Facts)
    assert ("Question", "was any failure of no-pii observed in the run?") in facts.pairs


def test_a_built_in_is_found_without_loading_others_or_entry_points() -> None:
    """Few runs have two procedures, and most have no extension."""
    code = (
        "import sys; from trialwise.procedures.registry import find_procedure;"
        "find_procedure('OBSERVATIONAL');"
        "print('trialwise.procedures.sequential' in sys.modules,"
        "'trialwise.procedures.regression' in sys.modules, 'importlib.metadata' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["False", "False", "False"]
