"""Errors before a request is sent, and on a watch.

KubeconfigError        the configuration is invalid: a person has to correct it
UnavailableError       (of `podstatus.kube.api_errors`)
├── CredentialsError   no valid credentials at present: back off, as for an unavailable server
└── WatchIdleError     a watch had no data for too long: watch again, it may only have been idle

Errors of servers and of the network are in `podstatus.kube.api_errors`. No message contains a
token, a password or a key.
"""

from podstatus.kube.api_errors import UnavailableError


class KubeconfigError(Exception):
    """A kubeconfig or a service account cannot be used; the message has the reason."""


class CredentialsError(UnavailableError):
    """A token file cannot be read, or a plugin failed; the next request retries."""


class WatchIdleError(UnavailableError):
    """A watch had no data for too long: it was idle, or the connection is dead."""
