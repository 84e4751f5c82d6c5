"""The keys of a service: what is under test, and how it is reached."""

from __future__ import annotations

from trialwise.declarations.quantities import Duration, Money
from trialwise.declarations.scalars import (
    Choice,
    Count,
    Data,
    Flag,
    Number,
    Object,
    PythonPath,
    Schema,
    Text,
)
from trialwise.declarations.structures import Either, Key, Listing, MapOf, Record, Short
from trialwise.declarations.written import INVALID, Invalid, Reader, Written

__all__ = ["SERVICE"]


class _Argument(Text):
    """One argument of a command."""

    def __init__(self) -> None:
        super().__init__("text", environment="read")

    def read(self, node: Written, label: str, reader: Reader) -> str | Invalid:
        """The text; `{input}` without quotes is a mapping in YAML."""
        if node.is_mapping and len(node.entries) == 1:
            name = next(iter(node.entries))
            return self.refuse(node, label, reader, f'put quotes around it, "{{{name}}}"')
        return super().read(node, label, reader)


class _Url(Text):
    """Where to: a variable may hold its beginning, or else its host."""

    def __init__(self) -> None:
        super().__init__("a URL", environment="template")

    def read(self, node: Written, label: str, reader: Reader) -> str | Invalid:
        """The text; what a variable holds at its very beginning is filled in at once.

        The service takes variables in the host only: a URL is written into logs.
        """
        text = node.value
        if not isinstance(text, str) or not text.startswith("${"):
            return super().read(node, label, reader)
        end = text.find("}") + 1
        head = reader.fill(node, text[:end])
        tail = reader.fill_template(node, text[end:])
        if isinstance(head, Invalid) or isinstance(tail, Invalid):
            return INVALID
        if "${" in head:
            return reader.refuse(node, f"{label}: the value of {text[:end]} holds a reference")
        return reader.mark_filled(head + tail, text)


class _Nothing(Text):
    """Text, or null for none."""

    takes_null = True

    def read(self, node: Written, label: str, reader: Reader) -> str | Invalid | None:  # type: ignore[override]
        """The text or None."""
        return None if node.value is None else super().read(node, label, reader)

    def schema(self, defs: dict[str, Schema]) -> Schema:  # noqa: ARG002
        """A string or null."""
        return {"type": ["string", "null"], "pattern": r"\S"}


_READ = Text(environment="read")
_TEMPLATE = Text(environment="template")
_ARGV = Either(
    "a command, or a list of its arguments",
    # Split into words first, so that no value of the environment becomes two.
    scalar=Text("a command", environment="kept"),
    listing=Listing(_Argument(), "a list of arguments, the program first"),
)
_LIMITS = (
    Key("timeout", Duration(), "For the whole exchange."),
    Key("connect_timeout", Duration(), "For the connection alone.", default="10s"),
    Key("response_limit", Count(), "Bytes of response that may come."),
)

