"""A simulated assistant of a shop, which is usually polite and helpful."""

from __future__ import annotations

from random import Random

ANSWERS = {
    "Where is my parcel?": (
        "Your parcel is on its way; the tracking page has its place.",
        "The parcel leaves our warehouse today and arrives in two days.",
        "Please look at the tracking page: it knows where the parcel is.",
    ),
    "How do I return a lamp?": (
        "Print the return label and bring the lamp to any post office.",
        "The lamp goes back with the label that came with it, within 30 days.",
        "Any post office takes the lamp with the label from your account.",
    ),
    "Can I pay by invoice?": (
        "Yes, choose invoice at the checkout.",
        "You can: an invoice is offered from your second order on.",
        "Payment by invoice is possible; the money is due after 14 days.",
    ),
}
OPENINGS = ("Hello! ", "Hi! ", "Good morning. ", "With pleasure. ", "Thank you for asking. ", "")
CLOSINGS = (
    " Have a nice day.",
    " Write again any time.",
    " Take care.",
    " Your shop.",
    " Bye!",
    "",
)
RUDE = ("Read the page, it is all there.", "As everybody knows, it is on the page. Seriously?")
EVASIVE = (
    "That depends.",
    "That is a good question.",
    "Others have asked that, too.",
    "Somebody will know.",
    "It is in good hands.",
    "We care about every {thing}, and so does our whole team.",
)


def reply(question: str, seed: int) -> str:
    """Answer in varying words, sometimes rudely or not at all."""
    chance = Random(seed)
    drawn = chance.random()
    body = chance.choice(ANSWERS[question])
    if drawn < 0.05:
        return chance.choice(RUDE)
    if drawn < 0.12:
        body = chance.choice(EVASIVE).format(thing=question.rstrip("?").split()[-1])
    return f"{chance.choice(OPENINGS)}{body}{chance.choice(CLOSINGS)}"
