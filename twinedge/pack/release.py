"""What a pack says about itself: a self-test, its identity, a signature (FORMAT.md, section 17).

Predictions do not need these sections, and a reader skips them. Whoever uses one checks it here.
"""

import hashlib
import struct
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from twinedge.pack.contents import Array, Release
from twinedge.pack.layout import HEADER, RELEASE, Kind, PackError, Reason, align
from twinedge.pack.sections import ID_SIZE, Content, join, pack_id, split

SELF_TEST_HEAD = struct.Struct("<HH")
ANSWER = np.dtype([("mean", "<i4"), ("root", "<u4"), ("scale", "<u4")])
IDENTITY = struct.Struct("<16s16sII16s16s")
SIGNATURE_HEAD = struct.Struct("<8sHH8s")
MOST_QUERIES = 64
USUAL_QUERIES, USUAL_BYTES = 4, 116  # of an export, if they fit; else one query
UNKNOWN = bytes(ID_SIZE)
ED25519, HMAC_SHA256 = 1, 2  # algorithms of a signature
SIGNATURE_SIZES = {ED25519: 64, HMAC_SHA256: 32}
_SIGNED_AT = 20  # behind the checksums, which are made last
_COPIED = slice(4, 12)  # version, number of sections and length, which the signature repeats


@dataclass(frozen=True)
class Identity:
    """Which pack it is, and what it was made from.

    Parameters
    ----------
    id : bytes
        ``pack_id`` of the pack.
    parent : bytes
        Id of the pack that it was adapted, calibrated or retrained from; zeros if there is none.
    counter : int
        Grows with every release; a device refuses packs below the lowest that it accepts.
    schema : bytes
        Hash of columns and target; zeros if unknown.
    table : bytes
        Hash of the training rows; zeros if unknown.
    """

    id: bytes
    parent: bytes = UNKNOWN
    counter: int = 0
    schema: bytes = UNKNOWN
    table: bytes = UNKNOWN

    @property
    def described(self) -> dict[str, str | int | None]:
        """Fields in JSON types, hashes as hex digits; None for an unknown one."""
        ids = {name: getattr(self, name) for name in ("id", "parent", "schema", "table")}
        words = {name: None if one == UNKNOWN else one.hex() for name, one in ids.items()}
        return {"id": words.pop("id"), "counter": self.counter, **words}

    def content(self) -> bytes:
        """Return the section."""
        if not 0 <= self.counter < 2**32:
            raise PackError(Reason.VALUE, f"a counter is 0 to {2**32 - 1}, not {self.counter}")
        return IDENTITY.pack(self.id, self.parent, self.counter, 0, self.schema, self.table)

    @classmethod
    def read(cls, content: bytes) -> "Identity":
        """Read the section; nothing says yet that its id is right."""
        if len(content) != IDENTITY.size:
            raise PackError(
                Reason.SECTION, f"the identity has {len(content)} bytes, not {IDENTITY.size}"
            )
        own, parent, counter, zero, schema, table = IDENTITY.unpack(content)
        if zero:
            raise PackError(Reason.PADDING, "padding of the identity is not zero")
        return cls(own, parent, counter, schema, table)


@dataclass(frozen=True)
class SelfTest:
    """A few queries and what the pack must answer.

    Parameters
    ----------
    queries : array of shape (n, f), int16
        Quantised; -32768 for a missing feature.
    answers : array of shape (n, targets) of ``ANSWER``
        Mean, root and scale of the prediction, in integers; without intervals the scale is 0.
    """

    queries: Array
    answers: Array

    def content(self) -> bytes:
        """Return the section."""
        (count, features), (_, targets) = self.queries.shape, self.answers.shape
        if not 1 <= count <= MOST_QUERIES:
            raise PackError(Reason.VALUE, f"{count} queries: a self-test has 1 to {MOST_QUERIES}")
        stored = np.zeros(count, _entry(features, targets))
        stored["query"], stored["answer"] = self.queries, self.answers
        return SELF_TEST_HEAD.pack(count, targets) + stored.tobytes()

    @classmethod
    def read(cls, content: bytes, features: int, targets: int = 1) -> "SelfTest":
        """Read the section of a pack with so many features and targets."""
        count, stated = (0, 0)
        if len(content) >= SELF_TEST_HEAD.size:
            count, stated = SELF_TEST_HEAD.unpack_from(content)
        entry = _entry(features, targets)
        if (
            not 1 <= count <= MOST_QUERIES
            or stated != targets
            or len(content) != SELF_TEST_HEAD.size + count * entry.itemsize
        ):
            raise PackError(Reason.SECTION, "the self-test does not fit the pack")
        stored = np.frombuffer(content, entry, count, SELF_TEST_HEAD.size)
        if stored["zero"].any():
            raise PackError(Reason.PADDING, "padding of the self-test is not zero")
        return cls(stored["query"].astype(np.int16), stored["answer"].copy())


