"""What is worth saying when the agent has ended: what it leaves behind, and how to go on."""

import shlex
import sys
from pathlib import Path

from podstatus.agent.compose.agent import NodeAgent
from podstatus.agent.daemon.run import AgentContext, BuildAgent, RunnableAgent
from podstatus.base.programs import find_program


class AgentHolder:
    """The node that was built, for those who have something to ask of it when it has ended."""

    def __init__(self, build: BuildAgent) -> None:
        self._build = build
        self._agent: RunnableAgent | None = None

    def build(self, context: AgentContext) -> RunnableAgent:
        """Build it."""
        self._agent = agent = self._build(context)
        return agent

    def describe_remaining(self) -> str:
        """What is left of a node whose pods were not told to end."""
        if isinstance(self._agent, NodeAgent) and not self._agent.has_running_containers():
            return "no containers run"
        return "containers run on until their pods are deleted"


def program_command() -> str:
    """What to type to call this program again."""
    called = Path(sys.argv[0])
    if called.name != "podstatus":
        return f"{shlex.quote(sys.executable)} -P -m podstatus.cli"
    return "podstatus" if find_program("podstatus") else shlex.quote(str(called.absolute()))
