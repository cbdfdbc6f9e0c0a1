"""The product against the recorded behaviour of the Go kubelet, through the judge itself."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SHARED = HERE.parents[2] / "shared" / "conformance"
"""Where the project's own machines keep the one file that is not ours to publish."""


def judge(recorded: Path) -> str:
    replay = f"{sys.executable} -m podstatus.testing.replay"
    command = [sys.executable, str(HERE / "check.py"), "--cmd", replay, str(recorded)]
    judged = subprocess.run(command, capture_output=True, text=True, check=False)
    assert judged.returncode == 0, judged.stdout + judged.stderr
    return judged.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    ("name", "cases"),
    [
        ("traces.jsonl.gz", 660),
        ("traces-edge.jsonl.gz", 40),
        ("vectors.jsonl.gz", 2706),
        ("vectors-apistatus.jsonl.gz", 220),
        ("vectors-eviction.jsonl.gz", 2720),
        ("vectors-serviceenv.jsonl.gz", 480),
        ("checkpoints/checkpoints.jsonl", 206),
    ],
)
def test_every_recorded_case_agrees(name: str, cases: int) -> None:
    assert judge(HERE / name) == f"{cases} of {cases} agree"


@pytest.mark.skipif(
    not SHARED.is_dir(),
    reason="vectors from Kubernetes' own unit tests are not published with the project",
)
def test_every_case_of_kubernetes_own_unit_tests_agrees() -> None:
    assert judge(SHARED / "vectors-upstream.jsonl.gz") == "669 of 669 agree"
