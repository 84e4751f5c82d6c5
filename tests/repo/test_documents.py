"""What the documents show is what happens."""

from __future__ import annotations

import doctest
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from tools import documents

ROOT = Path(__file__).parents[2]
PAGES = documents.pages()
#: Whose blocks are run by tests of their own, line by line.
ELSEWHERE = {
    "docs/plan.md": "tests/cli/test_plan.py",
    "docs/reference/suite.md": "tests/suite/test_schema.py",
}
#: Shown as they are: output, other people's formats, and commands that change this machine.
SHOWN = {"", "text", "sh", "json", "xml", "toml", "ini"}
#: What stands in no comment of the page: how it begins, and where it is run.
UNMARKED = {"result.to_frame(": "tests/runtime/test_frames.py"}
#: Whose commands start this many servers or test sessions that they take half a minute.
LONG = {
    "docs/examples.md",
    "docs/guides/agents.md",
    "docs/guides/judges.md",
    "docs/guides/pytest.md",
}
#: Where each server's recipes hold what it runs.
RECIPES = {".github/workflows/agents.yml": "run", ".gitlab-ci.yml": "script"}


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all: a design is searched for once."""
    return tmp_path_factory.mktemp("cache")


@pytest.mark.slow("docs/guides/python.md")
@pytest.mark.parametrize("page", [page for page in PAGES if ">>> " in documents.read(page)])
def test_the_examples_in_the_documents_run(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every `>>>` in a document gives what stands below it."""
    monkeypatch.chdir(tmp_path)
    result = doctest.testfile(
        str(ROOT / page),
        module_relative=False,
        optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE,
        encoding="utf-8",
    )

    assert (0, True) == (result.failed, result.attempted > 0)


@pytest.mark.slow(
    "docs/claims.md",
    "docs/conformance.md",
    "docs/guides/baselines.md",
    "docs/guides/ci.md",
    "docs/guides/executors.md",
    "docs/guides/faults-and-resume.md",
    "docs/guides/guardrails.md",
    "docs/guides/procedure.md",
    "docs/guides/reliability.md",
    "docs/guides/report.md",
)
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.slow] if page in LONG else [])
        for page in PAGES
        if page not in ELSEWHERE and documents.sessions(documents.read(page))
    ],
)
def test_the_commands_in_the_documents_do_what_is_shown(
    page: str, tmp_path: Path, cache: Path
) -> None:
    """Typed one after another, in the folders that the document names."""
    found = [
        problem
        for place, session in enumerate(documents.sessions(documents.read(page)))
        for problem in documents.problems(
            page, documents.play(session, tmp_path / str(place), cache=cache)
        )
    ]

    assert not found, "\n\n".join(found)


@pytest.mark.parametrize("page", [page for page in PAGES if page not in ELSEWHERE])
def test_no_block_of_a_document_escapes(page: str) -> None:
    """It is run, it is a file that a command uses, it is only shown, or it says why not."""
    text = documents.read(page)
    escaped = [
        f"{page}:{block.line}: {block.language}"
        for block in documents.blocks(text)
        if not block.mark
        and not block.text.startswith(tuple(UNMARKED))
        and block.language not in {"console", *SHOWN}
        and not block.language.startswith("{")
        and not (block.language == "python" and ">>> " in block.text)
    ]

    assert [] == escaped
    assert [] == re.findall(r"^[ \t]+```.*$", text, re.MULTILINE), "a fence that is indented"


@pytest.mark.parametrize("page", PAGES)
def test_every_link_between_documents_leads_somewhere(page: str) -> None:
    """To a file of the repository."""
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", documents.read(page))
    paths = [link for link in links if "://" not in link]

    assert [] == [path for path in paths if not (ROOT / page).parent.joinpath(path).exists()]


@pytest.mark.parametrize("page", PAGES)
def test_every_link_to_a_heading_leads_to_one(page: str) -> None:
    """On the same page or on another one."""
    links = re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", _prose(page))
    targets = [
        (os.path.relpath((ROOT / page).parent / path, ROOT) if path else page, anchor)
        for path, anchor in links
        if "://" not in path
    ]

    assert [] == [(path, anchor) for path, anchor in targets if anchor not in _anchors(path)]


def test_the_tutorial_types_what_the_red_result_says() -> None:
    """Whoever reads the screen finds the cause and the failing trial without another page."""
    text = documents.read("docs/tutorial.md")
    typed = re.findall(r"^\$ (trialwise .*)", text, re.MULTILINE)
    named = re.findall(r"^(?:Every failing trial|That trial again): +(.*)", text, re.MULTILINE)

    assert len(named) == 2
    for command in named:
        assert any(one.startswith(command) for one in typed)


def _prose(page: str) -> str:
    """The page without its fenced blocks, in which `#` starts a comment."""
    return re.sub(r"^```.*?^```", "", documents.read(page), flags=re.MULTILINE | re.DOTALL)


def _anchors(page: str) -> set[str]:
    """What the headings of a page are called in links, on GitHub and on the built site."""
    headings = re.findall(r"^#+ (.*)", _prose(page), re.MULTILINE)
    github = [re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings]
    return {*github, *(one.replace("_", "-") for one in github)}


