"""Fingerprints of criteria: what changes the meaning changes them, and nothing else does."""

from __future__ import annotations

import functools
import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from trialwise import checks
from trialwise.checks.criterion_scopes import (
    criterion_structure,
    describe_postconditions,
    scopes_of,
)
from trialwise.model.claim import Sampling
from trialwise.model.contract import Contract
from trialwise.model.criterion import Criterion
from trialwise.model.fingerprint import sampling_fingerprint
from trialwise.model.reply import Reply
from trialwise.model.trial import CheckResult


def structure(*postconditions: Any, **options: Any) -> str:
    return criterion_structure(
        Criterion("one", list(postconditions), **{"at_least": 0.9} | options)
    )


def described(*postconditions: Any) -> tuple[str, ...]:
    return describe_postconditions(Criterion("one", list(postconditions), at_least=0.9))


@pytest.fixture
def module(tmp_path: Path) -> Callable[..., Any]:
    """A module made of a text, imported from a file of that name as a user's would be."""
    made: list[int] = []

    def make(text: str, name: str = "suite") -> Any:
        folder = tmp_path / str(len(made))
        made.append(1)
        folder.mkdir()
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        loaded = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loaded)
        return loaded

    return make


PLAIN = "def ok(text: str) -> bool:\n    return '555' in text\n"
SAME = {
    "a comment": PLAIN.replace("    return", "    # so it is\n    return"),
    "a docstring": PLAIN.replace("    return", '    """Whether."""\n    return'),
    "quotes": PLAIN.replace("'", '"'),
    "brackets": PLAIN.replace("'555' in text", "(\n        '555'\n        in text\n    )"),
    "lines above": "import os\n\n\n" + PLAIN,
    "something else in the file": PLAIN + "\n\ndef other(text: str) -> bool:\n    return True\n",
}
OTHER = {
    "another constant": PLAIN.replace("555", "556"),
    "the opposite": PLAIN.replace("in", "not in"),
    "another type": PLAIN.replace("text: str", "text: bytes"),
    "a statement more": PLAIN.replace("    return", "    text = text.strip()\n    return"),
    "a default": PLAIN.replace("text: str", "text: str, least: int = 1"),
    "a decorator": "import functools\n\n@functools.cache\n" + PLAIN,
}


@pytest.mark.parametrize("text", SAME.values(), ids=list(SAME))
def test_what_says_the_same_is_the_same(module: Callable[..., Any], text: str) -> None:
    """Comments, docstrings, formatting and the rest of the file do not count."""
    assert structure(module(PLAIN).ok) == structure(module(text).ok)


@pytest.mark.parametrize("text", OTHER.values(), ids=list(OTHER))
def test_what_says_something_else_is_another(module: Callable[..., Any], text: str) -> None:
    """A function redefined under its name is another postcondition."""
    assert structure(module(PLAIN).ok) != structure(module(text).ok)


def test_a_docstring_may_change_and_a_text_may_not(module: Callable[..., Any]) -> None:
    """Only the first statement of a function, and a text, is a docstring."""
    one = 'def ok(text):\n    """One."""\n    return text == "One."\n'

    assert structure(module(one).ok) == structure(module(one.replace('"""One', '"""Two')).ok)
    assert structure(module(one).ok) != structure(module(one.replace('== "One', '== "Two')).ok)


HELPED = """
import re
LIMIT = 5
WORDS = ["yes", "no"]
seen = []
CARD = re.compile(r"[0-9]{16}")
calls = 0

def short(text):
    return len(text) < LIMIT

def ok(text):
    global calls
    calls += 1
    seen.append(text)
    return short(text) and text in WORDS and not CARD.search(text)
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("LIMIT = 5", "LIMIT = 6"),
        ('["yes", "no"]', '["yes"]'),
        ("{16}", "{15}"),
        ("len(text) <", "len(text) <="),
    ],
)
def test_what_a_function_reads_of_its_module_counts(
    module: Callable[..., Any], old: str, new: str
) -> None:
    """A constant, a list in capitals, a pattern, and a function it calls with that one's own."""
    assert structure(module(HELPED).ok) != structure(module(HELPED.replace(old, new)).ok)


