"""Where the objects of a kind are."""

from urllib.parse import quote

import msgspec


class Resource(msgspec.Struct, frozen=True):
    """A kind of object, by the name it has in paths."""

    plural: str
    group: str = ""
    version: str = "v1"
    namespaced: bool = True

    def path(self, namespace: str | None = None, name: str = "", subresource: str = "") -> str:
        """The path of one object, or of all of them, in a namespace or in all.

        Raises ValueError for a name that no object can have, as it would lead elsewhere.
        """
        parts = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if self.namespaced and namespace is not None:
            parts += ["namespaces", _segment(namespace, "namespace")]
        parts.append(self.plural)
        if name:
            parts.append(_segment(name, "name"))
        if subresource:
            parts.append(subresource)
        return "/" + "/".join(parts)


def _segment(text: str, what: str) -> str:
    if not text or text in (".", "..") or "/" in text:
        raise ValueError(f"{text!r} is no {what} of an object; pass the one in its metadata")
    return quote(text, safe="")


PODS = Resource("pods")
NODES = Resource("nodes", namespaced=False)
NAMESPACES = Resource("namespaces", namespaced=False)
EVENTS = Resource("events")
LEASES = Resource("leases", "coordination.k8s.io")
CONFIG_MAPS = Resource("configmaps")
SECRETS = Resource("secrets")
SERVICE_ACCOUNTS = Resource("serviceaccounts")
