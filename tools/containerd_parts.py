"""Fetch containerd and runc, a busybox and CNI plugins for `make test-cri`, once.

They are Debian's packages of this machine's release, unpacked into a folder of their own below
`~/.cache/podstatus/containerd`: nothing is installed. The folder is created atomically.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PACKAGES = ("containerd", "runc", "containernetworking-plugins", "busybox-static")


def cache_dir() -> Path:
    """Return the folder with one subfolder per set of versions."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    cache = base if base.is_absolute() else Path.home() / ".cache"
    return cache / "podstatus" / "containerd"


def main() -> None:
    """Unpack the packages, unless their versions are there, and print the folder."""
    if missing := [name for name in ("apt-get", "apt-cache", "dpkg") if not shutil.which(name)]:
        sys.exit(
            f"containerd-parts: this machine has no {', '.join(missing)}; on other systems than "
            "Debian, install containerd, runc, busybox (static) and CNI plugins"
        )
    versions = _run("apt-cache", "show", "--no-all-versions", *PACKAGES)
    wanted = [line for line in versions.splitlines() if line.startswith("Version:")]
    digest = hashlib.sha256("\n".join(wanted).encode()).hexdigest()[:12]
    folder = cache_dir() / digest
    if not folder.exists():
        _unpack(folder)
    # Tests use the folder that was requested last.
    os.utime(folder)
    print(f"{', '.join(PACKAGES)}: {folder}")


def _unpack(folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".fetching-") as temporary:
        packages, tree = Path(temporary, "packages"), Path(temporary, "tree")
        packages.mkdir()
        _run("apt-get", "download", *PACKAGES, cwd=packages)
        for package in sorted(packages.glob("*.deb")):
            _run("dpkg", "-x", str(package), str(tree))
        tree.rename(folder)


def _run(*command: str, cwd: Path | None = None) -> str:
    try:
        done = subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as error:
        sys.exit(
            f"containerd-parts: {' '.join(command)} failed: {error.stderr.strip()}; "
            "apt-get update may help"
        )
    return done.stdout


if __name__ == "__main__":
    main()
