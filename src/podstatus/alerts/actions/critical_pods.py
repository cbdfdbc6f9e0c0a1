"""Pods that a node or a cluster does not work without, and rules that name them all the same.

Upstream: IsCriticalPod, pkg/kubelet/types/pod_update.go, v1.36: static pods, mirror pods, and a
priority of 2000000000 or more. A class is enough here: an API server without the Priority
admission plugin, as the embedded one, sets no priority. Static pods count by their priority alone:
on a node without a cluster all pods are static.
"""

import re

from podstatus.kube.objects.pod import Pod

CRITICAL_PRIORITY = 2_000_000_000
"""Upstream: SystemCriticalPriority, pkg/apis/scheduling/types.go."""
CRITICAL_CLASSES = ("system-node-critical", "system-cluster-critical")
_NAME = re.compile(r"([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)/([a-z0-9][a-z0-9.-]{0,252})(\*?)")


def criticality(pod: Pod) -> str:
    """Why a pod is critical, `system-node-critical` or its priority; empty: it is not."""
    if pod.spec.priority_class_name in CRITICAL_CLASSES:
        return pod.spec.priority_class_name
    priority = pod.spec.priority or 0
    return f"of priority {priority}" if priority >= CRITICAL_PRIORITY else ""


def matches_name(pod: Pod, names: str) -> bool:
    """Whether one of these names, `ns/name, ns/name-*`, is that of the pod."""
    for part in names.split(","):
        found = _NAME.fullmatch(part.strip())
        if found is None or found[1] != pod.namespace:
            continue
        if pod.name == found[2] or (found[3] and pod.name.startswith(found[2])):
            return True
    return False


def pod_names_error(text: str) -> str:
    """What is wrong with a list of names of pods; empty: nothing."""
    right = all(_NAME.fullmatch(part.strip()) for part in text.split(","))
    return "" if right else "must be names with namespaces: kube-system/dns-1, kube-system/proxy-*"
