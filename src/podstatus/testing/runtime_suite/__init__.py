"""Checks of every promise a runtime makes: subclass `RuntimeSuite` in your tests.

    class TestMyRuntime(RuntimeSuite):
        @asynccontextmanager
        async def open_runtime(self):
            yield MyRuntime()

        def make_pod(self, name, behaviour):
            ...

pytest finds the tests by itself. Each has a runtime and a loop of its own; `setup_method` is the
place for what they share, such as a fresh folder. What a runtime cannot do it says in
`keeps_records` and `tells_changes`. docs/runtimes.md shows a whole one.
"""

import pytest

_PARTS = ("resizing", "starting", "stopping", "listing")
# Before they are imported: so that a failed assertion shows what it compared.
pytest.register_assert_rewrite(*(f"{__name__}.{part}" for part in _PARTS))

from podstatus.testing.runtime_suite.listing import ListingTests  # noqa: E402
from podstatus.testing.runtime_suite.resizing import ResizingTests  # noqa: E402
from podstatus.testing.runtime_suite.scene import Behaviour  # noqa: E402
from podstatus.testing.runtime_suite.starting import StartingTests  # noqa: E402
from podstatus.testing.runtime_suite.stopping import StoppingTests  # noqa: E402

__all__ = ["Behaviour", "RuntimeSuite"]


class RuntimeSuite(StartingTests, StoppingTests, ListingTests, ResizingTests):
    """The tests, and what is to be overridden: `open_runtime`, `make_pod`; in need the others."""
