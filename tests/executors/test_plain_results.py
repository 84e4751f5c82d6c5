"""What leaves a worker is plain, so that the verdict does not depend on where trials ran."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

import trialwise as tw
from trialwise.executors.pool_driver import WorkerFault
from trialwise.model.trial import Trial
from trialwise.model.trial_lines import write_trial
from trialwise.suite import load_suite

AGENT = '''
import threading
from dataclasses import dataclass, field
from enum import Enum
from pydantic import BaseModel, ConfigDict
import trialwise as tw

class Text(str):
    """Text as some clients return it: with what they came from."""

def text(said):
    made = Text(said)
    made.raw = threading.Lock()
    return made

class Number(int):
    pass

def number(value):
    made = Number(value)
    made.raw = threading.Lock()
    return made

class Mine(dict):
    pass

@dataclass
class Data:
    said: str = "yes"
    raw: object = field(default_factory=threading.Lock)

class Model(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    said: str = "yes"
    _raw: object = None
    def model_post_init(self, context):
        self._raw = threading.Lock()

class Kind(str, Enum):
    YES = "yes"

class Shown:
    def __init__(self): self.raw = threading.Lock()
    def __str__(self): return text("yes")

class Odd(Exception):
    def __init__(self): super().__init__(text("yes it broke")); self.raw = threading.Lock()

def make_dict():
    made = Mine(said=text("yes"))
    made.raw = threading.Lock()
    return made

def make_reply():
    call = {"name": text("find"), text("args"): {text("q"): [number(3), text("x")]}}
    return tw.Reply(value=text("yes"), details={"tool_calls": [call], "raw": threading.Lock()})

def make_trace():
    call = tw.ToolCall(name=text("find"), args={"q": text("x")})
    return tw.Trace(turns=(tw.Turn(role=text("assistant"), content=text("yes")),),
                    tool_calls=(call,), answer=text("yes"), ended=text("answer"))

def answer(question, index):
    made = {
        "text": lambda: text("yes"), "dict": make_dict, "list": lambda: [text("yes")],
        "data": Data, "model": Model, "enum": lambda: Kind.YES, "shown": Shown,
        "number": lambda: number(7), "reply": make_reply, "trace": make_trace,
    }
    if question == "raises":
        raise Odd()
    if question == "refuses":
        raise tw.ServiceError(text("yes, refused"), tw.ErrorClass.NONE)
    return made[question]()

def holds(reply):
    said = str(reply.value)
    return tw.CheckResult(passed="yes" in said or said == "7",
                          **({} if "yes" in said or said == "7" else {"reason": "condition"}))

def explains(reply):
    return tw.CheckResult.fail(text("no: it said ") + text("yes"), evidence=text("yes"))
'''
KINDS = "[text, dict, list, data, model, enum, shown, number, reply, trace, raises, refuses]"
SUITE = f"""
name: plain
service: {{python: "agent:answer"}}
inputs: {KINDS}
trials: 24
seed: 3
curtail: false
criteria:
  - {{name: holds, python: "agent:holds", at_least: 50%}}
  - {{name: explains, python: "agent:explains", at_least: 50%}}
  - {{name: words, contains: "yes", at_least: 50%}}
"""


def describe(trial: Trial) -> tuple[Any, ...]:
    """A trial without its times, its traceback and the addresses of objects."""
    plain = write_trial(trial)
    for name in ("latency_s", "at", "traceback", "setup_s", "trace"):
        plain.pop(name, None)
    return tuple(sorted((key, re.sub("0x\\w+", "", repr(one))) for key, one in plain.items()))


def run(folder: Path, executor: str) -> dict[str, Any]:
    suite = load_suite(folder / "trialwise.yaml", environment={})
    chosen = suite.contracts[0]
    result = tw.run(
        chosen.contract, options=chosen.options, executor=executor, store=None, progress=False
    )
    findings = {one.plan.criterion: str(one.decision) for one in result.verdict.findings}
    trials = sorted(map(describe, result.trials))
    return {"decision": str(result.decision), "findings": findings, "trials": trials}


@pytest.mark.parametrize("executor", ["processes:2", "dask", "ray"])
def test_odd_replies_have_the_same_verdict_everywhere(
    tmp_path: Path, executor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts with a lock on them, models, enums, and errors: local is the yardstick."""
    if executor != "processes:2":
        pytest.importorskip("distributed" if executor == "dask" else executor)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "trialwise.yaml").write_text(SUITE)
    monkeypatch.delitem(sys.modules, "agent", raising=False)

    local = run(tmp_path, "local")

    assert local["findings"] == {"holds": "PASS", "explains": "FAIL", "words": "PASS"}
    assert run(tmp_path, executor) == local


class Tokens(int):
    """A count with something on it that cannot be sent."""

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a lock")


def count_oddly(_: str) -> tw.Reply:
    return tw.Reply(value="yes", usage=tw.Usage(input_tokens=Tokens(3), output_tokens=Tokens(1)))


def test_a_result_that_cannot_be_sent_is_our_error_and_no_trial_fails(tmp_path: Path) -> None:
    """It is named, the run ends without a verdict, and nothing is counted against the service."""
    criterion = tw.Criterion("c", tw.equals("yes"), at_least=0.5)
    contract = tw.Contract("odd", count_oddly, [criterion])

    with pytest.raises(WorkerFault, match="cannot pickle a lock"):
        tw.run(
            contract,
            inputs=["a"],
            trials=12,
            store=tmp_path,
            progress=False,
            executor="processes:1",
        )

    (journal,) = tmp_path.rglob("journal.jsonl")
    assert '"failed"' not in journal.read_text()