def _entry(features: int, targets: int) -> np.dtype[np.void]:
    """Return the layout of a query with its answers; a query is padded to four bytes."""
    return np.dtype(
        [
            ("query", "<i2", (features,)),
            ("zero", "<i2", (features % 2,)),
            ("answer", ANSWER, (targets,)),
        ]
    )


def usual_queries(features: int, targets: int = 1) -> int:
    """Return how many queries an export has in its self-test."""
    return max(1, min(USUAL_QUERIES, USUAL_BYTES // _entry(features, targets).itemsize))


def self_test_size(features: int, targets: int = 1) -> int:
    """Return how long the self-test of an export is."""
    each = _entry(features, targets).itemsize
    return SELF_TEST_HEAD.size + usual_queries(features, targets) * each


class Signature(NamedTuple):
    """A signature of a pack: by which algorithm and key, and the bytes that it signs."""

    algorithm: int
    key: bytes
    value: bytes
    signed: bytes


def read_signature(data: bytes) -> Signature | None:
    """Find the signature of a sound pack; None if there is none. It may still be wrong.

    Raises
    ------
    PackError
        If it is not the last section, is not as FORMAT.md says, or was made for another length.
    """
    _, sections = split(data)
    if Kind.SIGNATURE not in [one.kind for one in sections]:
        return None
    last = sections[-1]
    if last.kind != Kind.SIGNATURE:
        raise PackError(Reason.SECTION, "the signature is not the last section")
    if len(last.data) < SIGNATURE_HEAD.size:
        raise PackError(Reason.SECTION, "the signature is too short")
    copied, algorithm, size, key = SIGNATURE_HEAD.unpack_from(last.data)
    if SIGNATURE_SIZES.get(algorithm) != size:
        raise PackError(
            Reason.VALUE, f"a signature by algorithm {algorithm} with {size} bytes is not known"
        )
    if len(last.data) != SIGNATURE_HEAD.size + size:
        raise PackError(Reason.SECTION, f"the signature has {len(last.data)} bytes")
    if copied != data[_COPIED]:
        raise PackError(Reason.VALUE, "the signature was made for another header")
    (offset,) = struct.unpack_from("<I", data, HEADER.size + 12 * (len(sections) - 1) + 4)
    end = offset + SIGNATURE_HEAD.size
    value = last.data[SIGNATURE_HEAD.size :]
    return Signature(algorithm, key, value, bytes(data[_SIGNED_AT:end]))


def put_sections(data: bytes, contents: dict[Kind, bytes]) -> bytes:
    """Put self-test or identity into a sound pack, in place of what it has; its signature goes."""
    header, sections = split(data)
    sections = [one for one in sections if one.kind not in (*contents, Kind.SIGNATURE)]
    return join(header, [*sections, *(Content(kind, 0, one) for kind, one in contents.items())])


def prepare_signature(data: bytes, algorithm: int, key: bytes) -> tuple[bytes, bytes]:
    """Add room for a signature to a sound pack, in place of one that it has.

    Returns
    -------
    pack, signed : bytes
        The pack, whose signature is zeros; and what is to be signed.
    """
    header, sections = split(data)
    sections = [one for one in sections if one.kind != Kind.SIGNATURE]
    size = SIGNATURE_SIZES[algorithm]
    empty = bytes(SIGNATURE_HEAD.size + size)
    made = join(header, [*sections, Content(Kind.SIGNATURE, 0, empty)])
    head = SIGNATURE_HEAD.pack(made[_COPIED], algorithm, size, key)
    made = join(header, [*sections, Content(Kind.SIGNATURE, 0, head.ljust(len(empty), b"\0"))])
    end = len(made) - align(len(empty)) + SIGNATURE_HEAD.size
    return made, made[_SIGNED_AT:end]


def put_signature(data: bytes, value: bytes) -> bytes:
    """Put a signature where ``prepare_signature`` made room for it."""
    header, (*sections, last) = split(data)
    content = last.data[: SIGNATURE_HEAD.size] + value
    return join(header, [*sections, last._replace(data=content)])


def release_of(data: bytes) -> Release | None:
    """Return these sections of a sound pack, unchecked; None if it has none of them."""
    found = {one.kind: one.data for one in split(data)[1]}
    if found.keys().isdisjoint(RELEASE):
        return None
    return Release(
        pack_id(data),
        found.get(Kind.SELF_TEST),
        found.get(Kind.IDENTITY),
        found.get(Kind.SIGNATURE),
        hashlib.sha256(data).digest(),
    )


def with_release(data: bytes, release: Release | None) -> bytes:
    """Add these sections to a pack as far as they are true of it.

    Self-test and identity are, if the pack computes what it did; a signature, if every byte of the
    file is the same.
    """
    if release is None or release.id != pack_id(data):
        return data
    header, sections = split(data)
    own = {Kind.SELF_TEST: release.self_test, Kind.IDENTITY: release.identity}
    sections += [Content(kind, 0, one) for kind, one in own.items() if one is not None]
    made = join(header, sections)
    if release.signature is None:
        return made
    signed = join(header, [*sections, Content(Kind.SIGNATURE, 0, release.signature)])
    return signed if hashlib.sha256(signed).digest() == release.whole else made
