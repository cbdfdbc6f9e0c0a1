"""What is printed when a node or an observer runs or has stopped: its addresses, and commands."""

import shlex

from podstatus.agent.daemon.run_agent import AgentInfo
from podstatus.agent.settings.default_root_dir import LOCAL_ROOT_DIR
from podstatus.cli.program import short_path, suggested_command

_IN_ANOTHER_TERMINAL = ("", "In another terminal, in this directory:")


def node_banner(info: AgentInfo, *, is_new: bool) -> str:
    """Return the text for a node that is running.

    `is_new`: its embedded API server has not run before, so the sample pods are created now.
    """
    settings = info.settings
    kind = "embedded" if settings.embedded else "external"
    lines = [
        f"node {settings.node_name} is running; press Ctrl-C to stop",
        f"  API server   {info.apiserver} ({kind})",
        f"  agent        {info.agent or 'no server'}, container runtime {settings.runtime}",
        f"  files        {settings.root_dir}",
        *_IN_ANOTHER_TERMINAL,
        _command(info, "get pods -A"),
    ]
    if is_new and settings.embedded and settings.samples:
        lines.append(_command(info, "logs web -f"))
    lines.append(_command(info, "watch -A"))
    if info.kubeconfig is not None:
        path = shlex.quote(short_path(info.kubeconfig))
        lines.append(f"  kubectl --kubeconfig {path} get pods -A")
    return "\n".join(lines)


def observer_banner(scope: str, info: AgentInfo) -> str:
    """Return the text for an observer that is running; `scope`: what it observes."""
    lines = [
        f"observing {scope}; press Ctrl-C to stop",
        f"  API server   {info.apiserver}",
        f"  observer     {info.agent}",
        f"  files        {info.settings.root_dir}",
        *_IN_ANOTHER_TERMINAL,
        _command(info, "get pods -A"),
        _command(info, "watch -A"),
    ]
    return "\n".join(lines)


def _command(info: AgentInfo, words: str) -> str:
    """A line with a command, with the root directory unless commands find it."""
    root_dir = short_path(info.settings.root_dir)
    option = "" if root_dir == LOCAL_ROOT_DIR else f" --root-dir {shlex.quote(root_dir)}"
    return f"  {suggested_command(words)}{option}"
