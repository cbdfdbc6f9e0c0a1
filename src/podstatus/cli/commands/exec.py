"""`podstatus exec`: run a command in a container of the running agent."""

from typing import Annotated

import typer

from podstatus.cli.completion import complete_container
from podstatus.cli.errors import report_errors
from podstatus.cli.options import NamespaceOption, PodArgument, RootDirOption

CommandArgument = Annotated[
    list[str],
    typer.Argument(metavar="COMMAND", help="Command to run and its arguments, after --."),
]
ContainerOption = Annotated[
    str | None,
    typer.Option(
        "--container",
        "-c",
        metavar="NAME",
        help="Container to run the command in. Default: the container named in the annotation "
        "kubectl.kubernetes.io/default-container, or the first container.",
        autocompletion=complete_container,
    ),
]
StdinOption = Annotated[
    bool, typer.Option("--stdin", "-i", help="Pass standard input to the command.")
]
TtyOption = Annotated[
    bool,
    typer.Option("--tty", "-t", help="Allocate a terminal for the command; for a shell, use -it."),
]


def exec_(
    pod: PodArgument,
    command: CommandArgument,
    *,
    container: ContainerOption = None,
    namespace: NamespaceOption = None,
    stdin: StdinOption = False,
    tty: TtyOption = False,
    root_dir: RootDirOption = None,
) -> None:
    """Run a command in a container on this node.

    The exit code is that of the command. Without --tty, control characters in its output are
    escaped on a terminal.
    """
    with report_errors():
        from podstatus.cli.actions.exec_command import ContainerCommand, exec_command

        request = ContainerCommand(
            namespace=namespace or "default",
            pod=pod,
            container=container,
            command=tuple(command),
            stdin=stdin,
            tty=tty,
        )
        code = exec_command(root_dir, request)
    raise typer.Exit(code)
