"""The recorded identity of an API server; `cluster_identity` compares it, commands read it."""

import msgspec

SERVER_FILE = "server.json"


class ServerIdentity(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Identifies an API server independently of its address."""

    embedded: bool = False
    """The embedded API server of this root directory."""
    namespace: str = ""
    """UID of the namespace `kube-system`; empty if it may not be read."""
    service: str = ""
    """UID of the Service `default/kubernetes`, which nodes may read."""
    address: str = ""
    """For error messages; not compared."""
