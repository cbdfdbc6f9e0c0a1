import pytest

from podstatus.web.errors import HttpError
from podstatus.web.query_parameters import read_query
from podstatus.web.v1.filters import PodFilter
from podstatus.web.watch.request import (
    UNKNOWN_RESUME_POINT,
    ResumePoint,
    WatchRequest,
    parse_watch_request,
)


@pytest.mark.parametrize(
    ("query", "last", "wanted"),
    [
        ("", "", WatchRequest()),
        ("after=", "", WatchRequest()),
        ("after=1f2e-17", "", WatchRequest(after=ResumePoint("1f2e", 17))),
        ("after=1f2e-17", "1f2e-18", WatchRequest(after=ResumePoint("1f2e", 18))),
        ("", "what a stranger gave", WatchRequest(after=UNKNOWN_RESUME_POINT)),
        ("", "1f2e-" + "9" * 5000, WatchRequest(after=UNKNOWN_RESUME_POINT)),
        ("namespace=a", "", WatchRequest(filter=PodFilter(namespace="a"))),
        (
            "transitions=1&namespace=a&after=transitions-3",
            "",
            WatchRequest(
                filter=PodFilter(namespace="a"),
                transitions=True,
                after=ResumePoint("transitions", 3),
            ),
        ),
        ("transitions=0&phase=Failed", "", WatchRequest(filter=PodFilter(phases=("Failed",)))),
    ],
)
def test_a_query_says_what_to_watch_and_from_where_on(
    query: str, last: str, wanted: WatchRequest
) -> None:
    assert parse_watch_request(read_query(query), last) == wanted


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("after=17", "is not the id of an event, such as"),
        ("transitions=perhaps", "transitions=perhaps is not 1 or 0"),
        ("transitions=1&phase=Running", "transitions can be filtered by namespace only"),
        ("health=stuck", "no filter by health"),
        ("labels=a", "unknown parameter labels; known parameters: namespace"),
    ],
)
def test_an_invalid_watch_is_rejected_with_a_reason(query: str, message: str) -> None:
    with pytest.raises(HttpError, match=message):
        parse_watch_request(read_query(query))
