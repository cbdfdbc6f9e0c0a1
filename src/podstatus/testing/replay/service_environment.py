"""Replay of the functions that make a container's environment from Services (FORMAT.md, section 4).

Configuration maps, secrets and fields do not occur in these vectors.
"""

from collections.abc import Mapping
from typing import Any

from podstatus.kube.encoding.codec import from_document
from podstatus.kube.expansion import ExecBudget
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.service import Service
from podstatus.runtime.process.spec.downward_api import DownwardContext
from podstatus.runtime.process.spec.environment import ReferencedObjects, declared_environment
from podstatus.runtime.process.spec.service_variables import service_variables, variables_of


def from_services(args: Mapping[str, Any]) -> object:
    """Return the variables of all Services, in order."""
    services = _services(args)
    return {"variables": [pair for service in services for pair in variables_of(service)]}


def make_environment_variables(args: Mapping[str, Any]) -> object:
    """Return the environment of the pod's container, with its expanded command and arguments."""
    pod = from_document(args["pod"], Pod)
    container, budget = (pod.spec.containers or ())[0], ExecBudget()
    links = service_variables(pod, _services(args))
    env = declared_environment(
        pod, container, ReferencedObjects(), DownwardContext((), {}), budget, links
    )
    words = {"command": container.command, "args": container.args}
    return {"env": env} | {
        field: [budget.expand(word, env) for word in given] if given else None
        for field, given in words.items()
    }


def _services(args: Mapping[str, Any]) -> list[Service]:
    return [from_document(document, Service) for document in args["services"] or ()]
