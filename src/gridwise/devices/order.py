"""Order between streams: a buffer knows who wrote it last and who has read it since.

Work on one stream runs in order, so nothing is needed while a buffer stays on its stream. When another
stream touches it, that stream first waits for an event recorded after the work that it depends on.
The event covers everything queued on the earlier stream so far: later than strictly needed, never earlier.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .base import Buffer, Stream


def reads(buffer: Buffer, stream: Stream) -> None:
    """``stream`` is about to queue work that reads ``buffer``."""
    writer = buffer.writer
    if writer is not None and writer is not stream:
        stream.wait(writer.record())
    if stream is not writer and stream not in buffer.readers:
        buffer.readers = (*buffer.readers, stream)


def writes(buffer: Buffer, stream: Stream) -> None:
    """``stream`` is about to queue work that writes ``buffer``."""
    writer = buffer.writer
    if writer is not None and writer is not stream:
        stream.wait(writer.record())
    if buffer.readers:
        for reader in buffer.readers:
            if reader is not stream and reader is not writer:
                stream.wait(reader.record())
        buffer.readers = ()
    buffer.writer = stream


def idle(buffer: Buffer, stream: Stream) -> None:
    """Later work on ``stream`` starts after everything that touches ``buffer``: before it is freed."""
    for other in {buffer.writer, *buffer.readers} - {None, stream}:
        assert other is not None
        stream.wait(other.record())
    buffer.writer, buffer.readers = None, ()
