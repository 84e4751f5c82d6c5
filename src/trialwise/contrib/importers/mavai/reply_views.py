"""Views of a reply: its text as JSON, XML, YAML or whatever a function makes of it, and selections.

JSON and YAML are selected from by JSONPath (RFC 9535), XML by XPath 1.0. Of what a function makes
the path itself tells which: a JSONPath begins with `$`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trialwise.contrib.importers.mavai.form_comparison import Mismatch
from trialwise.contrib.importers.mavai.xpath_selection import XPathProblem, parse_xpath
from trialwise.errors import InvalidArgument

__all__ = ["STOCK", "View", "check_selection", "select_values", "view_of"]

STOCK = ("json", "xml", "yaml")


@dataclass(frozen=True, slots=True)
class View:
    """How a reply is read."""

    kind: str
    """`json`, `xml`, `yaml` or `function`."""
    function: Callable[[str], Any] | None = None

    def read(self, text: str) -> Any:
        """The value of a reply's text.

        Raises:
            ValueError: It cannot be read so.
        """
        if self.function is None:
            return _READERS[self.kind](text)
        try:
            return self.function(text)
        except Exception as error:  # the user's function may raise anything
            raise ValueError(f"{type(error).__name__}: {error}") from error


def view_of(given: str | Callable[[str], Any]) -> View:
    """A view from its name or function."""
    if callable(given):
        return View("function", given)
    if given not in STOCK:
        raise InvalidArgument("views", given, f"be one of {', '.join(STOCK)}, or a function")
    return View(given)


def check_selection(path: str, kind: str) -> str:
    """What is wrong with a path for a view, or nothing."""
    from trialwise.checks.parsable import check_path

    try:
        if _is_json_path(path, kind):
            check_path("path", path)
        else:
            parse_xpath(path)
    except InvalidArgument as error:
        return f"must {error.allowed}"
    except XPathProblem as problem:
        return f"must be an XPath ({problem})"
    return ""


def _is_json_path(path: str, kind: str) -> bool:
    return kind in ("json", "yaml") or (kind == "function" and path.startswith("$"))


def select_values(view: View, path: str) -> Callable[[Any], list[Any]]:
    """A function that selects from a view's value."""
    problem = check_selection(path, view.kind)
    if problem:
        raise InvalidArgument("path", path, problem.removeprefix("must "))
    if not _is_json_path(path, view.kind):
        expression = parse_xpath(path)

        def select_xml(value: Any) -> list[Any]:
            if not hasattr(value, "itertext"):
                raise Mismatch(f"a {type(value).__name__} is not an XML element to select from")
            try:
                return list(expression.select(value))
            except XPathProblem as found:
                raise Mismatch(str(found)) from None

        return select_xml

    def select_json(value: Any) -> list[Any]:
        from trialwise.checks.check_base import Unreadable
        from trialwise.checks.parsable import select

        if view.kind == "function" and not isinstance(value, dict | list):
            raise Mismatch(f"a {type(value).__name__} is not a structure to select from")
        try:
            return [found for _, found in select(path, value)]
        except Unreadable as error:
            raise Mismatch(error.explanation) from None

    return select_json


def _json(text: str) -> Any:
    from trialwise.checks.reply_reading import parse_json

    return parse_json(text)


def _xml(text: str) -> Any:
    from xml.etree.ElementTree import ParseError, fromstring

    from trialwise.checks.reply_reading import parse_xml

    # It declares no entity once this has let it through.
    parse_xml(text)
    try:
        return fromstring(text)
    except ParseError as error:
        raise ValueError(f"XML: {error}") from None


def _yaml(text: str) -> Any:
    from trialwise.checks.reply_reading import check_depth, parse_yaml

    value = parse_yaml(text)
    check_depth(value)
    _check_json(value)
    return value


def _check_json(value: Any) -> None:
    """YAML of JSON's own types only."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            if not all(isinstance(key, str) for key in one):
                raise ValueError("YAML with a key that is not a text")
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
        elif one is not None and not isinstance(one, str | int | float | bool):
            raise ValueError(f"YAML with a {type(one).__name__}, which JSON does not have")


_READERS: dict[str, Callable[[str], Any]] = {"json": _json, "xml": _xml, "yaml": _yaml}
