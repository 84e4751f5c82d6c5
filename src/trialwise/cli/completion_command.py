"""`trialwise completion`: what a shell needs to complete commands, options and runs."""

from __future__ import annotations

import click

from trialwise.cli.exits import ExitCode

#: Where each shell looks, in a line that can be pasted.
_INSTALL = {
    "bash": "echo 'eval \"$(trialwise completion bash)\"' >> ~/.bashrc",
    "zsh": "echo 'eval \"$(trialwise completion zsh)\"' >> ~/.zshrc",
    "fish": "trialwise completion fish > ~/.config/fish/completions/trialwise.fish",
}
_VARIABLE = "_TRIALWISE_COMPLETE"


@click.command("completion")
@click.argument("shell", type=click.Choice(list(_INSTALL)))
def command(shell: str) -> int:
    """Print the completion script of a shell; its first line says how to install it.

    \b
    Examples:
      trialwise completion bash
      eval "$(trialwise completion zsh)"
    """
    from click.shell_completion import get_completion_class

    from trialwise.cli.main import cli

    kind = get_completion_class(shell)
    assert kind is not None
    found = kind(cli, {}, "trialwise", _VARIABLE)
    # Not `source()`, which starts a bash to look at its version: the script is the same for all.
    script = found.source_template % found.source_vars()
    # On standard output, since a shell that evaluates it at every start should say nothing.
    click.echo(f"# To install it, run once:  {_INSTALL[shell]}\n{script}", nl=False)
    return ExitCode.PASS
