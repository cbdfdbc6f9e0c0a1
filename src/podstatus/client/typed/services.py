"""A reflector for all Services: their addresses and ports."""

from podstatus.base.clock import Clock
from podstatus.client.informer.list_watch_calls import ListerWatcher, ObjectSelection
from podstatus.client.informer.object_store import ObjectChange
from podstatus.client.informer.reflector import Reflector
from podstatus.client.informer.transform import Transform
from podstatus.client.rest.resources import SERVICES
from podstatus.kube.objects.meta import ObjectMeta
from podstatus.kube.objects.service import Service, ServiceSpec


def service_reflector(source: ListerWatcher, clock: Clock) -> Reflector[Service]:
    """Return a reflector for the Services of all namespaces; the caller runs it.

    Of each Service, only its identity, cluster IP and ports are kept.
    """
    kind = Transform(Service, _without_details)
    return Reflector(source, ObjectSelection(SERVICES), kind, _ignore, clock=clock)


def _without_details(service: Service) -> Service:
    metadata, spec = service.metadata, service.spec
    return Service(
        metadata=ObjectMeta(
            name=metadata.name,
            namespace=metadata.namespace,
            uid=metadata.uid,
            resource_version=metadata.resource_version,
        ),
        spec=ServiceSpec(cluster_ip=spec.cluster_ip, ports=spec.ports),
    )


def _ignore(_: ObjectChange[Service]) -> None:
    """Nothing happens when a Service changes: running containers keep their variables."""
