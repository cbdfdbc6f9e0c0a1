"""The volume with a token, the CA certificate and the namespace, for clients in pods.

Only pods that ask for it by `automountServiceAccountToken: true` get the volume; the upstream
plugin mounts it unless this is false. A credential in every pod is of no use to most pods here,
and a process without isolation cannot mount it.

Upstream: plugin/pkg/admission/serviceaccount/admission.go v1.36.4.
"""

from collections.abc import Iterator
from itertools import count

from podstatus.apiserver.service_accounts.token_request import DEFAULT_ACCOUNT
from podstatus.apiserver.strategies.base import Document

MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
ROOT_CA_CONFIG_MAP = "kube-root-ca.crt"
_VOLUME = "kube-api-access"
_MIRROR = "kubernetes.io/config.mirror"
_EXPIRATION_SECONDS = 3607
_SOURCES: list[Document] = [
    {"serviceAccountToken": {"path": "token", "expirationSeconds": _EXPIRATION_SECONDS}},
    {
        "configMap": {
            "name": ROOT_CA_CONFIG_MAP,
            "items": [{"key": "ca.crt", "path": "ca.crt"}],
        }
    },
    {
        "downwardAPI": {
            "items": [
                {
                    "path": "namespace",
                    "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                }
            ]
        }
    },
]


def mount_service_account_token(pod: Document) -> Document:
    """Return a new pod with the volume, if it asks for it, in all containers without such a mount.

    Also sets `serviceAccountName`. Mirror pods are not changed.
    """
    spec = pod.get("spec") or {}
    annotations = (pod.get("metadata") or {}).get("annotations") or {}
    if spec.get("automountServiceAccountToken") is not True or _MIRROR in annotations:
        return pod
    if not spec.get("serviceAccountName"):
        spec = spec | {"serviceAccountName": DEFAULT_ACCOUNT, "serviceAccount": DEFAULT_ACCOUNT}
    volumes = spec.get("volumes") or []
    name = next(_unused_names({volume.get("name", "") for volume in volumes}))
    kinds = [kind for kind in ("initContainers", "containers") if spec.get(kind)]
    mounted = {kind: [_with_mount(container, name) for container in spec[kind]] for kind in kinds}
    if all(mounted[kind] == spec[kind] for kind in kinds):
        return pod | {"spec": spec}
    volume = {"name": name, "projected": {"sources": _SOURCES, "defaultMode": 0o644}}
    return pod | {"spec": spec | mounted | {"volumes": [*volumes, volume]}}


def _unused_names(used: set[str]) -> Iterator[str]:
    names = (f"{_VOLUME}-{number}" if number else _VOLUME for number in count())
    return (name for name in names if name not in used)


def _with_mount(container: Document, volume: str) -> Document:
    mounts = container.get("volumeMounts") or []
    if any(mount.get("mountPath") == MOUNT_PATH for mount in mounts):
        return container
    mount = {"name": volume, "readOnly": True, "mountPath": MOUNT_PATH}
    return container | {"volumeMounts": [*mounts, mount]}
