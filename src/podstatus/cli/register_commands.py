"""The command line: registers one command per module."""

from typing import Annotated

import typer

from podstatus import __version__
from podstatus.cli import alerts_rule_tests
from podstatus.cli.alerts import alerts
from podstatus.cli.apiserver import apiserver
from podstatus.cli.doctor import doctor
from podstatus.cli.drain import drain
from podstatus.cli.get import describe, get
from podstatus.cli.logs import logs
from podstatus.cli.observe import observe
from podstatus.cli.run import run
from podstatus.cli.timeline import timeline
from podstatus.cli.watch import watch
from podstatus.node.machine.system_info import UPSTREAM_VERSION

app = typer.Typer(
    name="podstatus",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # its tables cut the names of options off
)


def _show_version(*, requested: bool) -> None:
    if requested:
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


app.command()(run)
app.command()(doctor)
app.command()(observe)
app.command()(get)
app.command()(describe)
app.command()(timeline)
app.command()(watch)
app.command()(logs)
app.command()(drain)
app.command()(apiserver)
alerts.command("test")(alerts_rule_tests.test_rules)
alerts.command()(alerts_rule_tests.defaults)
app.add_typer(alerts)
