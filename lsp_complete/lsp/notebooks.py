"""Notebook cells as documents of their own, and files that were renamed or deleted.

Strategy: a cell is an ordinary document with its own URI; the notebook only says which cells come and go. Requests name the cell.
The order of the cells goes to the service, where earlier cells open a cell's prompt.

Rules: to our own store only, as for text documents; malformed changes of one cell do not stop the others.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from ..text.document import Document
from . import convert

if TYPE_CHECKING:
    from .server import CompletionServer

logger = logging.getLogger(__name__)

EVERY_CELL = types.NotebookDocumentSyncOptions(
    notebook_selector=[
        types.NotebookDocumentFilterWithNotebook(notebook="*", cells=[types.NotebookCellLanguage(language="*")])
    ],
    save=True,
)
EVERY_FILE = types.FileOperationRegistrationOptions(
    filters=[types.FileOperationFilter(pattern=types.FileOperationPattern(glob="**/*"), scheme="file")]
)


def register(server: CompletionServer) -> None:
    """Add the handlers, and announce notebooks and file operations."""
    server._notebook_document_sync = EVERY_CELL
    _register_notebooks(server)
    _register_files(server)


def _register_notebooks(server: CompletionServer) -> None:
    service = server.service

    def opened(items: Any) -> None:
        for item in items or ():
            service.open(Document.open(item.uri, item.language_id, item.version, item.text))

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    def did_open(params: types.DidOpenNotebookDocumentParams) -> None:
        service.notebooks.opened(params.notebook_document.uri, [cell.document for cell in params.notebook_document.cells])
        opened(params.cell_text_documents)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def did_change(params: types.DidChangeNotebookDocumentParams) -> None:
        cells = params.change.cells
        if cells is None:
            return
        if cells.structure is not None:
            for gone in cells.structure.did_close or ():
                service.closed(gone.uri)
            opened(cells.structure.did_open)
            array, came = cells.structure.array, cells.structure.did_open or ()
            uris = [item.uri for item in came] if array.cells is None else [cell.document for cell in array.cells]
            service.notebooks.spliced(params.notebook_document.uri, array.start, array.delete_count, uris)
        for content in cells.text_content or ():
            identifier = content.document
            changes = convert.changes_of(content.changes)
            if not service.change(identifier.uri, changes, server.encoding, identifier.version):
                logger.warning("ignored a change of a cell that is not open")

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_SAVE)
    def did_save(params: types.DidSaveNotebookDocumentParams) -> None:
        service.watched([params.notebook_document.uri])

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def did_close(params: types.DidCloseNotebookDocumentParams) -> None:
        service.notebooks.closed(params.notebook_document.uri)
        for cell in params.cell_text_documents:
            service.closed(cell.uri)


def _register_files(server: CompletionServer) -> None:
    """A renamed file is two changed ones: the index forgets the old place and reads the new. Open documents are the client's to reopen."""

    @server.feature(types.WORKSPACE_DID_CREATE_FILES, EVERY_FILE)
    def did_create(params: types.CreateFilesParams) -> None:
        server.service.watched([file.uri for file in params.files])

    @server.feature(types.WORKSPACE_DID_RENAME_FILES, EVERY_FILE)
    def did_rename(params: types.RenameFilesParams) -> None:
        server.service.watched([uri for file in params.files for uri in (file.old_uri, file.new_uri)])

    @server.feature(types.WORKSPACE_DID_DELETE_FILES, EVERY_FILE)
    def did_delete(params: types.DeleteFilesParams) -> None:
        server.service.watched([file.uri for file in params.files])
