"""Events of the status manager: its port `PodEvents`, fulfilled by a recorder."""

from typing import Protocol

from podstatus.events.recorder import Recorder
from podstatus.kube.references import ObjectReference


class NamedPod(Protocol):
    """Which pod is meant, as the API server knows it."""

    @property
    def namespace(self) -> str:
        """The namespace it is in."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def uid(self) -> str:
        """The UID of the object."""


class StatusEvents:
    """Records what the status manager has to tell about pods."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def warn(self, pod: NamedPod, reason: str, message: str) -> None:
        """Record an event of type Warning."""
        about = ObjectReference(
            kind="Pod", api_version="v1", namespace=pod.namespace, name=pod.name, uid=pod.uid
        )
        self._recorder.warn(about, reason, message)
