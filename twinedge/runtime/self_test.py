"""Give a pack its self-test and identity, and check what a pack says of itself."""

import hashlib
from contextlib import suppress
from dataclasses import replace

import numpy as np

from twinedge.errors import InputError
from twinedge.pack import Pack, PackError, write_pack
from twinedge.pack.contents import LARGEST, Array, Release, metadata_of, schema_text
from twinedge.pack.layout import NO_FILL, Reason
from twinedge.pack.release import ANSWER, Identity, SelfTest, usual_queries
from twinedge.pack.sections import ID_SIZE, pack_id
from twinedge.provenance import DIGEST, TrainingRows
from twinedge.runtime import reference


def identified(pack: Pack, *, parent: Pack | None = None, counter: int | None = None) -> Pack:
    """Give a pack a self-test and an identity, in place of those that it has; a signature goes.

    The arguments are those of ``new_identity``.
    """
    identity, test = new_identity(pack, parent=parent, counter=counter), self_test_of(pack)
    return replace(pack, release=Release(identity.id, test.content(), identity.content()))


def new_identity(pack: Pack, *, parent: Pack | None = None, counter: int | None = None) -> Identity:
    """Say which pack it is, and what it was made from.

    Parameters
    ----------
    pack : Pack
        With or without an identity.
    parent : Pack, optional
        What it was adapted, calibrated or retrained from.
    counter : int, optional
        Of releases; by default that of its own identity, or of the parent's, or 0.
    """
    own, known = id_of(pack), identity_of(pack)
    if known is None and parent is not None:
        known = identity_of(parent)
    if known is None:
        known = Identity(own)
    descent = known.parent
    if parent is not None and (origin := id_of(parent)) != own:
        descent = origin
    return Identity(
        own,
        descent,
        known.counter if counter is None else counter,
        _schema(pack) or known.schema,
        _table(pack) or known.table,
    )


def id_of(pack: Pack) -> bytes:
    """Return the id of what a pack computes, whatever it says of itself."""
    return pack_id(write_pack(replace(pack, release=None), metadata=False))


def identity_of(pack: Pack) -> Identity | None:
    """Read the identity of a pack; None if there is none.

    Raises
    ------
    PackError
        If it is not as FORMAT.md says.
    """
    content = None if pack.release is None else pack.release.identity
    return None if content is None else Identity.read(content)


def check_release(pack: Pack) -> tuple[Identity | None, SelfTest | None]:
    """Recompute the id of a pack, and answer its self-test with the reference.

    Returns
    -------
    identity, self_test
        What was found right; None for what the pack does not have.

    Raises
    ------
    PackError
        If the id, or an answer, is another.
    """
    identity, test = identity_of(pack), None
    if identity is not None and identity.id != (own := id_of(pack)):
        raise PackError(
            Reason.VALUE,
            f"its identity is {identity.id.hex()}, but what it computes has the id {own.hex()}",
        )
    if pack.release is not None and pack.release.self_test is not None:
        test = SelfTest.read(pack.release.self_test, pack.features, len(pack.every_target))
        check_answers(test, answers(pack, test.queries))
    return identity, test


def check_answers(test: SelfTest, found: Array) -> None:
    """Refuse answers ``(n, targets)`` other than those of a self-test."""
    wrong = np.flatnonzero((test.answers != found).any(axis=1))
    if len(wrong):
        raise PackError(
            Reason.VALUE,
            f"the self-test fails: query {wrong[0] + 1} of {len(found)} has another answer",
        )


def self_test_of(pack: Pack) -> SelfTest:
    """Choose queries, and answer them: usual points, a missing feature, the ends of all ranges."""
    first, second, third = _usual_points(pack)
    second[np.flatnonzero(reference.fillable(pack))[:1]] = NO_FILL
    ends = np.where(np.arange(pack.features) % 2, -LARGEST, LARGEST).astype(np.int16)
    queries = np.stack([first, second, ends, third])
    queries = queries[: usual_queries(pack.features, len(pack.every_target))]
    return SelfTest(queries, answers(pack, queries))


def answers(pack: Pack, queries: Array) -> Array:
    """Answer quantised queries, int16 ``(n, f)``: ``ANSWER`` ``(n, targets)``.

    Raises
    ------
    PackError
        If a feature is missing that the pack cannot fill in.
    """
    missing = queries == NO_FILL
    if (missing & ~reference.fillable(pack)).any():
        raise PackError(Reason.VALUE, "the self-test fails: a query lacks a feature")
    fill = np.zeros(pack.features, np.int16) if pack.domain is None else pack.domain.fill
    filled = np.where(missing, fill, queries)
    found = np.zeros((len(queries), len(pack.every_target)), ANSWER)
    for target, single in enumerate(pack.singles):
        column, evaluated = found[:, target], reference.evaluate_raw(single, filled)
        column["mean"], column["root"] = evaluated.raw_mean, evaluated.raw_spread
        if single.intervals is not None:
            assert evaluated.signals is not None
            members = evaluated.estimates.shape[1]
            column["scale"] = reference.raw_scale(evaluated.signals, single.intervals, members)
    return found


def _usual_points(pack: Pack) -> Array:
    """Return three points ``(3, f)`` such as those of training, quantised: int16."""
    if pack.map is None:  # halfway between anchors, which would be their own answers
        count = len(pack.anchors)
        pairs = np.array([[0, count - 1], [count // 3, count // 2], [0, count // 2]])
        points = pack.anchors[pairs].astype(np.int32).sum(axis=1) >> 1
    elif pack.domain is not None:
        least, most = pack.domain.least.astype(np.int32), pack.domain.most.astype(np.int32)
        shares = np.array([[1], [2], [3]])
        points = least + (most - least) * shares // 4
    else:  # zero is the mean of training
        points = np.array([[0], [4096], [-4096]]) + np.zeros(pack.features, np.int32)
    limited: Array = np.clip(points, -LARGEST, LARGEST).astype(np.int16)
    return limited


def _schema(pack: Pack) -> bytes | None:
    """Hash the names of inputs and target; None if the metadata does not have them."""
    try:
        names = [str(one["name"]) for one in pack.metadata["features"]]
        targets = range(len(pack.every_target))
        target, *others = [str(metadata_of(pack.metadata, one)["target"]) for one in targets]
    except (KeyError, TypeError):
        return None
    text = schema_text(names, [target, *others] if others else target)
    return hashlib.sha256(text).digest()[:ID_SIZE]


def _table(pack: Pack) -> bytes | None:
    """Hash the training rows; None if the metadata does not have their digest."""
    with suppress(InputError):
        if rows := TrainingRows.read(pack.metadata.get(DIGEST)):
            return rows.fingerprint
    return None
