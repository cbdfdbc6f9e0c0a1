"""Who is said to have written to a pod's status."""

from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.meta import ManagedFieldsEntry
from podstatus.status.decide.foreign_writes import ForeignWrite, StatusPart, find_writer
from tests.servers.pods import created, pod, pods
from tests.support.processes.api_servers import Document, Server

READY = StatusPart("Ready", is_condition=True)
YES, NO = ("True", "", ""), ("False", "Meddling", "")


def write(server: Server, namespace: str, manager: str, status: Document) -> list[Document]:
    """Somebody writes; who manages what after that."""
    path = f"{pods(namespace, 'p', 'status')}?fieldManager={manager}"
    code, answer = server.client.patch(path, {"status": status})
    assert code == 200, answer
    return list(answer["metadata"]["managedFields"])


def ready(said: tuple[str, str, str]) -> Document:
    status, reason, _ = said
    return {"conditions": [{"type": "Ready", "status": status, "reason": reason or None}]}


def writer(managed: list[Document], change: ForeignWrite) -> str | None:
    return find_writer(change, [from_document(entry, ManagedFieldsEntry) for entry in managed])


def test_the_writer_of_a_condition_is_known_until_it_is_written_again(
    server: Server, namespace: str
) -> None:
    created(server.client, pods(namespace), pod("p"))
    write(server, namespace, "node", {"phase": "Running", **ready(YES)})
    managed = write(server, namespace, "kubectl-edit", ready(NO))
    assert writer(managed, ForeignWrite(READY, YES, NO)) == "kubectl-edit"
    managed = write(server, namespace, "node", ready(YES))
    assert writer(managed, ForeignWrite(READY, YES, NO)) != "kubectl-edit"


def test_the_writer_of_a_field_is_known(server: Server, namespace: str) -> None:
    created(server.client, pods(namespace), pod("p"))
    write(server, namespace, "node", {"phase": "Running"})
    managed = write(server, namespace, "them", {"phase": "Failed"})
    assert writer(managed, ForeignWrite(StatusPart("phase"), "Running", "Failed")) == "them"


def test_a_write_that_is_not_about_the_status_leaves_it_as_it_is(
    server: Server, namespace: str
) -> None:
    created(server.client, pods(namespace), pod("p"))
    write(server, namespace, "node", {"phase": "Running"})
    write(server, namespace, "them", ready(NO))
    path = f"{pods(namespace, 'p')}?fieldManager=another"
    code, answer = server.client.patch(path, {"metadata": {"labels": {"a": "b"}}})
    assert code == 200, answer
    managed = answer["metadata"]["managedFields"]
    assert writer(managed, ForeignWrite(READY, YES, NO)) == "them"
