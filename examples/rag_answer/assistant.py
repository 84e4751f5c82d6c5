"""A simulated assistant that answers from documents: it retrieves, quotes and cites.

Like a real one, it reports the tokens and the cost of each reply.
"""

from __future__ import annotations

from random import Random
from typing import Any

import trialwise as tw

DOCUMENTS = {
    "returns": "Goods may be returned within 30 days of delivery.",
    "shipping": "Orders above 50 euros ship free of charge.",
    "warranty": "Every lamp has a warranty of 5 years.",
    "contact": "The shop is reached by telephone from 9 to 17 o'clock.",
}
WORDS = {"return": "returns", "ship": "shipping", "warranty": "warranty", "call": "contact"}
PRICE_USD = 0.0004


def ask(question: str, seed: int) -> tw.Reply:
    """Answer from the document that fits, and cite it."""
    chance = Random(seed)
    source = next(name for word, name in WORDS.items() if word in question)
    text = DOCUMENTS[source]
    if chance.random() < 0.03:  # retrieves the wrong document
        source = chance.choice(sorted(DOCUMENTS))
    if chance.random() < 0.02:  # invents an answer
        text = "That depends on your contract."
    value: dict[str, Any] = {"answer": text, "sources": [source]}
    if chance.random() < 0.01:  # forgets to cite
        value["sources"] = []
    return tw.Reply(
        value=value,
        # Measured where the model runs. Without it, the time of the call counts.
        latency_s=round(0.4 + chance.gammavariate(2.0, 0.15), 3),
        usage=tw.Usage(input_tokens=180, output_tokens=len(text) // 4),
        cost_usd=PRICE_USD,
    )


def is_grounded(value: dict[str, Any]) -> None:
    """Check that the answer is in a document that it cites."""
    cited = [DOCUMENTS[name] for name in value["sources"]]
    assert cited, "nothing is cited"
    assert any(value["answer"] in text for text in cited), "the answer is in no cited document"
