"""What goes wrong: each fault does its harm and makes it good again, while pods come and go."""

import os
import random
import signal
import time
from collections.abc import Callable
from contextlib import suppress

import msgspec
import psutil

from podstatus.kube.objects.pod import PodUID
from podstatus.runtime.process.records.layout import ContainerFolder, PodFolder
from podstatus.runtime.process.records.models import LaunchRecord, ShimRecord, StartRecord
from tests.soak.churn import Churn
from tests.soak.proxy import Way
from tests.soak.stage import Stage
from tests.soak.truth import Truth
from tests.support.processes.mortal_node import read
from tests.support.processes.skewed_agent import set_offset

FAULTS_PATH = "/podstatus/faults"
_STARTS_SECONDS = 3.0
"""How long it is waited for a container that starts."""
_FORCED = "not everything ended within"
_HOUR = 3600.0
_STATUS = {"verb": "patch", "resource": "pods/status"}
_ANSWERS: tuple[list[dict[str, object]], ...] = (
    [{**_STATUS, "code": 500, "times": 10}],
    [{**_STATUS, "code": 409, "times": 10}],
    [{**_STATUS, "action": "lose", "times": 5}],
    [{"code": 429, "retryAfter": 1, "times": 10}],
    [{"code": 503, "times": 20}],
    [{"verb": "watch", "action": "cut", "code": 410, "times": 2}],
    [{"verb": "watch", "action": "compact", "times": 1}, {"verb": "watch", "action": "cut"}],
    [{"verb": "delete", "resource": "pods", "code": 500, "times": 5}],
    [{"latency": 0.3}],
)


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of fault."""

    name: str
    group: str
    """`kill`, `outage`, `jump` (of the wall clock, by 1 h), or `other`."""
    weight: int
    do: Callable[[], bool]
    """Do it; whether there was anything to do it to."""
    not_tried: str = ""
    """Why it cannot be done here."""


class Faults:
    """All kinds, on one stage."""

    def __init__(self, stage: Stage, churn: Churn, truth: Truth, chance: random.Random) -> None:
        self._stage, self._churn, self._truth = stage, churn, truth
        self._chance = chance
        self.complaints: list[str] = []
        self.forced = 0
        """Stops that took too long: on a busy machine that may be."""
        self.on_full_disk: Callable[[], None] = lambda: None

    def all(self) -> list[Fault]:
        """Every kind."""
        no_disk = "" if self._stage.has_own_disk else "needs root, for a disk of its own"
        return [
            _kill("agent, SIGKILL", 30, self._kill_agent),
            _kill("agent, SIGTERM", 6, self._stop_agent),
            _kill("API server, SIGKILL", 8, self._kill_server),
            _kill("shim, SIGKILL", 10, self._kill_shim),
            _kill("monitor, SIGKILL", 8, self._kill_monitor),
            _kill("start, SIGKILL", 6, self._kill_starting),
            _kill("container, SIGKILL", 10, self._kill_command),
            _other("agent, SIGSTOP", 4, self._freeze_agent),
            _outage("API server, SIGSTOP", 2, self._freeze_server),
            _outage("network, refused", 3, lambda: self._network(Way.REFUSED)),
            _outage("network, silent", 3, lambda: self._network(Way.SILENT)),
            _outage("network, reset", 3, lambda: self._network(Way.LOSSY)),
            _outage("network, slow", 1, lambda: self._network(Way.SLOW)),
            _other("API server, answers", 6, self._answers),
            _jump("clock, 1 h", 6, lambda: self._jump(_HOUR)),
            _jump("clock, 1 h, agent SIGKILL", 4, self._jump_and_kill),
            _other("clock, 10 s", 2, lambda: self._jump(10.0)),
            msgspec.structs.replace(_other("disk, full", 4, self._fill_disk), not_tried=no_disk),
        ]

    def heal(self) -> None:
        """Let nothing be wrong any more, and the agent run."""
        self._stage.server.ask("DELETE", FAULTS_PATH)
        if not self._stage.node.is_running:
            self._stage.node.start()

    def _pause(self, least: float, most: float) -> None:
        self._churn.go_on(self._chance.uniform(least, most))

    def _kill_agent(self) -> bool:
        self._stage.node.kill()
        if self._chance.random() < 0.5:
            self._pause(0, 5)
        self._stage.node.start()
        return True

    def _stop_agent(self) -> bool:
        """One that is still starting may be ended by the signal itself."""
        code = self._stage.node.stop()
        if code == 1 and _FORCED in self._stage.node.log()[-200:]:
            self.forced += 1
        elif code not in (0, -signal.SIGTERM):
            self.complaints.append(f"the agent was asked to end, and did so with {code}")
        self._stage.node.start()
        return True

    def _freeze_agent(self) -> bool:
        self._stage.node.send(signal.SIGSTOP)
        self._pause(1, 4)
        self._stage.node.send(signal.SIGCONT)
        return True

    def _kill_server(self) -> bool:
        self._stage.server.kill()
        self._pause(0, 3)
        self._stage.server.start()
        return True

    def _freeze_server(self) -> bool:
        self._stage.server.send(signal.SIGSTOP)
        # The churn would get no response.
        signal.sigtimedwait((), self._chance.uniform(1, 4))
        self._stage.server.send(signal.SIGCONT)
        return True

    def _network(self, way: Way) -> bool:
        self._stage.proxy.turn(way)
        self._pause(1, 6)
        self._stage.proxy.turn(Way.OPEN)
        return True

    def _answers(self) -> bool:
        code, _ = self._stage.server.ask("PUT", FAULTS_PATH, self._chance.choice(_ANSWERS))
        self._pause(1, 3)
        self._stage.server.ask("DELETE", FAULTS_PATH)
        return code == 200

    def _jump(self, seconds: float) -> bool:
        """And back: shims keep the machine's clock, and would not agree for long."""
        set_offset(self._stage.clock, self._chance.choice((-seconds, seconds)))
        self._pause(1, 4)
        set_offset(self._stage.clock, 0)
        return True

    def _jump_and_kill(self) -> bool:
        """The next agent reads what the one before stored by another clock."""
        set_offset(self._stage.clock, self._chance.choice((-_HOUR, _HOUR)))
        self._pause(0, 2)
        self._stage.node.kill()
        self._stage.node.start()
        self._pause(2, 6)
        set_offset(self._stage.clock, 0)
        return True

    def _fill_disk(self) -> bool:
        self._churn.disk_is_full = True
        self.on_full_disk()
        self._stage.fill_disk()
        self._pause(2, 5)
        self._stage.empty_disk()
        self._churn.disk_is_full = False
        self._start_if_refused()
        return True

    def _start_if_refused(self) -> None:
        """An agent that was just starting cannot, on a full disk, and says so: start it again."""
        if not self._stage.node.is_running:
            if (code := self._stage.node.wait()) != 1:
                self.complaints.append(f"the agent ended with {code} because of a full disk")
            self._stage.node.start()

    def _kill_shim(self) -> bool:
        for folder in self._pod_folders():
            with suppress(OSError, msgspec.DecodeError):
                shim = read(folder.shim, ShimRecord).process
                names = {launch.container for _, launch in self._launches(folder)}
                return self._kill(folder, names, shim.pid)
        return False

    def _kill_starting(self) -> bool:
        """Whoever is about to start a container, before it can say that it did."""
        until = time.monotonic() + _STARTS_SECONDS
        while time.monotonic() < until:
            for folder in self._pod_folders():
                for place, launch in self._launches(folder):
                    if place.started.exists() or place.exit.exists():
                        continue
                    with suppress(OSError, ValueError, psutil.NoSuchProcess):
                        shim = read(folder.shim, ShimRecord).process.pid
                        if self._chance.random() < 0.5:
                            names = {launch.container for _, launch in self._launches(folder)}
                            return self._kill(folder, names, shim)
                        (monitor,) = self._unknown_monitors(folder, shim)
                        return self._kill(folder, {launch.container}, monitor)
            self._churn.step()
        return False

    def _unknown_monitors(self, folder: PodFolder, shim: int) -> set[int]:
        known = set()
        for place, _ in self._launches(folder):
            with suppress(OSError, msgspec.DecodeError):
                known.add(read(place.started, StartRecord).monitor.pid)
        return {child.pid for child in psutil.Process(shim).children()} - known

    def _kill_monitor(self) -> bool:
        return self._kill_one(lambda started: started.monitor.pid)

    def _kill_command(self) -> bool:
        return self._kill_one(lambda started: started.process.pid)

    def _kill_one(self, whom: Callable[[StartRecord], int]) -> bool:
        for folder in self._pod_folders():
            for place, launch in self._launches(folder):
                with suppress(OSError, msgspec.DecodeError):
                    if not place.exit.exists():
                        return self._kill(
                            folder, {launch.container}, whom(read(place.started, StartRecord))
                        )
        return False

    def _kill(self, folder: PodFolder, names: set[str], pid: int) -> bool:
        if str(folder.path) not in _family_line(pid):
            return False
        self._truth.will_kill(folder.path.name, names)
        os.kill(pid, signal.SIGKILL)
        return True

    def _pod_folders(self) -> list[PodFolder]:
        names = [path.name for path in self._stage.pod_folders()]
        self._chance.shuffle(names)
        return [PodFolder(self._stage.node.runtime_dir, PodUID(name)) for name in names]

    def _launches(self, folder: PodFolder) -> list[tuple[ContainerFolder, LaunchRecord]]:
        found = []
        with suppress(OSError):
            for path in sorted(folder.containers.iterdir()):
                with suppress(OSError, msgspec.DecodeError):
                    place = ContainerFolder(path)
                    found.append((place, read(place.launch, LaunchRecord)))
        return found


def _family_line(pid: int) -> str:
    """The command lines of a process and those above it: none but a pod's own is killed."""
    lines = []
    while pid > 1:
        try:
            with open(f"/proc/{pid}/cmdline") as file:  # noqa: PTH123
                lines.append(file.read())
            with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123
                pid = int(file.read().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            break
    return "\n".join(lines)


def _kill(name: str, weight: int, do: Callable[[], bool]) -> Fault:
    return Fault(name=name, group="kill", weight=weight, do=do)


def _outage(name: str, weight: int, do: Callable[[], bool]) -> Fault:
    return Fault(name=name, group="outage", weight=weight, do=do)


def _jump(name: str, weight: int, do: Callable[[], bool]) -> Fault:
    return Fault(name=name, group="jump", weight=weight, do=do)


def _other(name: str, weight: int, do: Callable[[], bool]) -> Fault:
    return Fault(name=name, group="other", weight=weight, do=do)
