"""Images for tests, made without a network: an archive that `ctr images import` reads."""

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_APPLETS = ("cat", "chmod", "env", "false", "hostname", "id", "ls", "mkdir", "mount", "sh", "sleep")
_MORE_APPLETS = ("stat", "stty", "tail", "test", "touch", "true", "wget", "ip", "httpd", "nc", "ps")


def busybox_layer(busybox: Path) -> bytes:
    """Return a layer with a static busybox and links of its commands."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        for folder, mode in (("bin", 0o755), ("etc", 0o755), ("tmp", 0o1777), ("work", 0o755)):
            info = tarfile.TarInfo(folder)
            info.type, info.mode = tarfile.DIRTYPE, mode
            tar.addfile(info)
        _add(tar, "bin/busybox", busybox.read_bytes(), 0o755)
        _add(tar, "etc/passwd", b"root:x:0:0::/:/bin/sh\nuser:x:1000:1000::/work:/bin/sh\n", 0o644)
        _add(tar, "etc/group", b"root:x:0:\nuser:x:1000:\n", 0o644)
        for name in (*_APPLETS, *_MORE_APPLETS):
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
    return layer.getvalue()


def write_archive(path: Path, layer: bytes, images: Mapping[str, Mapping[str, Any]]) -> None:
    """Write images of one layer, by name with their configuration: Entrypoint, User, …"""
    with tarfile.open(path, "w") as tar:
        _add(tar, "layer.tar", layer, 0o644)
        manifests = []
        for name, config in images.items():
            content = _config(layer, config)
            file_name = f"{hashlib.sha256(content).hexdigest()}.json"
            _add(tar, file_name, content, 0o644)
            manifests.append({"Config": file_name, "RepoTags": [name], "Layers": ["layer.tar"]})
        _add(tar, "manifest.json", json.dumps(manifests).encode(), 0o644)


def _config(layer: bytes, config: Mapping[str, Any]) -> bytes:
    digests: Sequence[str] = [f"sha256:{hashlib.sha256(layer).hexdigest()}"]
    document = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Env": ["PATH=/bin"], **config},
        "rootfs": {"type": "layers", "diff_ids": digests},
    }
    return json.dumps(document).encode()


def _add(tar: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(content), mode
    tar.addfile(info, io.BytesIO(content))
