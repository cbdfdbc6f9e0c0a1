"""A real Kubernetes API server for tests: kube-apiserver with its etcd, on loopback.

    with running_kube_apiserver(tmp_path, nodes=["node-a"]) as server:
        server.access.request("GET", "/api/v1/namespaces")          # as a cluster's admin
        server.node_access("node-a").request("GET", "/api/v1/nodes/node-a")

It starts in a few seconds, so share one among tests, with a namespace for each of them. The
binaries are located by `podstatus.testing.servers.binaries`; see
docs/how-to/test-against-kube-apiserver.md. Users are bearer tokens: an admin, and
`system:node:<name>` for the given nodes, under the Node authorizer and NodeRestriction. No other
component of a cluster runs: pods are not scheduled, namespaces stay Terminating, and the
ServiceAccount plugin is off, since it would reject every pod. Needs `podstatus[agent]`.
"""

import http.client
import shutil
import signal
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from podstatus.apiserver.pki.certificates import CA_CERTIFICATE, KUBELET_CLIENT, Certificates
from podstatus.apiserver.pki.token_and_kubeconfig import (
    ClientCredentials,
    ensure_token,
    write_client_files,
)
from podstatus.apiserver.state_dir import StateDir
from podstatus.base.system_time import wall_clock_ns
from podstatus.testing.servers.access import ServerAccess
from podstatus.testing.servers.binaries import ServerBinaries, find_binaries
from podstatus.testing.servers.etcd import Etcd, StartError, start_program, wait_until_ready
from podstatus.testing.servers.free_port import free_port
from podstatus.testing.servers.guarded_process import GuardedProcess

_HOST = "127.0.0.1"
_START_SECONDS = 120.0
"""It takes two or three seconds; more on a loaded machine."""
_RESPONSE_SECONDS = 2.0
_STOP_SECONDS = 15.0
_ATTEMPTS = 3
"""Ports are chosen before they are used: another process may take one first."""
_SERVICE_ACCOUNT_KEY = "service-accounts.key"
_TOKENS = "tokens.csv"
_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


