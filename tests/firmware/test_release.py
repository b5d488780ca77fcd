"""Self-test, identity and signature in C: found as Python writes them, and checked before use."""

import ctypes
import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinedge.pack import joined, write_pack
from twinedge.pack.layout import Kind
from twinedge.pack.release import ED25519, Identity, SelfTest, prepare_signature, read_signature
from twinedge.pack.sections import Content, join, split
from twinedge.runtime.self_test import identified


@pytest.fixture(scope="module")
def pack(packs, cases):
    return cases.draw(packs, "some-of-everything", scaled=True)


@pytest.fixture(scope="module")
def look(native, releases, library):
    """Call ``twin_identity`` or ``twin_signature``: ``look(name, data)`` is status and result."""

    def find(name, data, size=None):
        held = np.frombuffer(bytes(data), np.uint8).copy()  # exactly as many bytes, for sanitizers
        out = releases.Identified() if name == "identity" else releases.Signed()
        function = getattr(library, f"twin_{name}")
        size = len(data) if size is None else size
        status = function(held.ctypes.data, size, ctypes.byref(out))
        out.held = held
        return native.name_of(status), out

    return find


@pytest.fixture(scope="module")
def tested(native, open_pack):
    """Status of ``twin_self_test`` of a pack, after twin_open: ``tested(data)``."""

    def test(data, less=0):
        made = open_pack(data)
        assert made.status == "ok"
        where = made.pack.ctypes.data, native.address(made.scratch), made.size - less
        return native.name_of(made.library.twin_self_test(ctypes.byref(made.model), *where))

    return test


def changed(data, kind, content=None, flags=0):
    """Replace a section by another content, or leave it out; the checksums are right."""
    header, sections = split(data)
    kept = [one for one in sections if one.kind != kind]
    at = [one.kind for one in sections].index(kind) if kind in [o.kind for o in sections] else None
    if content is not None:
        kept.insert(len(kept) if at is None else at, Content(kind, flags, content))
    return join(header, kept)


def content_of(data, kind):
    return next(one.data for one in split(data)[1] if one.kind == kind)


# ---- what is right


@pytest.mark.parametrize(
    "case",
    [
        "some-of-everything",
        "one-anchor-one-feature",
        "mapped-silu-curved",
        "neighbors-of-four-twins",
    ],
)
@pytest.mark.parametrize("scaled", [False, True])
def test_all_three_are_those_that_python_writes(look, tested, releases, packs, cases, case, scaled):
    pack = cases.draw(packs, case, scaled=scaled)
    data = releases.release(pack, 7, parent=b"p" * 16)
    assert tested(data) == "ok"
    expected = Identity.read(content_of(data, Kind.IDENTITY))
    status, found = look("identity", data)
    places = [
        ctypes.string_at(at, 16) for at in (found.id, found.parent, found.schema, found.table)
    ]
    assert (status, found.counter) == ("ok", 7)
    assert places == [expected.id, expected.parent, expected.schema, expected.table]
    expected = read_signature(data)
    status, found = look("signature", data)
    assert (status, found.algorithm) == ("ok", expected.algorithm)
    assert ctypes.string_at(found.message, found.message_size) == expected.signed
    assert ctypes.string_at(found.signature, found.size) == expected.value
    assert ctypes.string_at(found.key, 8) == expected.key
    made, message = prepare_signature(data, ED25519, b"k" * 8)
    status, found = look("signature", made)
    assert (status, found.algorithm, found.size) == ("ok", 1, 64)
    assert ctypes.string_at(found.message, found.message_size) == message


def test_a_pack_without_them_says_so(look, tested, pack):
    plain = write_pack(pack)
    assert look("identity", plain)[0] == "identity"
    assert look("signature", plain)[0] == "unsigned"
    assert tested(plain) == "untested"


def test_every_bit_of_an_answer_counts(tested, releases, pack):
    test = releases.self_test(pack)
    for row in range(len(test.queries)):
        for name, bit in (("mean", 0), ("root", 31), ("scale", 5)):
            answers = test.answers.copy()
            answers[name].view(np.uint32)[row] ^= np.uint32(1 << bit)
            data = releases.released(pack, test=SelfTest(test.queries, answers))
            assert tested(data) == "self_test"


def test_a_query_that_the_pack_refuses_fails(tested, releases, packs, cases):
    pack = cases.draw(packs, "some-of-everything")  # without a domain
    test = releases.self_test(pack)
    test.queries[1, 0] = -32768
    assert tested(releases.released(pack, test=test)) == "self_test"


