"""Loading a suite costs a YAML parser and the model, and none of the heavy libraries."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HEAVY = {
    "asyncio",
    "cel_expr_python",
    "click",
    "httpx2",
    "jsonpath_rfc9535",
    "jsonschema",
    "numpy",
    "pydantic",
    "rich",
    "scipy",
}


def loaded(code: str, folder: Path) -> set[str]:
    """The top-level modules of a fresh interpreter once it has run some code."""
    report = "import sys; print(*{name.partition('.')[0] for name in sys.modules})"
    run = subprocess.run(
        [sys.executable, "-c", f"{code}\n{report}"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(run.stdout.split())


def test_importing_the_package_imports_none_of_its_modules(tmp_path: Path) -> None:
    """A name loads its module when it is used."""
    assert not loaded("import trialwise.suite", tmp_path) & {*HEAVY, "ruamel", "dataclasses"}


def test_the_shortest_suite_is_loaded_without_heavy_libraries(tmp_path: Path) -> None:
    """They come with the postconditions and services that need them."""
    (tmp_path / "my_agent.py").write_text("def answer(question):\n    return '555'\n")
    (tmp_path / "trialwise.yaml").write_text(
        'service: {python: "my_agent:answer"}\n'
        "inputs: [What is 15 * 37?, Capital of Australia?]\n"
        "criteria:\n"
        '  - {name: answers, contains: "555", at_least: 90%}\n'
    )
    code = (
        "import os\nfrom pathlib import Path\nfrom trialwise.suite import find_suite, load_suite\n"
        "load_suite(find_suite(Path.cwd()), environment=os.environ)"
    )

    found = loaded(code, tmp_path)

    assert {"my_agent", "ruamel"} <= found
    assert set() == found & HEAVY
