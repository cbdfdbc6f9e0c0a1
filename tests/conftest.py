"""For all tests: which API servers they run against, and how many must have met the real one."""

import argparse
import asyncio
import gc
import inspect
import logging
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Coroutine, Generator, Iterator
from functools import wraps
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from podstatus.testing.servers.binaries import MissingBinariesError, find_binaries
from tests.support.break_out_table import tables

if TYPE_CHECKING:
    from podstatus.testing.servers.kube_apiserver import KubeApiServer
    from tests.support.processes.api_servers import EmbeddedServer, RealServer, Server

# The machines that run them are shared: how long one example takes says nothing.
settings.register_profile("podstatus", deadline=None)
settings.load_profile("podstatus")

SERVERS = ("embedded", "real")
REAL = "real_server"
PLUGIN = "real-tests"
LONG = "long"
SLOW = "slow"
CONTAINERD = "containerd"
REAL_TESTS = 550
"""So many tests pass on a real kube-apiserver, or CI fails: none is lost unnoticed. Raise it with
every new one."""

LONGEST = (
    "test_agent_crash_points.py",
    "test_collected_pods.py",
    "test_node_model.py",
    "test_observe_memory.py",
    "test_process_tour.py",
)
"""Files whose single tests take half a minute or more, of CPU or of waiting."""

ASYNC_SECONDS = 60
"""A coroutine test that takes longer is cancelled, and its traceback shows where it hangs. Tests
that are marked slow, long, servers or timeout have the time of pytest-timeout instead."""
LOG_LEVELS = {"": logging.WARNING, "podstatus": logging.NOTSET}
UNLIMITED = (SLOW, LONG, "servers", "timeout")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--servers",
        type=_servers,
        default=("embedded",),
        help="API servers to run tests against: embedded (default), real, or embedded,real",
    )
    parser.addoption(
        "--require-real",
        action="store_true",
        help=f"fail unless {REAL_TESTS} tests or more passed on a real kube-apiserver",
    )


def _servers(text: str) -> tuple[str, ...]:
    chosen = tuple(text.split(","))
    if not set(chosen) <= set(SERVERS):
        raise argparse.ArgumentTypeError(f"choose from {', '.join(SERVERS)}")
    return chosen


def pytest_configure(config: pytest.Config) -> None:
    # A background job of a shell ignores it, and so would programs that tests interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Workers of xdist only hand on what they saw.
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(RealTests(config), PLUGIN)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "each_server" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("--servers")
        metafunc.parametrize("each_server", chosen, indirect=True, scope="session")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without garbage collection: what is made there stays to the end.

    It takes a third of the time of collecting, which each worker does.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, object, object]:
    select(config, items)
    result = yield
    longest_first(items, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))
    return result


