"""A real Kubernetes API server for tests: kube-apiserver with its etcd, on loopback.

    with running_kube_apiserver(tmp_path, nodes=["node-a"]) as server:
        server.access.request("GET", "/api/v1/namespaces")          # as a cluster's admin
        server.node_access("node-a").request("GET", "/api/v1/nodes/node-a")

Started in a few seconds, so have one for many tests, and a namespace for each of them. Its programs
are found by `podstatus.testing.servers.binaries` (docs/real-servers.md says how to get them). Users
are bearer tokens: an admin, and `system:node:<name>` for the nodes named, under the Node authorizer
and NodeRestriction. No other part of a cluster runs: nothing is scheduled, namespaces stay while
they end, and the ServiceAccount plugin is off, or no pod would be let in. Needs `podstatus[agent]`.
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
from podstatus.apiserver.pki.credentials import ClientCredentials, ensure_token, write_client_files
from podstatus.apiserver.state_dir import StateDir
from podstatus.base.aio import wall_clock_ns
from podstatus.testing.servers.access import ServerAccess
from podstatus.testing.servers.binaries import ServerBinaries, find_binaries
from podstatus.testing.servers.etcd import Etcd, StartError, start_program, wait_until_ready
from podstatus.testing.servers.free_port import free_port
from podstatus.testing.servers.process import GuardedProcess

_HOST = "127.0.0.1"
_START_SECONDS = 120.0
"""It takes two or three, more on a machine with much else to do."""
_RESPONSE_SECONDS = 2.0
_STOP_SECONDS = 15.0
_ATTEMPTS = 3
"""Ports are chosen before they are used: now and then somebody else is faster."""
_SERVICE_ACCOUNT_KEY = "service-accounts.key"
_TOKENS = "tokens.csv"
_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


class KubeApiServer:
    """kube-apiserver and its etcd, with a folder that outlives them: objects, keys, logs."""

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
        """Options are further ones of kube-apiserver. Raises MissingPartsError.

        `node_authority` is a file with who signs the certificates of nodes; without it they are
        not verified. To nodes the server shows a certificate that the `authority` of its access
        has signed.
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
        """As an admin of the cluster, once it was started."""
        return self._access("admin")

    def node_access(self, node: str) -> ServerAccess:
        """As the agent of one of the nodes that were named."""
        return self._access(f"system:node:{node}")

    @property
    def pids(self) -> list[int]:
        """Of what runs: etcd, kube-apiserver."""
        etcd = self._etcd.process if self._etcd is not None else None
        return [p.pid for p in (etcd, self._server) if p is not None and p.running]

    def start(self) -> ServerAccess:
        """Serve, on the same port and with the same objects as before. Raises StartError."""
        if self._server is not None and self._server.running:
            raise RuntimeError("kube-apiserver is running already; stop() or kill() it first")
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self._start()
            except StartError as error:
                self.stop()
                chosen = not self._has_served and not self._requested_port
                if attempt == _ATTEMPTS or not chosen or not _is_port_in_use(error):
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
        """End kube-apiserver without a chance to say goodbye. Its etcd goes on until `stop`."""
        self._end_server(signal.SIGKILL)

    def stop(self) -> None:
        """End both in peace."""
        self._end_server(signal.SIGTERM)
        if self._etcd is not None:
            self._etcd.end()
        if self._state_dir is not None:
            self._state_dir.close()
            self._state_dir = None

    def pause(self) -> None:
        """Let kube-apiserver stand still: connections stay open, nothing is answered."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)

    def compact(self) -> int:
        """Let etcd forget every change up to now; the oldest resource version it knows."""
        if self._etcd is None:
            raise RuntimeError("etcd does not run; start() it first")
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
            with closing(StateDir(self.folder / "users" / user)) as own:
                token = ensure_token(own)
                own.write(CA_CERTIFICATE, authority)
                write_client_files(
                    own, ClientCredentials(url=url, token=token, authority=authority)
                )
            lines.append(f"{token},{user},{user},{group}\n")
        folder.write(_TOKENS, "".join(lines).encode())

    def _flags(self, etcd: str) -> list[str]:
        key = self.folder / _SERVICE_ACCOUNT_KEY
        options = {
            "etcd-servers": etcd,
            # Tests compact when they want to.
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
            # Nobody is to find it as a service, and loopback is no address for one.
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
            raise RuntimeError("kube-apiserver does not run; start() it first")
        self._server.send_signal(number)


@contextmanager
def running_kube_apiserver(
    folder: Path,
    *,
    nodes: Iterable[str] = (),
    node_authority: Path | None = None,
    options: Iterable[str] = (),
) -> Iterator[KubeApiServer]:
    """A server that is ended at the end. Raises MissingPartsError, StartError."""
    server = KubeApiServer(folder, nodes=nodes, node_authority=node_authority, options=options)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def _responds(access: ServerAccess, path: str) -> bool:
    connection = access.connect()
    # Somebody else may be at the port, and say nothing.
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
        # The older of the two formats: the only one that is taken for verifying, too.
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
