"""The list of slow tests names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_slow_test_of_the_list_exists() -> None:
    """A test that was renamed would run in `make test` again without anybody noticing."""
    lines = (ROOT / "tests/slow_tests.txt").read_text(encoding="utf-8").splitlines()
    names = [line for line in lines if line and not line.startswith("#")]

    assert names == sorted(set(names))
    for name in names:
        path, _, rest = name.partition("::")
        function = re.split(r"\[", rest)[0].rpartition("::")[2].rpartition(".")[2]
        text = (ROOT / path).read_text(encoding="utf-8")
        assert f"def {function}(" in text or f"class {function}" in text, name
