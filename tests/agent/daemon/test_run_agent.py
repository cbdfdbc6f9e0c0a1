"""`podstatus run` as a process, around a fake agent: start, banner, stop."""

import json
import signal
from pathlib import Path

import psutil
import pytest

from tests.support.processes.agent_process import ENVIRONMENT, run_command
from tests.support.processes.fake_agent_process import fake_agent


def test_it_says_where_things_are_and_ends_cleanly(tmp_path: Path) -> None:
    root = tmp_path / "the root"
    with fake_agent("run", root) as started:
        started.read_until("  kubectl --kubeconfig")
        endpoints = json.loads((root / "endpoints.json").read_bytes())
        assert endpoints["agent"] == "https://agent"
        assert endpoints["pid"] == started.process.pid
        assert endpoints["apiserver"] in started.output
        assert f"kubectl --kubeconfig '{root}/kubeconfig' get pods -A" in started.output
        assert f"  podstatus get pods -A --root-dir '{root}'" in started.output
        assert endpoints["token"] in (root / "kubeconfig").read_text()
        children = psutil.Process(started.process.pid).children()
        assert len(children) == 2  # the API server, and what evaluates alert rules
        started.process.send_signal(signal.SIGTERM)
        started.read_until("to start the node again")
        assert started.wait() == (0, "restarted: \n")
        down = f"podstatus down --root-dir '{root}'"
        assert f"  to end them               {down}\n" in started.output
        assert not any(child.is_running() for child in children)
        assert not (root / "endpoints.json").exists()


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("more", [(), ("--supervise",)])
def test_it_says_how_to_go_on_as_the_same_node(tmp_path: Path, more: tuple[str, ...]) -> None:
    root = tmp_path / "the root"
    with fake_agent("run", root, "--runtime", "simulated", *more) as started:
        started.read_until("  kubectl --kubeconfig")
        started.process.send_signal(signal.SIGINT)
        started.read_until("to start the node again")
        assert started.wait() == (0, "restarted: \n")
    drain = f"start the node again, then: podstatus drain --root-dir '{root}'"
    assert f"  to end them               {drain}\n" in started.output  # not its API server
    options = " ".join(("--port 0 --runtime simulated", *more))
    assert started.output.endswith(f" run --root-dir '{root}' {options}\n")


@pytest.mark.usefixtures("alone")
def test_a_root_dir_from_the_environment_is_in_the_restart_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ENVIRONMENT, "PODSTATUS_ROOT_DIR", str(tmp_path / "the root"))
    with fake_agent("run", None) as started:
        started.read_until("  kubectl --kubeconfig")
        started.process.send_signal(signal.SIGINT)
        started.read_until("to start the node again")
        started.wait()
    assert started.output.endswith(f" run --port 0 --root-dir '{tmp_path}/the root'\n")


def test_a_node_that_hangs_is_ended_within_five_seconds_and_at_once_if_asked_twice(
    tmp_path: Path,
) -> None:
    with (
        fake_agent("hang", tmp_path / "1") as patient,
        fake_agent("hang", tmp_path / "2") as impatient,
    ):
        for started in (patient, impatient):
            started.read_until("  kubectl --kubeconfig")
        children = psutil.Process(impatient.process.pid).children()
        for started in (patient, impatient):
            started.process.send_signal(signal.SIGINT)
            started.read_until("hanging")
        impatient.process.send_signal(signal.SIGINT)
        assert impatient.wait()[0] == -signal.SIGINT
        psutil.wait_procs(children, timeout=90)
        assert not any(child.is_running() for child in children)
        code, errors = patient.wait()
        assert code == 1
        assert "did not stop within 4.5 s" in errors


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(
    ("behaviour", "message"),
    [
        ("drain", "draining\nstopped; all pods are terminated\n  to start the node again   "),
        (
            "drain-late",
            "draining\ndrain timed out, 1 pod left: ns/p\nstopped; the containers keep running\n",
        ),
    ],
)
def test_one_that_is_to_drain_does_so_before_it_ends(
    tmp_path: Path, behaviour: str, message: str
) -> None:
    with fake_agent(behaviour, tmp_path, "--on-stop", "drain") as started:
        started.read_until("  kubectl --kubeconfig")
        started.output = ""
        started.process.send_signal(signal.SIGINT)
        started.read_until("to start the node again")
        assert started.output.startswith(message)
        assert started.wait()[0] == 0


@pytest.mark.usefixtures("alone")
@pytest.mark.slow
def test_a_drain_is_ended_by_a_second_signal_and_by_force_when_its_time_is_over(
    tmp_path: Path,
) -> None:
    options = ("--on-stop", "drain", "--shutdown-grace-period", "1s")
    with (
        fake_agent("drain-on", tmp_path / "1", *options) as patient,
        fake_agent("drain-on", tmp_path / "2", *options) as impatient,
    ):
        for started in (patient, impatient):
            started.read_until("  kubectl --kubeconfig")
            started.process.send_signal(signal.SIGTERM)
            started.read_until("draining")
        impatient.process.send_signal(signal.SIGTERM)
        assert impatient.wait()[0] == -signal.SIGTERM
        code, errors = patient.wait()
        assert code == 1
        assert "did not stop within 5.5 s" in errors