PYTHON = Record(
    "python",
    (
        Key("function", PythonPath(), "Which function, from the suite's folder or installed."),
        Key("in_thread", Flag(), "Whether an ordinary function gets a thread.", default="true"),
        Key(
            "abandon_on_cancel",
            Flag(),
            "Whether cancelling an ordinary function returns at once.",
            default="true",
        ),
    ),
    required=("function",),
    doc="A function of Python's, called with each input.",
)
COMMAND = Record(
    "command",
    (
        Key("run", _ARGV, "The program and its arguments; no shell reads them."),
        Key(
            "input_via",
            Choice("argument", "stdin", "file", "environment"),
            "How the input gets there: as `{input}` in an argument, on standard input, in the file "
            "`{scenario_file}`, or as `TRIALWISE_INPUT`.",
            default="argument, or file where `{scenario_file}` stands",
        ),
        Key("parse_json", Flag(), "Whether output that is JSON is its value.", default="false"),
        Key("strip_newline", Flag(), "Whether the last line end is dropped.", default="true"),
        Key(
            "cwd",
            Text("a path", environment="read"),
            "Where it runs.",
            default="the suite's folder",
        ),
        Key("env", MapOf(_READ, "variables by name"), "Variables to add."),
        Key("inherit_env", Flag(), "Whether it sees our environment.", default="true"),
        Key("output_limit", Count(), "Bytes of output it may write.", default="1048576"),
        Key("stderr_limit", Count(0), "Bytes of standard error kept.", default="65536"),
        Key("grace", Duration(), "How long SIGTERM has before SIGKILL.", default="5s"),
    ),
    required=("run",),
    doc="A program, started for each trial; its output is the reply.",
)
HTTP = Record(
    "http",
    (
        Key("url", _Url(), "Where to; `{input}`, `{index}` and `{seed}` are replaced."),
        Key("method", Text(), "How.", default="POST"),
        Key(
            "headers",
            MapOf(_TEMPLATE, "headers by name"),
            "Secrets by reference: `Bearer ${API_KEY}`.",
        ),
        Key("body", Data("read"), "JSON, or text.", default='`{input: "{input}"}`'),
        Key("extract", Text(environment="kept"), "JSON Pointer to the reply in the response."),
        Key(
            "infrastructure_statuses",
            Listing(Count(100), "a list of HTTP statuses"),
            "Which statuses are no reply.",
            default="429 and 5xx",
        ),
        *_LIMITS,
    ),
    required=("url",),
    doc="An HTTP endpoint that is sent each input.",
)
_MODEL = (
    Key("model", _READ, "Which model."),
    Key(
        "base_url",
        _READ,
        "Up to, not including, `/chat/completions`.",
        default="https://api.openai.com/v1",
    ),
    Key(
        "api_key_env",
        _Nothing("the name of an environment variable"),
        "The environment variable that holds the key; null for none.",
        default="OPENAI_API_KEY",
    ),
    Key("system", Text(environment="read"), "The system message."),
    Key("temperature", Number(), "As the endpoint defines it."),
    Key("max_tokens", Count(), "The longest answer."),
)
_REQUEST = (
    Key("extra", Object("read"), "Further fields of the request."),
    Key("send_seed", Flag(), "Whether each trial's seed goes along.", default="false"),
    Key(
        "prices",
        Record(
            "prices",
            (
                Key("input", Money(), "Of a million input tokens."),
                Key("output", Money(), "Of a million output tokens."),
            ),
            required=("input", "output"),
            doc="What tokens cost.",
        ),
        "What tokens cost; without them money is unknown, not zero.",
    ),
)
CHAT = Record(
    "chat",
    (
        *_MODEL,
        Key("tools", Listing(Data("read"), "a list of tools"), "Tool definitions."),
        *_REQUEST,
        *_LIMITS,
    ),
    required=("model",),
    doc="A chat model behind an OpenAI-compatible endpoint.",
)
SERVER = Record(
    "server",
    (
        Key("command", _ARGV, "The program and its arguments, started for each trial."),
        Key("url", _Url(), "The streamable HTTP endpoint of one that runs."),
        Key(
            "headers",
            MapOf(_TEMPLATE, "headers by name"),
            "For the URL, secrets by reference: `Bearer ${API_KEY}`.",
        ),
        Key("env", MapOf(_READ, "variables by name"), "Variables to add."),
        Key("inherit_env", Flag(), "Whether it sees all of our environment.", default="false"),
        Key(
            "cwd",
            Text("a path", environment="read"),
            "Where it runs.",
            default="the suite's folder",
        ),
        Key(
            "tools",
            Listing(Text(), "a list of tools"),
            "Those that are offered to the model.",
            default="all",
        ),
    ),
    one_of=(("command", "url"),),
    doc="An MCP server: a program that is started for each trial, or a URL.",
)
AGENT = Record(
    "agent",
    (
        *_MODEL,
        Key("servers", MapOf(SERVER, "MCP servers by name"), "Whose tools the model may call."),
        *_REQUEST,
        Key("max_turns", Count(), "How often the model may speak.", default="20"),
        Key("max_tool_calls", Count(0), "How many calls it may make.", default="50"),
        Key("tool_timeout", Duration(), "For one call of a tool.", default="30s"),
        Key("start_timeout", Duration(), "Until a server has told its tools.", default="30s"),
        Key("result_limit", Count(), "Characters of a result that it is sent.", default="50000"),
        Key("timeout", Duration(), "For one turn of the model."),
        *_LIMITS[1:],
    ),
    required=("model", "servers"),
    doc="A chat model that may call the tools of MCP servers until it answers; needs the extra "
    "`mcp`.",
)

SERVICE = Record(
    "service",
    (
        Key("python", Short(PYTHON), "A function, as `module:function`."),
        Key("command", Short(COMMAND), "A program, as a text or a list of arguments."),
        Key("http", Short(HTTP), "An endpoint, as its URL."),
        Key("chat", CHAT, "A chat model."),
        Key("agent", AGENT, "A chat model with tools."),
        Key("replay", Text("a path", environment="read"), "A recording, played back."),
    ),
    one_of=(("python", "command", "http", "chat", "agent", "replay"),),
    doc="What is under test.",
)
