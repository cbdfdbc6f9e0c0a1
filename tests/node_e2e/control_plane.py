"""A control plane on loopback: etcd, kube-apiserver, kube-controller-manager, kube-scheduler.

It differs from `podstatus.testing.servers.kube_apiserver` in that it is a whole one: service
accounts exist, pods are scheduled, deleted namespaces go. Its ports are fixed: the network
namespace is the run's own.
"""

import http
import secrets
import signal
from collections.abc import Callable
from contextlib import closing
from http.client import HTTPException
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from podstatus.apiserver.pki.certificates import CA_CERTIFICATE, KUBELET_CLIENT, Certificates
from podstatus.apiserver.pki.token_and_kubeconfig import ClientCredentials, write_client_files
from podstatus.apiserver.state_dir import StateDir
from podstatus.base.system_time import wall_clock_ns
from podstatus.testing.servers.access import ServerAccess
from podstatus.testing.servers.etcd import Etcd, start_program, wait_until_ready
from podstatus.testing.servers.guarded_process import GuardedProcess
from tests.node_e2e.programs import Programs

_PORT = 6443
_URL = f"https://127.0.0.1:{_PORT}"
_SERVICE_IPS = "10.96.0.0/16"
_KUBERNETES_SERVICE_IP = "10.96.0.1"
_SERVER_NAMES = ("kubernetes", "kubernetes.default", "kubernetes.default.svc")
_SERVICE_ACCOUNT_KEY = "service-accounts.key"
_TOKENS = "tokens.csv"
_START_SECONDS = 120.0
"""It takes four seconds; more on a loaded machine."""
_STOP_SECONDS = 10.0
_ADMIN, _CONTROLLER_MANAGER, _SCHEDULER = (
    "admin",
    "system:kube-controller-manager",
    "system:kube-scheduler",
)


class ControlPlane:
    """The four processes, with their files and logs in a folder."""

    def __init__(self, programs: Programs, folder: Path, *, node: str, node_ip: str) -> None:
        self._programs = programs
        self._folder = folder
        self._node_user = f"system:node:{node}"
        self._node_ip = node_ip
        self._etcd = Etcd(programs.servers.etcd, folder)
        self._started: list[GuardedProcess] = []

    @property
    def admin(self) -> ServerAccess:
        """Access as a member of system:masters."""
        return self._access(_ADMIN)

    @property
    def node(self) -> ServerAccess:
        """Access as the node, under the Node authorizer and NodeRestriction."""
        return self._access(self._node_user)

    @property
    def authority(self) -> Path:
        """The CA of the client certificate that kube-apiserver presents to the node."""
        return self._folder / CA_CERTIFICATE

    def start(self) -> None:
        """Start the processes; return when a service account exists. Raises StartError."""
        self._folder.mkdir(exist_ok=True)
        self._write_files()
        self._etcd.start()
        programs = self._programs
        server = self._run(programs.servers.kube_apiserver, self._server_flags())
        wait_until_ready(self._responds("/readyz"), server, "kube-apiserver", _START_SECONDS)
        manager = self._run(programs.controller_manager, self._controller_manager_flags())
        self._run(programs.scheduler, self._client_flags(_SCHEDULER))
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        wait_until_ready(
            self._responds(account), manager, "kube-controller-manager", _START_SECONDS
        )

    def stop(self) -> None:
        """Stop the processes with SIGTERM, the last one first."""
        while self._started:
            self._started.pop().end(signal.SIGTERM, grace=_STOP_SECONDS)
        self._etcd.end()

    def _access(self, user: str) -> ServerAccess:
        return ServerAccess(self._folder / "users" / user)

    def _responds(self, path: str) -> Callable[[], bool]:
        def look() -> bool:
            connection = self.admin.connect()
            headers = {"Authorization": f"Bearer {self.admin.token}"}
            try:
                connection.request("GET", path, headers=headers)
                return connection.getresponse().status == http.HTTPStatus.OK
            except (OSError, HTTPException):
                return False
            finally:
                connection.close()

        return look

    def _run(self, program: Path, flags: dict[str, Any]) -> GuardedProcess:
        arguments = [f"--{name}={value}" for name, value in flags.items()]
        log = self._folder / f"{program.name}.log"
        self._started.append(start_program([program, *arguments], log))
        return self._started[-1]

    def _write_files(self) -> None:
        groups = {
            _ADMIN: "system:masters",
            _CONTROLLER_MANAGER: _CONTROLLER_MANAGER,
            _SCHEDULER: _SCHEDULER,
            self._node_user: "system:nodes",
        }
        tokens = {user: secrets.token_urlsafe(32) for user in groups}
        lines = [f"{tokens[user]},{user},{user},{group}\n" for user, group in groups.items()]
        with closing(StateDir(self._folder)) as folder:
            names = [self._node_ip, _KUBERNETES_SERVICE_IP, *_SERVER_NAMES]
            authority = Certificates(folder, wall_clock_ns()).ensure(names)
            folder.write(_SERVICE_ACCOUNT_KEY, _new_key())
            folder.write(_TOKENS, "".join(lines).encode())
        for user, token in tokens.items():
            with closing(StateDir(self._folder / "users" / user)) as folder:
                folder.write(CA_CERTIFICATE, authority)
                credentials = ClientCredentials(url=_URL, token=token, authority=authority)
                write_client_files(folder, credentials)

    def _server_flags(self) -> dict[str, Any]:
        folder = self._folder
        return {
            "etcd-servers": self._etcd.url,
            "bind-address": "0.0.0.0",  # noqa: S104 - of the run's own network namespace
            "secure-port": _PORT,
            "advertise-address": self._node_ip,
            "tls-cert-file": folder / "server.crt",
            "tls-private-key-file": folder / "server.key",
            "client-ca-file": self.authority,
            "token-auth-file": folder / _TOKENS,
            "authorization-mode": "Node,RBAC",
            "enable-admission-plugins": "NodeRestriction",
            "allow-privileged": "true",
            "service-account-issuer": "https://kubernetes.default.svc.cluster.local",
            "service-account-key-file": folder / _SERVICE_ACCOUNT_KEY,
            "service-account-signing-key-file": folder / _SERVICE_ACCOUNT_KEY,
            "service-cluster-ip-range": _SERVICE_IPS,
            "kubelet-client-certificate": folder / f"{KUBELET_CLIENT}.crt",
            "kubelet-client-key": folder / f"{KUBELET_CLIENT}.key",
            "kubelet-preferred-address-types": "InternalIP",
        }

    def _controller_manager_flags(self) -> dict[str, Any]:
        return self._client_flags(_CONTROLLER_MANAGER) | {
            "root-ca-file": self.authority,
            "service-account-private-key-file": self._folder / _SERVICE_ACCOUNT_KEY,
            "cluster-signing-cert-file": self.authority,
            "cluster-signing-key-file": self._folder / "ca.key",
            "use-service-account-credentials": "true",
        }

    def _client_flags(self, user: str) -> dict[str, Any]:
        kubeconfig = self._access(user).kubeconfig
        return {
            "kubeconfig": kubeconfig,
            "authentication-kubeconfig": kubeconfig,
            "authorization-kubeconfig": kubeconfig,
            "bind-address": "127.0.0.1",
            "leader-elect": "false",
        }


def _new_key() -> bytes:
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        # The older PEM format: the only one that is accepted for verification, too.
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
