"""What the agent tells of itself on its port."""

import platform

from podstatus import __version__
from podstatus.agent.settings import AgentSettings
from podstatus.agent.show_settings import flags, kubelet_configuration
from podstatus.node.system_info import kubelet_version
from podstatus.web.ports import AboutAgent


def about_agent(settings: AgentSettings, now: int) -> AboutAgent:
    """The agent with these settings, started now."""
    return AboutAgent(
        version=__version__,
        kubernetes=kubelet_version(__version__),
        python=platform.python_version(),
        started=now,
        configuration=kubelet_configuration(settings),
        flags=flags(settings),
    )
