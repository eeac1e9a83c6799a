"""Pure: content that is kept once and named by its SHA-256, and what the context needs of its storage.

`herdr.storage.sqlite.context` implements the three protocols of this package (`Blobs`, `Artifacts` and
`Histories`) on one file.
"""

import hashlib
import re
from typing import NamedTuple, Protocol

from herdr.errors import HerdrError

CACHED_BYTES_MAX = 32 * 1024**2
"""Content that nothing owns: about a thousand maps and outlines of 30 kB, what a long day of asking makes."""

CACHED_BLOB_MAX = CACHED_BYTES_MAX // 8  # one answer must not drive out all others

_REF = re.compile(r"[0-9a-f]{64}")


class ContextUnavailable(HerdrError):
    """The context's file cannot be read or written (full or read-only disk); nothing was acknowledged."""

    code = "context_unavailable"


class BlobDamaged(HerdrError):
    """What is stored under a hash has another hash or cannot be read; it is never served."""

    code = "blob_damaged"

    def __init__(self, ref: str) -> None:
        super().__init__(
            f"the stored content of {ref} is damaged and is not served: store it again where it came from, "
            "and look at the disk's health"
        )


class BlobTooLarge(HerdrError):
    """The content is larger than anything that is kept for nobody in particular."""

    code = "blob_too_large"

    def __init__(self, size: int, size_max: int) -> None:
        super().__init__(f"{size} bytes cannot be kept: the most is {size_max}; ask for less at once")


class Blob(NamedTuple):
    """Content and the name it is kept under."""

    ref: str
    content: bytes
    content_type: str


def ref_of(content: bytes) -> str:
    """Return the name of a content: its SHA-256 as 64 lower-case hex digits."""
    return hashlib.sha256(content).hexdigest()


def is_ref(text: str) -> bool:
    """Tell whether a text has the form of a name of content."""
    return _REF.fullmatch(text) is not None


class Blobs(Protocol):
    """Content by hash. Artifacts and session messages own theirs; the rest is a cache.

    Every method raises ContextUnavailable when the storage fails; nothing of the call has happened then.
    """

    async def put(self, content: bytes, content_type: str) -> str:
        """Keep content that nothing owns, and return its ref; over `CACHED_BYTES_MAX` the least recently
        used goes. Raises BlobTooLarge over `CACHED_BLOB_MAX`. The first content type stays.

        Such content is not synced to the disk: a power cut may take the last of it, which is then unknown.
        """
        ...

    async def get(self, ref: str) -> Blob | None:
        """Return what is kept under a ref, None when it is unknown; raises BlobDamaged when its hash is
        another one.
        """
        ...
