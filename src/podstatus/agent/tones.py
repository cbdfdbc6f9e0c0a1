"""How the states of a pod are to be seen: good, waiting, failed."""

from enum import IntEnum

from podstatus.observe.transitions.status_transitions import Transition

GOOD_WHEN_FALSE = ("DisruptionTarget", "PodResizePending", "PodResizeInProgress")
_STARTING = ("ContainerCreating", "PodInitializing", "")
TERMINATING = "Terminating"


class Tone(IntEnum):
    """How a state is to be seen; what is worse is greater."""

    GOOD = 0
    DONE = 1
    WAITING = 2
    UNKNOWN = 3
    BACK_OFF = 4
    BAD = 5
    AWAY = 6
    """Nobody was there to see it."""


def short_state(text: str) -> str:
    """A state without the word for its kind, which its tone tells."""
    return text.removeprefix("waiting ").removeprefix("terminated ")


def phase_tone(_: Transition, text: str) -> Tone:
    """Of a phase."""
    tones = {
        "Running": Tone.GOOD,
        "Succeeded": Tone.DONE,
        "Failed": Tone.BAD,
        "Pending": Tone.WAITING,
        TERMINATING: Tone.WAITING,
    }
    return tones.get(text, Tone.UNKNOWN)


def condition_tone(change: Transition, text: str) -> Tone:
    """Of a condition: some are good when they are False."""
    if text not in ("True", "False"):
        return Tone.UNKNOWN
    is_true = text == "True"
    if change.subject in GOOD_WHEN_FALSE:
        return Tone.WAITING if is_true else Tone.DONE
    if is_true:
        return Tone.GOOD
    return {"PodCompleted": Tone.DONE, "PodFailed": Tone.BAD}.get(change.reason, Tone.WAITING)


def container_tone(_: Transition, text: str) -> Tone:
    """Of a container."""
    if text == "running":
        return Tone.GOOD
    if text.startswith("terminated"):
        return Tone.DONE if text.endswith(" 0") else Tone.BAD
    waits_for = short_state(text) if text != "waiting" else ""
    if waits_for in _STARTING:
        return Tone.WAITING
    return Tone.BACK_OFF if waits_for.endswith("BackOff") else Tone.BAD
