"""The step of the guide to CI that keeps one comment on a pull request, run with a pretend `gh`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "ci.md"
#: Keeps comments as files: the number of each is its name.
PRETEND = r"""#!/usr/bin/env python3
import pathlib, re, sys
words, kept = sys.argv[2:], pathlib.Path("comments")
kept.mkdir(exist_ok=True)
body = next((word.partition("=@")[2] for word in words if word.startswith("body=@")), None)
if "--jq" in words:
    wanted = re.search(r'startswith\("(.*)"\)', words[words.index("--jq") + 1]).group(1)
    for one in sorted(kept.iterdir()):
        if one.read_text().startswith(wanted):
            print(one.name)
elif "PATCH" in words:
    (kept / words[-3].rpartition("/")[2]).write_text(pathlib.Path(body).read_text())
else:
    number = str(len(list(kept.iterdir())) + 1)
    (kept / number).write_text(pathlib.Path(body).read_text())
"""


@pytest.mark.requirement(
    "statistical-ci CI",
    "The result stands as a comment on the pull request.",
    "`-o report.md` and a step of the guide to CI, which replaces the comment of an earlier run",
)
def test_a_second_run_replaces_the_comment_of_the_first(tmp_path: Path) -> None:
    """Two suites have a comment each, and a suite that is run again keeps its own."""
    (found,) = re.findall(r"- name: Comment\n.*?run: \|\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    gh = tmp_path / "bin" / "gh"
    gh.parent.mkdir()
    gh.write_text(PRETEND.replace("PYTHON", sys.executable))
    gh.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{gh.parent}:{os.environ['PATH']}",
        "GITHUB_REPOSITORY": "me/it",
        "NUMBER": "7",
    }

    def comment(text: str) -> None:
        (tmp_path / "report.md").write_text(text)
        command = ["bash", "-eu", "-c", textwrap.dedent(found)]
        subprocess.run(command, cwd=tmp_path, env=environment, check=True, timeout=30)

    comment("<!-- trialwise-report: one -->\nFAIL")
    comment("<!-- trialwise-report: two -->\nPASS")
    comment("<!-- trialwise-report: one -->\nPASS")

    kept = sorted((tmp_path / "comments").iterdir())
    assert ["one -->\nPASS", "two -->\nPASS"] == [one.read_text()[23:] for one in kept]
