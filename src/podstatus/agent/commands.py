"""The commands and their options."""

import asyncio
import shlex
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from podstatus.agent.build_api import build_api_server
from podstatus.agent.serve_api import ApiSettings, CannotServeError, Serving, serve_api

app = typer.Typer(
    name="podstatus",
    help="Truthful pod status on a node, and an API server to try it with.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

RootDir = Annotated[
    str | None,
    typer.Option(
        metavar="DIRECTORY", help="Keep objects, certificates and token here. [default: in memory]"
    ),
]
Host = Annotated[str, typer.Option(help="Address to listen on.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 for any.")]
Faults = Annotated[
    bool, typer.Option("--faults", help="Let clients ask for faults, at /podstatus/faults.")
]


@app.callback()
def podstatus() -> None:
    """Have commands with names, even while there is one only."""


@app.command()
def apiserver(
    *,
    root_dir: RootDir = None,
    host: Host = "127.0.0.1",
    port: Port = 6443,
    faults: Faults = False,
) -> None:
    """Serve the Kubernetes API to kubectl, without a cluster, until interrupted."""
    if root_dir == "":
        _fail("--root-dir is empty; name a folder, or leave it out to keep everything in memory")
    folder = None if root_dir is None else Path(root_dir)
    settings = ApiSettings(root_dir=folder, host=host, port=port, faults=faults)
    try:
        asyncio.run(serve_api(settings, build_api_server, _announce))
    except CannotServeError as error:
        _fail(str(error))


def _announce(serving: Serving) -> None:
    typer.echo(f"serving {serving.url}, objects {serving.where}; stop with Ctrl-C\n")
    path = shlex.quote(str(serving.kubeconfig))
    typer.echo(f"    kubectl --kubeconfig {path} get pods -A")


def _fail(message: str) -> NoReturn:
    typer.echo(f"podstatus: {message}", err=True)
    raise typer.Exit(1)
