"""What several services of this package depend on."""

import msgspec

from podstatus.base.clock import Clock
from podstatus.events.recorder import EventRecorder
from podstatus.pods.pod_manager import PodManager
from podstatus.runtime.pleg import Pleg
from podstatus.runtime.port import Runtime
from podstatus.status.manager import StatusManager
from podstatus.workers.lifecycle.pod_registry import PodRegistry
from podstatus.workers.policy import WorkerPolicy
from podstatus.workers.ports import WorkObserver


class WorkerDependencies(msgspec.Struct, frozen=True, kw_only=True):
    """The node's pods, their runtime and their statuses, and how to report on them."""

    runtime: Runtime
    pleg: Pleg
    pod_manager: PodManager
    registry: PodRegistry
    statuses: StatusManager
    recorder: EventRecorder
    clock: Clock
    policy: WorkerPolicy
    observer: WorkObserver
