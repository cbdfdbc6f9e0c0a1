"""Where the binaries of a real API server are searched."""

from pathlib import Path

import pytest

from podstatus.testing.servers.binaries import MissingBinariesError, cache_dir, find_binaries


def filled(folder: Path, *names: str) -> Path:
    """Create a directory with programs."""
    folder.mkdir(parents=True)
    for name in names or ("etcd", "kube-apiserver"):
        (folder / name).touch(mode=0o755)
    return folder


@pytest.fixture
def places(tmp_path: Path) -> dict[str, str]:
    """All searched locations, empty."""
    return {
        "KUBEBUILDER_ASSETS": str(tmp_path / "assets"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "PATH": str(tmp_path / "path"),
    }


def test_the_named_folder_wins_then_the_cache_then_the_path(places: dict[str, str]) -> None:
    assets = filled(Path(places["KUBEBUILDER_ASSETS"]))
    built = filled(cache_dir(places) / "v1.36.4-0123")
    on_path = filled(Path(places["PATH"]))
    assert find_binaries(places).etcd == assets / "etcd"
    del places["KUBEBUILDER_ASSETS"]
    assert find_binaries(places).kube_apiserver == built / "kube-apiserver"
    (built / "etcd").unlink()
    assert find_binaries(places).etcd == on_path / "etcd"


def test_the_newest_of_the_cache_that_is_whole_is_taken(places: dict[str, str]) -> None:
    del places["KUBEBUILDER_ASSETS"]
    older = filled(cache_dir(places) / "v1.36.4-0123")
    newest = filled(cache_dir(places) / "v1.35.0-4567")
    filled(cache_dir(places) / "v1.37.0-89ab", "etcd")
    filled(cache_dir(places) / ".building-x")
    for folder in (older, newest):
        assert find_binaries(places).etcd.parent in (older, newest)
        (folder / "etcd").unlink()
    with pytest.raises(MissingBinariesError):
        find_binaries(places)


def test_a_named_folder_without_the_programs_is_a_mistake(places: dict[str, str]) -> None:
    filled(Path(places["PATH"]))
    filled(Path(places["KUBEBUILDER_ASSETS"]), "etcd")
    with pytest.raises(
        MissingBinariesError, match=r"does not hold .*kube-apiserver and etcd.*correct it"
    ):
        find_binaries(places)


def test_if_they_are_nowhere_it_is_said_how_to_get_them(places: dict[str, str]) -> None:
    del places["KUBEBUILDER_ASSETS"]
    with pytest.raises(MissingBinariesError) as error:
        find_binaries(places)
    message = str(error.value)
    assert "make real-parts" in message
    assert "KUBEBUILDER_ASSETS" in message
    assert str(cache_dir(places)) in message
    assert "\n" not in message


def test_a_relative_cache_home_counts_as_none() -> None:
    home = Path.home() / ".cache" / "podstatus" / "real"
    assert cache_dir({"XDG_CACHE_HOME": "here"}) == cache_dir({}) == home
