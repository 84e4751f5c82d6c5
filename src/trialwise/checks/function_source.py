"""The source of a function as a text that comments, formatting and Python's version leave alone.

`ast.dump` and `ast.unparse` write the same tree differently from one Python to the next, and a
baseline is to outlive an upgrade, so the tree is written here. The tree comes from the whole file:
the lines of a lambda seldom stand on their own.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType

__all__ = [
    "find_node",
    "global_names",
    "rebound_names",
    "source_of",
    "source_of_class",
    "write_node",
]

_DOCUMENTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
#: What says nothing about the meaning: a comment's type, the u of u"text".
_SILENT = frozenset({"type_comment", "kind"})


def source_of(code: CodeType) -> str:
    """The tree of a function's source, or where there is none its byte code.

    Byte code differs between versions of Python; it stands in for what was typed at a prompt.
    """
    try:
        node = find_node(code)
        if node is not None:
            return write_node(node)
    except (OSError, TypeError, ValueError, SyntaxError, RecursionError):
        # Typed at a prompt, made by `exec`, or nested too deep to be walked.
        pass
    return _write_code(code)


def source_of_class(kind: type) -> str:
    """The tree of a class, or where there is no source the byte code of its methods."""
    try:
        lines, _ = inspect.getsourcelines(kind)
        indent = len(lines[0]) - len(lines[0].lstrip())
        # Not dedented: that would change texts of several lines.
        tree = ast.parse(("if 1:\n" if indent else "") + "".join(lines))
        found = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
        return write_node(found[0])
    except (OSError, TypeError, ValueError, SyntaxError, RecursionError, IndexError):
        methods = sorted(vars(kind).items())
        return ";".join(
            f"{name}={_write_code(one.__code__)}"
            for name, one in methods
            if hasattr(one, "__code__")
        )


def global_names(code: CodeType) -> Iterator[str]:
    """The global names that a function reads."""
    return _names(code, frozenset({"LOAD_GLOBAL", "LOAD_NAME"}))


def rebound_names(code: CodeType) -> Iterator[str]:
    """The outer names that a function itself gives new values: counters, not constants."""
    return _names(code, frozenset({"STORE_GLOBAL", "STORE_DEREF"}))


def _names(code: CodeType, operations: frozenset[str]) -> Iterator[str]:
    from dis import get_instructions

    for instruction in get_instructions(code):
        if instruction.opname in operations:
            yield str(instruction.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant, operations)


@lru_cache(maxsize=4)
def _tree(source: str) -> ast.Module:
    """A file's tree: its functions are asked for one after the other."""
    return ast.parse(source)


def find_node(code: CodeType) -> ast.AST | None:
    """Return the part of the syntax tree that a function was compiled from, if it is found."""
    lines, _ = inspect.findsource(code)
    tree = _tree("".join(lines))
    found = [
        node
        for node in ast.walk(tree)
        if _name(node) == code.co_name and _first_line(node) == code.co_firstlineno
    ]
    if len(found) > 1:  # several lambdas on a line
        found = [node for node in found if _is_compiled_to(node, code)]
    return found[0] if len(found) == 1 else None


def _name(node: ast.AST) -> str | None:
    if isinstance(node, ast.Lambda):
        return "<lambda>"
    return node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else None


def _first_line(node: ast.AST) -> int:
    """Where the code of a function begins: with its first decorator."""
    decorators = getattr(node, "decorator_list", [])
    return min(int(one.lineno) for one in (node, *decorators))


def _is_compiled_to(node: ast.AST, code: CodeType) -> bool:
    """Whether a lambda's body is where the code's instructions come from."""
    if not isinstance(node, ast.Lambda):
        return False
    body = node.body
    span = (body.lineno, body.end_lineno, body.col_offset, body.end_col_offset)
    return span in set(code.co_positions())


def write_node(node: object) -> str:
    """Return a syntax tree as text, without its positions and docstrings."""
    if isinstance(node, list):
        return f"[{','.join(map(write_node, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    parts = []
    for name, value in ast.iter_fields(node):
        # Fields that a later Python adds are empty in what an earlier one could parse.
        kept = _without_docstring(node, value) if name == "body" else value
        if name not in _SILENT and kept is not None and kept != []:
            parts.append(f"{name}={write_node(kept)}")
    return f"{type(node).__name__}({','.join(parts)})"


def _without_docstring(node: ast.AST, body: object) -> object:
    if not isinstance(node, _DOCUMENTED) or not isinstance(body, list):
        return body
    first = body[0].value if body and isinstance(body[0], ast.Expr) else None
    documented = isinstance(first, ast.Constant) and isinstance(first.value, str)
    return body[1:] if documented else body


def _write_code(code: CodeType) -> str:
    """The byte code with its constants, and without file, lines and docstrings."""
    constants = list(code.co_consts)
    if constants and isinstance(constants[0], str) and code.co_name != "<lambda>":
        constants[0] = None  # where the compiler puts a docstring
    shown = [_write_code(one) if isinstance(one, CodeType) else repr(one) for one in constants]
    return f"{code.co_name}:{code.co_code.hex()}:{code.co_names}:{code.co_varnames}:{shown}"
