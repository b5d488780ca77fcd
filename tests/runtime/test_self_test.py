"""Packs get a self-test that sound machines pass, and an identity that names their parent."""

from dataclasses import replace
from hashlib import sha256

import numpy as np
import pytest

from twinedge.pack import PackError, read_pack, write_pack
from twinedge.pack.layout import NO_FILL
from twinedge.pack.release import UNKNOWN, Identity, SelfTest
from twinedge.provenance import DIGEST, TrainingRows
from twinedge.runtime.native import Native
from twinedge.runtime.self_test import answers, check_release, id_of, identified, identity_of

KINDS = ("scaled", "mapped", "curved")


@pytest.mark.parametrize("seed", range(8))
def test_a_pack_passes_its_own_self_test_and_grows_by_less_than_256_bytes(random_pack, seed):
    kinds = {name: bool(seed >> bit & 1) for bit, name in enumerate(KINDS)}
    rng = np.random.default_rng(seed)
    plain = random_pack(rng, features=int(rng.integers(1, 50)), **kinds)
    data = write_pack(identified(plain))
    assert len(data) - len(write_pack(plain)) < 256
    pack = read_pack(data)
    identity, test = check_release(pack)
    assert identity == Identity(id_of(plain))
    assert len(test.queries) >= 1
    # The C runtime gives the same words, missing features included.
    np.testing.assert_array_equal(Native(data, pack).self_test(test.queries), test.answers)


def test_usual_points_the_ends_of_ranges_and_a_missing_feature_are_asked(random_pack):
    plain = random_pack(np.random.default_rng(3), features=3, scaled=True)
    fill = np.array([NO_FILL, 5, 6], np.int16)
    pack = identified(replace(plain, domain=replace(plain.domain, fill=fill)))
    queries = SelfTest.read(pack.release.self_test, 3).queries
    assert len(queries) == 4
    assert np.argwhere(queries == NO_FILL).tolist() == [[1, 1]]
    assert queries[2].tolist() == [32767, -32767, 32767]
    assert len(np.unique(queries, axis=0)) == 4


def test_every_target_is_asked(random_pack):
    rng = np.random.default_rng(9)
    plain = random_pack(rng, features=3, outputs=3, scaled=True, curved=True)
    about = {"features": [{"name": one} for one in "abc"]}
    about["targets"] = [{"target": one} for one in "xyz"]
    pack = read_pack(write_pack(identified(replace(plain, metadata=about))))
    identity, test = check_release(pack)
    assert test.answers.shape == (2, 3)
    text = b'{"inputs":["a","b","c"],"target":["x","y","z"]}'
    assert identity.schema == sha256(text).digest()[:16]
    for target, single in enumerate(pack.singles):
        np.testing.assert_array_equal(answers(single, test.queries)[:, 0], test.answers[:, target])


def test_many_features_leave_room_for_one_query(random_pack):
    plain = random_pack(np.random.default_rng(1), features=200, hidden=(4,))
    test = check_release(identified(plain))[1]
    assert len(test.queries) == 1


def test_another_answer_or_id_is_noticed(random_pack):
    plain = random_pack(np.random.default_rng(5), features=2, scaled=True)
    pack = identified(plain)
    identity, release = identity_of(pack), pack.release
    for name in ("mean", "root", "scale"):
        test = SelfTest.read(release.self_test, 2)
        test.answers[name][-1] ^= 1
        wrong = replace(pack, release=replace(release, self_test=test.content()))
        with pytest.raises(PackError, match=r"self-test fails: query \d of \d has another answer"):
            check_release(read_pack(write_pack(wrong)))
    other = replace(identity, id=b"x" * 16).content()
    with pytest.raises(PackError, match=f"id {identity.id.hex()}"):
        check_release(replace(pack, release=replace(release, identity=other)))
    none = np.full(2, NO_FILL, np.int16)
    unfilled = replace(plain, domain=replace(plain.domain, fill=none))
    test = SelfTest(none[None], SelfTest.read(release.self_test, 2).answers[:1])
    bare = replace(identified(unfilled), release=replace(release, self_test=test.content()))
    with pytest.raises(PackError, match="lacks a feature"):
        check_release(replace(bare, release=replace(bare.release, identity=None)))
    assert check_release(plain) == (None, None)


def test_a_changed_pack_names_its_parent_and_keeps_the_counter(random_pack):
    plain = random_pack(np.random.default_rng(6), features=2)
    first = identified(plain, counter=7)
    assert identity_of(first).parent == UNKNOWN
    changed = replace(first, targets=first.targets ^ 1)
    second = identified(changed, parent=first)
    assert identity_of(second).parent == identity_of(first).id == id_of(plain)
    assert identity_of(second).counter == 7
    assert identity_of(identified(changed, parent=first, counter=8)).counter == 8
    assert identity_of(identified(changed, parent=plain)).parent == id_of(plain)
    # What only says something else about itself is still the child of the same parent.
    again = identified(replace(second, metadata={}), parent=second)
    assert identity_of(again) == identity_of(second)
    assert identity_of(identified(second, counter=9)).parent == id_of(plain)


def test_schema_and_training_table_are_hashed_from_the_metadata(random_pack):
    plain = random_pack(np.random.default_rng(7), features=2)
    rows = TrainingRows.of(np.arange(6.0).reshape(3, 2), np.arange(3.0))
    about = {"features": [{"name": "a"}, {"name": "b"}], "target": "y", DIGEST: rows.record()}
    known = identity_of(identified(replace(plain, metadata=about)))
    assert known.table == rows.fingerprint != UNKNOWN
    assert known.schema not in (UNKNOWN, identity_of(identified(plain)).schema)
    other = identity_of(identified(replace(plain, metadata={**about, "target": "z"})))
    assert other.schema != known.schema
    for odd in ({"features": 3, "target": "y"}, {DIGEST: {}}, {}):
        unknown = identity_of(identified(replace(plain, metadata=odd)))
        assert unknown.schema == unknown.table == UNKNOWN
    # A lean pack still knows what its parent knew.
    lean = replace(plain, metadata={}, neighbors=1)
    parent = identified(replace(plain, metadata=about))
    assert identity_of(identified(lean, parent=parent)).schema == known.schema
