"""Select from XML by XPath 1.0, which the library elementpath evaluates.

The library is an optional dependency: `pip install 'trialwise[xpath]'`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from elementpath.xpath_tokens import XPathToken

__all__ = ["XPath", "XPathProblem", "parse_xpath"]

_MAX_LENGTH = 1_000
_MAX_NESTED = 20
#: Steps to all descendants; each multiplies the nodes that a path visits.
_MAX_DESCENTS = 3
_MISSING = "XPath needs the library elementpath: pip install 'trialwise[xpath]'"


class XPathProblem(ValueError):
    """An expression that is not XPath 1.0, or that cannot be evaluated."""


@dataclass(frozen=True, slots=True)
class XPath:
    """An expression that was read.

    >>> from xml.etree.ElementTree import fromstring
    >>> parse_xpath("/order/item[@id='2']/name").select(
    ...     fromstring("<order><item id='1'/><item id='2'><name>milk</name></item></order>")
    ... )
    ['milk']
    """

    source: str
    token: XPathToken

    def select(self, root: Element) -> list[str]:
        """Return the string values of what the expression selects, in document order.

        Raises:
            XPathProblem: It cannot be evaluated for this document.
        """
        from elementpath import ElementPathError, XPathContext

        try:
            found: Any = self.token.get_results(XPathContext(root))
        except (ElementPathError, RecursionError) as error:
            raise XPathProblem(str(error)) from None
        return [_to_text(one) for one in (found if isinstance(found, list) else [found])]


def parse_xpath(source: str) -> XPath:
    """Parse an expression.

    Raises:
        XPathProblem: It is not XPath 1.0, or elementpath is not installed.
    """
    if len(source) > _MAX_LENGTH:
        raise XPathProblem(f"an XPath has at most {_MAX_LENGTH} characters")
    if source.count("//") + source.count("::") > _MAX_DESCENTS:
        raise XPathProblem(f"an XPath has at most {_MAX_DESCENTS} of `//` and `::`")
    if max(source.count("["), source.count("(")) > _MAX_NESTED:
        raise XPathProblem("predicates nest too deeply")
    if source.strip() in ("", "/"):
        raise XPathProblem("the document itself is not a value")
    try:
        from elementpath import ElementPathError
        from elementpath.xpath1 import XPath1Parser
    except ImportError:
        raise XPathProblem(_MISSING) from None
    try:
        found = XPath(source, XPath1Parser().parse(source))
    except (ElementPathError, RecursionError) as error:
        raise XPathProblem(str(error)) from None
    from xml.etree.ElementTree import Element

    # An unknown variable shows only when the expression is evaluated.
    found.select(Element("empty"))
    return found


def _to_text(value: Any) -> str:
    """Convert a result as the function `string` of XPath does."""
    if hasattr(value, "itertext"):
        return "".join(value.itertext())
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
