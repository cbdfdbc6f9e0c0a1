"""Services, as far as both servers have them: no address is allocated here by the embedded one."""

import pytest

from tests.servers.pods import causes, created
from tests.support.processes.api_servers import Document, Server

PORT = {"name": "http", "port": 80}


def services(namespace: str, name: str = "") -> str:
    path = f"/api/v1/namespaces/{namespace}/services"
    return f"{path}/{name}" if name else path


def service(**spec: object) -> Document:
    return {"metadata": {"name": "web"}, "spec": {"ports": [PORT], **spec}}


def test_the_server_is_the_service_kubernetes(server: Server) -> None:
    code, found = server.client.get(services("default", "kubernetes"))
    assert code == 200
    assert found["metadata"]["labels"] == {"component": "apiserver", "provider": "kubernetes"}
    spec = found["spec"]
    assert spec["clusterIPs"] == [spec["clusterIP"]]
    assert [(port["name"], port["protocol"]) for port in spec["ports"]] == [("https", "TCP")]


@pytest.mark.parametrize(
    ("more", "families"),
    [
        ({}, {"ipFamilies": ["IPv4", "IPv6"], "ipFamilyPolicy": "RequireDualStack"}),
        (
            {"selector": {"app": "web"}},
            {"ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack"},
        ),
    ],
)
def test_a_headless_service_has_the_defaults(
    server: Server, namespace: str, more: Document, families: Document
) -> None:
    document = service(clusterIP="None", **more)
    spec = created(server.client, services(namespace), document)["spec"]
    assert spec == families | more | {
        "clusterIP": "None",
        "clusterIPs": ["None"],
        "internalTrafficPolicy": "Cluster",
        "ports": [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": 80}],
        "sessionAffinity": "None",
        "type": "ClusterIP",
    }


def test_an_external_name_has_no_address(server: Server, namespace: str) -> None:
    document = service(type="ExternalName", externalName="example.com")
    spec = created(server.client, services(namespace), document)["spec"]
    assert "clusterIP" not in spec
    code, selected = server.client.get(f"{services(namespace)}?fieldSelector=spec.type=ClusterIP")
    assert (code, selected["items"]) == (200, [])


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        ({"ports": None}, ["spec.ports"]),
        ({"clusterIP": "None", "type": "Odd"}, ["spec.type"]),
        ({"ports": [PORT, PORT]}, ["spec.ports[1].name", "spec.ports[1]"]),
        ({"ports": [{"port": 0}]}, ["spec.ports[0].port", "spec.ports[0].targetPort"]),
        ({"type": "ExternalName"}, ["spec.externalName"]),
        ({"clusterIP": "x"}, ["spec.clusterIPs[0]"]),
    ],
)
def test_invalid_services_are_refused(
    server: Server, namespace: str, spec: Document, fields: list[str]
) -> None:
    answer = server.client.create(services(namespace), service(**spec))
    assert sorted(causes(answer)) == sorted(fields)


def test_an_update_changes_ports_and_keeps_the_address(server: Server, namespace: str) -> None:
    created(server.client, services(namespace), service(clusterIP="None"))
    patch = {"spec": {"ports": [{"port": 80, "name": "web"}, {"port": 81, "name": "more"}]}}
    code, patched = server.client.patch(services(namespace, "web"), patch)
    assert code == 200
    assert [port["name"] for port in patched["spec"]["ports"]] == ["web", "more"]
    assert patched["spec"]["clusterIP"] == "None"
    assert server.client.delete(services(namespace, "web"), {})[0] == 200
    assert server.client.get(services(namespace, "web"))[0] == 404
