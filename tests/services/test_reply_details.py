"""What a check can read of a command beside its output."""

from __future__ import annotations

import sys

import trialwise as tw


def test_a_check_reads_what_a_command_wrote_to_standard_error() -> None:
    """As the documentation of checks says."""

    def warns(reply: tw.Reply) -> bool:
        return "careful" in str(reply.details["stderr"]) and reply.details["input"] == "q"

    program = "import sys; print('ok'); print('careful', file=sys.stderr)"
    service = tw.services.CommandService([sys.executable, "-c", program, "{input}"])
    contract = tw.Contract("c", service, [tw.Criterion("warns", warns, at_least=0.1)])

    assert tw.run(contract, inputs=["q"], store=None).passed
