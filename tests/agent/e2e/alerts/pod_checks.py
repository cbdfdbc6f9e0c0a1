"""What tests of alerts wait for, and the pods that they create."""

from tests.agent.e2e.alerting_node import AlertingNode


async def is_ready(node: AlertingNode) -> bool:
    return (await node.conditions()).get("Ready", {}).get("status") == "True"


async def is_running(node: AlertingNode, name: str) -> bool:
    pod = await node.pod(name)
    return bool(pod and pod["status"]["phase"] == "Running")
