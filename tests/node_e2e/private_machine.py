"""The namespaces of a run: a network of its own, processes of its own, and a root with /agnhost.

bubblewrap creates them: the root is a new folder with the entries of `/` mounted into it, to which
programs can be added without writing to the machine's own `/`. When the command in them ends, or
the process that started it, even by SIGKILL, the kernel ends all processes in them.
"""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.node_e2e.programs import Programs

NODE_IP = "192.0.2.10"
"""Of TEST-NET-1 (RFC 5737), on `lo` of the run's network namespace."""


def private_command(programs: Programs, command: Sequence[str | Path]) -> list[str]:
    """Return the command line that runs `command` in namespaces of its own."""
    files = {
        Path("/agnhost"): programs.agnhost,
        Path("/agnhost-2"): programs.agnhost,
        # Tests rely on what dash does not do, and both busybox and bash do: `[[`, and variables
        # whose names are not identifiers.
        Path(os.path.realpath("/bin/sh")): programs.bash,
    }
    options = ["--unshare-net", "--unshare-pid", "--die-with-parent", "--cap-add", "ALL"]
    shown = [argument for entry in os.scandir("/") for argument in _shown(entry, files)]
    added = [word for path, file in files.items() for word in ("--ro-bind", file, path)]
    words = [*options, *shown, "--proc", "/proc", *added, "--", *command]
    return [str(programs.bubblewrap), *map(str, words)]


def add_node_address(programs: Programs) -> None:
    """Give the network namespace the address of the node."""
    address = [str(programs.ip), "address", "add", f"{NODE_IP}/32", "dev", "lo"]
    subprocess.run(address, check=True)


def _shown(entry: "os.DirEntry[str]", replaced: Mapping[Path, Path]) -> list[str]:
    if entry.name == "proc" or Path(entry.path) in replaced:
        return []
    if entry.is_symlink():
        return ["--symlink", str(Path(entry.path).readlink()), entry.path]
    return ["--dev-bind", entry.path, entry.path]
