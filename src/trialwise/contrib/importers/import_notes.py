"""Notes of an import: what is left out or different, each with its places."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Notes"]

#: A file of hundreds of tests has hundreds of the same note.
_MOST_PLACES = 5


@dataclass(slots=True)
class Notes:
    """Notes being made; what is said of several places is said once, with the places."""

    _places: dict[str, list[str]] = field(default_factory=dict)

    def leave_out(self, what: str, where: str) -> None:
        """Say that something is not carried over.

        Args:
            what: What it is, and what to do about it.
            where: Its place, such as "line 7".
        """
        self.add(f"Not carried over: {what}", where)

    def add(self, text: str, where: str = "") -> None:
        """Say something that holds here and perhaps elsewhere."""
        places = self._places.setdefault(text, [])
        if where and where not in places:
            places.append(where)

    @property
    def texts(self) -> tuple[str, ...]:
        """Every note with its places."""
        return tuple(map(self._write, self._places))

    def _write(self, text: str) -> str:
        places = self._places[text]
        more = len(places) - _MOST_PLACES
        shown = [*places[:_MOST_PLACES], *([f"{more} more"] if more > 0 else [])]
        return f"{text} ({', '.join(shown)})." if shown else f"{text}."