class KubeApiServer:
    """kube-apiserver and its etcd, with a directory that outlives them: objects, keys, logs."""

    def __init__(
        self,
        folder: Path,
        *,
        binaries: ServerBinaries | None = None,
        nodes: Iterable[str] = (),
        port: int = 0,
        node_authority: Path | None = None,
        options: Iterable[str] = (),
    ) -> None:
        """Prepare a server; `options` are further flags. Raises MissingBinariesError.

        `node_authority` is the CA bundle (PEM) for nodes; without it their certificates are not
        verified. The server's client certificate for kubelets is signed by the `authority` of its
        access.
        """
        self.folder = folder.absolute()
        self._binaries = binaries or find_binaries()
        self._users = {"admin": "system:masters"}
        self._users |= {f"system:node:{node}": "system:nodes" for node in nodes}
        self._node_authority = node_authority
        self._options = tuple(options)
        self._requested_port = port
        self._port = 0
        self._has_served = False
        self._state_dir: StateDir | None = None
        self._etcd: Etcd | None = None
        self._server: GuardedProcess | None = None

    @property
    def access(self) -> ServerAccess:
        """Access as cluster admin, after the first start."""
        return self._access("admin")

    def node_access(self, node: str) -> ServerAccess:
        """Return access as one of the given nodes."""
        return self._access(f"system:node:{node}")

    @property
    def pids(self) -> list[int]:
        """Process IDs of etcd and kube-apiserver, as far as they run."""
        etcd = self._etcd.process if self._etcd is not None else None
        return [p.pid for p in (etcd, self._server) if p is not None and p.running]

    def start(self) -> ServerAccess:
        """Start on the same port and with the same objects as before. Raises StartError."""
        if self._server is not None and self._server.running:
            raise RuntimeError("kube-apiserver is already running; stop() or kill() it first")
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self._start()
            except StartError as error:
                self.stop()
                is_random_port = not self._has_served and not self._requested_port
                if attempt == _ATTEMPTS or not is_random_port or not _is_port_in_use(error):
                    raise
                shutil.rmtree(self.folder / "etcd", ignore_errors=True)
                self._etcd = None
            except BaseException:
                self.stop()
                raise
            else:
                break
        self._has_served = True
        return self.access

    def kill(self) -> None:
        """Send SIGKILL to kube-apiserver; etcd runs until `stop`."""
        self._end_server(signal.SIGKILL)

    def stop(self) -> None:
        """Stop kube-apiserver and etcd with SIGTERM."""
        self._end_server(signal.SIGTERM)
        if self._etcd is not None:
            self._etcd.end()
        if self._state_dir is not None:
            self._state_dir.close()
            self._state_dir = None

    def pause(self) -> None:
        """Send SIGSTOP to kube-apiserver: connections stay open, requests are not answered."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Send SIGCONT to a paused kube-apiserver."""
        self._signal(signal.SIGCONT)

    def compact(self) -> int:
        """Compact etcd's history; return the oldest resource version that is left."""
        if self._etcd is None:
            raise RuntimeError("etcd is not running; start() it first")
        return self._etcd.compact()

    def _access(self, user: str) -> ServerAccess:
        return ServerAccess(self.folder / "users" / user)

    def _start(self) -> None:
        if self._state_dir is None:
            self._state_dir = StateDir(self.folder)
        if self._etcd is None:
            self._etcd = Etcd(self._binaries.etcd, self.folder)
            self._port = self._requested_port or free_port()
            self._write_files(self._state_dir)
        self._etcd.start()
        command: list[str | Path] = [self._binaries.kube_apiserver]
        command += [*self._flags(self._etcd.url), *self._options]
        self._server = start_program(command, self.folder / "kube-apiserver.log")
        wait_until_ready(self._is_ready, self._server, "kube-apiserver", _START_SECONDS)

    def _write_files(self, folder: StateDir) -> None:
        authority = Certificates(folder, wall_clock_ns()).ensure()
        if folder.read(_SERVICE_ACCOUNT_KEY) is None:
            folder.write(_SERVICE_ACCOUNT_KEY, _new_key())
        url = f"https://{_HOST}:{self._port}"
        lines = []
        for user, group in self._users.items():
            with closing(StateDir(self.folder / "users" / user)) as user_dir:
                token = ensure_token(user_dir)
                user_dir.write(CA_CERTIFICATE, authority)
                write_client_files(
                    user_dir, ClientCredentials(url=url, token=token, authority=authority)
                )
            lines.append(f"{token},{user},{user},{group}\n")
        folder.write(_TOKENS, "".join(lines).encode())

    def _flags(self, etcd: str) -> list[str]:
        key = self.folder / _SERVICE_ACCOUNT_KEY
        options = {
            "etcd-servers": etcd,
            # Tests compact explicitly.
            "etcd-compaction-interval": "0",
            "advertise-address": _HOST,
            "bind-address": _HOST,
            "secure-port": self._port,
            "tls-cert-file": self.folder / "server.crt",
            "tls-private-key-file": self.folder / "server.key",
            "client-ca-file": self.folder / CA_CERTIFICATE,
            "token-auth-file": self.folder / _TOKENS,
            "authorization-mode": "Node,RBAC",
            "enable-admission-plugins": "NodeRestriction",
            "disable-admission-plugins": "ServiceAccount",
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-key-file": key,
            "service-account-signing-key-file": key,
            "service-cluster-ip-range": "10.0.0.0/24",
            # No pod uses the `kubernetes` service, and loopback is not a valid endpoint.
            "endpoint-reconciler-type": "none",
            "kubelet-client-certificate": self.folder / f"{KUBELET_CLIENT}.crt",
            "kubelet-client-key": self.folder / f"{KUBELET_CLIENT}.key",
            "kubelet-preferred-address-types": "InternalIP",
        }
        if self._node_authority is not None:
            options["kubelet-certificate-authority"] = self._node_authority
        return [f"--{name}={value}" for name, value in options.items()]

    def _is_ready(self) -> bool:
        paths = ["/readyz", *(f"/api/v1/namespaces/{name}" for name in _NAMESPACES)]
        return all(_responds(self.access, path) for path in paths)

    def _end_server(self, number: int) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.end(number, grace=_STOP_SECONDS)

    def _signal(self, number: int) -> None:
        if self._server is None or not self._server.running:
            raise RuntimeError("kube-apiserver is not running; start() it first")
        self._server.send_signal(number)


@contextmanager
def running_kube_apiserver(
    folder: Path,
    *,
    nodes: Iterable[str] = (),
    node_authority: Path | None = None,
    options: Iterable[str] = (),
) -> Iterator[KubeApiServer]:
    """Run a server for the duration of the context.

    Raises MissingBinariesError, StartError.
    """
    server = KubeApiServer(folder, nodes=nodes, node_authority=node_authority, options=options)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def _responds(access: ServerAccess, path: str) -> bool:
    connection = access.connect()
    # Another process may listen on the port without ever responding.
    connection.timeout = _RESPONSE_SECONDS
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {access.token}"})
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _is_port_in_use(error: StartError) -> bool:
    return "address already in use" in str(error)


def _new_key() -> bytes:
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        # The older PEM format: the only one that is accepted for verification, too.
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
