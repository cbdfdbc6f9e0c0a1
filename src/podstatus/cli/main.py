"""The entry point of the `podstatus` command."""

import sys

from podstatus.base.system_time import guard_time_module


def main() -> None:
    """Run the command line; without the packages of the extra `agent`, name the missing one."""
    guard_time_module()
    try:
        from podstatus.cli.register_commands import app

        app()
    except ModuleNotFoundError as error:
        if (error.name or "podstatus").startswith("podstatus"):
            raise
        sys.exit(
            f"podstatus: the package {error.name} is not installed; install all packages of the "
            "command with: pip install 'podstatus[agent]'"
        )
