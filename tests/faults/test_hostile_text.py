"""Text that attacks its readers is inert in the terminal and in every report."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, ClassVar
from xml.etree import ElementTree

import pytest
from tests.faults.command_runs import call, write

#: Clears a terminal, sets its title, turns text, ends elements and fences, starts scripts.
HOSTILE = (
    "\x1b[2J\x1b]0;owned\x07\x9b31m\x00\x08\r"
    "\u202eexe.txt\u2066\u200f\u2028\u061c"
    "<script>alert(1)</script><img src=x onerror=alert(1)>&lt;]]>--><!--"
    "\n::error::injected\nnot ok 99 - injected\n```\n[a](javascript:alert(1))\n| a | b |"
)
#: Control characters but line ends, and what turns the direction of text.
ACTIVE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029]"
)
AGENT = f"""
import trialwise as tw
TEXT = {HOSTILE!r}
def f(q, index):
    if index % 3 == 1: raise RuntimeError(TEXT)
    return TEXT
def check(reply):
    return tw.CheckResult.fail(TEXT, evidence=TEXT)
"""
SUITE = f"""\
name: hostile
service: {{python: "agent:f"}}
inputs: [{{value: {json.dumps(HOSTILE)}, expected: {json.dumps(HOSTILE)}}}, b]
trials: 12
curtail: false
criteria:
  - {{name: "a <b> & | c", contains: {json.dumps(HOSTILE + "z")}, at_least: 50%}}
  - {{name: own, python: "agent:check", at_least: 50%}}
"""
OUTPUTS = (
    *("r.html", "r.md", "r.xml", "r.json", "r.jsonl", "r.tap", "r.txt"),
    "gl-code-quality-report.json",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run with every report."""
    path = tmp_path_factory.mktemp("hostile")
    write(path, AGENT, SUITE)
    outputs = [word for name in OUTPUTS for word in ("-o", name)]
    code, printed, errors = call(path, "run", "-v", *outputs)
    assert code == 1, errors
    (path / "printed.log").write_text(printed + errors, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "arguments",
    [(), ("show", "--failures", "--trials", "20"), ("show", "--transparent"), ("check",)],
    ids=lambda words: " ".join(words) or "run",
)
def test_nothing_active_reaches_the_terminal(folder: Path, arguments: tuple[str, ...]) -> None:
    """No control character but line ends, and nothing that turns the direction of text."""
    if arguments:
        _, output, errors = call(folder, *arguments)
        text = output + errors
    else:
        text = (folder / "printed.log").read_text(encoding="utf-8")

    assert "hostile" in text
    assert ACTIVE.search(text) is None
    assert not any(line.startswith("::") for line in text.splitlines())


@pytest.mark.parametrize("name", OUTPUTS)
def test_nothing_active_is_in_a_report(folder: Path, name: str) -> None:
    """The characters are shown as escapes, or left out."""
    text = (folder / name).read_text(encoding="utf-8")
    if name.endswith("json"):
        text = json.dumps(json.loads(text))  # which escapes them; the document has to be whole

    assert len(text) > 300
    assert ACTIVE.search(text) is None


def test_the_html_page_has_no_element_of_the_reply(folder: Path) -> None:
    """No script but its own, no image, no handler and no address that runs something."""

    class Elements(HTMLParser):
        found: ClassVar[list[tuple[str, dict[str, Any]]]] = []

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            self.found.append((tag, dict(attrs)))

    Elements().feed((folder / "r.html").read_text(encoding="utf-8"))
    tags = [tag for tag, _ in Elements.found]
    attributes = [one for _, some in Elements.found for one in some.items()]

    assert tags.count("script") <= 1
    assert "img" not in tags
    assert not [name for name, _ in attributes if name.startswith("on")]
    assert not [value for _, value in attributes if value and "javascript:" in value]


def test_the_xml_report_is_whole_and_has_no_element_of_the_reply(folder: Path) -> None:
    """XML forbids control characters, and `]]>` ends a section."""
    root = ElementTree.parse(folder / "r.xml").getroot()

    assert {one.tag for one in root.iter()} <= {
        *("testsuites", "testsuite", "testcase", "properties", "property"),
        *("failure", "error", "skipped", "system-out", "system-err"),
    }


def test_no_line_of_a_reply_is_a_result_of_tap(folder: Path) -> None:
    """A reply cannot add or change a test."""
    lines = (folder / "r.tap").read_text(encoding="utf-8").splitlines()
    assert not [line for line in lines if line.lstrip().startswith("not ok 99")]


def test_markdown_shows_the_reply_as_text(folder: Path) -> None:
    """Rendered as GitHub does it, there is no link, image or element of the reply."""
    cmarkgfm = pytest.importorskip("cmarkgfm")
    text = (folder / "r.md").read_text(encoding="utf-8")
    html = cmarkgfm.github_flavored_markdown_to_html(text, options=1 << 17)  # unsafe: raw HTML

    assert "<script" not in html
    assert "<img" not in html
    assert 'href="javascript' not in html