# Opens a file, runs its self-test, and ends with the status, positive.
PROGRAM = """
#include "twin_release.h"
#include <stdio.h>
static uint32_t pack[4096], scratch[4096];
int main(int count, char **words) {
    twin_model model;
    twin_status status;
    FILE *file = fopen(words[count - 1], "rb");
    status = twin_open(&model, pack, (uint32_t)fread(pack, 1, sizeof pack, file));
    fclose(file);
    if (status)
        return 100 - (int)status;
    return -(int)twin_self_test(&model, pack, scratch, sizeof scratch);
}
"""


def test_every_answer_of_every_target_counts(native, objects, pack, tmp_path):
    options = (*native.SANITIZED, "-DTWIN_TARGETS=3")
    (tmp_path / "main.c").write_text(PROGRAM)
    sources = [tmp_path / "main.c", *objects(*options)]
    program = native.compile_c(tmp_path / "main", *options, "-DTWIN_HOST=0", sources=sources)

    def tested(pack):
        (tmp_path / "model.twin").write_bytes(write_pack(pack, metadata=False))
        done = native.attempt(program, tmp_path / "model.twin")
        return native.name_of(-done.returncode)

    other = replace(pack, targets=pack.targets // 3 + 5)
    whole = identified(joined([pack, other]))
    assert tested(whole) == tested(identified(pack)) == "ok"
    test = SelfTest.read(whole.release.self_test, whole.features, 2)
    for row, target, name in ((0, 0, "mean"), (0, 1, "mean"), (1, 1, "root"), (1, 0, "scale")):
        answers = test.answers.copy()
        answers[name][row, target] += 1
        wrong = SelfTest(test.queries, answers).content()
        assert (
            tested(replace(whole, release=replace(whole.release, self_test=wrong))) == "self_test"
        )
    few = SelfTest(test.queries, test.answers[:, :1]).content()
    assert tested(replace(whole, release=replace(whole.release, self_test=few))) == "section"


def test_a_self_test_needs_an_open_model_its_pack_and_scratch(
    native, library, open_pack, tested, releases, pack
):
    data = np.frombuffer(releases.release(pack), np.uint8).copy()
    model = native.Model()
    assert (
        native.name_of(library.twin_self_test(ctypes.byref(model), data.ctypes.data, None, 0))
        == "model"
    )
    assert tested(bytes(data), less=1) == "scratch"
    made = open_pack(data)
    made.pack[0] ^= 1  # since it was opened
    where = made.pack.ctypes.data, native.address(made.scratch), made.size
    status = library.twin_self_test(ctypes.byref(made.model), *where)
    assert native.name_of(status) == "magic"


def test_queries_can_be_tried_one_by_one(native, releases, open_pack, pack):
    made = open_pack(releases.released(pack))
    where = native.address(made.scratch), made.size
    steps = [
        native.name_of(
            made.library.twin_self_test_step(
                ctypes.byref(made.model), made.pack.ctypes.data, number, *where
            )
        )
        for number in (0, 1, 2, 3)
    ]
    assert steps == ["more", "more", "ok", "section"]


# ---- what is wrong


def test_a_malformed_self_test_is_refused(tested, releases, packs, cases):
    pack = cases.draw(packs, "one-anchor-one-feature")
    data = releases.released(pack)
    good = content_of(data, Kind.SELF_TEST)
    head = struct.Struct("<HH")
    count, targets = head.unpack_from(good)
    for wrong in (
        b"",
        good[:2],
        good[:-4],
        good + bytes(4),
        head.pack(0, targets) + good[4:],
        head.pack(0, targets),
        head.pack(count + 1, targets) + good[4:],
        head.pack(count, targets + 1) + good[4:],
        head.pack(count, 0) + good[4:],
        head.pack(65, 1) + good[4:20] * 65,
    ):
        assert tested(changed(data, Kind.SELF_TEST, wrong)) == "section"
    assert tested(changed(data, Kind.SELF_TEST, head.pack(64, 1) + good[4:20] * 64)) == "ok"
    padded = bytearray(good)
    padded[6] = 1  # after the only feature
    assert tested(changed(data, Kind.SELF_TEST, bytes(padded))) == "padding"


def test_a_malformed_identity_is_refused(look, releases, pack, faults):
    data = releases.released(pack)
    good = content_of(data, Kind.IDENTITY)
    for wrong in (b"", good[:-4], good + bytes(4)):
        assert look("identity", changed(data, Kind.IDENTITY, wrong))[0] == "section"
    padded = good[:36] + b"\1" + good[37:]
    assert look("identity", changed(data, Kind.IDENTITY, padded))[0] == "padding"
    assert look("identity", changed(data, Kind.IDENTITY, good, flags=1))[0] == "section"
    entry, last = faults.entry_of(data, Kind.IDENTITY), len(data) - len(data) % 16
    for place in (8, 32, 48, last, last + 16, 2**32 - 16, data.index(good) + 4):
        assert look("identity", faults.put(data, "I", entry + 4, place))[0] == "section"
    for length in (len(data), 2**32 - 1):
        assert look("identity", faults.put(data, "I", entry + 8, length))[0] == "section"


def test_a_signature_of_another_file_is_refused(look, releases, pack, faults):
    data = releases.release(pack)
    good = content_of(data, Kind.SIGNATURE)
    for wrong in (
        b"",
        good[:19],
        good[:20],
        good[:-1],
        good + b"\0",
        *(bytes([*good[:i], good[i] ^ 1, *good[i + 1 :]]) for i in range(12)),
        good[:8] + struct.pack("<HH", 3, 32) + good[12:],
        good[:8] + struct.pack("<HH", 1, 32) + good[12:],
        good[:8] + struct.pack("<HH", 2, 64) + good[12:] + bytes(32),
    ):
        assert look("signature", changed(data, Kind.SIGNATURE, wrong))[0] == "signature"
    header, (*sections, last) = split(data)
    moved = join(header, [*sections[:-1], last, sections[-1]])
    assert look("signature", moved)[0] == "signature"
    more = join(header, [*sections, last, Content(40000, 0, b"")])
    assert look("signature", more)[0] == "signature"
    longer = faults.put(data + bytes(16), "I", 8, len(data) + 16)
    assert look("signature", faults.inside(longer, Kind.SIGNATURE, "I", 4, len(longer)))[0] == (
        "signature"
    )


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_no_bytes_lead_out_of_the_pack(look, releases, pack, data):
    """Whatever a file claims, what is found lies in it; sanitizers watch the rest."""
    whole = bytearray(releases.release(pack))
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, 48 + 12 * 12 - 1) | st.integers(0, len(whole) - 1))
        whole[at] = data.draw(st.sampled_from([0, 1, 15, 16, 127, 255]))
    size = data.draw(st.sampled_from([len(whole), len(whole) // 2, 48, 47, 3, 0]))
    status, found = look("signature", whole[:size])
    start = found.held.ctypes.data
    if status == "ok":
        assert start + 20 == found.message
        assert found.message + found.message_size == found.signature
        assert found.signature + found.size <= start + size
    status, found = look("identity", whole[:size])
    if status == "ok":
        assert start <= start + (found.table - found.id) + 16 <= start + size


def test_the_head_of_a_file_is_checked_as_in_opening(look, releases, pack):
    data = bytearray(releases.release(pack))

    def found(size=None, **changes):
        made = bytearray(data)
        for at, value in changes.values():
            made[at : at + len(value)] = value
        made = made if size is None else (made + bytes(64))[:size]
        statuses = {look(name, made)[0] for name in ("identity", "signature")}
        assert len(statuses) == 1
        return statuses.pop()

    assert found() == "ok"
    assert found(47) == found(len(data) - 16) == found(0) == "truncated"
    assert found(len(data) + 16) == "length"
    assert found(magic=(0, b"t")) == "magic"
    assert found(version=(4, b"\0")) == found(version=(4, b"\4")) == "version"
    assert found(sections=(6, b"\0")) == found(sections=(6, b"\x21")) == "header"
    assert found(sections=(6, b"\1\1")) == "header"
    assert found(64, sections=(6, b"\2"), length=(8, b"\x40\0")) == "header"


def test_a_pack_at_an_odd_address_is_refused(native, library, releases, pack):
    held = np.frombuffer(b"\0" + releases.release(pack), np.uint8).copy()
    for name, out in (("identity", releases.Identified()), ("signature", releases.Signed())):
        status = getattr(library, f"twin_{name}")(
            held.ctypes.data + 1, len(held) - 1, ctypes.byref(out)
        )
        assert native.name_of(status) == "alignment"


def test_opening_ignores_them(open_pack, releases, pack):
    """Programs that do not know these sections open packs that have them."""
    data = releases.release(pack)
    for kind in (Kind.SELF_TEST, Kind.IDENTITY, Kind.SIGNATURE):
        assert open_pack(changed(data, kind, b"anything at all.")).status == "ok"
    bare = replace(pack, release=None)
    q = releases.self_test(pack).queries
    found = [open_pack(one).predict_raw_all(q) for one in (data, write_pack(bare))]
    assert found[0]["mean"].tolist() == found[1]["mean"].tolist()
