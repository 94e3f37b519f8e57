"""Files that outlive the process: the disk cache's storage.

A file is named by the full SHA-256 of what it depends on, and begins with the SHA-256 of what it holds. It is
written under another name and then renamed, so a reader sees all of it or none, whichever process is killed when.
A file that does not match its own checksum is removed and built again. Where the directory cannot be used, there
is no cache, and nothing else changes.

Environment: ``GRIDWISE_CACHE_DIR`` (the user's cache directory by default), ``GRIDWISE_CACHE=0`` turns it off,
``GRIDWISE_CACHE_MB`` bounds its size (512).
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from gridwise.lang.records import dataclass

from .sha import sha256

MAGIC = b"gridwise\x01"
_SUM = 32  # bytes of a SHA-256
_PRUNE_EVERY = 64  # files written between two looks at the size


@dataclass(frozen=True)
class Entry:
    """One file of the cache."""

    path: Path
    nbytes: int
    used: float  # seconds since the epoch, when it was last read or written


def directory() -> Path:
    """Where the cache is, whether it exists or not."""
    given = os.environ.get("GRIDWISE_CACHE_DIR")
    if given:
        return Path(given)
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData/Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library/Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "gridwise"


class Store:
    """Bytes by key, in a directory. Every method is safe among threads and processes, and never raises OSError."""

    def __init__(self, root: Path, limit: int):
        self.root, self.limit = root, limit
        self._written = 0

    def _path(self, key: str) -> Path:
        return self.root / key[:2] / key[2:]

    def get(self, key: str) -> bytes | None:
        """What was put under ``key``, or None. A damaged file counts as none, and goes."""
        path = self._path(key)
        try:
            raw = path.read_bytes()
        except OSError:
            return None
        head, payload = raw[: len(MAGIC) + _SUM], raw[len(MAGIC) + _SUM :]
        if head != MAGIC + sha256(payload).digest():
            self.drop(key)
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # the oldest go first when the cache is full
        return payload

    def put(self, key: str, payload: bytes) -> None:
        """Keep ``payload``, all of it or nothing."""
        path = self._path(key)
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            import tempfile  # loaded by the first write

            handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(MAGIC + sha256(payload).digest() + payload)
                os.replace(name, path)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(name)
                raise
        except OSError:
            return
        if self._written % _PRUNE_EVERY == 0:
            self.prune()
        self._written += 1

    def drop(self, key: str) -> None:
        with contextlib.suppress(OSError):
            self._path(key).unlink()

    def entries(self) -> Iterator[Entry]:
        """Every file, unfinished ones of killed processes included."""
        for path in self.root.glob("??/*"):
            with contextlib.suppress(OSError):
                stat = path.stat()
                yield Entry(path, stat.st_size, stat.st_mtime)

    def beginning(self, mark: bytes) -> Iterator[bytes]:
        """The payload of every whole file that begins with ``mark``."""
        head = len(MAGIC) + _SUM
        for path in self.root.glob("??/*"):
            with contextlib.suppress(OSError):
                with path.open("rb") as file:
                    raw = file.read(head + len(mark))
                    if raw[head:] != mark:
                        continue
                    raw += file.read()
                if raw[:head] == MAGIC + sha256(raw[head:]).digest():
                    yield raw[head:]

    def prune(self) -> None:
        """Remove the files longest unused until the rest fit the limit."""
        found = sorted(self.entries(), key=lambda e: e.used)
        total = sum(e.nbytes for e in found)
        for entry in found:
            if total <= self.limit:
                return
            with contextlib.suppress(OSError):
                entry.path.unlink()
            total -= entry.nbytes

    def clear(self) -> int:
        """Remove every file; how many there were."""
        removed = 0
        for entry in list(self.entries()):
            with contextlib.suppress(OSError):
                entry.path.unlink()
                removed += 1
        return removed


@functools.lru_cache(maxsize=4)
def _store(root: Path, limit: int) -> Store:
    return Store(root, limit)


def store() -> Store | None:
    """The cache as the environment says, or None if it is off."""
    if os.environ.get("GRIDWISE_CACHE", "1") in ("0", "off", "no"):
        return None
    try:
        limit = int(float(os.environ.get("GRIDWISE_CACHE_MB", "512")) * (1 << 20))
    except ValueError:
        limit = 512 << 20
    return _store(directory(), limit)
