"""The command line: the name, the module and the summary of each command.

A command's module is imported when the command runs or completes its arguments: a module imports
what its command needs, and importing all of them takes longer than most commands.
"""

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

from podstatus import __version__
from podstatus.cli.commands.kubectl_verbs import (
    check_kubectl_habits,
    spaced_subject_hint,
    unknown_option_hint,
)
from podstatus.cli.program import forget_options, remember_options, suggested_command

_COMMANDS = {
    "run": ("run:run", "Run a node that starts pods and reports their status."),
    "doctor": ("doctor:doctor", "Check whether a node can run on this machine."),
    "observe": ("observe:observe", "Observe a cluster without changing it."),
    "get": ("get:get", "Display pods, nodes, events or alerts."),
    "describe": ("get:describe", "Show details of pods or nodes and their events."),
    "timeline": ("timeline:timeline", "Draw the recorded history of a pod or node."),
    "watch": ("watch:watch", "Watch the pods of this node and their health."),
    "logs": ("logs:logs", "Print the logs of a container on this node."),
    "exec": ("exec:exec_", "Run a command in a container on this node."),
    "delete": ("delete:delete", "Delete pods by name, by label, by file, or all of them."),
    "drain": ("drain:drain", "Terminate all pods on this node and reject new ones."),
    "status": ("status:status", "Show whether the agent is running, its health and its restarts."),
    "stop": ("stop:stop", "Stop the running agent; its containers keep running."),
    "down": ("down:down", "Delete all pods, terminate their containers and stop the agent."),
    "apiserver": ("apiserver:apiserver", "Run the embedded Kubernetes API server without a node."),
    "alerts": ("alerts:alerts", "Check and test alert rules."),
}
"""Name -> module and function in `podstatus.cli.commands`, and the first line of its help."""


_WITH_SETTINGS = ("run", "doctor", "observe", "apiserver")
"""Commands with settings of a process; the others have options that select a running one."""


class LazyCommand(TyperCommand):
    """The name and the summary of a command that is imported at its first use."""

    def __init__(self, name: str, target: str, summary: str) -> None:
        super().__init__(name, help=summary)
        self._target = target

    def load(self) -> Any:
        """Import the command and return it, as Typer built it."""
        module, _, attribute = self._target.partition(":")
        command = getattr(import_module(f"podstatus.cli.commands.{module}"), attribute)
        if not isinstance(command, typer.Typer):
            from podstatus.cli.commands.usage_line import PlainUsageCommand

            one = typer.Typer(add_completion=False, rich_markup_mode=None)
            one.command(self.name, cls=PlainUsageCommand)(command)
            command = one
        return typer.main.get_command(command)

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        words = [*args]  # parsing consumes them
        try:
            context = self.load().make_context(info_name, args, parent, **extra)
        except TyperException as error:
            _add_hint(error, [str(self.name), *words])
            raise
        if self.name not in _WITH_SETTINGS:
            remember_options(context.params)
            context.call_on_close(forget_options)
        return context


def _add_hint(error: Any, words: list[str]) -> None:
    """Add what may have been meant by an unknown option, or how to find a missing pod name."""
    if words[0] == "timeline" and hasattr(error, "param_type"):  # POD is missing
        pods = suggested_command("get pods -A")
        error.message = f"To list pods: {pods}; a deleted pod is found by its former name."
    extra = error.message.startswith("Got unexpected extra")
    if words[0] == "timeline" and extra and (hint := spaced_subject_hint(words)):
        error.message += f"\n{hint}"
    if not error.message.startswith("No such option"):
        return
    has_similar = bool(error.possibilities)
    if hint := unknown_option_hint(words, error.option_name, has_similar=has_similar):
        error.possibilities = None
        error.message += f"\n{hint}"


class _Commands(TyperGroup):
    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for name, (target, summary) in _COMMANDS.items():
            self.add_command(LazyCommand(name, target, summary))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and not ctx.resilient_parsing:  # as in a completion
            check_kubectl_habits(args)
        return super().parse_args(ctx, args)


app = typer.Typer(
    name="podstatus",
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # its tables cut the names of options off
)


def _show_version(*, requested: bool) -> None:
    if requested:
        from podstatus.node.machine.system_info import UPSTREAM_VERSION

        typer.echo(f"podstatus {__version__} (Kubernetes v{UPSTREAM_VERSION})")
        raise typer.Exit


@app.callback()
def podstatus(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            is_eager=True,
            callback=lambda requested: _show_version(requested=requested),
            help="Show the version and exit.",
        ),
    ] = False,
) -> None:
    """Kubernetes node agent with an embedded API server."""
