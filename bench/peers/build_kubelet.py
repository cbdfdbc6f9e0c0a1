"""Builds the Go peer, once, into a cache folder: the kubelet's own status manager."""

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
"""As the real parts are built: see tools/build_real_parts.py."""
_EVERY = 100
"""Packages between two lines that tell how far it is."""


def kubelet_program() -> Path | None:
    """The program; None, with a word about why, where it cannot be had."""
    program = cache_dir().parent / "bench" / f"kubelet-{_locked()}"
    if program.exists():
        return program
    go = shutil.which("go")
    if go is None:
        _tell("there is no `go` on PATH; its figures will be null")
        return None
    program.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".building-", dir=program.parent) as folder:
        made = Path(folder) / "kubelet"
        if not _build(go, made):
            return None
        made.rename(program)
    return program


def _locked() -> str:
    """Another one for every other set of sources."""
    sources = [*sorted(SOURCES.glob("*.go")), SOURCES / "go.mod", SOURCES / "go.sum"]
    return hashlib.sha256(b"".join(file.read_bytes() for file in sources)).hexdigest()[:12]


def _build(go: str, target: Path) -> bool:
    _tell("fetching and compiling about 900 packages; minutes if none is cached")
    started = time.monotonic()
    command = [go, "build", "-v", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w"]
    building = subprocess.Popen(
        [*command, "-o", str(target), "."],
        cwd=SOURCES,
        env=os.environ | _SETTLED,
        stderr=subprocess.PIPE,
        text=True,
    )
    said = []
    for line in building.stderr or ():
        said.append(line)
        if len(said) % _EVERY == 0:
            _tell(f"{len(said)} packages ({time.monotonic() - started:.0f} s)")
    if building.wait():
        _tell("go build failed; its figures will be null:\n" + "".join(said[-20:]))
        return False
    return True


def _tell(words: str) -> None:
    print(f"kubelet peer: {words}", file=sys.stderr, flush=True)
