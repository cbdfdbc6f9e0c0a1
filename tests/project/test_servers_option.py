"""The options that choose API servers: without a real one, one line; and CI misses no test."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(tmp_path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run some of our tests where there are no real servers."""
    environment = {"PATH": str(tmp_path), "HOME": os.environ.get("HOME", "/")}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options]
    return subprocess.run(
        [*command, "tests/servers/api/test_versions.py"],
        cwd=ROOT,
        env=environment | {"XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_only_the_embedded_server_is_tested_unless_asked_for(tmp_path: Path) -> None:
    ran = run(tmp_path)
    assert (ran.returncode, "real-parts" in ran.stdout) == (0, False)
    assert "1 passed" in ran.stdout


def test_without_a_real_server_one_line_says_how_to_get_it(tmp_path: Path) -> None:
    ran = run(tmp_path, "--servers=embedded,real")
    assert ran.returncode == 0
    assert "1 passed" in ran.stdout
    (line,) = [line for line in ran.stdout.splitlines() if "make real-parts" in line]
    assert line.startswith("skipped on a real API server: no kube-apiserver and etcd in ")


def test_too_few_tests_on_a_real_server_are_a_failure(tmp_path: Path) -> None:
    ran = run(tmp_path, "--servers=embedded,real", "--require-real")
    assert ran.returncode == 1
    assert "0 tests passed on a real API server" in ran.stdout


def test_an_unknown_server_is_refused(tmp_path: Path) -> None:
    ran = run(tmp_path, "--servers=imaginary")
    assert (ran.returncode, "choose from embedded, real" in ran.stderr) == (4, True)
