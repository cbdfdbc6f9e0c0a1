"""Run one command; `run_exec.py SOCKET ORDER`, both inherited file descriptors."""

import os
import signal
import socket
import sys

from .enter import enter
from .request import Agent, FailedError, Order, read_order
from .supervise import watch


def main() -> None:
    """Never raises: what goes wrong is told to the agent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    agent = Agent(socket.socket(fileno=int(sys.argv[1])))
    ordered = int(sys.argv[2])
    try:
        order = read_order(ordered)
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        enter(order)
        os.close(ordered)
        agent.socket.set_inheritable(False)
        os.set_inheritable(order.process, False)
        _run(order, agent, nothing)
    except FailedError as error:
        agent.tell_failed(str(error))


def _run(order: Order, agent: Agent, nothing: int) -> None:
    if not order.isolated:
        watch(order, agent, nothing)
        return
    # Only a child is in the pid namespace that was joined.
    child = os.fork()
    if child:
        agent.socket.close()
        for standard in (0, 1, 2):
            os.dup2(nothing, standard)
        os.waitpid(child, 0)
        return
    os.close(order.process)
    try:
        watch(order, agent, nothing)
    except FailedError as error:
        agent.tell_failed(str(error))
    finally:
        os._exit(0)
