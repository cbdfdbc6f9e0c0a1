"""The files of the agent's HTTPS server, and the server of a whole agent."""

import datetime
import json
import socket
import ssl
import stat
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from cryptography import x509

from podstatus.agent.compose.kubelet_server import (
    KubeletServer,
    ensure_server_certificate,
    ensure_server_files,
)
from podstatus.agent.compose.serving_certificate import (
    ensure_agent_token,
    ensure_certificate,
    server_context,
)
from podstatus.agent.errors import AgentError
from podstatus.agent.settings.load import load_settings
from podstatus.base.system_clock import SystemClock
from podstatus.client.api_client import ApiClient
from podstatus.client.kubeconfig.server_url import local_url
from podstatus.observe.metrics.exposition import MetricPages
from podstatus.web.handlers import HandlerDependencies
from tests.support.certificates import authority
from tests.support.plain_access import PlainAccess
from tests.support.processes.agent_process import agent
from tests.support.web.fake_runtime import FakePods
from tests.support.web.fake_status_view import ABOUT, FakeStatusView

NOW = int(datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC).timestamp()) * 10**9
DAY = 86_400 * 10**9


def names(certificate: Path) -> set[str]:
    loaded = x509.load_pem_x509_certificate(certificate.read_bytes())
    found = loaded.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    addresses = {str(it) for it in found.get_values_for_type(x509.IPAddress)}
    return addresses | set(found.get_values_for_type(x509.DNSName))


def test_a_certificate_is_made_for_all_names_and_readable_by_its_owner_only(tmp_path: Path) -> None:
    certificate, key = ensure_certificate(tmp_path / "pki", "node-1", ("10.0.0.7",), NOW)
    assert names(certificate) == {"127.0.0.1", "::1", "localhost", "node-1", "10.0.0.7"}
    assert stat.S_IMODE((tmp_path / "pki").stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in (certificate, key)} == {0o600}
    assert sorted(file.name for file in (tmp_path / "pki").iterdir()) == ["agent.crt", "agent.key"]


@pytest.mark.parametrize(
    ("name", "later", "kept"),
    [
        ("node-1", 0, True),
        ("node-1", 3600 * DAY, True),
        ("node-1", 3621 * DAY, False),
        ("node-1", -2 * DAY, False),
        ("node-2", 0, False),
    ],
)
def test_a_certificate_is_kept_while_it_is_good(
    tmp_path: Path, name: str, later: int, kept: bool
) -> None:
    certificate, _ = ensure_certificate(tmp_path, "node-1", (), NOW)
    before = certificate.read_bytes()
    ensure_certificate(tmp_path, name, (), NOW + later)
    assert (certificate.read_bytes() == before) is kept


@pytest.mark.parametrize("damaged", ["agent.crt", "agent.key"])
@pytest.mark.parametrize("content", [b"", b"nonsense"])
def test_damaged_files_are_replaced(tmp_path: Path, damaged: str, content: bytes) -> None:
    pair = ensure_certificate(tmp_path, "node-1", (), NOW)
    (tmp_path / damaged).write_bytes(content)
    assert ensure_certificate(tmp_path, "node-1", (), NOW) == pair
    server_context(*pair, None)


def test_a_key_of_another_certificate_is_noticed(tmp_path: Path) -> None:
    pair = ensure_certificate(tmp_path, "node-1", (), NOW)
    other = ensure_certificate(tmp_path / "other", "node-1", (), NOW)
    pair[1].write_bytes(other[1].read_bytes())
    server_context(*ensure_certificate(tmp_path, "node-1", (), NOW), None)


def test_a_long_name_fits(tmp_path: Path) -> None:
    name = ".".join(["x" * 60] * 4)
    assert name in names(ensure_certificate(tmp_path, name, (), NOW)[0])


def test_files_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    pair = ensure_certificate(tmp_path, "node-1", (), NOW)
    nonsense = tmp_path / "nonsense"
    nonsense.write_text("nonsense")
    encrypted = authority().pair("node-1", password=b"secret")
    (tmp_path / "encrypted").write_bytes(encrypted.key)
    (tmp_path / "its.crt").write_bytes(encrypted.certificate)
    with pytest.raises(AgentError, match=f"certificate {nonsense} .* --tls-cert-file"):
        server_context(nonsense, pair[1], None)
    with pytest.raises(AgentError, match="the key is encrypted"):
        server_context(tmp_path / "its.crt", tmp_path / "encrypted", None)
    with pytest.raises(AgentError, match=f"{nonsense}: .*--client-ca-file"):
        server_context(*pair, nonsense)
    with pytest.raises(AgentError, match="none: no such file or directory"):
        server_context(*pair, tmp_path / "none")
    with pytest.raises(AgentError, match=r"nonsense: (file exists|not a dir).*--root-dir"):
        ensure_certificate(nonsense, "node-1", (), NOW)


