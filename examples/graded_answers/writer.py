"""A service that writes short answers of varying quality, and the functions that grade them."""

from random import Random

FACTS = {
    "heron": ["grey", "fish", "river"],
    "otter": ["brown", "fish", "river"],
    "badger": ["black", "worms", "forest"],
}


def describe(question: str, seed: int) -> str:
    """Answer with most of the facts, and nearly always politely."""
    chance = Random(f"{question}/{seed}")
    known = [fact for fact in FACTS[question] if chance.random() < 0.9]
    polite = "Gladly: " if chance.random() < 0.97 else ""
    return f"{polite}the {question} is known for {', '.join(known) or 'nothing'}."


def completeness(text: str) -> float:
    """The share of the facts that the answer names."""
    facts = next(facts for animal, facts in FACTS.items() if animal in text)
    return sum(fact in text for fact in facts) / len(facts)
