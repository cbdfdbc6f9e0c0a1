"""From a kubeconfig, a service account or a token to an access that a server takes."""

import asyncio
import ssl
from pathlib import Path
from urllib.parse import urlsplit

import pytest

pytest.importorskip("aiohttp", reason="needs podstatus[agent]")

from podstatus.client.auth.config import ClientConfig
from podstatus.client.auth.in_cluster_config import in_cluster_config
from podstatus.client.auth.load_config import kubeconfig_config, load_config, token_config
from podstatus.client.config_errors import KubeconfigError
from podstatus.testing.apiserver import ApiServerThread, api_server
from tests.client.kubeconfigs import data, document, write
from tests.support.certificates import authority

__all__ = ["api_server"]


async def code_of(access: ClientConfig) -> int:
    """Return the server's response to a plain request."""
    credentials = await access.credentials()
    where = urlsplit(access.server)
    reader, writer = await asyncio.open_connection(
        where.hostname,
        where.port,
        ssl=credentials.tls,
        server_hostname=access.server_hostname,
    )
    header = f"Authorization: {credentials.authorization}\r\n" if credentials.authorization else ""
    lines = f"GET /api/v1/pods HTTP/1.1\r\nHost: {where.netloc}\r\nConnection: close\r\n{header}"
    writer.write(f"{lines}\r\n".encode())
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return int(answer.split()[1])


async def test_the_kubeconfig_of_the_embedded_server_opens_it(api_server: ApiServerThread) -> None:
    access: ClientConfig = kubeconfig_config(api_server.kubeconfig)
    assert access.server == api_server.url
    assert access.source == f'context "podstatus" of {api_server.kubeconfig}'
    assert (access.namespace, access.proxy, access.server_hostname) == ("default", None, None)
    assert await code_of(access) == 200


@pytest.mark.parametrize("has_file", [True, False])
async def test_token_and_authority_may_be_in_files(
    api_server: ApiServerThread, tmp_path: Path, has_file: bool
) -> None:
    (tmp_path / "token").write_text(f"{api_server.token}\n")
    user = {"tokenFile": "token"} if has_file else {"token": api_server.token}
    cluster = {"server": f"{api_server.url}/", "certificate-authority": str(api_server.authority)}
    access = kubeconfig_config(write(tmp_path / "config", cluster=cluster, user=user))
    assert access.server == api_server.url
    assert await code_of(access) == 200


async def test_a_token_and_an_authority_are_enough(api_server: ApiServerThread) -> None:
    access = token_config(api_server.url, api_server.token, api_server.authority)
    assert await code_of(access) == 200
    wrong = token_config(api_server.url, "wrong", api_server.authority)
    assert await code_of(wrong) == 401


async def test_an_unknown_ca_is_not_trusted(api_server: ApiServerThread, tmp_path: Path) -> None:
    for fields in ({}, {"certificate-authority-data": data(authority().pem)}):
        cluster = {"server": api_server.url, **fields}
        access = kubeconfig_config(write(tmp_path / "config", cluster=cluster))
        with pytest.raises(ssl.SSLCertVerificationError):
            await code_of(access)


async def test_the_name_in_the_certificate_may_be_another(
    api_server: ApiServerThread, tmp_path: Path
) -> None:
    fields = {"server": api_server.url, "certificate-authority": str(api_server.authority)}
    user = {"token": api_server.token}
    for name, fits in (("localhost", True), ("elsewhere.example", False)):
        cluster = {**fields, "tls-server-name": name}
        access = kubeconfig_config(write(tmp_path / "config", cluster=cluster, user=user))
        assert access.server_hostname == name
        if fits:
            assert await code_of(access) == 200
        else:
            with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
                await code_of(access)


async def test_an_unchecked_certificate_is_warned_of(
    api_server: ApiServerThread, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = {"server": api_server.url, "insecure-skip-tls-verify": True}
    path = write(tmp_path / "config", cluster=cluster, user={"token": api_server.token})
    assert await code_of(kubeconfig_config(path)) == 200
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        f'server certificate is not verified: source=context "dev" of {path}'
    ]


