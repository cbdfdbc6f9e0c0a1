import os
import stat
from pathlib import Path
from typing import Any

import pytest

from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.cluster import ConfigMap, Secret
from podstatus.kube.objects.volumes import HostPathVolumeSource, Volume
from podstatus.kube.scalars.quantity import Quantity
from podstatus.runtime.port import CannotStartError
from podstatus.runtime.process.spec.downward_api import DownwardContext
from podstatus.runtime.process.spec.environment import ReferencedObjects
from podstatus.runtime.process.spec.projections import (
    ProjectedFile,
    ProjectionInputs,
    needed_tokens,
    projected_files,
    projected_source,
)
from podstatus.runtime.process.spec.security import Ownership
from podstatus.runtime.process.volumes.atomic_writer import write_atomically
from podstatus.runtime.process.volumes.host_paths import prepare_host_path
from tests.support.processes.process_pods import pod_of

OBJECTS = ReferencedObjects(
    config_maps={"c": ConfigMap(data={"a": "1", "b": "2"}, binary_data={"raw": "/w=="})},
    secrets={"s": Secret(data={"pw": "eA=="}), "gone": None},
)
NO_OWNER = Ownership()
AROUND = DownwardContext([], {"cpu": Quantity("4")})


def files_of(volume: dict[str, Any], owner: Ownership = NO_OWNER) -> dict[str, tuple[bytes, int]]:
    source = projected_source(from_document({"name": "v", **volume}, Volume))
    assert source is not None
    tokens = {token: f"t-{token.audience}" for token in needed_tokens(source)}
    inputs = ProjectionInputs(objects=OBJECTS, tokens=tokens, context=AROUND, owner=owner)
    files = projected_files(pod_of({"name": "a"}), source, inputs)
    return {path: (file.data, file.mode) for path, file in files.items()}


def _field(path: str, field: str) -> dict[str, Any]:
    return {"path": path, "fieldRef": {"fieldPath": field}}


@pytest.mark.parametrize(
    ("volume", "files"),
    [
        (
            {"configMap": {"name": "c"}},
            {"a": (b"1", 0o644), "b": (b"2", 0o644), "raw": (b"\xff", 0o644)},
        ),
        (
            {
                "configMap": {
                    "name": "c",
                    "defaultMode": 0o400,
                    "items": [
                        {"key": "a", "path": "x//y/./z"},
                        {"key": "b", "path": "b", "mode": 0o755},
                    ],
                }
            },
            {"x/y/z": (b"1", 0o400), "b": (b"2", 0o755)},
        ),
        ({"secret": {"secretName": "s"}}, {"pw": (b"x", 0o644)}),
        ({"secret": {"secretName": "gone", "optional": True}}, {}),
        ({"configMap": {"name": "c", "optional": True, "items": [{"key": "z", "path": "z"}]}}, {}),
        (
            {
                "downwardAPI": {
                    "items": [
                        _field("n", "metadata.name"),
                        _field("l", "metadata.labels"),
                        {
                            "path": "cpu",
                            "resourceFieldRef": {"containerName": "a", "resource": "limits.cpu"},
                        },
                    ]
                }
            },
            {"n": (b"p", 0o644), "l": (b'app="shop"', 0o644), "cpu": (b"4", 0o644)},
        ),
        (
            {
                "projected": {
                    "defaultMode": 0o440,
                    "sources": [
                        {"serviceAccountToken": {"path": "token", "audience": "me"}},
                        {"configMap": {"name": "c", "items": [{"key": "a", "path": "ca.crt"}]}},
                        {"downwardAPI": {"items": [_field("namespace", "metadata.namespace")]}},
                        {"secret": {"name": "s"}},
                    ],
                }
            },
            {
                "token": (b"t-me", 0o440),
                "ca.crt": (b"1", 0o440),
                "namespace": (b"ns", 0o440),
                "pw": (b"x", 0o440),
            },
        ),
    ],
)
def test_files_of_volumes(volume: dict[str, Any], files: dict[str, tuple[bytes, int]]) -> None:
    assert files_of(volume) == files


