"""Files of a known size."""

import os
from pathlib import Path

KI = 1024


def fill(file: Path, count: int) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("wb") as opened:
        opened.write(os.urandom(count))
        os.fsync(opened.fileno())  # some filesystems allocate blocks only when they write
    return file
