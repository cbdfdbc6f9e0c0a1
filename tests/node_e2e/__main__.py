"""`python -m tests.node_e2e`: Kubernetes' own node tests on the agent.

Exit code 0: each test passed, or failed as tests.yaml lists it. Needs root.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from podstatus.agent.compose.runtime import cgroups_name
from podstatus.runtime.process.cgroups.discovery import CgroupsUnavailableError, find_cgroups
from tests.node_e2e.command_line import parse_options
from tests.node_e2e.node import NODE, root_dir
from tests.node_e2e.private_machine import private_command
from tests.node_e2e.programs import MissingProgramsError, Programs, find_programs

_INTERRUPTED = 130
_PARENT = Path("/var/lib")
"""Not /tmp: containers have one of their own."""


def main() -> int:
    options = parse_options(sys.argv[1:])
    if os.geteuid() != 0:
        sys.exit("test-e2e: root is needed, for namespaces, cgroups and users of containers")
    try:
        programs = find_programs()
    except MissingProgramsError as error:
        sys.exit(f"test-e2e: {error}")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    folder = Path(tempfile.mkdtemp(prefix="podstatus-e2e-", dir=_PARENT))
    folder.chmod(0o755)
    code = _INTERRUPTED
    try:
        code = _run_in_namespaces(programs, folder)
    except KeyboardInterrupt:
        print("interrupted")
    finally:
        _remove_cgroups(folder)
        if code == 0 and not options.keep:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            print(f"logs: {folder}")
    return code


def _run_in_namespaces(programs: Programs, folder: Path) -> int:
    command = [sys.executable, "-m", "tests.node_e2e.campaign", str(folder), *sys.argv[1:]]
    private = private_command(programs, command)
    # In its own session: Ctrl-C is for this process, which then kills all others.
    process = subprocess.Popen(private, env=_environment(), start_new_session=True)
    try:
        return process.wait()
    finally:
        process.kill()
        process.wait()


def _environment() -> dict[str, str]:
    """Without settings of the user's for agents and clients."""
    foreign = ("PODSTATUS_", "KUBE")
    return {name: value for name, value in os.environ.items() if not name.startswith(foreign)}


def _remove_cgroups(folder: Path) -> None:
    """Remove the cgroups of the pods, whose processes have ended."""
    with suppress(CgroupsUnavailableError):
        cgroups = find_cgroups(cgroups_name(NODE, root_dir(folder)))
        cgroups.retain_only([])
        cgroups.close()


def _interrupt(number: int, _: object) -> NoReturn:
    raise KeyboardInterrupt(signal.Signals(number).name)


if __name__ == "__main__":
    sys.exit(main())