def test_what_a_function_writes_does_not_count(module: Callable[..., Any]) -> None:
    """A counter and a list in lower case move while the run goes on; the criterion does not."""
    loaded = module(HELPED)
    before = structure(loaded.ok)
    loaded.ok("yes")

    assert 1 == loaded.calls
    assert before == structure(loaded.ok)


def test_functions_that_call_each_other_are_described(module: Callable[..., Any]) -> None:
    """A circle ends, and a change anywhere in it counts."""
    circle = """
def even(n): return True if n == 0 else odd(n - 1)
def odd(n): return False if n == 0 else even(n - 1)
"""

    assert structure(module(circle).even) == structure(module(circle).even)
    changed = circle.replace("False if", "True if")
    assert structure(module(circle).even) != structure(module(changed).even)


def test_lambdas_on_one_line_are_told_apart() -> None:
    """Each is found by where its own instructions come from, however the lines are broken."""
    one, two = lambda text: "a" in text, lambda text: "b" in text
    # fmt: off
    three, four = (lambda text:
                   "a" in text), (
        lambda text: lambda other: other in text)
    # fmt: on

    bodies = [described(function)[0].partition("#")[2] for function in (one, two, three, four)]

    assert 3 == len(set(bodies))
    assert bodies[0] == bodies[2]


def test_a_closure_counts_by_what_it_holds() -> None:
    """Two checks of one factory differ by the words they were made with."""

    def mentions(*words: str, pattern: str = "") -> Callable[[str], bool]:
        compiled, chosen = re.compile(pattern), list(words)
        return lambda text: all(w in text for w in chosen) and bool(compiled.search(text))

    assert structure(mentions("a")) == structure(mentions("a"))
    assert structure(mentions("a")) != structure(mentions("b"))
    assert structure(mentions("a")) != structure(mentions("a", pattern="x" * 300))
    long = structure(mentions("a", pattern="x" * 300 + "y"))
    assert long != structure(mentions("a", pattern="x" * 300 + "z"))


def test_a_counter_in_a_closure_does_not_count() -> None:
    """What a function rebinds itself is not what it says."""
    calls = 0

    def ok(text: str) -> bool:
        nonlocal calls
        calls += 1
        return bool(text)

    before = structure(ok)
    ok("a")

    assert 1 == calls
    assert before == structure(ok)


def test_a_client_in_a_closure_counts_by_its_kind_only() -> None:
    """An object with an address and a life of its own does not make a new criterion a run."""

    class Client:
        def __init__(self) -> None:
            self.session = object()

        def rate(self, text: str) -> bool:
            return bool(text)

    def judged(client: Client) -> Callable[[str], bool]:
        return lambda text: client.rate(text.strip())

    assert structure(judged(Client())) == structure(judged(Client()))


def test_a_wrapper_counts_with_what_it_wraps() -> None:
    """`functools.wraps` lends a name; neither the wrapper nor the wrapped is lost behind it."""

    def base(text: str) -> bool:
        return "a" in text

    def other(text: str) -> bool:
        return "b" in text

    other.__name__, other.__qualname__ = base.__name__, base.__qualname__

    def negated(function: Callable[[str], bool]) -> Callable[[str], bool]:
        @functools.wraps(function)
        def wrapper(text: str) -> bool:
            return not function(text)

        return wrapper

    found = [structure(one) for one in (base, other, negated(base), negated(other))]

    assert 4 == len(set(found))
    assert structure(functools.cache(base)) == structure(functools.cache(base))
    assert structure(functools.cache(base)) != structure(functools.cache(other))


def longer(least: int, text: str) -> bool:
    return len(text) > least


def test_a_partial_counts_by_its_arguments() -> None:
    """The same function with other arguments is another postcondition."""
    partial = functools.partial

    assert structure(partial(longer, 3)) == structure(partial(longer, 3))
    assert structure(partial(longer, 3)) != structure(partial(longer, 4))
    assert structure(partial(longer, least=3)) != structure(partial(longer, least=4))


