"""What a service is made of, for the record: model, endpoint, prompt, parameters, tools, code.

A baseline keeps these factors, and a run that compares itself with it says which of them changed
(companion 1.3.1, 8.4.5). Long or private texts are recorded by a fingerprint. Secrets are taken out
first, also before a fingerprint: who knows the rest of a text could find them by trying.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from trialwise.model.fingerprint import canonical, fingerprint
from trialwise.redaction import redact_text, redact_values

if TYPE_CHECKING:
    from trialwise.services._mcp import McpServer

_LOCAL = ("localhost", "127.0.0.1", "::1", "0.0.0.0")
#: From here on systems give ports at random, so that they say nothing about a service.
_FIRST_RANDOM_PORT = 32768
#: Longer texts are recorded by a fingerprint.
_LONGEST = 200
#: A larger file is no script.
_LARGEST = 2**24


def name_endpoint(url: str) -> str:
    """Name the address of a service; a port that the system gave on this machine is left out.

    >>> name_endpoint("https://api.example.com/v1"), name_endpoint("http://127.0.0.1:8931/v1")
    ('https://api.example.com/v1', 'http://localhost:8931/v1')
    >>> name_endpoint("http://127.0.0.1:40123/v1")
    'http://localhost/v1'
    """
    parts = urlsplit(url)
    if not parts.scheme:
        return url  # a reference stands for its beginning
    host = parts.netloc.rpartition("@")[2]
    if parts.hostname in _LOCAL:
        is_chosen = parts.port is not None and parts.port < _FIRST_RANDOM_PORT
        host = f"localhost:{parts.port}" if is_chosen else "localhost"
    return f"{parts.scheme}://{host}{parts.path}"


def describe_value(value: Any) -> str:
    """Describe a value as short text, or else its fingerprint."""
    value = redact_values(value)
    text = value if isinstance(value, str) else canonical(value)
    return text if len(text) <= _LONGEST and text.isprintable() else fingerprint(value)


def describe_model(
    base_url: str,
    system: str | None,
    fields: Mapping[str, Any],
    tools: Iterable[Any] | None = None,
    *,
    messages: Iterable[Mapping[str, Any]] | None = None,
) -> dict[str, str]:
    """Describe the factors of a chat model: its model and the fields of its request."""
    prompt = system if messages is None else [system, *messages]
    offered = fields.get("tools") if tools is None else list(tools)
    given = {name: one for name, one in fields.items() if name not in ("model", "tools")}
    return {
        "model": str(fields["model"]),
        "endpoint": name_endpoint(redact_text(base_url)),
        "prompt": "none" if prompt is None else fingerprint(redact_values(prompt)),
        "parameters": describe_value(given),
        "tools": "none" if not offered else describe_value(offered),
    }


def describe_server(name: str, server: McpServer) -> list[object]:
    """Describe a server of tools: its command or its address, and the tools it offers."""
    where = list(server.command) if server.url is None else name_endpoint(redact_text(server.url))
    return [name, where, list(server.tools)]


def describe_code(arguments: Iterable[str], folder: str | None) -> str | None:
    """Describe a fingerprint of the files that a command names; None where it names none."""
    found = []
    for one in arguments:
        path = Path(folder or ".") / one
        try:
            if path.is_file() and path.stat().st_size <= _LARGEST:
                found.append(fingerprint(path.read_bytes()))
        except (OSError, ValueError):  # what cannot be read cannot be known
            continue
    return fingerprint(found) if found else None
