"""``rowtide completion``: the script that completes commands and options in a shell."""

import click
from click.shell_completion import get_completion_class

__all__ = ["completion"]


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that completes commands, options and property names in SHELL.

    \b
    Add one of these lines to the start file of your shell:
      eval "$(rowtide completion bash)"           ~/.bashrc, bash 4.4 or newer
      eval "$(rowtide completion zsh)"            ~/.zshrc
      rowtide completion fish | source            ~/.config/fish/config.fish
    """  # noqa: D301 - a backspace is Click's mark of a paragraph that is not to be wrapped
    script = get_completion_class(shell)
    assert script is not None, "click supports each of the choices"
    command = click.get_current_context().find_root().command
    click.echo(script(command, {}, "rowtide", "_ROWTIDE_COMPLETE").source())
