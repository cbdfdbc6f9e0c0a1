"""What `podstatus run` prints when the node is running: where it is, and commands to paste."""

import shlex
from pathlib import Path

from podstatus.agent.daemon.run_agent import AgentInfo
from podstatus.cli.client.running_agent import LOCAL_ROOT_DIR


def start_banner(info: AgentInfo, program: str, current_dir: Path | None) -> str:
    """Return the text; paths below `current_dir` are relative to it, as the user would type them.

    `program` is the shell command of this program.
    """
    settings = info.settings
    root_dir = short_path(settings.root_dir, current_dir)
    option = "" if root_dir == LOCAL_ROOT_DIR else f" --root-dir {shlex.quote(root_dir)}"
    kind = "embedded" if settings.embedded else "external"
    lines = [
        f"node {settings.node_name} is running; press Ctrl-C to stop",
        f"  API server   {info.apiserver} ({kind})",
        f"  agent        {info.agent or 'no server'}, container runtime {settings.runtime}",
        f"  files        {settings.root_dir}",
        "",
        "In another terminal, in this directory:",
        f"  {program} get pods -A{option}",
    ]
    if settings.embedded and settings.samples:
        lines.append(f"  {program} logs web -f{option}")
    lines.append(f"  {program} watch -A{option}")
    if info.kubeconfig is not None:
        path = shlex.quote(short_path(info.kubeconfig, current_dir))
        lines.append(f"  kubectl --kubeconfig {path} get pods -A")
    return "\n".join(lines)


def short_path(path: Path, current_dir: Path | None) -> str:
    """Return an absolute path relative to `current_dir` if it is below it."""
    if current_dir is None or not path.is_relative_to(current_dir):
        return str(path)
    return str(path.relative_to(current_dir))
