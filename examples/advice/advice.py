"""A simulated clinical-advice service that is sometimes busy and sometimes answers in jargon.

`trialwise run` in this folder tests it with trialwise.yaml.
"""

from __future__ import annotations

import json
from random import Random


def advise(question: str, seed: int) -> str:
    """Return a piece of advice as JSON; raise where the service does not answer."""
    chance = Random(f"{question}{seed}")
    if chance.random() < 0.01:
        raise ConnectionRefusedError("the advice service is busy")
    register = "expert" if chance.random() < 0.25 else "plain"
    advice = {
        "plain": "Rest, drink water, and see a doctor if it lasts.",
        "expert": "Symptomatic management; reassess if refractory.",
    }[register]
    return json.dumps({"question": question, "advice": advice})
