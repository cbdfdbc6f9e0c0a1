"""Authenticators for servers that are not a whole API server."""

from podstatus.apiserver.service_accounts.authenticator import Authenticator
from podstatus.apiserver.storage.store import Store
from podstatus.testing.clock import FakeClock


def authenticator_of(owner_token: str) -> Authenticator:
    """Return an authenticator that knows one token."""
    store = Store(None, lambda _, __: {})
    return Authenticator(store, owner_token=owner_token, signing_key=b"key", clock=FakeClock())
