"""Whether what the API shows of a pod is what really happened. Pure; answers are complaints."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import msgspec

from tests.soak.kinds import EXPECTED
from tests.soak.truth import KILLED, Attempt, Told
from tests.support.processes.agent_process import Document, condition

UNKNOWN = "ContainerStatusUnknown"
ENDED = ("Succeeded", "Failed")
RESTART_SECONDS = 30
"""Within which whoever is to be started again is; the agent's longest back-off is 4."""
_BY_SIGNAL = (KILLED, 143)
"""Of one that said nothing: killed, or asked to end before it was ready for that."""


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """The truth about a pod."""

    told: Mapping[str, Told]
    """By the name of the container."""
    alive: frozenset[str]
    """The containers of which processes are there."""
    disk_was_full: bool = False
    """While it was there: starts may have failed, and last words may be lost."""
    now: float
    """Seconds since the epoch, by the clock of containers."""

    @property
    def touched(self) -> bool:
        """Whether the campaign killed something of it."""
        return any(told.kills for told in self.told.values())


def judge(pod: Document, known: Known) -> list[str]:
    """What is wrong with a pod that nobody has deleted, once all has settled."""
    return [
        *(
            f"{status['name']}: {complaint}"
            for status in statuses(pod)
            for complaint in _judge_container(status, known)
        ),
        *_judge_phase(pod, known),
        *_judge_restarts(pod, known),
        *judge_readiness(pod),
        *_judge_expected(pod),
    ]


def judge_last_words(pod: Document, known: Known) -> list[str]:
    """What is wrong with the last that was shown of a pod that was deleted with a grace."""
    complaints = []
    for status in statuses(pod):
        told = known.told.get(status["name"], Told())
        if told.last is None:
            continue
        end = status["state"].get("terminated")
        if end is None:
            complaints.append(f"{status['name']}: its end was never shown: {status['state']}")
        else:
            complaints += [f"{status['name']}: {it}" for it in judge_end(end, told)]
    return complaints


def judge_end(end: Document, told: Told) -> list[str]:
    """What is wrong with an end that is shown, whichever attempt it is of."""
    code, words = end["exitCode"], end.get("message", "")
    if end.get("reason") == UNKNOWN:
        # Of one that was never started, too, once its pod is over, as upstream.
        may_be = told.kills or not told.attempts
        return [] if may_be else [f"{UNKNOWN}, but nobody killed what looks after it"]
    if words.isdigit() and (attempt := told.attempt(int(words))):
        if code in _codes(attempt):
            return []
        return [f"attempt {words} ended with {attempt.code}, {code} is shown"]
    if code == 128 and end.get("reason") == "StartError":
        return []
    if not words and code in _BY_SIGNAL:  # an attempt that was killed before its first word
        return []
    if any(code in _codes(attempt) for attempt in told.attempts):
        return []
    return [f"no attempt ended with {code}, which is shown"]


def judge_readiness(pod: Document) -> list[str]:
    """An ended pod is not ready."""
    phase = pod["status"].get("phase")
    if phase in ENDED and condition(pod, "Ready").get("status") == "True":
        return [f"it is {phase} and Ready"]
    return []


def _judge_expected(pod: Document) -> Iterator[str]:
    """What its probes say is what is shown."""
    wanted = (pod["metadata"].get("labels") or {}).get(EXPECTED)
    is_ready = condition(pod, "Ready").get("status")
    if wanted and pod["status"].get("phase") == "Running" and is_ready != wanted:
        yield f"its probes say Ready={wanted}, shown is {is_ready}"


def statuses(pod: Document) -> list[Document]:
    """Of all its containers, the initial ones first."""
    status = pod["status"]
    return [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]


def policy_of(pod: Document, name: str) -> str:
    """Whether a container is started again."""
    spec = pod["spec"]
    for container in spec.get("initContainers") or ():
        if container["name"] == name:
            whole = "OnFailure" if spec["restartPolicy"] == "Always" else spec["restartPolicy"]
            return str(container.get("restartPolicy", whole))
    return str(spec["restartPolicy"])


