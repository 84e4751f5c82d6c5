"""A ticket router that stands for a model: it knows most topics and is now and then wrong."""

from __future__ import annotations

import random

TOPICS = ("delivery", "refund", "account", "invoice", "warranty", "login", "address", "voucher")


def route(ticket: str, seed: int) -> str:
    """Return the team for a ticket."""
    dice = random.Random(seed)
    if "voucher" in ticket and dice.random() < 0.2:
        return "refund"
    return next(topic for topic in TOPICS if topic in ticket) if dice.random() < 0.997 else "other"