def test_every_module_of_the_reference_exists() -> None:
    """The site is built elsewhere: a module that was renamed shows here first."""
    named = {
        module
        for page in PAGES
        for module in re.findall(r"^\.\. automodule:: (\S+)$", documents.read(page), re.MULTILINE)
    }

    assert named
    assert [] == sorted(one for one in named if importlib.util.find_spec(one) is None)


@pytest.mark.slow
@pytest.mark.parametrize("file", RECIPES)
def test_the_recipes_for_servers_run(file: str, tmp_path: Path, cache: Path) -> None:
    """What a server would execute comes to a verdict: neither a usage error nor a crash."""
    blocks = documents.blocks(documents.read("docs/guides/ci.md"))
    recipe = next(block.text for block in blocks if block.value == file)
    scripts = list(_scripts(YAML(typ="safe").load(recipe), RECIPES[file]))
    ours = [script for script in scripts if "trialwise run" in script]
    text = "\n".join(ours)
    session = documents.Session(
        "examples/quickstart", [documents.Command(f"sh -e <<'END'\n{text}\nEND", "", 0)]
    )

    (reply,) = documents.play(
        session,
        tmp_path / "server",
        cache=cache,
        GITHUB_STEP_SUMMARY=str(tmp_path / "summary.md"),
        RESUME="",
    )

    assert ours
    assert 0 == reply.code, reply.output
    assert (tmp_path / "server" / "quickstart" / "results.junit.xml").exists()


def _scripts(part: Any, key: str) -> Iterator[str]:
    """Every text under a key, however deep, one by one."""
    if isinstance(part, dict):
        for name, value in part.items():
            if name == key:
                yield from [value] if isinstance(value, str) else value
            else:
                yield from _scripts(value, key)
    elif isinstance(part, list):
        for value in part:
            yield from _scripts(value, key)


def test_every_make_target_that_is_named_exists() -> None:
    """In the documents of the repository's front door."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    text = documents.read("README.md") + documents.read("CONTRIBUTING.md")
    named = set(re.findall(r"(?:^|`)make ([a-z-]+)", text, re.MULTILINE))

    assert named
    assert set() == named - targets


def test_no_alternative_text_of_an_image_wraps() -> None:
    """A line that begins with `%` is a comment to the site, and the image would be gone."""
    wrapped = [
        f"{page}: {found}"
        for page in PAGES
        for found in re.findall(r"!\[[^\]\n]*\n[^\]]*\]", documents.read(page))
    ]

    assert [] == wrapped


def test_every_command_is_documented() -> None:
    """Each stands on the page of commands."""
    from click import Context

    from trialwise.cli.main import cli

    page = documents.read("docs/reference/commands.md")
    named = re.findall(r"^\| `trialwise (\w+)` \|", page, re.MULTILINE)

    assert [] == [name for name in cli.list_commands(Context(cli)) if name not in named]


def test_make_demo_shows_a_result_in_few_lines_and_names_its_report(
    tmp_path: Path, cache: Path
) -> None:
    """What its recipe says, in a copy."""
    recipe = re.search(
        r"^demo:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE
    )
    assert recipe is not None
    script = recipe[1].replace("\t@", "").replace("$(BIN)", str(Path(sys.executable).parent))
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    done = subprocess.run(
        ["sh", "-ec", script],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONUTF8": "1", "TRIALWISE_CACHE": str(cache)},
        check=True,
    )
    page = re.search(r"^report: (.*\.html)$", done.stdout, re.MULTILINE)

    assert re.search(r"^PASS  ", done.stdout, re.MULTILINE)
    assert len((done.stdout + done.stderr).splitlines()) <= 25
    assert page is not None
    assert (tmp_path / page[1]).exists()


def decide_example(encoding: str) -> str:
    run = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "worked_decision.py")],
        capture_output=True,
        encoding=encoding,
        env={**os.environ, "PYTHONIOENCODING": encoding},
        check=True,
    )
    return run.stdout


def test_the_worked_example_is_decided() -> None:
    """The example prints the composite verdict and the numbers of the methodology's §10.3."""
    shown = decide_example("utf-8")

    for part in ("FAIL (triggered by layperson-readable)", "c = 939", "0.964891", "0.156211"):
        assert part in shown


def test_the_worked_example_is_shown_on_an_ascii_terminal() -> None:
    """Without Unicode the symbols have their fallbacks, and nothing crashes."""
    assert "configured alpha" in decide_example("ascii")


def test_the_repository_names_no_machine() -> None:
    """No path of a workplace and no registry host in a tracked file."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    words = ("/wo" + "rk/", "py" + "pi.org", "registry.np" + "mjs")
    found = [
        name
        for name in listed.stdout.split()
        if (file := ROOT / name).is_file()
        and any(word in file.read_text(encoding="utf-8", errors="replace") for word in words)
    ]

    assert [] == found


def test_a_module_has_one_place_in_the_reference() -> None:
    """Sphinx warns of a name that is described twice, and the build stops at warnings."""
    pages = "\n".join(
        page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "reference").glob("*.md")
    )
    modules = re.findall(r"automodule:: (\S+)", pages)

    assert sorted(set(modules)) == sorted(modules)


def test_the_guide_lists_every_number_that_a_gate_can_limit() -> None:
    """By its name in a suite."""
    from trialwise.model.gate import targets_of

    text = documents.read("docs/guides/reliability.md")
    named = {name for gate in ("reliability", "stability", "metrics") for name in targets_of(gate)}

    assert set() == {name for name in named if f"`{name}`" not in text}