@pytest.mark.usefixtures("alone")
@pytest.mark.slow
def test_pods_of_one_that_is_to_keep_them_run_on(tmp_path: Path) -> None:
    with fake_agent("drain-on", tmp_path, "--on-stop", "keep") as started:
        started.read_until("  kubectl --kubeconfig")
        started.process.send_signal(signal.SIGTERM)
        started.read_until("to start the node again")
        assert "draining" not in started.output
        assert "\nstopped; the containers keep running\n" in started.output
        assert started.wait()[0] == 0


@pytest.mark.usefixtures("alone")
@pytest.mark.slow
@pytest.mark.parametrize(("says", "drains"), [("stopping", True), ("running", False)])
def test_a_machine_that_goes_down_is_known_by_what_systemd_says(
    tmp_path: Path, says: str, drains: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    systemctl = tmp_path / "systemctl"
    systemctl.write_text(f'#!/bin/sh\n[ "$1" = is-system-running ] && echo {says}\nexit 1\n')
    systemctl.chmod(0o755)
    monkeypatch.setitem(ENVIRONMENT, "PATH", f"{tmp_path}:{ENVIRONMENT['PATH']}")
    with fake_agent("drain", tmp_path / "root") as started:
        started.read_until("  kubectl --kubeconfig")
        started.process.send_signal(signal.SIGTERM)
        started.read_until("to start the node again")
        assert ("draining\n" in started.output) is drains
        assert started.wait()[0] == 0


def test_a_start_that_takes_long_can_be_stopped(tmp_path: Path) -> None:
    with fake_agent("slow-server", tmp_path) as started:
        started.read_until("starting")
        started.process.send_signal(signal.SIGTERM)
        assert started.wait() == (0, "")


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(
    ("behaviour", "message"),
    [
        ("fail", "podstatus: it failed; repair it\n"),
        ("end", "podstatus: the agent stopped unexpectedly\n"),
        # A retry may succeed; exit code 2 would prevent it.
        ("full", "podstatus: cannot use it: no space left on device\n"),
        ("break", "ZeroDivisionError"),
    ],
)
def test_a_node_that_cannot_go_on_ends_with_a_message(
    tmp_path: Path, behaviour: str, message: str
) -> None:
    with fake_agent(behaviour, tmp_path) as started:
        code, errors = started.wait()
    assert code == 1
    assert message in errors
    assert ("Traceback" in errors) == (behaviour == "break")
    assert not (tmp_path / "endpoints.json").exists()


@pytest.mark.usefixtures("alone")
def test_a_second_agent_is_refused(tmp_path: Path) -> None:
    with fake_agent("run", tmp_path) as first:
        first.read_until("  kubectl --kubeconfig")
        with fake_agent("run", tmp_path) as second:
            code, errors = second.wait()
    assert code == 2
    assert f"in use by another agent or observer (pid {first.process.pid}, since " in errors


@pytest.mark.usefixtures("alone")
def test_a_dead_agent_is_restarted_with_the_reason(tmp_path: Path) -> None:
    with fake_agent("break-once", tmp_path, "--supervise") as started:
        started.read_until("  kubectl --kubeconfig")
        started.read_until("  kubectl --kubeconfig")
        started.process.send_signal(signal.SIGTERM)
        code, errors = started.wait()
    assert code == 0
    assert "restarted: the agent exited with 1 at " in errors
    (line,) = (tmp_path / "restarts.jsonl").read_bytes().splitlines()
    death = json.loads(line)
    assert death["exit_code"] == 1
    assert any("ZeroDivisionError: once" in text for text in death["last_lines"])


def test_invalid_settings_are_reported_together_and_end_a_supervisor(
    tmp_path: Path,
) -> None:
    options = ["--root-dir", str(tmp_path), "--max-pods", "x", "--supervise", "-v", "99"]
    ran = run_command("run", *options, PODSTATUS_SYNC_FREQUENCY="1")
    assert ran.returncode == 2
    assert ran.stderr.splitlines() == [
        "podstatus: invalid settings:",
        '--max-pods: "x" is not an integer of at least 0',
        'PODSTATUS_SYNC_FREQUENCY: "1" is not a duration of 1ms or more, such as 10s or 1m30s',
        "--v: 99 is not an integer from 0 to 10",
    ]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("alone")
def test_a_supervisor_gives_up_on_what_another_try_does_not_repair(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ran = run_command("run", "--root-dir", str(tmp_path / "file"), "--supervise", "--port", "0")
    assert ran.returncode == 2
    assert ran.stderr.startswith(f"podstatus: cannot use {tmp_path}/file: ")
