"""References of a pod to API objects, which a static pod must not have.

Upstream: HasAPIObjectReference, pkg/api/pod/util.go v1.36.4.
"""

from collections.abc import Callable, Iterable, Iterator

from podstatus.kube.objects.containers import Container, EphemeralContainer
from podstatus.kube.objects.meta import LocalObjectReference
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.objects.volumes import Volume, VolumeProjection

_VOLUMES: dict[str, Callable[[Volume], object]] = {
    "configmaps (via configmap volumes)": lambda volume: volume.config_map,
    "secrets (via secret volumes)": lambda volume: volume.secret,
    "csidrivers (via CSI volumes)": lambda volume: volume.csi,
    "endpoints (via glusterFS volumes)": lambda volume: volume.glusterfs,
    "persistentvolumeclaims": lambda volume: volume.persistent_volume_claim,
    "persistentvolumeclaims (via ephemeral volumes)": lambda volume: volume.ephemeral,
    "secrets (via azureFile volumes)": lambda volume: volume.azure_file,
}
_PROJECTIONS: dict[str, Callable[[VolumeProjection], object]] = {
    "configmaps (via projected volumes)": lambda source: source.config_map,
    "secrets (via projected volumes)": lambda source: source.secret,
    "serviceaccounts (via projected volumes)": lambda source: source.service_account_token,
    "clustertrustbundles": lambda source: source.cluster_trust_bundle,
    "podcertificates": lambda source: source.pod_certificate,
}


def api_references(spec: PodSpec) -> list[str]:
    """The kinds of API objects that a pod references, each once, in upstream's wording."""
    return list(dict.fromkeys(_references(spec)))


def _references(spec: PodSpec) -> Iterator[str]:
    if spec.service_account_name:
        yield "serviceaccounts"
    if any(secret.name for secret in spec.image_pull_secrets or ()):
        yield "secrets"
    for container in _containers(spec):
        yield from _environment_references(container)
    if spec.resource_claims:
        yield "resourceclaims"
    for volume in spec.volumes or ():
        yield from _volume_references(volume)


def _containers(spec: PodSpec) -> Iterable[Container | EphemeralContainer]:
    yield from spec.init_containers or ()
    yield from spec.containers or ()
    yield from spec.ephemeral_containers or ()


def _environment_references(container: Container | EphemeralContainer) -> Iterator[str]:
    for bulk in container.env_from or ():
        if bulk.secret_ref is not None:
            yield "secrets"
        if bulk.config_map_ref is not None:
            yield "configmaps"
    for variable in container.env or ():
        if variable.value_from is not None and variable.value_from.secret_key_ref is not None:
            yield "secrets"
        if variable.value_from is not None and variable.value_from.config_map_key_ref is not None:
            yield "configmaps"


def _volume_references(volume: Volume) -> Iterator[str]:
    if any(reference is not None and reference.name for reference in _secret_references(volume)):
        yield "secrets"
    yield from (kind for kind, get in _VOLUMES.items() if get(volume) is not None)
    if volume.projected is not None:
        for source in volume.projected.sources or ():
            yield from (kind for kind, get in _PROJECTIONS.items() if get(source) is not None)


def _secret_references(volume: Volume) -> Iterator[LocalObjectReference | None]:
    """Credential references of volume types that need them."""
    kinds = (
        volume.cephfs,
        volume.cinder,
        volume.flex_volume,
        volume.rbd,
        volume.scale_io,
        volume.iscsi,
        volume.storageos,
    )
    yield from (kind.secret_ref for kind in kinds if kind is not None)
