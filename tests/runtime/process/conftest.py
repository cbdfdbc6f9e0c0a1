"""Trials of bubblewrap as the current user, and as an ordinary user where root may switch."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from podstatus.kube.encoding.codec import to_document
from podstatus.runtime.process.sandbox.isolation import BubblewrapUnavailableError, find_bubblewrap
from tests.runtime.process.shim_on_trial import ShimOnTrial, shim_on_trial
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


class Trials:
    """Runs pods in sandboxes, as one user."""

    def __init__(self, root: Path, prefix: tuple[str, ...], user: int) -> None:
        self.root = root
        self.user = user
        self._prefix = prefix

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
        done = subprocess.run(
            [*self._prefix, str(_HERE / "sandbox_trial.py")],
            input=msgspec.json.encode(request),
            capture_output=True,
            timeout=100,
            check=False,
            cwd="/",
            env={"PATH": os.defpath + ":/usr/sbin", "PYTHONPATH": _python_path()},
        )
        assert done.returncode == 0, done.stderr.decode()
        results: list[dict[str, Any]] = msgspec.json.decode(done.stdout)
        return results

    def shell(self, script: str, container: dict[str, Any] | None = None, **more: Any) -> str:
        """Return the output of a script in a sandbox; it must succeed."""
        (result,) = self.run({"command": ["sh", "-c", script], **(container or {})}, **more)
        assert result.get("code") == 0, result
        return str(result["out"])


def _python_path() -> str:
    return f"{_REPOSITORY / 'src'}:{_REPOSITORY}:{sysconfig.get_path('purelib')}"


@pytest.fixture(params=["ourselves", "ordinary user"])
def trials(request: pytest.FixtureRequest) -> Iterator[Trials]:
    request.getfixturevalue("bubblewrap_works")
    prefix: tuple[str, ...] = (sys.executable,)
    user = os.geteuid()
    if request.param == "ordinary user":
        if user:
            pytest.skip("we are an ordinary user already")
        user, prefix = NOBODY, (*AS_NOBODY, _PYTHON)
        tried = subprocess.run(
            [*prefix, "-c", "import podstatus"],
            env={"PYTHONPATH": _python_path()},
            cwd="/",
            check=False,
            capture_output=True,
        )
        if tried.returncode:
            pytest.skip(f"an ordinary user cannot use {_REPOSITORY} with {_PYTHON}")
    # Not below /tmp, which every sandbox has for itself, so that the tests see what is hidden.
    folder = Path(tempfile.mkdtemp(prefix="podstatus-", dir=None if os.geteuid() else "/var/lib"))
    shutil.chown(folder, user)
    yield Trials(folder, prefix, user)
    shutil.rmtree(folder)


@pytest.fixture
def root_trials(trials: Trials) -> Trials:
    if trials.user:
        pytest.skip("only root can do this")
    return trials


@pytest.fixture
def shim(tmp_path: Path) -> Iterator[ShimOnTrial]:
    with shim_on_trial(tmp_path) as shim:
        yield shim
