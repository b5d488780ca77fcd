"""The store of a device: points in the user's units that outlive the pack they were learnt with."""

import struct
import zlib
from dataclasses import replace

import numpy as np
import pytest

from twinedge.pack import write_pack
from twinedge.pack.layout import NO_FILL
from twinedge.runtime.adaptation import MOST_POINTS
from twinedge.runtime.evaluator import Reference
from twinedge.runtime.journal import read_journal
from twinedge.runtime.journal_file import Journal
from twinedge.runtime.loading import load
from twinedge.runtime.store import UNSCORED, Points, Store, schema_in, scored

FEATURES, SCHEMA = 3, 0xDECADE
SIZE = 16 + 4 * FEATURES


@pytest.fixture(scope="module")
def make(random_pack):
    """Make packs of one schema: ``make(seed)``."""

    def made(seed, **given):
        rng = np.random.default_rng(seed)
        given = {"features": FEATURES, "hidden": (4,), "counts": [3], "scaled": True, **given}
        pack = random_pack(rng, weights="normal", neighbors=0, **given)
        ranges = {"x_offset": np.zeros(pack.features, np.float32)}
        ranges["x_gain"] = np.full(pack.features, 1000, np.float32)
        domain = replace(pack.domain, fill=np.full(pack.features, NO_FILL, np.int16))
        intervals = replace(pack.intervals, typical=4000, constant=4096 * 250, trust=20000)
        y = {"y_offset": np.float32(seed), "y_gain": np.float32(0.001)}
        return replace(pack, schema=SCHEMA, domain=domain, intervals=intervals, **ranges, **y)

    return made


@pytest.fixture(scope="module")
def pack(make):
    return make(0)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "site.store"


def opened(path, pack):
    return Store(path, pack, stamp_of(pack), Reference(pack).raw)


def add(store, pack, points):
    """Add points, scored by the pack, and let go of the file."""
    with store.journal:
        store.add(scored(pack, Reference(pack).raw, points))


def some(count, seed=0, features=FEATURES):
    """Points in the user's units, with times, not scored."""
    rng = np.random.default_rng([seed, count])
    X = rng.uniform(-20, 20, (count, features))
    return Points.unscored(X, rng.uniform(-50, 50, count), rng.integers(0, 2**32, count))


def learnt(path, pack, points):
    store = opened(path, pack)
    add(store, pack, points)
    return store.held


def in_words(points):
    return [column.tolist() for column in vars(points).values()]


def measured(points):
    """What does not depend on a pack."""
    return [one.tolist() for one in (points.numbers, points.times, points.X, points.y)]


def stamp_of(pack):
    return struct.unpack_from("<I", write_pack(pack), 12)[0]


# Bytes, by hand from the tables of FORMAT.md.


def test_a_record_has_the_bytes_of_the_format(path, pack):
    held = learnt(path, pack, some(2))
    found = read_journal(path.read_bytes())
    assert found.head.size == SIZE
    assert found.head.slot == SIZE + 8
    assert found.head.owner == (SCHEMA + 2 * 65536 + SIZE + 8) % 2**32
    assert found.head.stamp == stamp_of(pack)
    for row, record in enumerate(found.records):
        fields = (getattr(held, name)[row] for name in ("times", "y", "errors", "scores"))
        assert bytes(record) == struct.pack("<Ifii3f", *fields, *held.X[row])
    kinds = {name: column.dtype for name, column in vars(held).items()}
    assert kinds == {
        "numbers": np.uint32,
        "times": np.uint32,
        "X": np.float32,
        "y": np.float32,
        "errors": np.int32,
        "scores": np.int32,
    }


def test_a_dump_made_by_hand_is_read(path, pack):
    slot, block = 64, 64 * 10  # which programs 64 bytes at once
    owner = (SCHEMA + 2 * 65536 + slot) % 2**32
    fields = struct.pack("<IIIHHIHH", 3, owner, stamp_of(pack), slot, SIZE, 9, 3, 0)
    head = (struct.pack("<I", zlib.crc32(fields)) + fields).ljust(slot, b"\0")
    body = struct.pack("<IIfii3f", 8, 1700000000, 2.5, -70, -5, 1.0, 2.0, 3.0)
    record = struct.pack("<I", zlib.crc32(struct.pack("<I", 3) + body)) + body
    path.write_bytes((head * 3 + record.ljust(slot, b"\x11")).ljust(block, b"\0") + bytes(block))
    store = opened(path, pack)
    assert in_words(store.points) == [[8], [1700000000], [[1, 2, 3]], [2.5], [-70], [-5]]
    add(store, pack, some(1))
    assert opened(path, pack).held.numbers.tolist() == [8, 9]
    assert len(path.read_bytes()) == 2 * block


@pytest.mark.parametrize("features", [1, 64])
def test_its_size_is_that_of_as_many_points_as_there_may_be(make, path, features):
    pack = make(1, features=features)
    learnt(path, pack, some(2, features=features))
    assert len(path.read_bytes()) == 2 * (MOST_POINTS + 64 + 3) * (24 + 4 * features)


# Whose points.


def test_points_go_on_working_with_the_next_pack(path, make):
    old, new = make(0), make(1)
    held = learnt(path, old, some(5))
    before = path.read_bytes()
    store = opened(path, new)
    assert path.read_bytes() == before  # reading writes nothing
    assert measured(store.held) == measured(held)
    right = scored(new, Reference(new).raw, held)
    assert in_words(store.points) == in_words(right)
    assert store.points.errors.tolist() != held.errors.tolist()
    # The next change writes what the new pack makes of them.
    add(store, new, some(1, seed=9))
    found = read_journal(path.read_bytes())
    assert found.head.stamp == stamp_of(new)
    assert in_words(Points.of(found)[:5]) == in_words(right)
    # And back again, to the same numbers.
    assert in_words(opened(path, old).held[:5]) == in_words(held)


