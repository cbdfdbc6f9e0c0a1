"""Gives pods what images would: the process runtime runs programs of the host.

A MutatingAdmissionPolicy sets the command of containers that leave it to their image: `/agnhost`
for agnhost, and with the argument `pause` for images that only have to stay; `sh` for busybox.
`/bin/sysctl`, a path of busybox, becomes `sysctl`, which Debian has in /usr/sbin. The policy also
removes seLinuxOptions of pods, which kubelets on machines without SELinux ignore, and the process
runtime rejects. Nothing else is changed.
"""

import http
from typing import Any

from podstatus.testing.servers.access import ServerAccess
from podstatus.testing.servers.etcd import StartError
from tests.node_e2e.polling import until

_NAME = "commands-of-images"
_API = "/apis/admissionregistration.k8s.io/v1"
_FIELDS = ("containers", "initContainers")
_INDEXES = list(range(10))
"""CEL has no range; no pod of the tests has more containers of a kind."""
_REMOVE_SELINUX_OPTIONS = """
has(object.spec.securityContext) && has(object.spec.securityContext.seLinuxOptions)
? [JSONPatch{op: "remove", path: "/spec/securityContext/seLinuxOptions"}] : []
"""
_SECONDS = 60.0
"""The API server evaluates a new policy after about a second."""


def install_image_policy(admin: ServerAccess) -> None:
    """Create the policy; return when it is in effect. Raises StartError."""
    for resource, body in (
        ("mutatingadmissionpolicies", _policy()),
        ("mutatingadmissionpolicybindings", _binding()),
    ):
        code, answer = admin.request("POST", f"{_API}/{resource}", body)
        if code != http.HTTPStatus.CREATED:
            raise StartError(f"cannot create the policy for images: {answer}")
    until(lambda: _is_in_effect(admin), "the policy for images is in effect", _SECONDS)


def _is_in_effect(admin: ServerAccess) -> bool:
    containers = [{"name": "app", "image": "registry.k8s.io/e2e-test-images/agnhost:2"}]
    pod = {"metadata": {"name": "trial"}, "spec": {"containers": containers}}
    path = "/api/v1/namespaces/default/pods?dryRun=All"
    code, answer = admin.request("POST", path, pod)
    return code == http.HTTPStatus.CREATED and "command" in answer["spec"]["containers"][0]


def _policy() -> dict[str, Any]:
    pods = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["pods"],
    }
    expressions = [_REMOVE_SELINUX_OPTIONS, *map(_patches, _FIELDS)]
    mutations = [
        {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}
        for expression in expressions
    ]
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": _NAME},
        "spec": {
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "matchConstraints": {"resourceRules": [pods]},
            "mutations": mutations,
        },
    }


def _binding() -> dict[str, Any]:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": _NAME},
        "spec": {"policyName": _NAME},
    }


def _patches(field: str) -> str:
    """Return a CEL expression: the patches of a pod's containers of one kind."""
    container = f"object.spec.{field}[i]"
    no_command = f"!has({container}.command)"
    no_args = f"!has({container}.args)"
    busybox = _has_image(container, "/busybox:")
    agnhost = _has_image(container, "/agnhost:", "/pause:", "/nginx:")
    sysctl = f'has({container}.command) && {container}.command[0] == "/bin/sysctl"'
    patches = [
        # A patch sees the object as it was before: `args` first or last is the same.
        (f"{no_command} && {no_args} && {agnhost}", "add", "args", '["pause"]'),
        (f"{no_command} && {agnhost}", "add", "command", '["/agnhost"]'),
        (f"{no_command} && {no_args} && {busybox}", "add", "command", '["sh"]'),
        (sysctl, "replace", "command/0", '"sysctl"'),
    ]
    return " + ".join(_patch(field, *patch) for patch in patches)


def _has_image(container: str, *parts: str) -> str:
    return "(" + " || ".join(f'{container}.image.contains("{part}")' for part in parts) + ")"


def _patch(field: str, when: str, operation: str, name: str, value: str) -> str:
    exists = f"has(object.spec.{field}) && i < size(object.spec.{field})"
    path = f'"/spec/{field}/" + string(i) + "/{name}"'
    patch = f'JSONPatch{{op: "{operation}", path: {path}, value: {value}}}'
    return f"{_INDEXES}.filter(i, {exists} && {when}).map(i, {patch})"
