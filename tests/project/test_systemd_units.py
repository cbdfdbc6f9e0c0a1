"""The units in examples/systemd, as systemd reads them, and next to the defaults of the agent."""

import re
import subprocess
from pathlib import Path

import pytest

from podstatus.agent.daemon.run_agent import STOP_SECONDS
from podstatus.agent.settings.load import load_settings
from podstatus.base.programs import find_program
from podstatus.workers.shutdown.plan import total_seconds
from tests.support.processes.process_node import skip
from tests.support.processes.programs import COMMAND

UNITS = sorted((Path(__file__).parents[2] / "examples/systemd").glob("*.service"))
AGENT = next(path for path in UNITS if path.name == "podstatus.service")


def value(unit: Path, key: str) -> str:
    """The value of a key that a unit has once."""
    (found,) = re.findall(rf"^{key}=(.*)$", unit.read_text(), re.MULTILINE)
    return str(found)


def verify(unit: Path, folder: Path, *more: str) -> str:
    """What systemd has to complain about."""
    analyze = find_program("systemd-analyze")
    if analyze is None:
        skip("systemd-analyze is missing; install the package systemd")
    assert analyze is not None
    text = unit.read_text().replace("/usr/local/bin/podstatus", COMMAND[0])
    copy = folder / unit.name
    copy.write_text("\n".join([text, *more]))
    words = [analyze, "verify", "--man=no", str(copy)]
    ran = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    return ran.stdout + ran.stderr + (f"code {ran.returncode}" if ran.returncode else "")


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_accepts_a_unit(unit: Path, tmp_path: Path) -> None:
    assert verify(unit, tmp_path) == ""


def test_systemd_would_find_a_mistake(tmp_path: Path) -> None:
    assert "'Typo'" in verify(AGENT, tmp_path, "[Service]", "Typo=yes")


def test_containers_and_the_default_drain_survive_a_stop() -> None:
    assert value(AGENT, "KillMode") == "process"
    settings = load_settings({}, {}).settings
    needed = total_seconds(settings.shutdown_periods) + STOP_SECONDS
    assert needed < float(value(AGENT, "TimeoutStopSec"))


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_is_notified_and_replaces_a_hung_service_within_30_s(unit: Path) -> None:
    assert value(unit, "Type") == "notify"
    keys = ("WatchdogSec", "TimeoutAbortSec", "RestartSec")
    assert sum(float(value(unit, key)) for key in keys) < 28  # the start takes 1 s
    assert value(unit, "Restart") == "on-failure"
    assert value(unit, "RestartPreventExitStatus") == "2"


def test_the_agent_gets_no_mount_namespace_that_its_next_start_would_lose() -> None:
    needs_one = re.compile(
        r"^(Protect(?!Proc)|Private|ReadOnly|ReadWrite|Inaccessible|Temporary|Bind|RootDir|Dynamic)",
        re.MULTILINE,
    )
    assert not needs_one.findall(AGENT.read_text())
