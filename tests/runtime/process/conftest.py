"""Trials of bubblewrap as the current user, and as an ordinary user where root may switch."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from podstatus.kube.encoding.codec import to_document
from podstatus.runtime.process.cgroups.discovery import CgroupsUnavailableError, find_cgroups
from podstatus.runtime.process.cgroups.pod_cgroups import Cgroups
from podstatus.runtime.process.sandbox.isolation import BubblewrapUnavailableError, find_bubblewrap
from tests.runtime.process.shim_on_trial import ShimOnTrial, shim_on_trial
from tests.support.processes.mortal_node import end_family, processes_with
from tests.support.processes.process_pods import pod_of
from tests.support.processes.process_runtime import AS_NOBODY, NOBODY

_HERE = Path(__file__).parent
_REPOSITORY = _HERE.parents[2]
_PYTHON = "/usr/bin/python3"


@pytest.fixture(scope="session")
def bubblewrap_works() -> None:
    """Skip without bubblewrap; in CI it is required."""
    try:
        find_bubblewrap()
    except BubblewrapUnavailableError as error:
        if os.environ.get("CI") == "true":
            pytest.fail(str(error))
        pytest.skip(str(error))


class TrialProcess:
    """`sandbox_trial.py` as one user, for any number of trials."""

    def __init__(self, user: int, *python: str) -> None:
        self.user = user
        self._process = subprocess.Popen(
            [*python, str(_HERE / "sandbox_trial.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd="/",
            env={"PATH": os.defpath + ":/usr/sbin", "PYTHONPATH": _python_path()},
        )

    def run(self, request: dict[str, Any]) -> list[dict[str, Any]]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(msgspec.json.encode(request) + b"\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the trial failed; its traceback is in the captured output"
        results: list[dict[str, Any]] = msgspec.json.decode(answer)
        return results

    def close(self) -> None:
        self._process.communicate()


class Trials:
    """Runs pods in sandboxes, as one user."""

    def __init__(self, root: Path, process: TrialProcess) -> None:
        self.root = root
        self.user = process.user
        self._process = process

    def run(self, *containers: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
        """Run these containers of one pod one after the other; return the results."""
        objects = {key: more.pop(key, {}) for key in ("config_maps", "secrets")}
        killed = [bool(container.pop("killed", False)) for container in containers]
        named = [
            {"name": f"c{number}", "image": "x", **container}
            for number, container in enumerate(containers)
        ]
        pod = pod_of(None, **{"containers": named, **more})
        request = {"root": str(self.root), "pod": to_document(pod), "killed": killed, **objects}
        return self._process.run(request)

    def shell(self, script: str, container: dict[str, Any] | None = None, **more: Any) -> str:
        """Return the output of a script in a sandbox; it must succeed."""
        (result,) = self.run({"command": ["sh", "-c", script], **(container or {})}, **more)
        assert result.get("code") == 0, result
        return str(result["out"])


def _python_path() -> str:
    return f"{_REPOSITORY / 'src'}:{_REPOSITORY}:{sysconfig.get_path('purelib')}"


@pytest.fixture(scope="session", params=["ourselves", "ordinary user"])
def trial_process(request: pytest.FixtureRequest) -> Iterator[TrialProcess]:
    request.getfixturevalue("bubblewrap_works")
    python: tuple[str, ...] = (sys.executable,)
    user = os.geteuid()
    if request.param == "ordinary user":
        if user:
            pytest.skip("we are an ordinary user already")
        user, python = NOBODY, (*AS_NOBODY, _PYTHON)
        tried = subprocess.run(
            [*python, "-c", "import podstatus"],
            env={"PYTHONPATH": _python_path()},
            cwd="/",
            check=False,
            capture_output=True,
        )
        if tried.returncode:
            pytest.skip(f"an ordinary user cannot use {_REPOSITORY} with {_PYTHON}")
    with closing(TrialProcess(user, *python)) as process:
        yield process


@pytest.fixture
def trials(trial_process: TrialProcess) -> Iterator[Trials]:
    # Not below /tmp, which every sandbox has for itself, so that the tests see what is hidden.
    folder = Path(tempfile.mkdtemp(prefix="podstatus-", dir=None if os.geteuid() else "/var/lib"))
    shutil.chown(folder, trial_process.user)
    yield Trials(folder, trial_process)
    shutil.rmtree(folder)


@pytest.fixture
def root_trials(trials: Trials) -> Trials:
    if trials.user:
        pytest.skip("only root can do this")
    return trials


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder of a runtime, not below /tmp, since containers have their own /tmp."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        yield Path(folder)
        end_family(processes_with("shim_program.py", folder))


@pytest.fixture
def cgroups() -> Iterator[Cgroups]:
    """Cgroups of this machine that limit CPU and memory; skips where there are none."""
    try:
        created = find_cgroups(f"podstatus-test-{uuid.uuid4().hex[:8]}")
    except CgroupsUnavailableError as error:
        pytest.skip(f"no cgroups: {error}")
    try:
        if lacking := {"cpu", "memory"}.intersection(created.missing):
            pytest.skip(f"no cgroups for {sorted(lacking)}: {created.missing}")
        yield created
    finally:
        created.retain_only([])
        created.close()
    assert [base for base in created.hierarchies if base.exists()] == []


@pytest.fixture
def shim(tmp_path: Path) -> Iterator[ShimOnTrial]:
    with shim_on_trial(tmp_path) as shim:
        yield shim
