"""`podstatus stop`: stop the running agent, without its containers."""

from podstatus.cli.errors import report_errors
from podstatus.cli.options import RootDirOption, WaitTimeoutOption, parse_timeout


def stop(*, root_dir: RootDirOption = None, timeout: WaitTimeoutOption = "0") -> None:
    """Stop the running agent; its containers keep running.

    The embedded API server stops with it. The next podstatus run adopts the containers; podstatus
    down terminates them.
    """
    seconds = parse_timeout(timeout)
    from podstatus.cli.actions.stop_agent import stop_agent

    with report_errors():
        stop_agent(root_dir, seconds)
