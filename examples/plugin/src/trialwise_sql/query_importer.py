"""An importer: a file of queries that a database has to answer, as tools for databases keep it."""

from __future__ import annotations

from ruamel.yaml import YAML

from trialwise.extend import Imported, ImportRequest, Node, SuiteImporter


def find_role(root: Node) -> str | None:
    """Return what a file is for this importer; None for a file of another tool."""
    keys = set(root.entries) if root.is_mapping else set()
    return "queries" if {"database", "queries"} <= keys else None


def import_queries(request: ImportRequest) -> Imported:
    """Convert a file of queries into a suite that runs each of them."""
    path = request.files["queries"]
    given = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    return Imported(
        format="queries",
        sources=(str(path),),
        suite={
            "service": {"sqlite": {"database": given["database"]}},
            "inputs": given["queries"],
            "criteria": [{"name": "quick", "max_latency": "1s", "at_least": "50%"}],
            "trials": request.samples or 30,
        },
        notes=("The file says nothing of rates: `at_least` is for you to choose.",),
    )


IMPORTER = SuiteImporter(
    name="queries",
    signs="has `database` and `queries`",
    find_role=find_role,
    import_files=import_queries,
)
