"""Nothing in the files of a run changes without `show --verify` saying so."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import trialwise as tw
from trialwise.cli.stored_commands import show_command
from trialwise.stores.runs import RunStore

CHANGED = {"started_at": "2001-01-01T00:00:00+00:00", "concurrency": 7, "retries": 7}
OLD = Path(__file__).parents[1] / "data" / "records-0.1.0"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A decided run in a folder."""
    criterion = tw.Criterion("right", tw.contains("right"), at_least=0.5)
    result = tw.run(
        tw.Contract("asked", lambda question: f"right: {question}", [criterion]),
        inputs=["one", "two \ud800 \N{GRINNING FACE}"],
        store=tmp_path,
        seed=4,
        progress=False,
    )
    assert result.path is not None
    return result.path


def verify(run: Path) -> tuple[int, str]:
    done = CliRunner().invoke(show_command, [str(run), "--verify"], standalone_mode=False)
    return done.return_value, done.stdout


def leaves(part: Any) -> Iterator[tuple[Any, Any]]:
    """Every value, as what holds it and its key or place there."""
    for key, one in list(part.items() if isinstance(part, dict) else enumerate(part)):
        if isinstance(one, dict | list) and one:
            yield from leaves(one)
        else:
            yield part, key


@pytest.mark.parametrize(
    ("file", "path"),
    [
        ("record.json", "run_id"),
        ("record.json", "started_at"),
        ("record.json", "session"),
        ("record.json", "verdict.reproducibility.tool_version"),
        ("record.json", "verdict.reproducibility.python_version"),
        ("record.json", "verdict.plan.options.concurrency"),
        ("record.json", "verdict.plan.options.retries"),
        ("plan.json", "started_at"),
        ("plan.json", "plan.options.concurrency"),
    ],
)
def test_what_no_trial_tells_cannot_be_changed(run: Path, file: str, path: str) -> None:
    """`show --verify` says DIFFERS with the file, exit 4."""
    assert verify(run)[0] == 0
    document = json.loads((run / file).read_bytes())
    *way, last = path.split(".")
    part = document
    for name in way:
        part = part[name]
    part[last] = CHANGED.get(last, "changed")
    (run / file).write_text(json.dumps(document))

    code, text = verify(run)

    assert code == 4, text
    assert "DIFFERS" in text
    assert f"{file}: checksum" in text or path.rpartition(".")[2] in text


@pytest.mark.slow
def test_every_value_of_both_files_is_under_the_checksum(run: Path) -> None:
    """Each is changed in turn, and the checksum itself is removed."""
    stored = RunStore(run.parents[1]).open(run)
    assert stored.compare_checksums() == {"plan.json": True, "record.json": True}
    tried = 0
    for name in ("plan.json", "record.json"):
        whole = (run / name).read_bytes()
        document = json.loads(whole)
        for part, key in leaves(document):
            kept = part[key]
            if (part, key) == (document, "format"):
                continue  # another version's file, which is refused or upgraded
            part[key] = "changed" if kept != "changed" else "x"
            (run / name).write_text(json.dumps(document))
            assert stored.compare_checksums()[name] is False, key
            part[key] = kept
            tried += 1
        del document["checksum"]
        (run / name).write_text(json.dumps(document))
        assert stored.compare_checksums()[name] is False
        (run / name).write_bytes(whole)
    assert tried > 100


def test_the_checksum_is_of_the_values(run: Path) -> None:
    """Anybody can compute it: SHA-256 of the sorted compact JSON without the checksum."""
    document = json.loads((run / "record.json").read_bytes())
    stated = document.pop("checksum")
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    assert stated == "sha256:" + sha256(text.encode()).hexdigest()

    spread = json.dumps(document | {"checksum": stated}, indent=4)
    (run / "record.json").write_text(spread)
    assert verify(run)[0] == 0


def test_a_record_of_0_1_0_is_verified_and_what_was_not_checked_is_named(tmp_path: Path) -> None:
    """It has no checksum, so times and versions are as stored."""
    source = next(
        path for path in sorted((OLD / "runs").iterdir()) if (path / "record.json").exists()
    )
    run = tmp_path / "runs" / source.name
    shutil.copytree(source, run)

    code, text = verify(run)

    assert code == 0
    assert "VERIFIED" in text
    assert "plan.json and record.json: written without a checksum." in text
    assert "were not checked" in text