class Rubric:
    """A callable of the user's."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __call__(self, reply: str) -> bool:
        return self.text in reply

    def holds(self, reply: str) -> bool:
        return self.text in reply


class Slotted:
    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __call__(self, reply: str) -> bool:
        return self.text in reply


@dataclass(frozen=True)
class Own:
    """A postcondition of the user's."""

    word: str
    name: str = "own"

    def check(self, reply: Reply) -> CheckResult:
        return CheckResult.ok() if self.word in reply.text else CheckResult.fail("no")


@pytest.mark.parametrize("kind", [Rubric, Slotted, Own, lambda text: Rubric(text).holds])
def test_an_object_counts_by_its_class_and_fields(kind: Callable[[str], Any]) -> None:
    """Callables, their methods and postconditions of the user's own."""
    assert structure(kind("polite")) == structure(kind("polite"))
    assert structure(kind("polite")) != structure(kind("rude"))


def test_a_class_changed_under_its_name_is_another(module: Callable[..., Any]) -> None:
    """Its source counts, and that of its bases in the same module."""
    text = """
class Base:
    def holds(self, reply):
        return "a" in reply

class Judge(Base):
    def __call__(self, reply):
        return self.holds(reply)
"""
    for old, new in (('"a"', '"b"'), ("return self", "return not self")):
        assert structure(module(text).Judge()) != structure(module(text.replace(old, new)).Judge())
    commented = text.replace("        return self", "        # why\n        return self")
    assert structure(module(text).Judge()) == structure(module(commented).Judge())


def test_what_is_written_in_c_counts_by_name_and_owner() -> None:
    """Built-in functions have no source; a bound one has an owner."""
    assert ("builtins:str.isdigit",) == described(str.isdigit)
    assert structure(str.isdigit) != structure(str.isalpha)
    assert structure({"yes", "no"}.__contains__) == structure({"no", "yes"}.__contains__)
    assert structure({"yes"}.__contains__) != structure({"no"}.__contains__)
    assert structure(re.compile("a").search) != structure(re.compile("b").search)


def test_a_function_without_source_counts_by_its_code() -> None:
    """What `exec` made has no file; the docstring still does not count."""

    def made(text: str) -> Any:
        names: dict[str, Any] = {}
        exec(text, names)
        return names["ok"]

    plain = made("def ok(text): return '1' in text")

    assert structure(plain) == structure(made("# why\n\ndef ok(text):\n    return '1' in text"))
    assert structure(plain) != structure(made("def ok(text): return '2' in text"))
    inner = "def ok(text): return any({} for word in text)"
    assert structure(made(inner.format("1"))) != structure(made(inner.format("2")))


# Built-in postconditions ---------------------------------------------------------------------


def test_built_ins_are_described_as_a_suite_spells_them() -> None:
    """The description can be read, and read back."""
    built = [checks.contains("555"), checks.length(maximum=3), checks.parses("json")]

    for check, text in zip(built, described(*built), strict=True):
        assert check == checks.from_spec(json.loads(text))


def test_arguments_of_built_ins_count_and_their_order_does_not() -> None:
    """A schema is the same whatever the order of its keys."""
    one = {"type": "object", "required": ["a"]}
    two = dict(reversed(one.items()))

    assert structure(checks.json_schema(one)) == structure(checks.json_schema(two))
    assert structure(checks.json_schema(one)) != structure(checks.json_schema({"type": "object"}))
    assert structure(checks.contains("a")) != structure(checks.contains("a", ignore_case=True))


def test_a_function_inside_a_combination_counts_by_its_source(module: Callable[..., Any]) -> None:
    """`all_of`, `not_` and `named` do not hide what they hold."""
    one, two = module(PLAIN).ok, module(OTHER["another constant"]).ok
    for wrap in (
        lambda f: checks.all_of(checks.contains("a"), checks.predicate(f)),
        lambda f: checks.not_(checks.predicate(f)),
        lambda f: checks.named("n", checks.any_of(checks.predicate(f), checks.contains("b"))),
    ):
        assert structure(wrap(one)) == structure(wrap(module(SAME["a comment"]).ok))
        assert structure(wrap(one)) != structure(wrap(two))


