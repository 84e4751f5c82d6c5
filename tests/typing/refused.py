"""Programs that a type checker must refuse: every marked line is an error, by both checkers.

A mark without an error is an error too, so that this file says exactly what is caught. Nothing here
is run.
"""

from __future__ import annotations

import trialwise as tw
from trialwise.runtime.answers import Comparison
from trialwise.runtime.comparing import compare


def agent(question: str) -> str:
    return f"{question} 555"


def criteria() -> None:
    tw.Criterion(3, agent, at_least=0.9)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    tw.Criterion("answers", 5, at_least=0.9)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    tw.Criterion("answers", agent, at_least="90%")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    tw.Criterion("answers", agent, atleast=0.9)  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
    tw.Criterion("answers", agent, 0.9)  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
    tw.contain("555")  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    tw.contains(555)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


def contracts(criterion: tw.Criterion) -> None:
    tw.Contract("sums", agent, criterion)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    tw.Contract("sums", agent, ["answers"])  # type: ignore[list-item] # pyright: ignore[reportArgumentType]
    tw.Contract("sums", agent, [criterion], factors={"temperature": 0.7})  # type: ignore[dict-item] # pyright: ignore[reportArgumentType]
    tw.Latency.within(p95="2 s")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    tw.Reply("555")  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
    tw.Usage(input_tokens=1.5)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


def running(contract: tw.Contract) -> None:
    tw.run("sums")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    tw.run(contract, ["What is 15 * 37?"])  # type: ignore[call-arg,arg-type] # pyright: ignore[reportCallIssue]
    tw.run(contract, trials="200")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    tw.run(contract, trails=200)  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
    tw.run(contract, rule="bayes")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    tw.run(contract, draw="random")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    tw.run(contract, budget=1.0)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    tw.Budget(usd="1")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    tw.measure(contract, valid_days="90")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


def results(result: tw.Result) -> None:
    print(result.verdict.findings[0].interval.low)  # type: ignore[union-attr] # pyright: ignore[reportOptionalMemberAccess] # noqa: T201
    result.verdict = result.verdict  # type: ignore[misc] # pyright: ignore[reportAttributeAccessIssue]
    result.path = None  # type: ignore[misc] # pyright: ignore[reportAttributeAccessIssue]
    result.to_frame("replies")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    result.to_frame(library="dask")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    result.show("summary.txt")  # type: ignore[call-arg,arg-type] # pyright: ignore[reportCallIssue]


def comparing(contract: tw.Contract, compared: Comparison) -> None:
    compare(contract, agent, inputs=["q"])  # type: ignore[call-overload] # pyright: ignore[reportCallIssue, reportArgumentType]
    compare(contract, contract, correction="fisher")  # type: ignore[call-overload] # pyright: ignore[reportCallIssue, reportArgumentType]
    compare(contract, contract, margin="5%")  # type: ignore[call-overload] # pyright: ignore[reportCallIssue, reportArgumentType]
    compare(contract, contract, labels=(1, 2))  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    compare(contract, contract, against="first")  # type: ignore[call-overload] # pyright: ignore[reportCallIssue, reportArgumentType]
    print(compared.findings[0].difference + 1)  # type: ignore[operator] # pyright: ignore[reportOptionalOperand] # noqa: T201
    compared.to_frame("trials")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