def test_a_token_is_for_its_owner_where_there_is_one() -> None:
    volume = {"projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
    assert files_of(volume, Ownership(user=5))["token"][1] == 0o600


def _items(path: str) -> dict[str, Any]:
    return {"configMap": {"name": "c", "items": [{"key": "a", "path": path}]}}


@pytest.mark.parametrize(
    ("volume", "message"),
    [
        ({"configMap": {"name": "none"}}, 'configmap "none" not found'),
        ({"secret": {"secretName": "gone"}}, 'secret "gone" not found'),
        (
            {"configMap": {"name": "c", "items": [{"key": "z", "path": "z"}]}},
            "configmap references non-existent config key: z",
        ),
        (
            {"secret": {"secretName": "s", "items": [{"key": "z", "path": "z"}]}},
            "references non-existent secret key: z",
        ),
        (_items("/etc/x"), "invalid path: must be relative path: /etc/x"),
        (_items("a/../../x"), "invalid path: must not contain '..': a/../../x"),
        (_items("..data"), "invalid path: must not start with '..': ..data"),
        (_items(""), 'invalid path: must not be empty: ""'),
        (
            {"downwardAPI": {"items": [_field("x", "status.podIP")]}},
            "unsupported fieldPath: status.podIP",
        ),
    ],
)
def test_missing_objects_are_reported_in_upstreams_words(
    volume: dict[str, Any], message: str
) -> None:
    with pytest.raises(CannotStartError) as refused:
        files_of(volume)
    assert refused.value.message == message


def test_sources_that_we_do_not_have_are_refused() -> None:
    source = {"clusterTrustBundle": {"path": "x", "name": "y"}}
    with pytest.raises(CannotStartError, match="clusterTrustBundle"):
        files_of({"projected": {"sources": [source]}})


def projected(**texts: str) -> dict[str, ProjectedFile]:
    return {
        path.replace("_", "/"): ProjectedFile(data=text.encode(), mode=0o640)
        for path, text in texts.items()
    }


def test_files_are_replaced_all_at_once(tmp_path: Path) -> None:
    assert write_atomically(tmp_path, projected(a="1", d_b="2"), Ownership(), 1)
    first = (tmp_path / "..data").readlink()
    assert (tmp_path / "a").readlink() == Path("..data/a")
    assert (tmp_path / "d/b").read_text() == "2"
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640
    opened = (tmp_path / "..data").resolve()
    assert write_atomically(tmp_path, projected(a="3", c="4"), Ownership(), 2)
    assert (tmp_path / "..data").readlink() != first
    assert not opened.exists()
    assert {p.name for p in tmp_path.iterdir() if not p.name.startswith("..")} == {"a", "c"}
    assert (tmp_path / "a").read_text() == "3"


def test_what_did_not_change_is_not_written(tmp_path: Path) -> None:
    write_atomically(tmp_path, projected(a="1"), Ownership(), 1)
    before = (tmp_path / "..data").readlink()
    assert not write_atomically(tmp_path, projected(a="1"), Ownership(), 2)
    assert (tmp_path / "..data").readlink() == before


def test_an_agent_that_died_half_way_leaves_nothing_in_the_way(tmp_path: Path) -> None:
    write_atomically(tmp_path, projected(a="1"), Ownership(), 1)
    (tmp_path / "..data_tmp").symlink_to("..nowhere")
    (tmp_path / "..2000_half").mkdir()
    (tmp_path / "a").unlink()
    write_atomically(tmp_path, projected(a="2"), Ownership(), 2)
    assert (tmp_path / "a").read_text() == "2"
    assert len(list(tmp_path.glob("..*"))) == 2


def host_path(path: Path | str, kind: str = "", secret: tuple[str, ...] = ()) -> str:
    source = HostPathVolumeSource(path=str(path), type=kind or None)
    return prepare_host_path(source, secret, read_only=False).path


def test_paths_of_the_host_are_checked_in_upstreams_words(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    os.mkfifo(tmp_path / "fifo")
    wrong = [
        (file, "Directory", "a directory"),
        (file, "DirectoryOrCreate", "a directory"),
        (tmp_path, "File", "a file"),
        (tmp_path / "fifo", "FileOrCreate", "a file"),
        (tmp_path / "none", "Directory", "a directory"),
        (tmp_path / "none", "File", "a file"),
        (file, "Socket", "a socket file"),
        (file, "CharDevice", "a character device"),
        (file, "BlockDevice", "a block device"),
    ]
    for path, kind, what in wrong:
        with pytest.raises(CannotStartError) as refused:
            host_path(path, kind)
        assert refused.value.message == f"hostPath type check failed: {path} is not {what}"
    assert not (tmp_path / "none").exists()
    with pytest.raises(CannotStartError, match="Odd is an invalid volume type"):
        host_path(file, "Odd")


def test_paths_of_the_host_are_made_if_they_are_to_be(tmp_path: Path) -> None:
    assert host_path(tmp_path / "d/e", "DirectoryOrCreate") == str(tmp_path / "d/e")
    assert host_path(tmp_path / "f", "FileOrCreate") == str(tmp_path / "f")
    assert (tmp_path / "f").is_file()
    host_path(tmp_path / "unset")
    assert (tmp_path / "unset").is_dir()


def test_host_paths_that_are_always_rejected(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "secret").mkdir()
    secret = (str(tmp_path / "secret"),)
    for path in (tmp_path / "secret", tmp_path / "secret/in"):
        with pytest.raises(CannotStartError, match="belongs to the agent"):
            host_path(path, "Directory", secret)
    with pytest.raises(CannotStartError, match="link is a symbolic link"):
        host_path(tmp_path / "link", "Directory", secret)
    with pytest.raises(CannotStartError, match="must not contain"):
        host_path(f"{tmp_path}/../x")
    with pytest.raises(CannotStartError, match="no access to devices"):
        host_path("/dev/null", "CharDevice")
