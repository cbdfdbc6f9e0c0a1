"""The kinds of pods a campaign runs: each container says itself what really becomes of it.

A container appends to a file of its own, outside of the agent's folders: `start 1` when it
begins, `end 1 7` right before it ends with 7. Its last words are the number of the attempt.
A kind is a function that returns a spec, in `KINDS`.
"""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from podstatus.testing.servers.free_port import free_port
from tests.support.processes.agent_process import Document

RUN, UID, CONTAINER = "SOAK_RUN", "SOAK_UID", "SOAK_CONTAINER"
"""Variables by which a process is found to belong to a campaign, a pod, a container."""

EXPECTED = "soak-ready"
"""A label: whether the pod is Ready, True or False, once all is calm."""

_PRELUDE = """
n=$(( $(grep -c start "$SOAK_TRUTH" 2>/dev/null) + 1 ))
echo "start $n" >> "$SOAK_TRUTH"
end() { printf %s "$n" > "$SOAK_MESSAGE"; echo "end $n $1" >> "$SOAK_TRUTH"; exit "$1"; }
trap 'end 0' TERM
"""
_RUN = "sleep 1000 & wait"
_STUBBORN = "trap '' TERM; while :; do sleep 1; done"
_DAEMON = "(setsid sh -c 'trap \"\" TERM HUP INT; exec sleep 1000' > /dev/null 2>&1 &)\n" + _RUN
_SERVER = """exec python3 -I -S -c '
import os, signal, socketserver
def end(*_):
    n, truth = os.environ["N"], os.environ["SOAK_TRUTH"]
    open(os.environ["SOAK_MESSAGE"], "w").write(n)
    open(truth, "a").write("end " + n + " 0\\n")
    os._exit(0)
signal.signal(signal.SIGTERM, end)
class Answer(socketserver.StreamRequestHandler):
    def handle(self):
        self.connection.settimeout(2)
        self.rfile.readline()
        self.wfile.write(b"HTTP/1.0 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok")
socketserver.TCPServer.allow_reuse_address = True
socketserver.ThreadingTCPServer(("", PORT), Answer).serve_forever()
'"""
_CHATTY = "yes 'a line of a log that grows and grows' | head -n 30000\n" + _RUN


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """What specs have to know of where they run."""

    run: str
    node: str
    isolated: bool
    truth: Path


