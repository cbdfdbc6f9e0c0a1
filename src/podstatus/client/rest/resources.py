"""API resources and the paths of their objects."""

from functools import lru_cache
from urllib.parse import quote

import msgspec

from podstatus.kube.api_errors import RejectedError

_MAX_CACHED_PATHS = 1024
"""A node patches its pods repeatedly, and has some hundred of them."""


class NoSuchNameError(RejectedError, ValueError):
    """A name is invalid; no request is sent.

    A mistake of the caller, or of the server that the name comes from: in that case it is handled
    like any other rejection.
    """


class ApiResource(msgspec.Struct, frozen=True):
    """A resource of the API: group, version and plural name."""

    plural: str
    group: str = ""
    version: str = "v1"
    namespaced: bool = True

    def collection(self, namespace: str | None = None) -> str:
        """Return the path of all objects in one or all namespaces. Raises ValueError."""
        return "/" + "/".join([*self._root(namespace), self.plural])

    def object(self, name: str, namespace: str | None = None, subresource: str = "") -> str:
        """Return the path of one object, or of its subresource.

        Raises ValueError for an invalid name or a missing namespace: the path would address other
        objects, with an empty name all objects.
        """
        return _object_path(self, name, namespace, subresource)

    def _root(self, namespace: str | None) -> list[str]:
        root = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if namespace is None:
            return root
        if not self.namespaced:
            raise NoSuchNameError(f"{self.plural} are cluster-scoped; omit namespace {namespace!r}")
        return [*root, "namespaces", _segment(namespace, "namespace")]


@lru_cache(maxsize=_MAX_CACHED_PATHS)
def _object_path(kind: ApiResource, name: str, namespace: str | None, subresource: str) -> str:
    if kind.namespaced and namespace is None:
        raise NoSuchNameError(f"{kind.plural} are namespaced; pass the namespace of {name!r}")
    path = f"{kind.collection(namespace)}/{_segment(name, 'name')}"
    return f"{path}/{subresource}" if subresource else path


def _segment(text: str, what: str) -> str:
    if not text or text in (".", "..") or "/" in text:
        raise NoSuchNameError(f"{text!r} is not a valid {what}; pass the one in the metadata")
    return quote(text, safe="")


PODS = ApiResource("pods")
SERVICES = ApiResource("services")
NODES = ApiResource("nodes", namespaced=False)
NAMESPACES = ApiResource("namespaces", namespaced=False)
EVENTS = ApiResource("events")
LEASES = ApiResource("leases", "coordination.k8s.io")
CONFIG_MAPS = ApiResource("configmaps")
SECRETS = ApiResource("secrets")
SERVICE_ACCOUNTS = ApiResource("serviceaccounts")
