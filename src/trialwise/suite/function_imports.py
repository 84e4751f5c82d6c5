"""Functions of the user's own modules, imported because the suite names them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trialwise.declarations.written import Invalid
from trialwise.suite.nodes import Node
from trialwise.suite.reading_context import Context

__all__ = ["import_function"]


def import_function(node: Node, where: str, context: Context) -> Callable[..., Any] | Invalid:
    """The function at `module:name`, from the suite's folder or anything installed.

    The folder stays on the path, since a module may import others of its folder when it is called.

    Args:
        node: Where the suite names it.
        where: As `module:name`; the name may have dots.
        context: The suite being read.
    """
    name, _, attributes = where.partition(":")
    folder = context.folder.resolve()
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    if (other := _loaded_elsewhere(name, folder)) is not None:
        message = f"a module `{name}` is loaded from {other} already: rename one of the two"
        return context.refuse(node, message)
    module, failure = _import_module(name, folder)
    if failure:
        return context.refuse(node, failure)
    found: Any = module
    for attribute in attributes.split("."):
        try:
            found = getattr(found, attribute)
        except Exception:  # a module's own __getattr__ may raise anything
            return context.refuse(node, _missing(name, attributes, attribute, found))
    if not callable(found):
        return context.refuse(node, f"`{attributes}` in the module `{name}` is no function")
    function: Callable[..., Any] = found
    return function


def _import_module(name: str, folder: Path) -> tuple[Any, str]:
    """The module, or why there is none."""
    from importlib import import_module

    try:
        return import_module(name), ""
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            return None, f"there is no module `{name}` in {folder}, nor is one installed"
        return None, f"importing `{name}` failed: {_describe_error(error)}"
    except (Exception, SystemExit) as error:  # a module of the user's may raise anything
        return None, f"importing `{name}` failed: {_describe_error(error)}"


def _loaded_elsewhere(name: str, folder: Path) -> str | None:
    """Where a module of this name comes from, if not from the folder that has one, too."""
    top = name.partition(".")[0]
    module = sys.modules.get(top)
    own = [folder / f"{top}.py", folder / top / "__init__.py"]
    if module is None or not any(path.is_file() for path in own):
        return None
    file = getattr(module, "__file__", None)
    return None if file is not None and Path(file).resolve() in own else str(file)


def _missing(module: str, attributes: str, attribute: str, holder: object) -> str:
    from trialwise.declarations.written import find_nearest

    known = [one for one in dir(holder) if not one.startswith("_")]
    close = find_nearest(attribute, known)
    hint = f"; did you mean `{close}`?" if close else ""
    return f"there is no `{attributes}` in the module `{module}`{hint}"


def _describe_error(error: BaseException) -> str:
    """An exception in one line, with the line of the user's code that raised it."""
    try:
        text = " ".join(str(error).split())
    except Exception:  # its own __str__ may raise anything
        text = ""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = ""
    if trace is not None and "importlib" not in trace.tb_frame.f_code.co_filename:
        where = f" ({Path(trace.tb_frame.f_code.co_filename).name}, line {trace.tb_lineno})"
    kind = type(error).__name__
    return f"{kind}: {text[:300]}{where}" if text else f"{kind}{where}"
