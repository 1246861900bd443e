"""JSON documents in a folder: one file each, written atomically, so that a crash loses nothing that was answered."""

import copy
import json
import os
from pathlib import Path
from urllib.parse import quote, unquote

from twin.world import Document


class FileStore:
    """A `Store` in a folder. Documents are read once, when the store is opened."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._documents: dict[tuple[str, str], Document] = {}
        for file in sorted(folder.glob("*/*.json")):
            key = (file.parent.name, unquote(file.stem))
            self._documents[key] = json.loads(file.read_text("utf-8"))

    def get(self, kind: str, id: str) -> Document | None:
        """Return a copy of a document, or None where there is none."""
        return copy.deepcopy(self._documents.get((kind, id)))

    def put(self, kind: str, id: str, document: Document) -> None:
        """Write a document in place of any earlier one."""
        file = self._file(kind, id)
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh = file.with_suffix(f".{os.getpid()}.tmp")
        fresh.write_text(json.dumps(document, indent=1), "utf-8")
        fresh.replace(file)
        self._documents[kind, id] = copy.deepcopy(document)

    def delete(self, kind: str, id: str) -> None:
        """Forget a document; nothing happens where there is none."""
        self._file(kind, id).unlink(missing_ok=True)
        self._documents.pop((kind, id), None)

    def list(self, kind: str) -> dict[str, Document]:
        """Return copies of all documents of a kind, by id, in the order of their ids."""
        return {id: copy.deepcopy(d) for (k, id), d in sorted(self._documents.items()) if k == kind}

    def _file(self, kind: str, id: str) -> Path:
        return self._folder / kind / f"{quote(id, safe='')}.json"
