"""How alike two texts are by the words they use: a small model that ships in a package.

The extra `similarity` brings WordLlama, whose 16 MB of token vectors lie in its wheel: nothing is
downloaded. A text is the mean of its tokens' vectors, so that the topic counts and the order does
not: "approved" and "not approved" are nearly the same. Good for "is this about the right thing",
no use for "is this true"; that takes a judge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cache

from trialwise.checks.check_base import Check, failed, label, preview
from trialwise.checks.reply_reading import text_of
from trialwise.errors import InvalidArgument
from trialwise.model import CheckResult, Reply
from trialwise.validation import require_open_rate

#: More is not read: a mean over more tokens says less and less.
_LONGEST = 100_000


@dataclass(frozen=True, slots=True)
class Similar(Check, spelling="similar"):
    """The reply is about the same as a text, or as one of several (extra `similarity`).

    How alike two texts are is the cosine of their mean token vectors.

    Args:
        text: What it should be like; one of several is enough.
        minimum: The least cosine, strictly between 0 and 1. Look at what right and wrong replies
            get before choosing it.

    >>> similar("Canberra is the capital of Australia.").name
    "similar to 'Canberra is the capital of Australia.'"
    """

    text: str | Sequence[str]
    _: KW_ONLY
    minimum: float = 0.8

    def __post_init__(self) -> None:
        Check.__post_init__(self)
        require_open_rate("minimum", self.minimum)
        _check_installed()

    @property
    def name(self) -> str:
        """The name in reports."""
        return f"similar to {label(self.text[0])}" + (" or others" if len(self.text) > 1 else "")

    def _examine(self, reply: Reply) -> CheckResult:
        said = text_of(reply)[:_LONGEST]
        found = max(cosine(said, text) for text in self.text)
        if found >= self.minimum:
            return CheckResult.ok()
        return failed(
            f"the similarity is {found:.3f}, expected at least {self.minimum:g}", preview(said)
        )


similar = Similar


def cosine(one: str, other: str) -> float:
    """Return the cosine of two texts' mean token vectors, from −1 to 1; 0 where one has no tokens.

    >>> cosine("cancel my order", "please cancel the order") > cosine("cancel", "banana")
    True
    """
    if not one.strip() or not other.strip():
        return 0.0
    return _model()(one, other)


def _check_installed() -> None:
    from importlib.util import find_spec

    if find_spec("wordllama") is None:
        allowed = "go with the extra that brings its model: pip install 'trialwise[similarity]'"
        raise InvalidArgument("similar", "no such package: wordllama", allowed)


@cache
def _model() -> Callable[[str, str], float]:
    """Return the model that the package holds; half a second, once a process."""
    from pathlib import Path

    import wordllama  # type: ignore[import-untyped,unused-ignore]

    # Its loader looks for the tokenizer in a folder of another name and would go to the network
    # for it; as the "cache" its own package is the right place.
    package = Path(wordllama.__file__).parent
    model = wordllama.WordLlama.load(cache_dir=package, disable_download=True)
    return lambda one, other: min(1.0, max(-1.0, float(model.similarity(one, other))))
