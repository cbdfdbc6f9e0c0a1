"""Every fact that rules may ask for: its name, its type, and what it means.

Names are those of CEL: `pod.restarts10m`. What is not known is -1, or empty; never missing.
"""

from typing import Literal

import msgspec

from podstatus.alerts.rule import Scope

Kind = Literal["string", "bool", "int", "double", "map(string, string)", "list(map(string, dyn))"]
"""As CEL calls them."""


class Fact(msgspec.Struct, frozen=True):
    """Something that is known of a pod, a node, or how far the API server has it."""

    name: str
    kind: Kind
    meaning: str


POD_FACTS = (
    Fact("pod.name", "string", "Its name."),
    Fact("pod.namespace", "string", "Its namespace."),
    Fact("pod.uid", "string", "Its UID."),
    Fact("pod.node", "string", "The node that it is on; empty if none has taken it."),
    Fact("pod.labels", "map(string, string)", "Its labels."),
    Fact("pod.phase", "string", "`Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`."),
    Fact("pod.reason", "string", "Why it is in this phase, in a word: `Evicted`; often empty."),
    Fact("pod.message", "string", "The same in a sentence, 512 characters of it at most."),
    Fact("pod.qos", "string", "`Guaranteed`, `Burstable` or `BestEffort`."),
    Fact("pod.static", "bool", "Whether it comes from a file or URL of the node."),
    Fact("pod.ready", "bool", "Whether its condition Ready is True."),
    Fact("pod.terminating", "bool", "Whether somebody has asked for its deletion."),
    Fact("pod.overdue", "bool", "Whether the time that this deletion may take is over."),
    Fact("pod.restarts", "int", "How often its containers were started again, all together."),
    Fact("pod.health", "string", "How it is, in the word that `podstatus get pods -o wide` has."),
    Fact("pod.conditions", "map(string, string)", "The status of each condition, by its type."),
    Fact("pod.containers", "list(map(string, dyn))", "Its containers, init containers first."),
    Fact("pod.readyChanges10m", "int", "How often it became Ready or ceased to be, in 10 minutes."),
    Fact("pod.restarts10m", "int", "How often its containers were started again in 10 minutes."),
    Fact("pod.foreignWrites10m", "int", "How often others wrote its status, in 10 minutes."),
)

CONTAINER_FACTS = (
    Fact("name", "string", "Its name."),
    Fact("kind", "string", "`container`, `init`, `sidecar` or `ephemeral`."),
    Fact("image", "string", "Its image, as the spec has it."),
    Fact("state", "string", "`running`, `waiting` or `terminated`; empty if nothing is known yet."),
    Fact("reason", "string", "Why it waits, or has ended: `CrashLoopBackOff`, `OOMKilled`."),
    Fact("exitCode", "int", "What it ended with; -1 if it has not."),
    Fact("message", "string", "Why, in a sentence, 512 characters of it at most."),
    Fact("lastReason", "string", "Why the attempt before this one ended; empty if there was none."),
    Fact("lastExitCode", "int", "What that one ended with; -1 if there was none."),
    Fact("ready", "bool", "Whether it is ready."),
    Fact("started", "bool", "Whether it runs and its startup probe, if any, has succeeded."),
    Fact("restarts", "int", "How often it was started again."),
)
"""Of each element of `pod.containers`."""

NODE_FACTS = (
    Fact("node.name", "string", "Its name."),
    Fact("node.ready", "bool", "Whether its condition Ready is True."),
    Fact("node.reason", "string", "Why it is so, in a word: `KubeletNotReady`."),
    Fact("node.conditions", "map(string, string)", "The status of each condition, by its type."),
    Fact("node.labels", "map(string, string)", "Its labels."),
    Fact("node.pods", "int", "How many pods it has that have not ended."),
    Fact("node.leaseAgeSeconds", "int", "Since when its lease has not been renewed."),
    Fact("node.cpuUsedFraction", "double", "The part of its CPUs that is used: 0.0 to 1.0."),
    Fact("node.memoryUsedFraction", "double", "The part of its memory that is used: 0.0 to 1.0."),
    Fact("node.diskUsedFraction", "double", "The part of the disk of the agent's root-dir."),
    Fact("node.diskFullInSeconds", "int", "When that is full if it goes on so; -1 also if never."),
    Fact(
        "node.clockSkewSeconds",
        "int",
        "How far its clock is from the API server's, either way; 0 also if that is not known.",
    ),
    Fact(
        "node.rulesOverBudget",
        "string",
        "Alert rules that were switched off because they took too long or too much memory.",
    ),
)

SYNC_FACTS = (
    Fact("sync.unsent", "int", "Pods with something that the API server has not acknowledged."),
    Fact("sync.oldestUnsentSeconds", "int", "How long the oldest of that has waited."),
    Fact("sync.inFlight", "int", "Statuses that are being sent."),
    Fact("sync.quarantined", "int", "Pods whose status the API server rejects."),
    Fact("sync.outbox", "int", "Last statuses on the disk that have not arrived."),
    Fact("sync.serverReachable", "bool", "Whether the API server answers."),
    Fact("sync.serverAgeSeconds", "int", "Since when it has not been heard."),
)
"""Of an agent alone."""

FACTS: dict[Scope, tuple[Fact, ...]] = {"pod": POD_FACTS, "node": NODE_FACTS + SYNC_FACTS}
"""What a rule of each scope may ask for."""
