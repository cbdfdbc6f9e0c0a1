"""Where the objects of a kind are."""

from functools import lru_cache
from urllib.parse import quote

import msgspec

from podstatus.kube.errors import RejectedError

_MAX_CACHED_PATHS = 1024
"""That are remembered: a node patches its pods again and again, and has some hundred of them."""


class NoSuchNameError(RejectedError, ValueError):
    """No object has this name: nothing is sent.

    A mistake of the caller, or of a server whose objects the names are from: then it is handled
    as any other refusal.
    """


class ApiResource(msgspec.Struct, frozen=True):
    """A kind of object, by the name it has in paths."""

    plural: str
    group: str = ""
    version: str = "v1"
    namespaced: bool = True

    def collection(self, namespace: str | None = None) -> str:
        """The path of all objects, of a namespace or of all of them. Raises ValueError."""
        return "/" + "/".join([*self._root(namespace), self.plural])

    def object(self, name: str, namespace: str | None = None, subresource: str = "") -> str:
        """The path of one object, or of a part of it.

        Raises ValueError for a name that no object has: it would lead elsewhere, an empty one to
        all objects. So would a missing namespace.
        """
        return _object_path(self, name, namespace, subresource)

    def _root(self, namespace: str | None) -> list[str]:
        root = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if namespace is None:
            return root
        if not self.namespaced:
            raise NoSuchNameError(f"{self.plural} are in no namespace; leave {namespace!r} out")
        return [*root, "namespaces", _segment(namespace, "namespace")]


@lru_cache(maxsize=_MAX_CACHED_PATHS)
def _object_path(kind: ApiResource, name: str, namespace: str | None, subresource: str) -> str:
    if kind.namespaced and namespace is None:
        raise NoSuchNameError(f"{kind.plural} are in namespaces; pass the one of {name!r}")
    path = f"{kind.collection(namespace)}/{_segment(name, 'name')}"
    return f"{path}/{subresource}" if subresource else path


def _segment(text: str, what: str) -> str:
    if not text or text in (".", "..") or "/" in text:
        raise NoSuchNameError(f"{text!r} is no {what} of an object; pass the one in its metadata")
    return quote(text, safe="")


PODS = ApiResource("pods")
NODES = ApiResource("nodes", namespaced=False)
NAMESPACES = ApiResource("namespaces", namespaced=False)
EVENTS = ApiResource("events")
LEASES = ApiResource("leases", "coordination.k8s.io")
CONFIG_MAPS = ApiResource("configmaps")
SECRETS = ApiResource("secrets")
SERVICE_ACCOUNTS = ApiResource("serviceaccounts")
