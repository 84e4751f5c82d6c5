"""A run after an INCONCLUSIVE one says what the two together are worth."""

from __future__ import annotations

from pathlib import Path

import pytest

from trialwise.cli.main import main

SUITE = """
name: x
service: {python: "svc:ask"}
inputs: [a]
max_trials: 40
criteria: [{name: ok, equals: ok, at_least: 90%}]
"""
SERVICE = """
def ask(input, index):
    return "bad" if index % 10 == 9 else "ok"
"""


def test_running_again_after_an_inconclusive_run_says_that_errors_add(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """9 of 10 pass where 90 % is required: open after 40 trials, 5 % and 5 % are up to 10 %."""
    (tmp_path / "trialwise.yaml").write_text(SUITE, encoding="utf-8")
    (tmp_path / "svc.py").write_text(SERVICE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as first:
        main(["run", "-q"])
    before = capfd.readouterr()
    with pytest.raises(SystemExit):
        main(["run", "-q"])
    after = capfd.readouterr()

    assert first.value.code == 3
    assert "errors add" not in before.err
    assert "their errors add: up to 10 % instead of 5 %" in after.err
