"""The `podstatus` command. Without the packages of the extra it says what to install."""

import sys

from podstatus.base.aio import guard_time_module


def main() -> None:
    """What the command runs."""
    guard_time_module()
    try:
        from podstatus.cli.commands import app  # noqa: PLC0415 - may not be there
    except ModuleNotFoundError as error:
        sys.exit(
            f"podstatus: {error.name} is missing: the library is here, but the command needs "
            "more packages; install them with: pip install 'podstatus[agent]'"
        )
    app()