def _codes(attempt: Attempt) -> set[int]:
    if attempt.code is None:
        return set(_BY_SIGNAL)
    return {attempt.code, KILLED} if attempt.killed else {attempt.code}


def _judge_container(status: Document, known: Known) -> Iterator[str]:
    name, state = status["name"], status["state"]
    told = known.told.get(name, Told())
    if ("running" in state) != (name in known.alive):
        how = "runs" if name in known.alive else "does not run"
        yield f"it {how}, shown is {state}"
    for end in _ends(status):
        yield from judge_end(end, told)
    yield from _judge_newest(status, told)
    yield from _judge_count(status, known, told)


def _judge_newest(status: Document, told: Told) -> Iterator[str]:
    """The end of the last attempt is there, and not one of those before it."""
    last, state = told.last, status["state"]
    if last is None or "running" in state:
        return
    shown = _newest_end(status)
    if shown is None:
        yield f"attempt {last.number} has ended and no end is shown: {state}"
    elif last.code is not None and not told.kills and shown["exitCode"] != last.code:
        yield f"attempt {last.number} ended with {last.code}, shown is {shown}"


def _judge_count(status: Document, known: Known, told: Told) -> Iterator[str]:
    count, starts = status["restartCount"], len(told.attempts)
    if not starts:
        return
    if count < starts - 1:
        yield f"it was started {starts} times, restartCount is {count}"
    elif count > starts - 1 and not (known.touched or known.disk_was_full):
        yield f"it was started {starts} times only, restartCount is {count}"


def _judge_restarts(pod: Document, known: Known) -> Iterator[str]:
    """Who is to be started again is, in time."""
    if pod["status"].get("phase") in ENDED:
        return
    for status in statuses(pod):
        end, policy = _newest_end(status), policy_of(pod, status["name"])
        if "running" in status["state"] or end is None or not end.get("finishedAt"):
            continue
        if end.get("reason") == UNKNOWN:  # noticed by the clock of the agent, which jumps
            continue
        seconds = known.now - datetime.fromisoformat(end["finishedAt"]).timestamp()
        if _starts_again(policy, end["exitCode"]) and seconds > RESTART_SECONDS:
            yield f"{status['name']}: ended {seconds:.0f} s ago, not started again ({policy})"


def _judge_phase(pod: Document, known: Known) -> Iterator[str]:
    phase = pod["status"].get("phase")
    if not known.touched and not known.disk_was_full:
        wanted = _phase(pod, known)
        if phase != wanted:
            yield f"its phase is {phase}, {wanted} would be right"
    elif phase in ENDED and known.alive:
        yield f"its phase is {phase}, and {', '.join(sorted(known.alive))} run on"


def _phase(pod: Document, known: Known) -> str:
    spec = pod["spec"]
    names = [container["name"] for container in spec["containers"]]
    lasts = [known.told.get(name, Told()).last for name in names]
    if all(last is None for last in lasts):
        return "Failed" if _init_failed(spec, known) else "Pending"
    if any(name in known.alive for name in names):
        return "Running"
    codes = [last.code for last in lasts if last is not None]
    if len(codes) < len(names) or any(_starts_again(spec["restartPolicy"], code) for code in codes):
        return "Running"
    return "Succeeded" if not any(codes) else "Failed"


def _init_failed(spec: Document, known: Known) -> bool:
    if spec["restartPolicy"] != "Never":
        return False
    lasts: Sequence[Attempt | None] = [
        known.told.get(container["name"], Told()).last
        for container in spec.get("initContainers") or ()
        if container.get("restartPolicy") != "Always"
    ]
    return any(last is not None and last.code not in (0, None) for last in lasts)


def _starts_again(policy: str, code: int | None) -> bool:
    return policy == "Always" or (policy == "OnFailure" and code != 0)


def _newest_end(status: Document) -> Document | None:
    return next(iter(_ends(status)), None)


def _ends(status: Document) -> Iterator[Document]:
    for state in (status["state"], status.get("lastState", {})):
        if "terminated" in state:
            yield state["terminated"]
