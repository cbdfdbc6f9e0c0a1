"""Runs one command: `nsenter_program.py SOCKET REQUEST`, both inherited file descriptors."""

import os
import signal
import socket
import sys

from .enter import enter
from .request import AgentConnection, ExecError, ExecRequest, read_request
from .supervise import supervise


def main() -> None:
    """Run the command that the request describes. Errors go to the agent, not to the caller."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    agent = AgentConnection(socket.socket(fileno=int(sys.argv[1])))
    request_fd = int(sys.argv[2])
    try:
        request = read_request(request_fd)
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        enter(request)
        os.close(request_fd)
        agent.socket.set_inheritable(False)
        os.set_inheritable(request.process, False)
        _run(request, agent, null)
    except ExecError as error:
        agent.report_error(str(error))


def _run(request: ExecRequest, agent: AgentConnection, null: int) -> None:
    if not request.isolated:
        supervise(request, agent, null)
        return
    # Only a child of this process is in the pid namespace that was joined.
    child = os.fork()
    if child:
        agent.socket.close()
        for standard in (0, 1, 2):
            os.dup2(null, standard)
        os.waitpid(child, 0)
        return
    os.close(request.process)
    try:
        supervise(request, agent, null)
    except ExecError as error:
        agent.report_error(str(error))
    finally:
        os._exit(0)
