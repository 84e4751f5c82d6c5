"""Shows where a service raised: its traceback without frames of trialwise and the event loop."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Iterator
from functools import cache
from traceback import StackSummary, TracebackException
from types import CodeType

#: Frames of one exception that are kept, from its end.
_MOST_FRAMES = 20
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

Place = tuple[type[BaseException], tuple[tuple[CodeType, int], ...]]
"""Return what identifies a traceback: the type of the exception and the lines it passed through."""


def find_place(error: BaseException) -> Place | None:
    """Return where an exception came from, or None if no frame is the user's own."""
    frames = tuple(_list_frames(error))
    if not any(is_own_file(code.co_filename) for code, _ in frames):
        return None
    return type(error), frames


def _list_frames(error: BaseException) -> Iterator[tuple[CodeType, int]]:
    entry = error.__traceback__
    while entry is not None:
        yield entry.tb_frame.f_code, entry.tb_lineno
        entry = entry.tb_next


def write_traceback(error: BaseException) -> str:
    """Return the traceback of an exception as Python writes it, from the user's first frame on."""
    try:
        whole = TracebackException.from_exception(error, compact=True)
        _trim(whole)
        text = "".join(whole.format()).rstrip("\n")
    except Exception:  # the exception's own methods may raise anything
        return ""
    # Paths below the folder of the suite read better without it.
    return text.replace(f'File "{os.getcwd()}{os.sep}', 'File "')


def _trim(one: TracebackException) -> None:
    frames = [frame for frame in one.stack if not frame.filename.startswith(_PACKAGE)]
    while frames and not is_own_file(frames[0].filename):
        del frames[0]
    one.stack = StackSummary.from_list(frames[-_MOST_FRAMES:])
    for other in (one.__cause__, one.__context__, *(one.exceptions or ())):
        if other is not None:
            _trim(other)


@cache
def is_own_file(file: str) -> bool:
    """Return whether a file belongs to neither trialwise, nor Python, nor an installed package."""
    if file.startswith((_PACKAGE, "<frozen")):
        return False
    installed = f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}"
    if any(part in file for part in installed):
        return False
    return not file.startswith(sysconfig.get_path("stdlib") + os.sep)
