"""Recorded strategic merge patches mean the same to both servers, and what was recorded."""

from collections import Counter

import pytest

from tests.servers.api.vectors import play, recorded_status, touched, vectors
from tests.support.processes.api_servers import EmbeddedServer, RealServer, Server

SUBRESOURCES = ["/status", ""]
NO_MERGE_KEY = {"real": 500, "embedded": 422}
"""By decision (0010): a patch without its merge key is the client's mistake, 500 upstream."""


@pytest.mark.parametrize("subresource", SUBRESOURCES, ids=["status", "pod"])
def test_every_vector_has_the_same_outcome_on_both(
    real_server: RealServer, embedded_server: EmbeddedServer, subresource: str
) -> None:
    theirs, ours = real_server.new_namespace(), embedded_server.new_namespace()
    codes: Counter[int] = Counter()
    for vector in vectors():
        real = play(vector, real_server, theirs, subresource)
        embedded = play(vector, embedded_server, ours, subresource)
        codes[real.code] += 1
        if vector.result is None:
            assert real.code == NO_MERGE_KEY["real"], vector.number
            assert embedded.code == NO_MERGE_KEY["embedded"], vector.number
        else:
            assert embedded == real, vector.number
    expected = {"/status": {200: 130, 422: 35, 500: 5}, "": {200: 154, 422: 11, 500: 5}}
    assert codes == expected[subresource]


def test_a_patch_of_the_status_stores_what_was_recorded(server: Server, namespace: str) -> None:
    outcomes: Counter[str] = Counter()
    for vector in vectors():
        played = play(vector, server, namespace, "/status")
        if vector.result is None:
            outcomes["no merge key"] += 1
            assert played.code == NO_MERGE_KEY[server.kind]
        elif played.code != 200:
            outcomes["the result is no valid status"] += 1
        elif touched(vector.patch) & set(played.left_out):
            outcomes["the patch is of what had no home"] += 1
        else:
            outcomes["as recorded"] += 1
            stored = played.told["status"]
            assert stored == recorded_status(vector, played.before), vector.number
    assert outcomes == {
        "as recorded": 126,
        "the result is no valid status": 35,
        "the patch is of what had no home": 4,
        "no merge key": 5,
    }
