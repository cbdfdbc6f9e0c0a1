"""What tests of containers that are processes share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runtime.process.shim_on_trial import ShimOnTrial, shim_on_trial


@pytest.fixture
def shim(tmp_path: Path) -> Iterator[ShimOnTrial]:
    with shim_on_trial(tmp_path) as shim:
        yield shim
