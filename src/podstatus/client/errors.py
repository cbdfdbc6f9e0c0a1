"""What can go wrong before a request is on its way, and on a stream.

KubeconfigError        what says where the server is cannot be used: a person has to repair it
UnavailableError       (of `podstatus.kube.errors`)
├── CredentialsError   nobody can say who we are just now: back off, as with a server that is down
└── SilentError        a watch says nothing any more: ask again, it may have had nothing to say

All that servers answer, and all that happens on the way to them, is in `podstatus.kube.errors`.
No message has a token, a password or a key in it.
"""

from podstatus.kube.errors import UnavailableError


class KubeconfigError(Exception):
    """A kubeconfig, or what a cluster gives its pods, cannot be used; the message says why."""


class CredentialsError(UnavailableError):
    """A token file cannot be read, or a plugin failed; the next request tries again."""


class WatchIdleError(UnavailableError):
    """A watch has been silent for too long; whether it is broken shows when it is asked anew."""
