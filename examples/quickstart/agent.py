"""A simulated agent: most of its answers are right, and they differ from call to call.

`trialwise run` in this folder tests it with trialwise.yaml, and `python agent.py` does the same in
Python. The seed makes the agent repeatable. An agent that needs no seed leaves the parameter out.
"""

from __future__ import annotations

from random import Random

import trialwise as tw

FACTS = {
    "What is 15 * 37?": "555",
    "Capital of Australia?": "Canberra",
    "Who wrote Ulysses?": "James Joyce",
}


def answer(question: str, seed: int) -> str:
    """Answer a question in varying words."""
    chance = Random(seed)
    if chance.random() < 0.01:
        return "I am not sure."
    reply = chance.choice(["{}.", "It is {}.", "{}, I think."]).format(FACTS[question])
    return f"{reply} Is there anything else?" if chance.random() < 0.01 else reply


def is_right(text: str, input: str) -> bool:  # noqa: A002 - what a trial's input is called
    """Return whether a reply contains the answer to its question."""
    return FACTS[input] in text


def main() -> None:
    """Test the agent from Python."""
    contract = tw.Contract(
        "quickstart",
        answer,
        [
            tw.Criterion("right", is_right, at_least=0.90),
            tw.Criterion("short", tw.length(maximum=30), at_least=0.90),
            tw.Criterion("polite", tw.not_contains("stupid"), never_fails=True),
        ],
        sampling=list(FACTS),
    )
    tw.run(contract, seed=2).show()


if __name__ == "__main__":
    main()
