"""Messages to systemd at a real datagram socket: of an agent, and of one under a supervisor."""

import os
import select
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from podstatus.agent.daemon.decide.hang import HealthReport
from podstatus.agent.daemon.health_reporter import HealthReporter, encode_report
from podstatus.agent.daemon.sd_notify import SystemdService
from podstatus.base.msgspec_json import decode_json
from podstatus.testing.clock import FakeClock
from tests.support.processes.agent_process import ENVIRONMENT
from tests.support.processes.fake_agent_process import fake_agent
from tests.support.processes.systemd_socket import SystemdSocket

VARIABLES = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "PODSTATUS_HEALTH_FD")
READY = HealthReport(serving=True, ready=True, status="serving https://n:1")


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[SystemdSocket]:
    with SystemdSocket(tmp_path / "notify") as opened:
        yield opened


def test_each_state_is_sent_once_and_a_status_when_it_changes(systemd: SystemdSocket) -> None:
    service = SystemdService.take(systemd.variables(), FakeClock())
    service.report(HealthReport(status="starting"))
    assert systemd.receive_waiting() == ["EXTEND_TIMEOUT_USEC=300000000", "STATUS=starting"]
    service.report(HealthReport(status="starting"))
    assert systemd.receive_waiting() == ["EXTEND_TIMEOUT_USEC=300000000"]
    service.report(READY)
    service.report(READY)
    assert systemd.receive_waiting() == ["READY=1", "STATUS=serving https://n:1"]
    for _ in range(2):
        service.report(HealthReport(stopping=True, status="draining\nnode\x1b[31m"))
    extension = "EXTEND_TIMEOUT_USEC=30000000"
    status = "STATUS=draining\\nnode^[[31m"
    assert systemd.receive_waiting() == ["STOPPING=1", extension, status, extension]


async def test_the_watchdog_is_fed_in_half_of_its_limit(systemd: SystemdSocket) -> None:
    clock = FakeClock()
    service = SystemdService.take(systemd.variables(watchdog_seconds=20, pid=os.getpid()), clock)
    assert service.ping_seconds == 10
    fed_at = []
    for second in range(31):
        service.ping()
        fed_at += [second] * len(systemd.receive_waiting())
        await clock.advance(1)
    assert fed_at == [0, 10, 20, 30]


async def test_the_watchdog_is_not_fed_while_a_service_has_stalled(systemd: SystemdSocket) -> None:
    clock = FakeClock()
    reporter = HealthReporter.take(systemd.variables(watchdog_seconds=2), clock)
    stalled = HealthReport(serving=True, ready=True, stalled=("lease was last active 70 s ago",))
    counts = []
    for report, seconds in ((READY, 10), (stalled, 60), (stalled, 30), (READY, 10)):
        counts.append(0)
        for _ in range(seconds):
            reporter.report_once(report)
            counts[-1] += "WATCHDOG=1" in systemd.receive_waiting()
            await clock.advance(1)
    assert counts == [10, 60, 0, 10]


def test_the_pipe_to_the_supervisor_is_for_this_process_only() -> None:
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    environment = {"PODSTATUS_HEALTH_FD": str(writing)}
    reporter = HealthReporter.take(environment, FakeClock())
    reporter.report_once(READY)
    assert environment == {}
    assert not os.get_inheritable(writing)
    assert decode_json(os.read(reading, 4096), HealthReport) == READY
    for _ in range(5000):
        reporter.report_once(READY)  # blocks never
    os.close(reading)
    reporter.report_once(READY)
    os.close(writing)


@pytest.mark.parametrize("length", [10, 10_000])
def test_a_report_is_written_whole_or_not_at_all(length: int) -> None:
    report = HealthReport(status="ä" * length, stalled=("ä" * length,) * 20)
    assert len(encode_report(report)) < select.PIPE_BUF


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"NOTIFY_SOCKET": "/nonexistent/socket", "WATCHDOG_USEC": "2000000"},
        {"NOTIFY_SOCKET": "vsock:2:1", "WATCHDOG_USEC": "x"},
        {"NOTIFY_SOCKET": ""},
    ],
)
def test_without_a_socket_nothing_happens(variables: dict[str, str]) -> None:
    service = SystemdService.take(variables, FakeClock())
    service.report(READY)
    service.ping()
    assert variables == {}


def test_a_full_socket_never_blocks_the_agent(systemd: SystemdSocket) -> None:
    service = SystemdService.take(systemd.variables(), FakeClock())
    for number in range(5000):
        service.report(HealthReport(status=f"{number} {'x' * 400}"))


@pytest.mark.parametrize("pid", [0, 1])
def test_a_watchdog_of_another_process_is_none_of_ours(systemd: SystemdSocket, pid: int) -> None:
    service = SystemdService.take(
        systemd.variables(watchdog_seconds=20, pid=pid or os.getpid()), FakeClock()
    )
    service.ping()
    assert systemd.receive_waiting() == ([] if pid else ["WATCHDOG=1"])


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("more", [(), ("--supervise",)])
def test_systemd_sees_the_life_of_an_agent(
    tmp_path: Path, more: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    with SystemdSocket(tmp_path / "notify", abstract=True) as systemd:
        for name, value in systemd.variables(watchdog_seconds=4).items():
            monkeypatch.setitem(ENVIRONMENT, name, value)
        with fake_agent("environment", tmp_path / "root", *more) as started:
            started.read_until("environment: ")
            assert not [name for name in VARIABLES if f" {name} " in started.output]
            systemd.receive_until("READY=1")
            assert "EXTEND_TIMEOUT_USEC=300000000" in systemd.lines
            assert "STATUS=starting" in systemd.lines
            systemd.receive_until("WATCHDOG=1")
            assert "STATUS=serving https://agent" in systemd.lines
            started.process.send_signal(signal.SIGTERM)
            systemd.receive_until("STOPPING=1")
            assert started.wait()[0] == 0
    assert systemd.lines.count("READY=1") == 1


@pytest.mark.slow
@pytest.mark.usefixtures("alone")
def test_systemd_is_notified_that_an_agent_hung_and_serves_again(
    tmp_path: Path, systemd: SystemdSocket, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in systemd.variables(watchdog_seconds=4).items():
        monkeypatch.setitem(ENVIRONMENT, name, value)
    with fake_agent("block-once", tmp_path / "root", "--supervise") as started:
        for _ in range(2):
            started.read_until("  kubectl --kubeconfig")
        status = systemd.receive_until("STATUS=restarting: ")
        systemd.receive_until("STATUS=serving https://agent")
        systemd.receive_until("WATCHDOG=1")
        started.process.send_signal(signal.SIGTERM)
        code, errors = started.wait()
    assert code == 0
    assert "the agent hung (its event loop was silent for " in status
    assert "in block_the_event_loop" in errors
    assert "in block_the_event_loop" in (tmp_path / "root/logs/stacks.txt").read_text()
    assert "restarted: the agent hung (its event loop was silent for " in errors
