"""The state of a container as one value: `{state, reason, exitCode, …}`. Pure.

Everything above the status API uses this struct: summaries, transitions, alerts, the query API and
the commands. Text exists in two places only: in the rows of the history file, which
`format_container_state` writes and `parse_container_state` reads, and where a state is printed for
people.
"""

import sys
from functools import lru_cache

import msgspec

from podstatus.kube.objects.pod_status import ContainerState
from podstatus.kube.scalars.time import UNSET_TIME, Time

WAITING = "waiting"
RUNNING = "running"
TERMINATED = "terminated"
STARTING_REASONS = ("ContainerCreating", "PodInitializing")
"""Reasons to wait of a container that has not been started yet."""
CRASH_LOOP_BACK_OFF = "CrashLoopBackOff"
STATUS_UNKNOWN = "ContainerStatusUnknown"
"""Reason of a container whose end was not observed."""
_MAX_SHARED_STATES = 4096


class ContainerStateSummary(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, rename="camel"
):
    """The state of a container, one of `waiting`, `running` and `terminated`."""

    state: str
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    """Set if and only if the container has terminated."""
    signal: int = 0
    started_at: Time = UNSET_TIME
    """Of a running or terminated container, where it is known."""
    finished_at: Time = UNSET_TIME
    """Of a terminated container, where it is known."""

    @property
    def is_waiting(self) -> bool:
        """Whether the container waits to be started, for the first time or again."""
        return self.state == WAITING

    @property
    def is_running(self) -> bool:
        return self.state == RUNNING

    @property
    def is_terminated(self) -> bool:
        """Whether the container has terminated, with any exit code."""
        return self.state == TERMINATED

    @property
    def is_starting(self) -> bool:
        """Whether the container waits for its first start, and nothing is wrong with it."""
        return self.is_waiting and self.reason in STARTING_REASONS

    @property
    def has_failed(self) -> bool:
        """Whether the container has terminated with an exit code other than 0."""
        return self.is_terminated and self.exit_code != 0

    def brief(self) -> "ContainerStateSummary":
        """State, reason and exit code: what a transition compares and the history file stores."""
        return _shared(self.state, self.reason, self.exit_code)


def brief_container_state(state: ContainerState) -> ContainerStateSummary | None:
    """State, reason and exit code of a `v1.ContainerState`; None if none of its parts is set."""
    if state.running is not None:
        return _shared(RUNNING, "", None)
    if (ended := state.terminated) is not None:
        return _shared(TERMINATED, ended.reason, ended.exit_code)
    return None if state.waiting is None else _shared(WAITING, state.waiting.reason, None)


def format_container_state(state: ContainerStateSummary | None) -> str:
    """`running`, `waiting CrashLoopBackOff`, `terminated Error 3`; empty for None."""
    if state is None:
        return ""
    code = "" if state.exit_code is None else str(state.exit_code)
    return " ".join(filter(None, (state.state, state.reason, code)))


def parse_container_state(text: str) -> ContainerStateSummary | None:
    """The state that `format_container_state` wrote, as in a row of the history file.

    A state or exit code that cannot be read is returned as the reason of the state, so that a row
    of another version is still shown.
    """
    state, _, rest = text.partition(" ")
    if state != TERMINATED:
        return _shared(state, rest, None) if text else None
    reason, _, code = rest.rpartition(" ")
    if code.removeprefix("-").isdecimal():
        return _shared(state, reason, int(code))
    return _shared(state, rest, None)


@lru_cache(maxsize=_MAX_SHARED_STATES)
def _shared(state: str, reason: str, exit_code: int | None) -> ContainerStateSummary:
    return ContainerStateSummary(
        state=sys.intern(state), reason=sys.intern(reason), exit_code=exit_code
    )
