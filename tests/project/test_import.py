"""What importing the library costs and brings along."""

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

SOURCES = Path(__file__).parents[2] / "src"
PROBE = """
import json, sys, time
sys.path[:0] = sys.argv[1:]
before = set(sys.modules)
start = time.process_time()
import podstatus.public_api
seconds = time.process_time() - start
roots = {name.partition(".")[0] for name in set(sys.modules) - before}
print(json.dumps({"seconds": seconds, "roots": sorted(roots - sys.stdlib_module_names)}))
"""


@pytest.fixture
def probe_alone(tmp_path: Path) -> tuple[float, list[str]]:
    """Import the library in a Python that has no other package than msgspec."""
    (tmp_path / "msgspec").symlink_to(Path(msgspec.__file__).parent)
    command = [sys.executable, "-I", "-S", "-c", PROBE, str(SOURCES), str(tmp_path)]
    runs = [
        json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        for _ in range(3)
    ]
    # CPU time, and the best of three: what others do on this machine is not the library's fault.
    return min(run["seconds"] for run in runs), runs[0]["roots"]


def test_importing_the_library_needs_and_brings_in_msgspec_alone(
    probe_alone: tuple[float, list[str]],
) -> None:
    _, roots = probe_alone
    assert roots == ["msgspec", "podstatus"]


def test_importing_the_library_takes_at_most_a_fifth_of_a_second(
    probe_alone: tuple[float, list[str]],
) -> None:
    seconds, _ = probe_alone
    assert seconds <= 0.2
