"""The suite file as JSON Schema 2020-12, for editors and for programs that write suites.

It describes one file as YAML reads it, before what it includes is taken in. What it refuses the
loader refuses, too; the loader also sees what a schema cannot: a rate of 1, a module that is not
there, two criteria of one name.
"""

from __future__ import annotations

import json
import sys

from trialwise.declarations.scalars import Schema
from trialwise.declarations.structures import Definitions
from trialwise.suite.keys import SUITE

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def suite_schema(*, installed: bool = False) -> Schema:
    """Return the schema of a suite file.

    Args:
        installed: Whether to describe what other distributions declare, too.

    >>> suite_schema()["$schema"]
    'https://json-schema.org/draft/2020-12/schema'
    """
    defs = Definitions(installed=installed)
    definition = SUITE.definition(defs)
    contract = {
        "allOf": [
            {"required": ["service"]},
            {"required": ["criteria"]},
            {"anyOf": [{"required": ["inputs"]}, {"required": ["samplings"]}]},
        ]
    }
    return {
        "$schema": _DIALECT,
        "title": "trialwise suite",
        **definition,
        "allOf": [
            {
                "if": {"required": ["contracts"]},
                "then": {"properties": {"name": False, "description": False}},
                "else": {"if": {"not": {"required": ["include"]}}, "then": contract},
            }
        ],
        "$defs": dict(sorted(defs.items())),
    }


def written_schema(*, installed: bool = False) -> str:
    """Return the schema as a file; the one that is shipped knows no other distributions."""
    return json.dumps(suite_schema(installed=installed), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(written_schema())
