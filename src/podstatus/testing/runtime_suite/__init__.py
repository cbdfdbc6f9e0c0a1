"""Conformance tests for runtimes: subclass `RuntimeSuite` in your tests.

    class TestMyRuntime(RuntimeSuite):
        @asynccontextmanager
        async def open_runtime(self):
            yield MyRuntime()

        def make_pod(self, name, behaviour):
            ...

pytest collects the tests. Each has its own runtime and event loop; use `setup_method` for shared
state, such as a fresh directory. A runtime declares missing capabilities with `persists_records`
and `reports_changes`. docs/reference/runtime-port.md has a complete example.

Only checks of the runtime port belong here. Tests: tests/runtime/test_broken_runtimes.py.
"""

import pytest

_PARTS = ("resizing", "starting", "stopping", "listing")
# Before the import, so that failed assertions show the compared values.
pytest.register_assert_rewrite(*(f"{__name__}.{part}" for part in _PARTS))

from podstatus.testing.runtime_suite.listing import ListingTests  # noqa: E402
from podstatus.testing.runtime_suite.resizing import ResizingTests  # noqa: E402
from podstatus.testing.runtime_suite.scene import Behaviour  # noqa: E402
from podstatus.testing.runtime_suite.starting import StartingTests  # noqa: E402
from podstatus.testing.runtime_suite.stopping import StoppingTests  # noqa: E402

__all__ = ["Behaviour", "RuntimeSuite"]


class RuntimeSuite(StartingTests, StoppingTests, ListingTests, ResizingTests):
    """The conformance tests; override `open_runtime` and `make_pod`, and the others if needed."""
