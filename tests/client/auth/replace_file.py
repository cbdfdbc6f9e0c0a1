"""Replace a credential file as a kubelet or a secret volume does."""

from pathlib import Path


def replace(path: Path, content: bytes) -> None:
    """Replace a file atomically."""
    new = path.with_suffix(".new")
    new.write_bytes(content)
    new.replace(path)
