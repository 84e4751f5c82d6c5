"""A simulated extractor of invoices: it reads text and usually returns JSON.

It has a weakness that a rate over all invoices hides: numbers in German notation.
"""

from __future__ import annotations

import json
import re
from random import Random
from typing import Any


def extract(invoice: dict[str, Any], seed: int) -> str:
    """Return the number, the currency and the total of an invoice as JSON."""
    chance = Random(seed)
    text = invoice["text"]
    number = re.search(r"(?:No\.|#|Nr\.) ?([A-Z0-9-]+)", text)
    amount = re.search(r"(EUR|USD|CHF) ?([0-9.,]+[0-9])", text)
    assert number is not None
    assert amount is not None
    found = {
        "number": number[1],
        "currency": amount[1],
        # Right for 1,234.50 and wrong for 1.234,50.
        "total": float(amount[2].replace(",", "") if "." in amount[2][-3:] else amount[2][:5]),
    }
    if chance.random() < 0.01:
        del found["currency"]
    reply = json.dumps(found)
    return f"Here you are:\n{reply}" if chance.random() < 0.01 else reply
