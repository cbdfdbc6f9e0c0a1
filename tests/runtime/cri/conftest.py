"""Fixtures for tests on a real containerd, one per worker of pytest."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes.containerd import Containerd, MissingPartsError, find_parts

pytest.importorskip("grpc", reason="CRI needs podstatus[cri]")


@pytest.fixture(scope="session")
def shared_containerd() -> Iterator[Containerd]:
    """A containerd for all tests of this worker."""
    try:
        parts = find_parts()
    except MissingPartsError as error:
        pytest.skip(str(error))
    with (
        tempfile.TemporaryDirectory(dir="/var/tmp", prefix="podstatus-cri-") as folder,
        Containerd(Path(folder, "c"), parts) as containerd,
    ):
        yield containerd


@pytest.fixture
def containerd(shared_containerd: Containerd) -> Iterator[Containerd]:
    """The containerd, running and without pods."""
    shared_containerd.start()
    yield shared_containerd
    shared_containerd.start()
    shared_containerd.kill_everything()
