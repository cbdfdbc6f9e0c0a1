"""The pods bound to a node, put where the status manager looks for them."""

from collections.abc import Callable
from typing import Protocol

from podstatus.client.reflector import Reflector
from podstatus.client.replica import Added, Change, Removed, Updated
from podstatus.client.resources import PODS
from podstatus.client.source import Source
from podstatus.kube.objects.pod import Pod


class PodWatcher(Protocol):
    """Who wants to see the pods of a node: `podstatus.PodDirectory` does."""

    def update_pod(self, pod: Pod) -> None:
        """A pod is new or has changed."""

    def remove_pod(self, pod: Pod) -> None:
        """A pod is gone."""


def pod_reflector(source: Source, node: str, watcher: PodWatcher) -> Reflector[Pod]:
    """A reflector of the pods of a node that tells this one; `run()` it."""
    return Reflector(source, PODS, Pod, telling(watcher), field_selector=f"spec.nodeName={node}")


def telling(watcher: PodWatcher) -> Callable[[Change[Pod]], None]:
    """A handler for changes of pods."""

    def tell(change: Change[Pod]) -> None:
        match change:
            case Added(new) | Updated(_, new):
                watcher.update_pod(new)
            case Removed(last):
                watcher.remove_pod(last)

    return tell
