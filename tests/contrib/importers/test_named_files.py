"""An import reads files below the foreign suite only, because it copies them into the new one."""

from __future__ import annotations

from pathlib import Path

import pytest

from trialwise.contrib.importers import Imported, ImportRefused, import_suite, render_yaml

CONTRACT = """\
format: mavai-contract/1
contract: c
service: s
criteria: [{name: x, threshold: 0.9, contains: a}]
inputs: [{text: {file: "%s"}}]
"""
ROOTED = CONTRACT.replace("inputs:", "roots: {r: %s}\ninputs:")
CERBERUS = """\
adapter: {command: "agent --scenario {{scenario}}"}
studies:
  - name: one
    scenario: %s
    contracts: [{name: b, type: code, assert: output.meta.exitCode === 0}]
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A folder with a suite to be, beside a file that is not its own."""
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key.yaml").write_text("input: CANARY\n", encoding="utf-8")
    folder = tmp_path / "suite"
    folder.mkdir()
    (folder / "own.yaml").write_text("input: mine\n", encoding="utf-8")
    (folder / "link.yaml").symlink_to(tmp_path / "secret" / "key.yaml")
    return folder


def import_text(folder: Path, text: str, **environment: str) -> Imported:
    path = folder / "foreign.yaml"
    path.write_text(text, encoding="utf-8")
    return import_suite(path, environment=environment)


@pytest.mark.parametrize(
    "name", ["../secret/key.yaml", "{absolute}", "link.yaml", "a/../../secret/key.yaml"]
)
@pytest.mark.parametrize("form", [CONTRACT, CERBERUS], ids=["mavai", "cerberus"])
def test_a_file_elsewhere_is_refused(suite: Path, form: str, name: str) -> None:
    """Also by an absolute path and through a link."""
    absolute = suite.parent / "secret" / "key.yaml"
    with pytest.raises(ImportRefused, match="is not below the folder of this file") as refused:
        import_text(suite, form % name.format(absolute=absolute))
    assert "CANARY" not in str(refused.value)


def test_a_root_elsewhere_needs_the_consent_of_who_imports(suite: Path) -> None:
    """The variable allows it; what the file itself says does not."""
    text = ROOTED % ("../secret", "@r/key.yaml")
    with pytest.raises(ImportRefused, match="name it by the variable MAVAI_ROOT_R"):
        import_text(suite, text)
    allowed = import_text(suite, text, MAVAI_ROOT_R=str(suite.parent / "secret"))

    assert "CANARY" in render_yaml(allowed) + "".join(allowed.files.values())


@pytest.mark.parametrize("form", [CONTRACT, CERBERUS], ids=["mavai", "cerberus"])
def test_a_file_of_its_own_is_read(suite: Path, form: str) -> None:
    """Below its folder, however it is spelled."""
    found = import_text(suite, form % "./own.yaml")
    assert "mine" in render_yaml(found) + "".join(found.files.values())
