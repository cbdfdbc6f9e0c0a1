"""Parts of the message at a stop: what still runs, and how to start again."""

import shlex
import sys
from pathlib import Path

from podstatus.agent.compose.agent import NodeAgent
from podstatus.agent.daemon.run_agent import AgentContext, BuildAgent, RunnableAgent
from podstatus.base.programs import find_program


class AgentHolder:
    """Holds the agent that was built, to describe what it leaves behind."""

    def __init__(self, build: BuildAgent) -> None:
        self._build = build
        self._agent: RunnableAgent | None = None

    def build(self, context: AgentContext) -> RunnableAgent:
        """Build the agent and remember it."""
        self._agent = agent = self._build(context)
        return agent

    def describe_remaining(self) -> str:
        """Describe the containers of a node that was stopped without a drain."""
        if isinstance(self._agent, NodeAgent) and not self._agent.has_running_containers():
            return "no containers are running"
        return "the containers keep running"


def program_command() -> str:
    """Return the shell command that runs this program."""
    called = Path(sys.argv[0])
    if called.name != "podstatus":
        return f"{shlex.quote(sys.executable)} -P -m podstatus.cli"
    return "podstatus" if find_program("podstatus") else shlex.quote(str(called.absolute()))
