"""Run one command; `run_exec.py SOCKET ORDER`, both inherited file descriptors."""

import os
import signal
import socket
import sys

from .enter import enter
from .request import AgentConnection, ExecError, ExecRequest, read_request
from .supervise import supervise


def main() -> None:
    """Never raises: what goes wrong is told to the agent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    agent = AgentConnection(socket.socket(fileno=int(sys.argv[1])))
    ordered = int(sys.argv[2])
    try:
        order = read_request(ordered)
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        enter(order)
        os.close(ordered)
        agent.socket.set_inheritable(False)
        os.set_inheritable(order.process, False)
        _run(order, agent, nothing)
    except ExecError as error:
        agent.report_error(str(error))


def _run(request: ExecRequest, agent: AgentConnection, nothing: int) -> None:
    if not request.isolated:
        supervise(request, agent, nothing)
        return
    # Only a child is in the pid namespace that was joined.
    child = os.fork()
    if child:
        agent.socket.close()
        for standard in (0, 1, 2):
            os.dup2(nothing, standard)
        os.waitpid(child, 0)
        return
    os.close(request.process)
    try:
        supervise(request, agent, nothing)
    except ExecError as error:
        agent.report_error(str(error))
    finally:
        os._exit(0)
