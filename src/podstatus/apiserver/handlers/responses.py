"""Objects and lists in the form that a client prefers: themselves, Tables, metadata alone."""

from collections.abc import Sequence

import msgspec

from podstatus.apiserver.handlers.list import ListPage
from podstatus.apiserver.http.messages import HttpRequest, Response, json_response
from podstatus.apiserver.http.negotiation import negotiate
from podstatus.apiserver.http.router import ResourcePath
from podstatus.apiserver.printing.table import (
    parse_include_object,
    partial_list,
    partial_metadata,
    table_document,
)
from podstatus.apiserver.storage.store import StoredObject
from podstatus.apiserver.strategies.base import Document
from podstatus.base.clock import Clock
from podstatus.kube.scalars.time import Time


class ResponseRenderer:
    """Makes answers of objects."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def check_accept(self, request: HttpRequest) -> None:
        """Refuse what cannot be shown as the client wants it. Raises Problem."""
        negotiate(request.accept)
        parse_include_object(request.query.get("includeObject", ""))

    def stored_object(
        self, request: HttpRequest, target: ResourcePath, stored: StoredObject
    ) -> Response:
        """One object."""
        if not negotiate(request.accept).kind:
            return Response(body=stored.data)
        return self.document(request, target, stored.document())

    def document(
        self, request: HttpRequest, target: ResourcePath, document: Document, *, code: int = 200
    ) -> Response:
        """An object that was just written."""
        form = negotiate(request.accept)
        if form.kind == "Table":
            return json_response(self._table(request, target, [document], None), code)
        if form.kind:
            return json_response(partial_metadata(document, api_version=form.api_version), code)
        return json_response(document, code)

    def list(self, request: HttpRequest, target: ResourcePath, page: ListPage) -> Response:
        """A list of objects."""
        form = negotiate(request.accept)
        metadata = _list_metadata(page)
        if not form.kind:
            return Response(body=_encode_list(target, page.objects, metadata))
        documents = [stored.document() for stored in page.objects]
        if form.kind == "Table":
            return json_response(self._table(request, target, documents, metadata))
        return json_response(partial_list(documents, metadata, api_version=form.api_version))

    def event(
        self,
        request: HttpRequest,
        target: ResourcePath,
        type_: str,
        stored: StoredObject,
        *,
        first: bool,
    ) -> bytes:
        """An event of a watch, as a line."""
        form = negotiate(request.accept)
        if not form.kind:
            return b'{"type":"%s","object":%s}\n' % (type_.encode(), stored.data)
        document = stored.document()
        if form.kind == "Table":
            shown = self._table(request, target, [document], None, headers=first)
        else:
            shown = partial_metadata(document, api_version=form.api_version)
        return msgspec.json.encode({"type": type_, "object": shown}) + b"\n"

    def _table(
        self,
        request: HttpRequest,
        target: ResourcePath,
        documents: Sequence[Document],
        metadata: Document | None,
        *,
        headers: bool = True,
    ) -> Document:
        return table_document(
            target.resource,
            documents,
            Time.from_unix_nanos(self._clock.now()),
            list_metadata=metadata,
            include_object=parse_include_object(request.query.get("includeObject", "")),
            headers=headers,
        )


def _list_metadata(page: ListPage) -> Document:
    metadata: Document = {"resourceVersion": str(page.version)}
    if page.token:
        metadata["continue"] = page.token
    if page.remaining is not None:
        metadata["remainingItemCount"] = page.remaining
    return metadata


def _encode_list(
    target: ResourcePath, objects: Sequence[StoredObject], metadata: Document
) -> bytes:
    """The list, made of the objects' own texts."""
    resource = target.resource
    head = msgspec.json.encode(
        {"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "metadata": metadata}
    )
    return b'%s,"items":[%s]}' % (head[:-1], b",".join(stored.data for stored in objects))
