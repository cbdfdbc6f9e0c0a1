"""Missing programs are reported with the way to get them."""

from pathlib import Path

import pytest

from podstatus.testing.servers.binaries import ASSETS_VARIABLE, ETCD, KUBE_APISERVER
from tests.node_e2e.programs import MissingProgramsError, find_programs

PARTS = ("kube-controller-manager", "kube-scheduler", "e2e.test", "agnhost", "ginkgo")
ON_PATH = ("kubectl", "bwrap", "bash", "ip")


def install(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).touch(0o755)
    return folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache folder of a machine that has only kube-apiserver and etcd."""
    servers = install(tmp_path / "servers", KUBE_APISERVER, ETCD)
    monkeypatch.setenv(ASSETS_VARIABLE, str(servers))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(install(tmp_path / "bin", *ON_PATH)))
    return tmp_path / "podstatus" / "real"


def test_the_newest_build_is_used(cache: Path) -> None:
    built = install(cache / "e2e-v1.36.4-abc", *PARTS)
    programs = find_programs()
    assert programs.tests == built / "e2e.test"
    assert programs.agnhost == built / "agnhost"


@pytest.mark.usefixtures("cache")
def test_without_a_build_the_remedy_is_named() -> None:
    with pytest.raises(MissingProgramsError, match=r"no e2e\.test in .*make e2e-parts"):
        find_programs()


def test_an_incomplete_build_is_named(cache: Path) -> None:
    install(cache / "e2e-v1.36.4-abc", *PARTS[:-1])
    with pytest.raises(MissingProgramsError, match=r"no ginkgo in .*make e2e-parts"):
        find_programs()


@pytest.mark.usefixtures("cache")
def test_without_the_servers_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ASSETS_VARIABLE, "")
    with pytest.raises(MissingProgramsError, match="make real-parts"):
        find_programs()