class Maker:
    """Makes containers and specs for a machine, by chance."""

    def __init__(self, machine: Machine, chance: random.Random) -> None:
        self.machine = machine
        self.chance = chance

    def container(self, script: str, name: str = "app", **more: Any) -> Document:
        """One that tells the truth, then does what the script says."""
        message = "/dev/termination-log"
        if not self.machine.isolated:
            message = f"/tmp/soak-{self.machine.run}-{self.chance.randbytes(6).hex()}"  # noqa: S108
        env = [
            {"name": RUN, "value": self.machine.run},
            {"name": UID, "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
            {"name": CONTAINER, "value": name},
            {"name": "SOAK_TRUTH", "value": f"{self.machine.truth}/$({UID}).{name}"},
            {"name": "SOAK_MESSAGE", "value": message},
        ]
        made = {
            "name": name,
            "image": "soak",
            "command": ["sh", "-c", _PRELUDE + script],
            "env": env,
            "terminationMessagePath": message,
            **more,
        }
        if self.machine.isolated:
            made["volumeMounts"] = [{"name": "truth", "mountPath": str(self.machine.truth)}]
        return made

    def spec(self, *containers: Document, policy: str = "Always", **more: Any) -> Document:
        """Of a pod for the campaign's node."""
        volume = {"name": "truth", "hostPath": {"path": str(self.machine.truth)}}
        return {
            "nodeName": self.machine.node,
            "restartPolicy": policy,
            "terminationGracePeriodSeconds": self.chance.choice((1, 2, 5)),
            "automountServiceAccountToken": False,
            "containers": list(containers),
            "volumes": [volume] if self.machine.isolated else [],
            **more,
        }

    def ends(self, *codes: int) -> str:
        """A script that ends after a while, with one of these codes."""
        return f"sleep {self.chance.uniform(0.1, 4):.2f}; end {self.chance.choice(codes)}"


def _service(make: Maker) -> Document:
    return make.spec(make.container(_RUN))


def _job(make: Maker) -> Document:
    return make.spec(make.container(make.ends(0, 0, 3, 7, 137)), policy="Never")


def _crash_loop(make: Maker) -> Document:
    """Each attempt ends with another code, so that none can be taken for another."""
    script = "sleep 0.2; end $(( n % 100 + 1 ))"
    return make.spec(make.container(script))


def _tries_again(make: Maker) -> Document:
    fails = make.chance.randint(1, 2)
    script = f'sleep 0.2; [ "$n" -le {fails} ] && end 9; end 0'
    return make.spec(make.container(script), policy="OnFailure")


def _killed_by_itself(make: Maker) -> Document:
    if make.machine.isolated:  # process 1 of a pid namespace cannot
        return _job(make)
    says = 'printf %s "$n" > "$SOAK_MESSAGE"; echo "end $n 137" >> "$SOAK_TRUTH"'
    # In a spec $$ stands for one $.
    return make.spec(make.container(f"sleep 0.5; {says}; kill -9 $$$$"), policy="Never")


def _init(make: Maker) -> Document:
    first = make.container(make.ends(0), "first")
    second = make.container(make.ends(0), "second")
    return make.spec(make.container(_RUN), initContainers=[first, second])


def _init_fails(make: Maker) -> Document:
    first = make.container(make.ends(5), "first")
    return make.spec(make.container(_RUN), policy="Never", initContainers=[first])


def _sidecar(make: Maker) -> Document:
    sidecar = make.container(_RUN, "sidecar", restartPolicy="Always")
    return make.spec(make.container(make.ends(0, 4)), policy="Never", initContainers=[sidecar])


def _two(make: Maker) -> Document:
    both = make.container(_RUN, "a"), make.container(make.ends(0, 6), "b")
    return make.spec(*both, policy=make.chance.choice(("Never", "Always")))


def _stubborn(make: Maker) -> Document:
    return make.spec(make.container(_STUBBORN), terminationGracePeriodSeconds=1)


def _daemon(make: Maker) -> Document:
    return make.spec(make.container(_DAEMON))


def _chatty(make: Maker) -> Document:
    return make.spec(make.container(_CHATTY))


def _probed(make: Maker) -> Document:
    """Ready or not, as its probe says; what a startup probe holds back is let go."""
    ready = make.chance.random() < 0.7
    probes: Document = {
        "startupProbe": {"exec": {"command": ["true"]}, "periodSeconds": 1},
        "readinessProbe": {"exec": {"command": [str(ready).lower()]}, "periodSeconds": 2},
    }
    return make.spec(make.container(_RUN, **probes)) | {EXPECTED: str(ready)}


def _serves(make: Maker) -> Document:
    port = free_port()
    how = make.chance.choice(({"httpGet": {"port": port}}, {"tcpSocket": {"port": port}}))
    probe = {**how, "periodSeconds": 1, "timeoutSeconds": 2}
    script = "export N=$n\n" + _SERVER.replace("PORT", str(port))
    made = make.container(script, readinessProbe=probe, livenessProbe={**how, "periodSeconds": 5})
    return make.spec(made) | {EXPECTED: "True"}


def _sick(make: Maker) -> Document:
    """Its liveness probe has it started again and again."""
    probe = {"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 2}
    grace: Document = {"terminationGracePeriodSeconds": 2}
    return make.spec(make.container(_RUN, livenessProbe=probe), **grace)


def _hooks(make: Maker) -> Document:
    hooks = {
        "postStart": {"exec": {"command": ["sleep", "0.2"]}},
        "preStop": make.chance.choice(
            ({"exec": {"command": ["sleep", "0.5"]}}, {"sleep": {"seconds": 1}})
        ),
    }
    return make.spec(make.container(_RUN, lifecycle=hooks)) | {EXPECTED: "True"}


Kind = Callable[[Maker], Document]
KINDS: dict[str, tuple[int, Kind]] = {
    "service": (8, _service),
    "job": (6, _job),
    "crash-loop": (3, _crash_loop),
    "tries-again": (3, _tries_again),
    "kills-itself": (2, _killed_by_itself),
    "init": (3, _init),
    "init-fails": (1, _init_fails),
    "sidecar": (2, _sidecar),
    "two": (3, _two),
    "stubborn": (2, _stubborn),
    "daemon": (2, _daemon),
    "chatty": (1, _chatty),
    "probed": (4, _probed),
    "serves": (3, _serves),
    "sick": (1, _sick),
    "hooks": (3, _hooks),
}
"""How often, and what."""


def any_kind(chance: random.Random) -> str:
    """One of them, by how often it is wanted."""
    return chance.choices([*KINDS], [weight for weight, _ in KINDS.values()])[0]


def make_pod(kind: str, name: str, make: Maker) -> Document:
    """A pod of this kind."""
    spec = KINDS[kind][1](make)
    labels = {"kind": kind}
    if expected := spec.pop(EXPECTED, ""):
        labels[EXPECTED] = expected
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": spec,
    }
