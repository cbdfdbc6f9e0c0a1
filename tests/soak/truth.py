"""What really happened, known without podstatus: from the containers themselves and /proc.

A container's file has lines `start N`, `end N CODE`, and `kill` where the campaign itself was
about to kill it or whoever looks after it.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from tests.soak.kinds import CONTAINER, RUN, UID

KILLED = 137
Key = tuple[str, str]
"""The UID of a pod, and a container of it."""


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a container."""

    number: int
    code: int | None = None
    """What it was about to end with; None if it never said."""
    killed: bool = False
    """Whether the campaign killed it, or what looks after it."""


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """All that became of one container of a pod."""

    attempts: tuple[Attempt, ...] = ()
    kills: int = 0
    """By the campaign; one may have hit before the container could say that it started."""

    @property
    def last(self) -> Attempt | None:
        return self.attempts[-1] if self.attempts else None

    def attempt(self, number: int) -> Attempt | None:
        """That of this number, from 1."""
        return self.attempts[number - 1] if 1 <= number <= len(self.attempts) else None


def parse_told(text: str) -> Told:
    """What the file of a container says."""
    attempts: list[Attempt] = []
    kills = 0
    for line in text.splitlines():
        match line.split():
            case ["start", number]:
                attempts.append(Attempt(number=int(number)))
            case ["end", number, code]:
                attempts[-1] = Attempt(
                    number=int(number), code=int(code), killed=attempts[-1].killed
                )
            case ["kill"]:
                kills += 1
                if attempts:
                    attempts[-1] = msgspec.structs.replace(attempts[-1], killed=True)
    return Told(attempts=tuple(attempts), kills=kills)


class Truth:
    """The folder that containers write to, and this machine's processes."""

    def __init__(self, folder: Path, run: str) -> None:
        self.folder = folder
        self._mark = f"{RUN}={run}".encode()

    def told(self, uid: str, container: str) -> Told:
        """What became of a container so far."""
        with suppress(FileNotFoundError):
            return parse_told((self.folder / f"{uid}.{container}").read_text())
        return Told()

    def will_kill(self, uid: str, containers: Iterable[str]) -> None:
        """Write down that the campaign is about to kill these."""
        for container in containers:
            with (self.folder / f"{uid}.{container}").open("a") as file:
                file.write("kill\n")

    def alive(self) -> dict[Key, list[int]]:
        """The processes of this campaign's containers, by whose they are."""
        found: dict[Key, list[int]] = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and (variables := self._variables(entry)):
                key = variables.get(UID, ""), variables.get(CONTAINER, "")
                found.setdefault(key, []).append(int(entry.name))
        return found

    def _variables(self, process: Path) -> Mapping[str, str]:
        with suppress(OSError):  # it has ended
            environment = (process / "environ").read_bytes()
            if self._mark in environment:
                pairs = (word.partition(b"=") for word in environment.split(b"\0"))
                return {name.decode(): value.decode(errors="replace") for name, _, value in pairs}
        return {}