def test_a_token_is_made_once(tmp_path: Path) -> None:
    token = ensure_agent_token(tmp_path)
    assert len(token) > 40
    assert ensure_agent_token(tmp_path) == token
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600
    (tmp_path / "token").write_text("short")
    assert len(ensure_agent_token(tmp_path)) > 40


def test_files_that_were_given_go_before_those_made_here(tmp_path: Path) -> None:
    def flags(**given: str) -> dict[str, str | None]:
        return {"hostname_override": "n", **given}

    pair = {"tls_cert_file": "/c", "tls_private_key_file": "/k"}
    given = load_settings(flags(**pair, client_ca_file="/ca"), {}).settings
    files = ensure_server_files(given, tmp_path, NOW, own_client_ca=Path("/own"))
    assert (files.certificate, files.key, files.client_ca) == tuple(map(Path, ("/c", "/k", "/ca")))
    assert files.token == ensure_agent_token(tmp_path)
    assert files.token not in repr(files)

    ours = ensure_server_files(
        load_settings(flags(), {}).settings,
        tmp_path,
        NOW,
        token=files.token[::-1],
        own_client_ca=Path("/own"),
    )
    assert (ours.token, ours.client_ca) == (files.token[::-1], Path("/own"))
    half = load_settings(flags(tls_cert_file="/c"), {}).settings
    with pytest.raises(AgentError, match="--tls-private-key-file is missing"):
        ensure_server_certificate(half, tmp_path, NOW)


def test_an_agent_answers_on_its_port_and_the_node_shows_it(tmp_path: Path) -> None:
    with agent(tmp_path) as started:
        cluster = started.start_ready()
        endpoints = started.wait_serving()
        context = ssl.create_default_context(cafile=endpoints["agent_certificate"])

        def ask(path: str, token: str = "") -> tuple[int, str]:
            request = urllib.request.Request(f"{endpoints['agent']}{path}")  # noqa: S310 - https
            if token:
                request.add_header("Authorization", f"Bearer {token}")
            try:
                with urllib.request.urlopen(request, context=context) as answer:  # noqa: S310
                    return answer.status, answer.read().decode()
            except urllib.error.HTTPError as error:
                return error.code, error.read().decode()

        assert ask("/healthz")[0] == 200
        assert json.loads(ask("/pods")[1])["kind"] == "PodList"
        assert ask("/logs/")[0] == 401
        assert "podstatus.log" in ask("/logs/", endpoints["token"])[1]
        code, log = ask("/logs/podstatus.log", endpoints["token"])
        assert code == 200
        assert endpoints["token"] not in log
        assert ask("/containerLogs/default/none/app", endpoints["token"]) == (
            404,
            'pod "none" does not exist\n',
        )
        node = cluster.node()
        assert node is not None
        port = node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
        assert endpoints["agent"] == f"https://127.0.0.1:{port}"


async def test_a_port_in_use_is_reported_with_a_remedy(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        settings = load_settings({"hostname_override": "n", "port": str(number)}, {}).settings
        port = KubeletServer(
            settings,
            ensure_server_files(settings, tmp_path, SystemClock().now()),
            ApiClient(PlainAccess("http://127.0.0.1:1")),
            SystemClock(),
            node_name="n",
        )
        sources = HandlerDependencies(
            pods=FakePods(),
            checks=dict,
            logs=tmp_path,
            metrics=MetricPages({}),
            view=FakeStatusView(),
            agent_info=ABOUT,
        )
        message = (
            f"cannot listen on 127.0.0.1 port {number}: address already in use; "
            r"stop the process that uses it, or pass another --port \(0 picks a free one\)"
        )
        with pytest.raises(AgentError, match=message):
            await port.start(sources)
        assert (port.port, port.url) == (0, "")


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("127.0.0.1", "https://127.0.0.1:10250"),
        ("0.0.0.0", "https://127.0.0.1:10250"),  # noqa: S104
        ("::", "https://[::1]:10250"),
        ("10.0.0.7", "https://10.0.0.7:10250"),
    ],
)
def test_the_url_can_be_asked_from_this_machine(address: str, url: str) -> None:
    assert local_url(address, 10250) == url
