"""Which proxy is on the way."""

import pytest

from podstatus.client.auth.proxy import select_proxy
from podstatus.client.config_errors import KubeconfigError

SERVER = "https://api.example.com:6443"
PROXY = "http://proxy.example.com:3128"


@pytest.mark.parametrize(
    ("server", "environment", "proxy"),
    [
        (SERVER, {}, None),
        (SERVER, {"HTTPS_PROXY": PROXY}, PROXY),
        (SERVER, {"https_proxy": PROXY}, PROXY),
        (SERVER, {"HTTPS_PROXY": PROXY, "https_proxy": "http://other"}, PROXY),
        (SERVER, {"HTTPS_PROXY": "", "https_proxy": PROXY}, PROXY),
        (SERVER, {"HTTPS_PROXY": "proxy:3128"}, "http://proxy:3128"),
        (SERVER, {"HTTPS_PROXY": "https://u:p@proxy"}, "https://u:p@proxy"),
        (SERVER, {"HTTP_PROXY": PROXY}, None),
        (SERVER, {"ALL_PROXY": PROXY}, None),
        ("http://api.example.com", {"HTTP_PROXY": PROXY}, PROXY),
        ("http://api.example.com", {"HTTPS_PROXY": PROXY}, None),
        ("https://localhost:6443", {"HTTPS_PROXY": PROXY}, None),
        ("https://LOCALHOST", {"HTTPS_PROXY": PROXY}, None),
        ("https://127.0.0.1:6443", {"HTTPS_PROXY": PROXY}, None),
        ("https://127.8.9.1", {"HTTPS_PROXY": PROXY}, None),
        ("https://[::1]:6443", {"HTTPS_PROXY": PROXY}, None),
        ("https://127.0.0.1.example.com", {"HTTPS_PROXY": PROXY}, PROXY),
    ],
)
def test_the_environment_names_one(
    server: str, environment: dict[str, str], proxy: str | None
) -> None:
    assert select_proxy(server, "", environment) == proxy


@pytest.mark.parametrize(
    ("exceptions", "server", "excepted"),
    [
        ("*", SERVER, True),
        ("other, *", SERVER, True),
        ("example.com", SERVER, True),
        ("EXAMPLE.com", SERVER, True),
        ("api.example.com", SERVER, True),
        ("api.example.com:6443", SERVER, True),
        ("api.example.com:443", SERVER, False),
        ("api.example.com:443", "https://api.example.com", True),
        (".example.com", SERVER, True),
        ("*.example.com", SERVER, True),
        (".api.example.com", SERVER, False),
        ("*.api.example.com", SERVER, False),
        ("ample.com", SERVER, False),
        ("pi.example.com", SERVER, False),
        ("", SERVER, False),
        (" , ,", SERVER, False),
        (".", SERVER, False),
        (":6443", SERVER, False),
        ("a/b", SERVER, False),
        ("x, example.com", SERVER, True),
        ("10.0.0.1", "https://10.0.0.1:6443", True),
        ("10.0.0.1:6443", "https://10.0.0.1:6443", True),
        ("10.0.0.1:1", "https://10.0.0.1:6443", False),
        ("10.0.0.0/8", "https://10.0.0.1:6443", True),
        ("10.1.0.0/16", "https://10.0.0.1:6443", False),
        ("10.0.0.0/8", SERVER, False),
        ("0.0.0.1", "https://10.0.0.1", False),
        ("fd00::/8", "https://[fd00::1]:6443", True),
        ("fd00::1", "https://[fd00::1]:6443", True),
        ("[fd00::1]:6443", "https://[fd00::1]:6443", True),
        ("[fd00::1]:1", "https://[fd00::1]:6443", False),
        ("fd00::/8", "https://10.0.0.1", False),
    ],
)
def test_some_servers_are_excepted(exceptions: str, server: str, excepted: bool) -> None:
    environment = {"HTTPS_PROXY": PROXY, "NO_PROXY": exceptions}
    assert select_proxy(server, "", environment) == (None if excepted else PROXY)
    lower = {"https_proxy": PROXY, "no_proxy": exceptions}
    assert select_proxy(server, "", lower) == (None if excepted else PROXY)


def test_the_kubeconfigs_own_proxy_knows_no_exceptions() -> None:
    environment = {"HTTPS_PROXY": "http://other", "NO_PROXY": "*"}
    assert select_proxy("https://127.0.0.1", PROXY, environment) == PROXY


@pytest.mark.parametrize(
    ("named", "environment", "message"),
    [
        ("socks5://u:s3cret@p:1", {}, "proxy-url is 'socks5://p:1', but SOCKS .* not supported"),
        ("ftp://u:s3cret@p", {}, "proxy-url is 'ftp://p', which is not a valid URL"),
        ("http://u:s3cret@", {}, "which is not a valid URL; use the form http://"),
        ("", {"HTTPS_PROXY": "socks5h://u:s3cret@p"}, "HTTPS_PROXY is 'socks5h://p', but"),
        ("", {"https_proxy": "u:s3cret@p:port"}, "https_proxy is 'http://p:port', which is no"),
    ],
)
def test_what_cannot_be_used_is_named_without_its_password(
    named: str, environment: dict[str, str], message: str
) -> None:
    with pytest.raises(KubeconfigError, match=message) as caught:
        select_proxy(SERVER, named, environment)
    assert "s3cret" not in str(caught.value)
