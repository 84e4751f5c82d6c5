"""Names that load their module on first use, so that importing a package imports none of them."""

from __future__ import annotations

import sys

# `typing` and `collections` would cost more than all the rest; type checkers know the name.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def lazy_names(
    package: str, modules: dict[str, str]
) -> tuple[dict[str, str], Callable[[str], object], Callable[[], list[str]]]:
    """Return the exports of a package, with the `__getattr__` and `__dir__` that serve them.

    Args:
        package: The package's `__name__`.
        modules: Module name to the public names it holds, separated by spaces. A name that starts
            with `trialwise.` is that of a module outside the package.
    """
    exports = {name: module for module, names in modules.items() for name in names.split()}

    def find(name: str) -> object:
        if name not in exports:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = exports[name]
        if not module.startswith("trialwise."):
            module = f"{package}.{module}"
        __import__(module)  # `importlib` would have to be imported first
        value = getattr(sys.modules[module], name)
        setattr(sys.modules[package], name, value)
        return value

    return exports, find, lambda: sorted({*vars(sys.modules[package]), *exports})
