"""`podstatus run`: run a node agent, optionally under a supervisor."""

from podstatus.cli.options import StopAtEofOption
from podstatus.cli.setting_options import Flags, with_settings


@with_settings
def run(flags: Flags, *, stop_at_eof: StopAtEofOption = False) -> None:
    """Run a node that starts pods and reports their status.

    Each flag can also be set with an environment variable, for example PODSTATUS_MAX_PODS for
    --max-pods. Flags override environment variables, which override the --config file.
    """
    from podstatus.cli.run_node import run_node

    run_node(flags, stop_at_eof=stop_at_eof)
