"""Objects and lists in the form that a client prefers: themselves, Tables, metadata alone."""

from collections.abc import Sequence

import msgspec

from podstatus.apiserver.handlers.list import Page
from podstatus.apiserver.http.messages import Answer, Request, answer
from podstatus.apiserver.http.negotiation import negotiate
from podstatus.apiserver.http.router import Target
from podstatus.apiserver.printing.table import (
    include_object,
    partial_list,
    partial_metadata,
    table_document,
)
from podstatus.apiserver.storage.store import Stored
from podstatus.apiserver.strategies.base import Document
from podstatus.base.clock import Clock
from podstatus.kube.scalars.time import Time


class Views:
    """Makes answers of objects."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def check(self, request: Request) -> None:
        """Refuse what cannot be shown as the client wants it. Raises Problem."""
        negotiate(request.accept)
        include_object(request.query.get("includeObject", ""))

    def one(self, request: Request, target: Target, stored: Stored) -> Answer:
        """One object."""
        if not negotiate(request.accept).form:
            return Answer(body=stored.data)
        return self.document(request, target, stored.document())

    def document(
        self, request: Request, target: Target, document: Document, *, code: int = 200
    ) -> Answer:
        """An object that was just written."""
        form = negotiate(request.accept)
        if form.form == "Table":
            return answer(self._table(request, target, [document], None), code)
        if form.form:
            return answer(partial_metadata(document, api_version=form.api_version), code)
        return answer(document, code)

    def list(self, request: Request, target: Target, page: Page) -> Answer:
        """A list of objects."""
        form = negotiate(request.accept)
        metadata = _list_metadata(page)
        if not form.form:
            return Answer(body=_joined(target, page.objects, metadata))
        documents = [stored.document() for stored in page.objects]
        if form.form == "Table":
            return answer(self._table(request, target, documents, metadata))
        return answer(partial_list(documents, metadata, api_version=form.api_version))

    def event(
        self, request: Request, target: Target, type_: str, stored: Stored, *, first: bool
    ) -> bytes:
        """An event of a watch, as a line."""
        form = negotiate(request.accept)
        if not form.form:
            return b'{"type":"%s","object":%s}\n' % (type_.encode(), stored.data)
        document = stored.document()
        if form.form == "Table":
            shown = self._table(request, target, [document], None, headers=first)
        else:
            shown = partial_metadata(document, api_version=form.api_version)
        return msgspec.json.encode({"type": type_, "object": shown}) + b"\n"

    def _table(
        self,
        request: Request,
        target: Target,
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
            include_object=include_object(request.query.get("includeObject", "")),
            headers=headers,
        )


def _list_metadata(page: Page) -> Document:
    metadata: Document = {"resourceVersion": str(page.version)}
    if page.token:
        metadata["continue"] = page.token
    if page.remaining is not None:
        metadata["remainingItemCount"] = page.remaining
    return metadata


def _joined(target: Target, objects: Sequence[Stored], metadata: Document) -> bytes:
    """The list, made of the objects' own texts."""
    resource = target.resource
    head = msgspec.json.encode(
        {"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "metadata": metadata}
    )
    return b'%s,"items":[%s]}' % (head[:-1], b",".join(stored.data for stored in objects))
