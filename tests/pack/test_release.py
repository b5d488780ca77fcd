"""Self-test, identity and signature: written as read, kept while true, checked where used."""

import hashlib
import struct
from dataclasses import replace

import numpy as np
import pytest

from twinedge.pack import PackError, Reason, describe, read_header, read_pack, write_pack
from twinedge.pack.contents import Release
from twinedge.pack.layout import Kind
from twinedge.pack.release import (
    ANSWER,
    ED25519,
    HMAC_SHA256,
    Identity,
    SelfTest,
    prepare_signature,
    put_signature,
    read_signature,
)
from twinedge.pack.sections import Content, join, pack_id, split

KEY = bytes(range(8))


def released(pack, **more):
    """Give a pack an identity and a self-test with made-up answers."""
    own = pack_id(write_pack(pack))
    queries = np.arange(-3, 2 * pack.features - 3, dtype=np.int16).reshape(2, -1)
    answers = np.zeros((2, 1), ANSWER)
    answers["mean"], answers["root"] = -7, 2**32 - 1
    identity = Identity(own, b"p" * 16, 5, b"s" * 16, b"t" * 16)
    release = Release(own, SelfTest(queries, answers).content(), identity.content(), **more)
    return replace(pack, release=release)


def signed(pack, algorithm=ED25519):
    """Sign a pack: the signature is the hash of what it signs, once or twice."""
    made, message = prepare_signature(write_pack(released(pack)), algorithm, KEY)
    value = hashlib.sha256(message).digest() * (2 if algorithm == ED25519 else 1)
    return put_signature(made, value)


@pytest.mark.parametrize("features", [1, 2, 3])
def test_self_test_and_identity_are_read_as_they_were_written(packs, features):
    pack = released(packs.random_pack(np.random.default_rng(features), features=features))
    data = write_pack(pack)
    found = read_pack(data).release
    assert (found.self_test, found.identity) == (pack.release.self_test, pack.release.identity)
    test = SelfTest.read(found.self_test, features)
    assert test.queries.tolist() == [
        list(range(-3, features - 3)),
        list(range(features - 3, 2 * features - 3)),
    ]
    assert test.answers.tolist() == [[(-7, 2**32 - 1, 0)]] * 2
    assert test.content() == found.self_test
    assert Identity.read(found.identity) == Identity(
        pack_id(data), b"p" * 16, 5, b"s" * 16, b"t" * 16
    )
    assert write_pack(read_pack(data)) == data


@pytest.mark.parametrize("algorithm", [ED25519, HMAC_SHA256])
def test_a_signed_pack_is_written_again_byte_for_byte(small, algorithm):
    data = signed(small, algorithm)
    assert write_pack(read_pack(data)) == data
    found = read_signature(data)
    assert (found.algorithm, found.key) == (algorithm, KEY)
    assert hashlib.sha256(found.signed).digest() == found.value[:32]
    assert found.signed == data[20 : data.index(found.value)]
    assert not any(data[data.index(found.value) + len(found.value) :])
    assert data[4:12] in found.signed  # the header in front of what is signed
    again, message = prepare_signature(data, algorithm, KEY)  # in place of the first
    assert message == found.signed
    assert put_signature(again, found.value) == data


def test_a_pack_that_was_changed_keeps_what_is_still_true(small):
    data = signed(small)
    pack = read_pack(data)
    other = read_pack(write_pack(replace(pack, metadata={"a": 1}))).release
    assert (other.self_test, other.identity) == (pack.release.self_test, pack.release.identity)
    assert other.signature is None
    lean = read_pack(write_pack(pack, metadata=False)).release
    assert (lean.identity, lean.signature) == (pack.release.identity, None)
    assert read_pack(write_pack(replace(pack, targets=pack.targets + 1))).release is None
    assert read_pack(write_pack(replace(pack, release=None))).release is None


def test_the_id_stands_for_what_a_pack_computes(packs):
    rng = np.random.default_rng(4)
    pack = packs.random_pack(rng, features=2, scaled=True, mapped=True, curved=True)
    own = pack_id(write_pack(pack))
    same = (pack, released(pack), replace(pack, ids=None, metadata={}))
    assert {pack_id(write_pack(one)) for one in same} == {own}
    domain = replace(pack.domain, fill=pack.domain.fill ^ 1)
    changed = {
        "header": replace(pack, neighbors=pack.neighbors + 1),
        "scaling": replace(pack, y_offset=pack.y_offset + np.float32(1)),
        "twins": replace(pack, twins=(replace(pack.twins[0], multiplier=7), *pack.twins[1:])),
        "anchors": replace(pack, targets=pack.targets ^ 1),
        "intervals": replace(pack, intervals=replace(pack.intervals, constant=9)),
        "domain": replace(pack, domain=domain),
        "no domain": replace(pack, domain=None),
        "schema": replace(pack, schema=pack.schema ^ 1),
        "target curve": replace(
            pack, target_curve=replace(pack.target_curve, shift=pack.target_curve.shift ^ 1)
        ),
    }
    ids = {name: pack_id(write_pack(one)) for name, one in changed.items()}
    assert len({own, *ids.values()}) == 1 + len(ids)
    # As FORMAT.md says, from the bytes.
    data = write_pack(released(pack))
    text = data[20:48]
    for one in sorted(read_header(data).sections):
        if one.flags == 1 or one.kind in (8, 9):
            text += struct.pack("<II", one.kind, one.length) + data[one.offset : one.end]
    assert hashlib.sha256(text).digest()[:16] == own