def select(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests by what they need, and leave out those that were not asked for."""
    for item in items:
        mark_by_fixtures(item)
    if why_not_real(config):
        leave_out(REAL, config, items)
    asked = config.getoption("markexpr")
    if LONG not in asked:
        leave_out(LONG, config, items)
    if CONTAINERD not in asked:
        leave_out(CONTAINERD, config, items)
    if SLOW not in asked and "servers" not in asked:
        leave_out(SLOW, config, items)


def longest_first(items: list[pytest.Item], workers: int) -> None:
    """Deal the longest tests to the workers, each of which begins with an equal share in order.

    Else one of them may start last, and run for minutes while the other workers are idle.
    """
    longest = [item for item in items if item.path.name in LONGEST]
    rest = iter([item for item in items if item.path.name not in LONGEST])
    left = len(items)
    items.clear()
    for number in range(workers):
        share = left // (workers - number)
        left -= share
        dealt = longest[number::workers]
        items += [*dealt, *islice(rest, max(0, share - len(dealt)))]
    items.extend(rest)


def leave_out(marker: str, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that have this marker."""
    left_out = [item for item in items if item.get_closest_marker(marker)]
    items[:] = [item for item in items if not item.get_closest_marker(marker)]
    config.hook.pytest_deselected(items=left_out)


def why_not_real(config: pytest.Config) -> str:
    """Why no test meets the real server; empty if they do."""
    if "real" not in config.getoption("--servers"):
        return "not asked for"
    try:
        find_binaries()
    except MissingBinariesError as error:
        return str(error)
    return ""


def mark_by_fixtures(item: pytest.Item) -> None:
    """A test tells by its fixtures which servers it needs."""
    fixtures: list[str] = getattr(item, "fixturenames", [])
    chosen = getattr(item, "callspec", None)
    if "each_server" in fixtures or "real_server" in fixtures:
        item.add_marker("servers")
    if "real_server" in fixtures or (chosen and chosen.params.get("each_server") == "real"):
        item.add_marker(REAL)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    test = getattr(item, "obj", None)
    if inspect.iscoroutinefunction(test) and not any(map(item.get_closest_marker, UNLIMITED)):
        item.obj = with_timeout(test)  # type: ignore[attr-defined]


def with_timeout(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., Any]:
    """The same test, cancelled after ASYNC_SECONDS."""

    @wraps(test)
    async def limited(*args: Any, **kwargs: Any) -> None:
        async with asyncio.timeout(ASYNC_SECONDS):
            await test(*args, **kwargs)

    return limited


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_teardown() -> Generator[None, None, None]:
    """A test that changes a log level for the tests after it fails."""
    yield
    left = {name: logging.getLogger(name).level for name in LOG_LEVELS}
    for name, level in LOG_LEVELS.items():
        logging.getLogger(name).setLevel(level)
    assert left == LOG_LEVELS, f"log levels after the test: {left}"


@pytest.fixture
def _logging_as_before() -> Iterator[None]:
    """For a test that configures logging: the tests after it do not see it."""
    root = logging.getLogger()
    handlers = root.handlers[:]
    yield
    root.handlers[:] = handlers
    for name, level in LOG_LEVELS.items():
        logging.getLogger(name).setLevel(level)


@pytest.fixture(scope="session")
def each_server(request: pytest.FixtureRequest) -> "Server":
    """Each of the servers that were chosen: a test runs once for each."""
    found: Server = request.getfixturevalue(f"{request.param}_server")
    return found


@pytest.fixture(scope="session")
def node_certificates(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A folder with server.crt, server.key for nodes on loopback that both servers trust."""
    pytest.importorskip("cryptography", reason="certificates need podstatus[agent]")
    from tests.support.processes.stand_in_node import make_node_certificates  # noqa: PLC0415 - needs aiohttp

    if not why_not_real(request.config):
        return Path(request.getfixturevalue("real_folder")) / "nodes"
    folder = tmp_path_factory.mktemp("nodes")
    make_node_certificates(folder)
    return folder


@pytest.fixture(scope="session")
def real_folder(request: pytest.FixtureRequest) -> Path:
    """Of the real server of all workers, and of the certificates of nodes that it trusts."""
    config = request.config
    if hasattr(config, "workerinput"):
        return Path(config.workerinput[REAL])
    plugin = config.pluginmanager.get_plugin(PLUGIN)
    assert isinstance(plugin, RealTests)
    return plugin.start_server(workers=1)


@pytest.fixture(scope="session")
def embedded_server(
    tmp_path_factory: pytest.TempPathFactory, node_certificates: Path
) -> "Iterator[EmbeddedServer]":
    """The embedded server, one for all tests of this process."""
    pytest.importorskip("aiohttp", reason="the API server needs podstatus[agent]")
    from podstatus.testing.apiserver import running_api_server  # noqa: PLC0415 - needs aiohttp
    from tests.support.processes.api_servers import EmbeddedServer  # noqa: PLC0415 - needs aiohttp

    folder = tmp_path_factory.mktemp("embedded")
    with running_api_server(folder, node_authority=node_certificates / "ca.crt") as running:
        server = EmbeddedServer(running)
        yield server
        server.close()


@pytest.fixture(scope="session")
def real_server(real_folder: Path) -> "Iterator[RealServer]":
    """A real kube-apiserver, one for all tests of all workers."""
    from podstatus.testing.servers.kube_apiserver import KubeApiServer  # noqa: PLC0415 - needs aiohttp
    from tests.support.processes.api_servers import RealServer  # noqa: PLC0415 - needs aiohttp

    server = RealServer(KubeApiServer(real_folder / "server"))
    yield server
    server.close()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Every way that was tried to break out of a pod, whatever came of the tests."""
    for reports in terminalreporter.stats.values():
        for report in reports:
            # Reports of setting up and tearing down have the same properties.
            if getattr(report, "when", "") == "call":
                for line in tables(report.user_properties):
                    terminalreporter.write_line(line)


class RealTests:
    """Runs the real server for all workers, and counts what passed on it."""

    def __init__(self, config: pytest.Config) -> None:
        self._asked = "real" in config.getoption("--servers")
        self._required: bool = config.getoption("--require-real")
        self._why_not = why_not_real(config)
        self._passed = 0
        self._server: KubeApiServer | None = None

    def start_server(self, workers: int) -> Path:
        """Start it, unless it runs; its folder. It ends with this process, however that ends."""
        from podstatus.testing.servers.kube_apiserver import KubeApiServer  # noqa: PLC0415 - needs aiohttp
        from tests.support.processes.api_servers import node_names  # noqa: PLC0415 - needs aiohttp
        from tests.support.processes.stand_in_node import make_node_certificates  # noqa: PLC0415 - needs aiohttp

        if self._server is None:
            folder = Path(tempfile.mkdtemp(prefix="podstatus-real-"))
            (folder / "nodes").mkdir()
            make_node_certificates(folder / "nodes")
            self._server = KubeApiServer(
                folder / "server",
                nodes=[node for number in range(workers) for node in node_names(f"gw{number}")],
                node_authority=folder / "nodes" / "ca.crt",
            )
            self._server.start()
        return self._server.folder.parent

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        if not self._why_not:
            workers = len(node.config.getoption("tx"))
            node.workerinput[REAL] = str(self.start_server(workers))

    def pytest_unconfigure(self) -> None:
        if self._server is not None:
            self._server.stop()
            shutil.rmtree(self._server.folder.parent)

    @property
    def _too_few(self) -> bool:
        return self._required and self._passed < REAL_TESTS

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and self._server is not None and len(self._server.pids) < 2:
            for log in self._server.folder.glob("*.log"):
                last = log.read_text().splitlines()[-20:]
                report.sections.append((f"{log.name} of a server that died", "\n".join(last)))
        if report.when == "call" and report.passed and REAL in report.keywords:
            self._passed += 1

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Iterator[None]:
        if self._too_few:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        yield

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._asked and self._why_not:
            terminalreporter.write_line(f"skipped on a real API server: {self._why_not}")
        if self._required:
            told = f"{self._passed} tests passed on a real API server, {REAL_TESTS} are expected"
            terminalreporter.write_line(told, red=self._too_few, bold=self._too_few)
