"""The package's names: all there, typed, and paid for only when used."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

from trialwise import services

FOLDER = Path(services.__file__).parent
EXPORTS: dict[str, str] = vars(services)["_EXPORTS"]


def test_every_public_name_is_exported_and_seen_by_type_checkers() -> None:
    """Modules, package and stub agree."""
    # For other packages, and not for users.
    groundwork = {"model_apis"}
    modules = {p.stem for p in FOLDER.glob("*.py") if not p.stem.startswith("_")} - groundwork
    declared = {
        (name, module)
        for module in modules
        for name in importlib.import_module(f"trialwise.services.{module}").__all__
    }
    stub = {
        (alias.name, (node.module or "").rpartition(".")[2])
        for node in ast.parse((FOLDER / "__init__.pyi").read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    assert declared == set(EXPORTS.items()) == stub
    assert all(getattr(services, name) is not None for name in EXPORTS)


def test_making_a_service_loads_neither_an_event_loop_nor_an_http_client() -> None:
    """They are loaded by the first call."""
    code = """
import sys
from trialwise.services import *
CallableService(len), CommandService(["cat"], input_via="stdin"), HttpService("http://h/")
ChatService("http://h/v1", "m", api_key_env=None), RecordingService(CallableService(len), "x")
print(sorted({"asyncio", "httpx2", "ssl"} & set(sys.modules)))
"""
    said = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True
    )

    assert "[]\n" == said.stdout, said.stdout
