"""What a segment holds: lines of a transcript without secrets, and how long those were that changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from nacre.errors import ArchiveDamaged

_SHIFTS = msgspec.json.Decoder(list[tuple[int, int]])


@dataclass(frozen=True, slots=True)
class Payload:
    """Text that was cut at line ends. ``lengths`` has (number, bytes) of lines that were of another length.

    With these, every line keeps the offset that it had in the transcript: some tools' turns are known by it alone.
    """

    text: bytes
    lengths: tuple[tuple[int, int], ...] = ()

    def pack(self) -> bytes:
        """As bytes."""
        return msgspec.json.encode(self.lengths) + b"\n" + self.text

    def lines(self, start: int) -> Iterator[tuple[int, bytes]]:
        """Lines, blank ones too, each with its offset in the transcript; ``start`` is that of the first one."""
        were = dict(self.lengths)
        for number, line in enumerate(self.text.split(b"\n")):
            yield start, line
            start += were.get(number, len(line)) + 1


def unpack(data: bytes) -> Payload:
    """The reverse of :meth:`Payload.pack`. Raises ArchiveDamaged."""
    head, _, text = data.partition(b"\n")
    try:
        return Payload(text, tuple(_SHIFTS.decode(head)))
    except msgspec.DecodeError as error:
        raise ArchiveDamaged(f"a segment cannot be read: {error}") from error


def join(payloads: Sequence[Payload]) -> Payload:
    """Payloads that follow each other, as one."""
    lengths: list[tuple[int, int]] = []
    before = 0
    for payload in payloads:
        lengths += [(number + before, length) for number, length in payload.lengths]
        before += payload.text.count(b"\n")
    return Payload(b"".join(payload.text for payload in payloads), tuple(lengths))