def test_names_for_reports_and_order_do_not_count() -> None:
    """All must hold, in whatever order and under whatever name."""
    a, b = checks.contains("a"), checks.contains("b")

    assert structure(a, b) == structure(b, a)
    assert structure(checks.all_of(a, b)) == structure(checks.all_of(b, a))
    assert structure(a) == structure(checks.named("mentions a", a))
    assert structure(longer_than_3) == structure(checks.predicate(longer_than_3, name="long"))
    assert structure(a, b) != structure(a)
    assert structure(a) != structure(checks.not_(a))
    assert structure(checks.all_of(a, b)) != structure(checks.any_of(a, b))


def longer_than_3(text: str) -> bool:
    return len(text) > 3


# Scope -----------------------------------------------------------------------------------------


def test_threshold_confidence_and_origin_do_not_count() -> None:
    """They belong to the test that consumes a baseline (§1.5.2)."""
    check = checks.contains("a")
    plain = structure(check)

    assert plain == structure(check, at_least=0.95, confidence=0.99, power=0.9, margin=0.05)
    assert plain == structure(check, at_least=None, no_worse_than="baseline", origin="SLO")
    assert plain == structure(check, at_least=None, never_fails=True, category="SAFETY")


def test_the_name_of_the_sampling_counts() -> None:
    """The same question over other inputs is another criterion."""
    check = checks.contains("a")

    assert structure(check, sampling="probes") != structure(check)
    one = Criterion("one", check, at_least=0.9)
    named = Criterion("one", check, at_least=0.9, sampling="probes")
    assert criterion_structure(one, sampling="probes") == criterion_structure(named)


def test_the_scopes_of_a_contract_hold_what_a_baseline_records() -> None:
    """One per criterion: structure, description, and the contents of its sampling."""
    samplings = {"a": Sampling.of([1, 2], identifier="a", version="3"), "b": Sampling.of([3])}
    contract = Contract(
        "sums",
        str,
        [
            Criterion("one", checks.contains("1"), at_least=0.9, sampling="a"),
            Criterion("two", checks.contains("1"), at_least=0.9, sampling="b"),
        ],
        sampling=samplings,
    )
    scopes = scopes_of(contract)

    assert ["one", "two"] == list(scopes)
    assert ("a 3", sampling_fingerprint(samplings["a"])) == (
        scopes["one"].sampling,
        scopes["one"].sampling_fingerprint,
    )
    assert scopes["one"].postconditions == scopes["two"].postconditions
    assert scopes["one"].structure != scopes["two"].structure


# Stability -------------------------------------------------------------------------------------

SCRIPT = """
import sys
from trialwise.checks.criterion_scopes import criterion_structure
from trialwise.model.criterion import Criterion

WORDS = {"yes", "no", "perhaps", "never"}

def short(text): return len(text) < 10
def ok(text): return short(text) and text in WORDS

if __name__ == "__main__" or "measure" in sys.argv:
    print(criterion_structure(Criterion("one", [ok, lambda text: "a" in text], at_least=0.9)))
"""


def test_it_is_the_same_in_another_process_and_imported_otherwise(tmp_path: Path) -> None:
    """No hash seed, no address and no way of importing a file changes it."""
    package = tmp_path / "package"
    package.mkdir()
    (package / "suite.py").write_text(SCRIPT, encoding="utf-8")
    commands = [
        [str(package / "suite.py")],
        ["-c", "import suite", "measure"],
        ["-c", "import package.suite", "measure"],
        ["-m", "package.suite"],
    ]
    seen = set()
    for seed, command in enumerate(commands):
        run = subprocess.run(
            [sys.executable, *command],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={"PYTHONHASHSEED": str(seed), "PYTHONPATH": f"{tmp_path}:{package}"},
            check=False,
        )
        assert "" == run.stderr
        seen.add(run.stdout.strip())

    assert 1 == len(seen)
    assert re.fullmatch(r"[0-9a-f]{16}", seen.pop())


def test_a_reader_can_tell_functions_apart() -> None:
    """A description names the function and ends in a fingerprint."""
    text = described(longer_than_3)[0]

    assert re.fullmatch(r"test_structure_of:longer_than_3#[0-9a-f]{16}", text)
