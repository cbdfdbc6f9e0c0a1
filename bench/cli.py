"""The CPU time of commands that only read: mostly that of their imports.

Prints medians of interleaved rounds in seconds of CPU (user and system), beside an empty Python and
kubectl, if it is installed, in the same run.
"""

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from podstatus.agent.daemon.endpoints_file import AgentEndpoints
from podstatus.agent.daemon.root_dir import RootDir
from podstatus.testing.apiserver import running_api_server

RESULTS = Path(__file__).parent / "results" / "cli.json"
ROUNDS = 10
PROGRAM = str(Path(sys.executable).parent / "podstatus")
LIMITS = {"version": 0.15, "help": 0.15, "completion": 0.15, "get_pods": 0.3}
"""Seconds of CPU."""


@contextmanager
def running_root_dir() -> Iterator[Path]:
    """Yield the root directory of an agent whose API server has a pod."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        with running_api_server(place / "apiserver") as server, RootDir(place / "root") as root:
            spec = {"containers": [{"name": "app", "image": "nginx", "command": ["nginx"]}]}
            pod = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "web"}, "spec": spec}
            code, answer = server.request("POST", "/api/v1/namespaces/default/pods", pod)
            if code != 201:
                raise RuntimeError(f"cannot create the pod: {answer}")
            endpoints = AgentEndpoints(
                apiserver=server.url,
                agent="",
                token=server.token,
                certificate_authority=str(server.authority),
                node="node",
                pid=os.getpid(),
            )
            root.write_endpoints(endpoints)
            yield root.path


def cpu_seconds(command: tuple[str, ...], environment: Mapping[str, str]) -> float:
    """Run a command and return its CPU time. Raises CalledProcessError."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        command, env=os.environ | environment, stdout=subprocess.DEVNULL, check=True, timeout=60
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def measure(root_dir: Path) -> dict[str, float]:
    """Return the median CPU seconds of each command."""
    plain = {"PODSTATUS_ROOT_DIR": str(root_dir)}
    tab = plain | {
        "_PODSTATUS_COMPLETE": "complete_bash",
        "COMP_WORDS": "podstatus get p",
        "COMP_CWORD": "2",
    }
    commands = {
        "python": ((sys.executable, "-c", "pass"), plain),
        "version": ((PROGRAM, "--version"), plain),
        "help": ((PROGRAM, "--help"), plain),
        "completion": ((PROGRAM,), tab),
        "get_pods": ((PROGRAM, "get", "pods"), plain),
        "run_help": ((PROGRAM, "run", "--help"), plain),
    }
    if kubectl := shutil.which("kubectl"):
        commands["kubectl"] = ((kubectl, "version", "--client"), plain)
    rounds: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(ROUNDS):
        for name, (command, environment) in commands.items():
            rounds[name].append(cpu_seconds(command, environment))
        print(f"round {number + 1} of {ROUNDS}", file=sys.stderr)
    return {name: round(statistics.median(seconds), 3) for name, seconds in rounds.items()}


def main() -> None:
    """Measure, print a table and write the figures; exit with code 1 above a limit."""
    with running_root_dir() as root_dir:
        figures = measure(root_dir)
    print(f"{'command':<16}{'CPU s':>8}{'limit':>8}")
    for name, value in figures.items():
        print(f"{name:<16}{value:>8.3f}{LIMITS.get(name) or '':>8}".rstrip())
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(figures, indent=2) + "\n")
    exceeded = [name for name, limit in LIMITS.items() if figures[name] > limit]
    if exceeded:
        sys.exit(f"above the limit: {', '.join(exceeded)}")


if __name__ == "__main__":
    main()