@pytest.mark.parametrize("other", ["schema", "features", "no schema"])
def test_points_of_another_model_are_refused_and_nothing_is_lost(
    path, make, pack, complaint, other
):
    learnt(path, pack, some(3))
    before = path.read_bytes()
    if other == "features":
        wrong = make(0, features=4)
    else:
        wrong = replace(pack, schema=SCHEMA + 1 if other == "schema" else None)
    message = complaint(opened, path, wrong)
    assert message.startswith(f"{path} holds points of another ")
    assert "name another file" in message
    assert path.read_bytes() == before
    assert len(opened(path, pack).held) == 3


def test_without_a_schema_points_belong_to_one_pack(path, make, complaint):
    pack = replace(make(0), schema=None)
    held = learnt(path, pack, some(3))
    assert schema_in(read_journal(path.read_bytes())) == stamp_of(pack)
    assert in_words(opened(path, pack).held) == in_words(held)
    assert "points of another pack" in complaint(opened, path, replace(make(1), schema=None))


def test_a_store_that_another_model_makes_meanwhile_is_not_written(path, make, pack, complaint):
    waiting = opened(path, pack)
    learnt(path, replace(pack, schema=5), some(3))
    before = path.read_bytes()
    for _ in range(2):
        points = scored(pack, Reference(pack).raw, some(1))
        assert "points of another model" in complaint(waiting.add, points)
    assert path.read_bytes() == before


def test_points_that_the_new_pack_cannot_evaluate_are_kept_but_not_used(path, make):
    old = make(0)
    fill = np.array([NO_FILL, 77, NO_FILL], np.int16)
    filling = replace(old, domain=replace(old.domain, fill=fill))
    X = np.array([[1, 2, 3], [1, np.nan, 3], [4, 5, 6]])
    learnt(path, filling, Points.unscored(X, np.array([1.0, 2.0, 3e5])))
    # Without a value for what is missing, and with a smaller range of targets.
    new = replace(old, y_gain=np.float32(1e-4))
    store = opened(path, new)
    assert store.points.numbers.tolist() == [0]
    assert store.held.numbers.tolist() == [0, 1, 2]
    assert store.held.scores[1:].tolist() == [UNSCORED] * 2
    add(store, new, some(1))
    assert opened(path, new).points.numbers.tolist() == [0, 3]
    # They are still there for a pack that can.
    assert opened(path, filling).points.numbers.tolist() == [0, 1, 2, 3]


def test_of_more_points_than_a_device_may_have_the_latest_are_used(path, pack):
    learnt(path, pack, some(MOST_POINTS))
    learnt(path, pack, some(9))
    store = opened(path, pack)
    assert store.points.numbers.tolist() == list(range(9, MOST_POINTS + 9))
    assert len(store.held) == MOST_POINTS + 9


# Bad storage.


def test_lost_points_are_counted_and_the_others_used(path, pack):
    held = learnt(path, pack, some(4))
    content = bytearray(path.read_bytes())
    content[(SIZE + 8) * 4 + 20] ^= 4
    path.write_bytes(content)
    store = opened(path, pack)
    left = held[np.array([0, 2, 3])]
    content = store.journal.content
    assert (in_words(store.points), content.damaged, content.truncated) == (
        in_words(left),
        1,
        False,
    )
    with store.journal:
        store.keep(np.ones(3, bool))  # which clears away what is damaged
        assert store.journal.content.damaged == 0
    assert opened(path, pack).journal.content.damaged == 0


def test_a_store_that_is_cut_short_is_read_but_not_written(path, pack, complaint):
    store = opened(path, pack)
    with store.journal:
        store.add(scored(pack, Reference(pack).raw, some(3)))
        store.keep(np.array([True, False, True]))  # to the second block
    content = path.read_bytes()[: len(path.read_bytes()) // 2 + 6 * (SIZE + 8)]
    path.write_bytes(content)
    store = opened(path, pack)
    assert store.journal.content.truncated
    assert store.points.numbers.tolist() == [0, 2]
    for change in (lambda: store.add(some(1)), lambda: store.keep(np.array([True, False]))):
        assert "is cut short" in complaint(change)
    assert path.read_bytes() == content


def test_records_of_any_content_are_harmless(tmp_path, pack):
    (tmp_path / "model.twin").write_bytes(write_pack(pack))
    rng = np.random.default_rng(0)
    stamp, owner = stamp_of(pack), (SCHEMA + 2 * 65536 + SIZE + 8) % 2**32
    for seed in range(20):
        path = tmp_path / f"{seed}.store"
        with Journal(path) as journal:
            journal.lay_out(owner, SIZE, 30, stamp if seed % 2 else 1)
            journal.add(rng.integers(0, 256, (20, SIZE)).astype(np.uint8))
        answers = [
            load(tmp_path / "model.twin", backend, store=path).predict_all(some(9).X)
            for backend in ("numpy", "native")
        ]
        for one, other in zip(*answers, strict=True):
            if one is not None:
                np.testing.assert_array_equal(one, other)


# Points alone.


def test_the_same_point_is_known_again_by_its_bits(pack):
    points = some(5)
    assert points.among(scored(pack, Reference(pack).raw, points)[1:3]).tolist() == [
        *(False, True, True, False, False)
    ]
    for name in ("times", "y"):
        column = getattr(points, name)
        assert not replace(points, **{name: column + np.ones(1, column.dtype)}).among(points).any()
    gap = replace(points, X=np.where(points.X < 0, np.nan, points.X).astype(np.float32))
    assert gap.among(gap).all()
    assert not points.among(points[:0]).any()
