"""Credentials of the agent are invisible to containers, wherever they are stored."""

import asyncio
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.pod import Pod
from podstatus.runtime.port import CannotStartError
from podstatus.runtime.process.launch_preparer import ContainerPreparer
from podstatus.runtime.process.records.layout import PodFolder
from podstatus.runtime.process.service_links import NoServices
from podstatus.testing.clock import FakeClock
from tests.runtime.process.sandbox_trial import run
from tests.support.processes.process_runtime import BUBBLEWRAP, NoObjects, need_bubblewrap

SEEN = [place for place in ("/srv", "/opt") if os.access(place, os.W_OK)]
"""Folders that are visible to containers."""
pytestmark = need_bubblewrap


@pytest.fixture
def secret() -> Iterator[Path]:
    if not SEEN:
        pytest.skip("neither /srv nor /opt can be written to")
    with tempfile.TemporaryDirectory(dir=SEEN[0]) as folder:
        place = Path(folder)
        (place / "kubeconfig").write_text("psst")
        (place / "other").write_text("for all")
        yield place / "kubeconfig"


def output(root: Path, hidden: Path, script: str, *mounted: Path) -> str:
    """Return the output of a container that has these host paths below /host."""
    names = [f"v{number}" for number, _ in enumerate(mounted)]
    container: dict[str, Any] = {"name": "a", "command": ["/bin/sh", "-c", script]}
    container["volumeMounts"] = [
        {"name": n, "mountPath": f"/host/{n}", "readOnly": True} for n in names
    ]
    volumes = [
        {"name": name, "hostPath": {"path": str(path)}}
        for name, path in zip(names, mounted, strict=True)
    ]
    spec = {"containers": [container], "volumes": volumes}
    pod = from_document({"metadata": {"name": "p", "uid": "u"}, "spec": spec}, Pod)
    preparer = ContainerPreparer(
        root,
        bubblewrap=BUBBLEWRAP,
        objects=NoObjects(),
        services=NoServices(),
        host_ips=lambda: (),
        allocatable=dict,
        hidden=[hidden],
        clock=FakeClock(),
    )
    place = PodFolder(root, pod.uid).container("1")
    (only,) = pod.spec.containers or ()
    return run(asyncio.run(preparer.prepare_container(pod, only, place))).stdout


def test_a_file_of_the_agent_is_empty_for_containers(tmp_path: Path, secret: Path) -> None:
    script = f"cat {secret.parent}/*"
    assert output(tmp_path, secret, script) == "for all"


def test_it_is_empty_through_a_path_of_the_host_as_well(tmp_path: Path, secret: Path) -> None:
    script = "cat /host/v0/*; cat /host/v1/*/kubeconfig"
    assert output(tmp_path, secret, script, secret.parent, secret.parent.parent) == "for all"


@pytest.mark.parametrize(
    ("named", "why"),
    [
        ("kubeconfig", "it belongs to the agent"),
        ("hard", "it belongs to the agent"),
        ("link", "link is a symbolic link"),
    ],
)
def test_it_cannot_be_mounted(tmp_path: Path, secret: Path, named: str, why: str) -> None:
    (secret.parent / "link").symlink_to(secret)
    (secret.parent / "hard").hardlink_to(secret)
    with pytest.raises(CannotStartError, match=why):
        output(tmp_path, secret, "true", secret.parent / named)


def test_folders_of_the_agent_are_known_by_what_links_lead_to(tmp_path: Path) -> None:
    (tmp_path / "real" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(CannotStartError, match="it belongs to the agent"):
        output(tmp_path / "root", tmp_path / "link", "true", tmp_path / "real" / "inner")