async def test_without_tls_no_token_is_sent(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(tmp_path / "c", cluster={"server": "http://10.0.0.1"}, user={"token": "s3cret"})
    credentials = await kubeconfig_config(path).credentials()
    assert (credentials.authorization, credentials.tls) == (None, None)
    assert "credentials are not sent without TLS" in caplog.text
    with pytest.raises(KubeconfigError, match="use https"):
        token_config("http://10.0.0.1", "s3cret")
    local = await token_config("http://127.0.0.1:1", "s3cret").credentials()
    assert (local.authorization, local.tls) == ("Bearer s3cret", None)


async def test_a_name_and_a_password_are_sent(tmp_path: Path) -> None:
    path = write(tmp_path / "config", user={"username": "Jürgen", "password": "a:b"})
    credentials = await kubeconfig_config(path).credentials()
    assert credentials.authorization == "Basic SsO8cmdlbjphOmI="


@pytest.fixture
def pod_environment(api_server: ApiServerThread, tmp_path: Path) -> dict[str, str]:
    where = urlsplit(api_server.url)
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    (folder / "token").write_text(api_server.token)
    (folder / "ca.crt").write_bytes(api_server.authority.read_bytes())
    (folder / "namespace").write_text("team")
    return {
        "HOME": str(tmp_path / "home"),
        "KUBERNETES_SERVICE_HOST": str(where.hostname),
        "KUBERNETES_SERVICE_PORT": str(where.port),
    }


async def test_a_pod_knows_its_server(pod_environment: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "serviceaccount"
    access = in_cluster_config(folder, environment=pod_environment)
    assert (access.namespace, access.source) == ("team", f"the service account in {folder}")
    assert await code_of(access) == 200
    named = in_cluster_config(folder, environment=pod_environment | {"POD_NAMESPACE": "mine"})
    assert named.namespace == "mine"
    (folder / "namespace").unlink()
    assert in_cluster_config(folder, environment=pod_environment).namespace == "default"


def test_an_ipv6_server_is_put_into_brackets(
    pod_environment: dict[str, str], tmp_path: Path
) -> None:
    environment = pod_environment | {"KUBERNETES_SERVICE_HOST": "fd00::1"}
    access = in_cluster_config(tmp_path / "serviceaccount", environment=environment)
    port = environment["KUBERNETES_SERVICE_PORT"]
    assert access.server == f"https://[fd00::1]:{port}"


@pytest.mark.parametrize("lost", ["token", "ca.crt"])
def test_missing_service_account_files_are_named(
    pod_environment: dict[str, str], tmp_path: Path, lost: str
) -> None:
    (tmp_path / "serviceaccount" / lost).unlink()
    with pytest.raises(KubeconfigError, match=rf"serviceaccount/{lost} .*no such file"):
        in_cluster_config(tmp_path / "serviceaccount", environment=pod_environment)


def test_who_looks_around_takes_the_nearest(
    pod_environment: dict[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "serviceaccount"
    path = write(tmp_path / "config")

    def source(environment: dict[str, str], named: Path | None = None) -> str:
        return load_config(named, service_account=folder, environment=environment).source

    by_file = f'context "dev" of {path}'
    assert source(pod_environment, path) == by_file
    assert source(pod_environment | {"KUBECONFIG": str(path)}) == by_file
    assert source({"KUBECONFIG": str(path)}) == by_file
    in_pod = f"the service account in {folder}"
    assert source(pod_environment) == in_pod
    assert source(pod_environment | {"KUBECONFIG": str(tmp_path / "missing")}) == in_pod
    (tmp_path / "empty").write_text("")
    assert source(pod_environment | {"KUBECONFIG": str(tmp_path / "empty")}) == in_pod


def test_a_missing_kubeconfig_names_the_searched_paths(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError) as caught:
        load_config(environment={"HOME": str(tmp_path)})
    assert str(caught.value) == (
        f"no kubeconfig at {tmp_path}/.kube/config; pass the path of one, or set KUBECONFIG "
        "(not running in a cluster either)"
    )
    with pytest.raises(KubeconfigError, match=r"no kubeconfig at /x or /y \(KUBECONFIG\)"):
        load_config(environment={"KUBECONFIG": "/x:/y"})


def test_a_broken_kubeconfig_is_not_passed_over(
    pod_environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "config").write_text("[")
    environment = pod_environment | {"KUBECONFIG": str(tmp_path / "config")}
    with pytest.raises(KubeconfigError, match="is not valid YAML"):
        load_config(environment=environment)


def test_a_context_of_nothing_is_document(tmp_path: Path) -> None:
    path = write(tmp_path / "config", document())
    with pytest.raises(KubeconfigError, match='has no context "prod"; its contexts are: dev'):
        load_config(path, "prod")
