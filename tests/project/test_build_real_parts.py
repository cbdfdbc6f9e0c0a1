"""What `make real-parts` says when it cannot build."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
OLD_GO = """#!/bin/sh
echo 'go: go.mod requires go >= 1.26.0 (running go 1.22.1; GOTOOLCHAIN=local)' >&2
exit 1
"""


def build(tmp_path: Path, parts: str = "real") -> subprocess.CompletedProcess[str]:
    """Build where nothing is on PATH but what the test put there."""
    environment = {
        "PATH": str(tmp_path / "path"),
        "HOME": os.environ.get("HOME", "/"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    command = [sys.executable, str(ROOT / "tools" / "build_real_parts.py"), parts]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_without_go_it_says_so(tmp_path: Path) -> None:
    built = build(tmp_path)
    assert built.returncode == 1
    assert built.stderr == (
        "real-parts: Go 1.26.0 or newer is needed to build kube-apiserver, "
        "and there is no `go` on PATH\n"
    )


def test_each_set_names_its_programs(tmp_path: Path) -> None:
    built = build(tmp_path, "e2e")
    assert built.returncode == 1
    assert built.stderr == (
        "e2e-parts: Go 1.26.0 or newer is needed to build kube-controller-manager, "
        "kube-scheduler, agnhost, ginkgo, e2e.test, and there is no `go` on PATH\n"
    )


def test_with_an_old_go_it_says_what_go_says(tmp_path: Path) -> None:
    go = tmp_path / "path" / "go"
    go.parent.mkdir()
    go.write_text(OLD_GO)
    go.chmod(0o755)
    built = build(tmp_path)
    assert built.returncode == 1
    assert built.stderr.startswith("real-parts: Go 1.26.0 or newer is needed")
    assert "running go 1.22.1; GOTOOLCHAIN=local" in built.stderr
    assert not list(tmp_path.glob("cache/podstatus/real/*")), "nothing half is left"


def test_what_is_locked_names_no_index_and_no_machine() -> None:
    requirements = (ROOT / "requirements" / "real.txt").read_text()
    assert "--hash=sha256:" in requirements
    assert "://" not in requirements
    module = (ROOT / "tools" / "kubernetes" / "go.mod").read_text()
    local = [line for line in module.splitlines() if "=>" in line and "=> k8s.io/" not in line]
    assert local == []
