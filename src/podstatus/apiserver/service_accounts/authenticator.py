"""Authentication of bearer tokens.

Upstream: pkg/serviceaccount/jwt.go and claims.go v1.36.4.
"""

import hmac

from podstatus.apiserver.pki.certificates import KUBELET_CLIENT_GROUP
from podstatus.apiserver.resources import PODS, SERVICE_ACCOUNTS
from podstatus.apiserver.service_accounts.access import ClientIdentity
from podstatus.apiserver.service_accounts.tokens import NamedObject, TokenClaims, user_name, verify
from podstatus.apiserver.storage.store import StorageKey, Store
from podstatus.base.clock import Clock
from podstatus.kube.unstructured import nested_str

_AUTHENTICATED = "system:authenticated"
OWNER = ClientIdentity(name="podstatus", groups=(KUBELET_CLIENT_GROUP, _AUTHENTICATED))
"""The client with the token of the state directory."""


class Authenticator:
    """Knows the owner's token, and verifies those of service accounts."""

    def __init__(self, store: Store, *, owner_token: str, signing_key: bytes, clock: Clock) -> None:
        self._store = store
        self._owner_token = owner_token.encode()
        self._signing_key = signing_key
        self._clock = clock

    def authenticate(self, token: bytes) -> ClientIdentity | None:
        """Return the client that has this token; None if it is not valid."""
        if hmac.compare_digest(token, self._owner_token):
            return OWNER
        claims = verify(token, self._signing_key, self._clock.now() // 10**9)
        if claims is None or not self._exist(claims):
            return None
        kubernetes = claims.kubernetes
        namespace, account = kubernetes.namespace, kubernetes.serviceaccount
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", _AUTHENTICATED)
        name = user_name(namespace, account.name)
        return ClientIdentity(name=name, groups=groups, uid=account.uid, namespace=namespace)

    def _exist(self, claims: TokenClaims) -> bool:
        """Whether the service account and the pod of the token still exist."""
        kubernetes = claims.kubernetes
        namespace = kubernetes.namespace
        return self._has(SERVICE_ACCOUNTS.plural, namespace, kubernetes.serviceaccount) and (
            kubernetes.pod is None or self._has(PODS.plural, namespace, kubernetes.pod)
        )

    def _has(self, resource: str, namespace: str, named: NamedObject) -> bool:
        stored = self._store.get(resource, StorageKey(namespace, named.name))
        return stored is not None and nested_str(stored.document(), "metadata", "uid") == named.uid