def test_the_order_of_sections_does_not_change_the_id(small):
    header, sections = split(write_pack(small))
    assert pack_id(join(header, sections[::-1])) == pack_id(write_pack(small))
    assert join(header, sections) == write_pack(small)


def with_section(data, kind, content, flags=0):
    header, sections = split(data)
    return join(header, [*sections, Content(kind, flags, content)])


@pytest.mark.parametrize("kind", [Kind.SELF_TEST, Kind.IDENTITY, Kind.SIGNATURE])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_opening_skips_whatever_these_sections_hold(packs, data, kind, version):
    changed = with_section(data, kind, b"any")
    changed = packs.repair(changed[:4] + bytes([version]) + changed[5:])
    pack = read_pack(changed)
    dropped = kind is Kind.SIGNATURE and version > 1  # a writer uses the lowest version
    assert write_pack(pack) == (data if dropped else with_section(data, kind, b"any"))
    assert describe.describe(changed).fault is None
    with pytest.raises(PackError) as caught:
        read_pack(with_section(data, kind, b"any", flags=1))
    assert caught.value.reason is Reason.SECTION


def fault_of(function, *arguments):
    with pytest.raises(PackError) as caught:
        function(*arguments)
    assert len(str(caught.value).splitlines()) == 1
    return caught.value.reason


def test_faults_of_a_self_test(small):
    sound = released(small).release.self_test
    assert fault_of(SelfTest.read, b"", 2) is Reason.SECTION
    assert fault_of(SelfTest.read, sound[:-1], 2) is Reason.SECTION
    assert fault_of(SelfTest.read, sound + b"\0", 2) is Reason.SECTION
    assert fault_of(SelfTest.read, sound, 3) is Reason.SECTION
    assert fault_of(SelfTest.read, sound, 2, 2) is Reason.SECTION
    assert fault_of(SelfTest.read, bytes(4), 2) is Reason.SECTION
    odd = SelfTest(np.ones((1, 1), np.int16), np.zeros((1, 1), ANSWER)).content()
    assert fault_of(SelfTest.read, odd[:6] + b"\1" + odd[7:], 1) is Reason.PADDING
    many = SelfTest(np.ones((65, 1), np.int16), np.zeros((65, 1), ANSWER))
    assert fault_of(many.content) is Reason.VALUE


def test_faults_of_an_identity(small):
    sound = released(small).release.identity
    assert fault_of(Identity.read, sound[:-1]) is Reason.SECTION
    assert fault_of(Identity.read, sound[:36] + b"\1" + sound[37:]) is Reason.PADDING
    assert fault_of(Identity(bytes(16), counter=2**32).content) is Reason.VALUE
    assert fault_of(Identity(bytes(16), counter=-1).content) is Reason.VALUE


def test_faults_of_a_signature(small):
    data = signed(small)
    header, (*sections, last) = split(data)

    def fault(content):
        return fault_of(read_signature, join(header, [*sections, last._replace(data=content)]))

    assert read_signature(write_pack(small)) is None
    assert fault_of(read_signature, join(header, [last, *sections])) is Reason.SECTION
    assert fault(last.data[:19]) is Reason.SECTION
    assert fault(last.data[:-1]) is Reason.SECTION
    assert fault(last.data[:8] + b"\3" + last.data[9:]) is Reason.VALUE  # algorithm
    assert fault(last.data[:10] + b"\x20" + last.data[11:]) is Reason.VALUE  # size
    for at in range(8):  # version, sections, length
        changed = bytearray(last.data)
        changed[at] ^= 1
        assert fault(bytes(changed)) is Reason.VALUE


def test_the_parts_of_a_file_add_up_and_have_names(small):
    found = describe.describe(signed(small))
    names = [describe.name_of(one.kind) for one in found.sections[-3:]]
    assert names == ["self test", "identity", "signature"]
    assert sum(describe.uses(found.pieces).values()) == found.length
    assert describe.uses(found.pieces)["identity"] == 72
