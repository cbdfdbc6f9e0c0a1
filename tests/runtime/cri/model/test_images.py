"""Names of images, pull policies and credentials.

Upstream: parsers_test.go, image_manager_test.go, keyring_test.go, v1.36.4.
"""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstatus.kube.objects.cluster import Secret
from podstatus.runtime.cri.model.image_names import image_to_pull, pull_policy, repository
from podstatus.runtime.cri.model.pull_secrets import credentials
from podstatus.runtime.port import CannotStartError

DIGEST = "sha256:" + "a" * 64


@pytest.mark.parametrize(
    ("image", "repo", "pulled", "policy"),
    [
        ("busybox", "docker.io/library/busybox", "busybox:latest", "Always"),
        ("busybox:1", "docker.io/library/busybox", "busybox:1", "IfNotPresent"),
        ("busybox:latest", "docker.io/library/busybox", "busybox:latest", "Always"),
        ("a/b", "docker.io/a/b", "a/b:latest", "Always"),
        ("localhost/a:1", "localhost/a", "localhost/a:1", "IfNotPresent"),
        ("reg.io:5000/x/y", "reg.io:5000/x/y", "reg.io:5000/x/y:latest", "Always"),
        (f"reg.io/x@{DIGEST}", "reg.io/x", f"reg.io/x@{DIGEST}", "IfNotPresent"),
        (f"x:1@{DIGEST}", "docker.io/library/x", f"x:1@{DIGEST}", "IfNotPresent"),
        ("index.docker.io/nginx:1", "docker.io/library/nginx", "index.docker.io/nginx:1", None),
        ("[::1]:5000/a:1", "[::1]:5000/a", "[::1]:5000/a:1", None),
    ],
)
def test_a_name(image: str, repo: str, pulled: str, policy: str | None) -> None:
    assert (repository(image), image_to_pull(image)) == (repo, pulled)
    if policy is not None:
        assert pull_policy(image, "") == policy


@pytest.mark.parametrize("policy", ["Always", "Never", "IfNotPresent"])
def test_a_policy_that_is_set_wins(policy: str) -> None:
    assert pull_policy("busybox", policy) == policy


@pytest.mark.parametrize(
    ("image", "why"),
    [
        ("", "invalid reference format"),
        ("UPPER", r"repository name \(library/UPPER\) must be lowercase"),
        ("a//b", "invalid reference format"),
        ("a:b:c", "invalid reference format"),
        ("x:", "invalid reference format"),
        ("http://x", "invalid reference format"),
        ("a b", "invalid reference format"),
        ("x@sha256:1", "invalid reference format"),
        ("a" * 64, "cannot specify 64-byte hexadecimal strings"),
        ("a" * 300, "must not be more than 255 characters"),
        ("../x", "invalid reference format"),
    ],
)
def test_an_invalid_name_says_why(image: str, why: str) -> None:
    with pytest.raises(CannotStartError, match=why) as refused:
        image_to_pull(image)
    assert refused.value.reason == "InvalidImageName"
    assert refused.value.message.startswith(f'Failed to apply default image tag "{image}": ')


@given(st.text(max_size=60))
def test_any_text_is_a_name_or_invalid(text: str) -> None:
    try:
        pulled = image_to_pull(text)
    except CannotStartError:
        return
    assert pulled.startswith(text)


def secret(key: str, document: object) -> Secret:
    content = document if isinstance(document, bytes) else json.dumps(document).encode()
    return Secret(data={key: base64.b64encode(content).decode()})


def config(**auths: object) -> Secret:
    return secret(".dockerconfigjson", {"auths": auths})


LOGIN = {"username": "u", "password": "p"}
AUTH = {"auth": base64.b64encode(b"me:pass:word").decode()}


@pytest.mark.parametrize(
    ("registry", "repo", "matches"),
    [
        ("reg.io", "reg.io/a", True),
        ("https://reg.io/v2/", "reg.io/a", True),
        ("reg.io/a", "reg.io/a", True),
        ("reg.io/a", "reg.io/ab", False),
        ("reg.io", "reg.io.evil.com/a", False),
        ("reg.io:5000", "reg.io/a", False),
        ("https://index.docker.io/v1/", "docker.io/library/x", True),
        ("docker.io", "docker.io/library/x", True),
    ],
)
def test_credentials_are_sent_to_their_registry_only(
    registry: str, repo: str, *, matches: bool
) -> None:
    found = credentials(repo, [config(**{registry: LOGIN})])
    assert [(auth.username, auth.password) for auth in found] == [("u", "p")] * matches


def test_the_most_specific_registry_comes_first() -> None:
    auths = config(**{"reg.io": LOGIN, "reg.io/team": AUTH})
    found = credentials("reg.io/team/x", [auths])
    assert [(auth.username, auth.password) for auth in found] == [("me", "pass:word"), ("u", "p")]


def test_the_older_type_of_secret_works() -> None:
    (auth,) = credentials("reg.io/x", [secret(".dockercfg", {"reg.io": AUTH})])
    assert (auth.username, auth.password, auth.server_address) == ("me", "pass:word", "reg.io")


@pytest.mark.parametrize("content", [b"", b"{", b'{"auths": []}', b"\xff"])
def test_a_secret_that_cannot_be_decoded_is_skipped(content: bytes) -> None:
    broken = [secret(".dockerconfigjson", content), Secret(data={".dockerconfigjson": "%"})]
    (auth,) = credentials("reg.io/x", [*broken, Secret(), config(**{"reg.io": LOGIN})])
    assert auth.username == "u"
