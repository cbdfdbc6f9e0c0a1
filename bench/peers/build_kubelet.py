"""Build the Go peer, the kubelet's own status manager, once into a cache directory."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from podstatus.testing.servers.binaries import cache_dir

SOURCES = Path(__file__).parent / "kubelet"

_SETTLED = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly", "GOWORK": "off"}
"""The same settings as in tools/build_real_parts.py."""
_EVERY = 100
"""Packages between two progress messages."""


def kubelet_program() -> Path | None:
    """Return the program; None, with a message on stderr, if it cannot be built."""
    program = cache_dir().parent / "bench" / f"kubelet-{_locked()}"
    if program.exists():
        return program
    go = shutil.which("go")
    if go is None:
        _log("`go` is not on the PATH; the figures will be null")
        return None
    program.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".building-", dir=program.parent) as folder:
        built = Path(folder) / "kubelet"
        if not _build(go, built):
            return None
        built.rename(program)
    return program


def _locked() -> str:
    """Return a hash of the sources."""
    sources = [*sorted(SOURCES.glob("*.go")), SOURCES / "go.mod", SOURCES / "go.sum"]
    return hashlib.sha256(b"".join(file.read_bytes() for file in sources)).hexdigest()[:12]


def _build(go: str, target: Path) -> bool:
    _log("fetching and compiling about 900 packages; takes minutes without a cache")
    started = time.monotonic()
    command = [go, "build", "-v", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w"]
    building = subprocess.Popen(
        [*command, "-o", str(target), "."],
        cwd=SOURCES,
        env=os.environ | _SETTLED,
        stderr=subprocess.PIPE,
        text=True,
    )
    output = []
    for line in building.stderr or ():
        output.append(line)
        if len(output) % _EVERY == 0:
            _log(f"{len(output)} packages ({time.monotonic() - started:.0f} s)")
    if building.wait():
        _log("go build failed; the figures will be null:\n" + "".join(output[-20:]))
        return False
    return True


def _log(message: str) -> None:
    print(f"kubelet peer: {message}", file=sys.stderr, flush=True)
