"""System-critical pods, and the names by which an action may still include them.

Upstream: IsCriticalPod, pkg/kubelet/types/pod_update.go, v1.36: static pods, mirror pods, and a
priority of 2000000000 or more. Here the priority class is enough: an API server without the
Priority admission plugin, such as the embedded one, sets no priority. Static pods are judged by
their priority alone: on a node without a cluster all pods are static.
"""

import re

from podstatus.kube.objects.pod import SYSTEM_CRITICAL_PRIORITY, Pod

CRITICAL_CLASSES = ("system-node-critical", "system-cluster-critical")
_NAME = re.compile(r"([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)/([a-z0-9][a-z0-9.-]{0,252})(\*?)")


def criticality(pod: Pod) -> str:
    """Return why a pod is critical: its priority class or its priority; empty if it is not."""
    if pod.spec.priority_class_name in CRITICAL_CLASSES:
        return pod.spec.priority_class_name
    priority = pod.spec.priority or 0
    return f"of priority {priority}" if priority >= SYSTEM_CRITICAL_PRIORITY else ""


def matches_name(pod: Pod, names: str) -> bool:
    """True if the pod matches one of these names: `ns/name, ns/name-*`."""
    for part in names.split(","):
        match = _NAME.fullmatch(part.strip())
        if match is None or match[1] != pod.namespace:
            continue
        if pod.name == match[2] or (match[3] and pod.name.startswith(match[2])):
            return True
    return False


def pod_names_error(text: str) -> str:
    """Return the error in a list of pod names; empty if it is valid."""
    is_valid = all(_NAME.fullmatch(part.strip()) for part in text.split(","))
    return (
        "" if is_valid else "must be names with namespaces: kube-system/dns-1, kube-system/proxy-*"
    )
