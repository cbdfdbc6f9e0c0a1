"""Pods and containers that no worker has started."""

from podstatus.kube.objects.pod import Pod
from tests.support.node_in_memory import NodeInMemory, a_pod


async def start_behind_its_back(node: NodeInMemory, pod: Pod) -> None:
    """The runtime has a pod that no source delivers."""
    await node.runtime.start_pod(pod)
    assert pod.spec.containers is not None
    await node.runtime.start_container(pod, pod.spec.containers[0], restart_count=0)


def a_static_pod(script: str = "", *, uid: str = "uid-s", policy: str = "Always") -> Pod:
    pod = a_pod("s", script, uid=uid, policy=policy)
    assert pod.metadata.annotations is not None
    pod.metadata.annotations["kubernetes.io/config.source"] = "file"
    return pod
