"""Encoding of objects and lists as the client accepts them: JSON, Table, metadata only."""

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
    """Renders objects as responses, according to the Accept header."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def check_accept(self, request: HttpRequest) -> None:
        """Raise StatusError (406 or 400) if the accepted form is not supported."""
        negotiate(request.accept)
        parse_include_object(request.query.get("includeObject", ""))

    def stored_object(
        self, request: HttpRequest, target: ResourcePath, stored: StoredObject
    ) -> Response:
        if not negotiate(request.accept).kind:
            return Response(body=stored.data)
        return self.document(request, target, stored.document())

    def document(
        self, request: HttpRequest, target: ResourcePath, document: Document, *, code: int = 200
    ) -> Response:
        """Render a document, for example one that was just written."""
        form = negotiate(request.accept)
        if form.kind == "Table":
            return json_response(self._table(request, target, [document], None), code)
        if form.kind:
            return json_response(partial_metadata(document, api_version=form.api_version), code)
        return json_response(document, code)

    def list(self, request: HttpRequest, target: ResourcePath, page: ListPage) -> Response:
        metadata = _list_metadata(page)
        if not negotiate(request.accept).kind:
            return Response(body=_encode_list(target, page.objects, metadata))
        documents = [stored.document() for stored in page.objects]
        return self.documents(request, target, documents, metadata)

    def documents(
        self,
        request: HttpRequest,
        target: ResourcePath,
        documents: Sequence[Document],
        metadata: Document,
    ) -> Response:
        """Render a list of documents; `metadata` is that of the list."""
        form = negotiate(request.accept)
        if form.kind == "Table":
            return json_response(self._table(request, target, documents, metadata))
        if form.kind:
            return json_response(partial_list(documents, metadata, api_version=form.api_version))
        return json_response(_list_header(target, metadata) | {"items": documents})

    def event(
        self,
        request: HttpRequest,
        target: ResourcePath,
        type_: str,
        stored: StoredObject,
        *,
        first: bool,
    ) -> bytes:
        """Encode a watch event as a line; `first` includes the Table's column definitions."""
        form = negotiate(request.accept)
        if not form.kind:
            return b'{"type":"%s","object":%s}\n' % (type_.encode(), stored.data)
        document = stored.document()
        if form.kind == "Table":
            rendered = self._table(request, target, [document], None, headers=first)
        else:
            rendered = partial_metadata(document, api_version=form.api_version)
        return msgspec.json.encode({"type": type_, "object": rendered}) + b"\n"

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
            api_version=negotiate(request.accept).api_version,
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
    """Join the stored JSON of the objects, without decoding it."""
    head = msgspec.json.encode(_list_header(target, metadata))
    return b'%s,"items":[%s]}' % (head[:-1], b",".join(stored.data for stored in objects))


def _list_header(target: ResourcePath, metadata: Document) -> Document:
    resource = target.resource
    return {
        "kind": f"{resource.kind}List",
        "apiVersion": resource.api_version,
        "metadata": metadata,
    }
