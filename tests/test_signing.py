"""Only what the owner of a key signed is accepted, byte for byte, and not below a counter."""

import runpy
import shutil
import stat
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from twinedge import signing
from twinedge.errors import InputError, MissingPackageError
from twinedge.pack import PackError, read_pack, write_pack
from twinedge.pack.layout import Kind
from twinedge.pack.release import HMAC_SHA256, Identity, put_signature, read_signature
from twinedge.pack.sections import Content, join, split
from twinedge.runtime.self_test import identified, identity_of
from twinedge.signing import Key, read_key, sign, verify, write_key

openssl = pytest.mark.skipif(not shutil.which("openssl"), reason="needs openssl")


@pytest.fixture(scope="module")
def packs():
    path = Path(__file__).parent / "pack" / "random_packs.py"
    return SimpleNamespace(**runpy.run_path(str(path)))


@pytest.fixture(scope="module")
def plain(packs):
    """A small pack without any of this."""
    rng = np.random.default_rng(0)
    shape = {"features": 2, "hidden": (3,), "activation": "relu", "counts": [2, 1]}
    return packs.random_pack(rng, **shape, dtype=np.int8, scaled=True)


@pytest.fixture(scope="module", params=[False, True], ids=["Ed25519", "HMAC"])
def key(request):
    return Key.new(hmac_key=request.param)


@pytest.fixture(scope="module")
def signed(plain, key):
    return sign(write_pack(identified(plain)), key, 5)


def refusal(*arguments):
    with pytest.raises(PackError) as caught:
        verify(*arguments)
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


def test_a_signed_pack_is_what_it_was_and_says_who_signed(plain, key, signed):
    identity = verify(signed, key)
    assert identity == identity_of(read_pack(signed))
    assert identity.counter == 5
    assert verify(signed, key, 5) == identity
    public = replace(key, secret=None) if key.public else key
    assert verify(signed, public) == identity
    before, after = write_pack(plain), read_pack(signed)
    assert write_pack(replace(after, release=None)) == before
    assert write_pack(after) == signed
    assert sign(signed, key) == signed  # both algorithms draw nothing at random
    assert len(signed) - len(write_pack(identified(plain))) <= 12 + 4 + 96


def test_a_change_of_any_byte_is_refused_whatever_the_checksums(packs, key, signed):
    for at in range(len(signed)):
        for changed in (signed[at] ^ 1, signed[at] ^ 128):
            data = bytearray(signed)
            data[at] = changed
            refusal(bytes(data), key)
            repaired = packs.repair(data)
            if repaired != signed:  # all but the checksums themselves
                refusal(repaired, key)
            else:
                assert 12 <= at < 20


def test_what_is_cut_or_added_is_refused(packs, key, signed):
    for length in range(0, len(signed), 7):
        refusal(signed[:length], key)
    refusal(signed + bytes(16), key)
    header, sections = split(signed)
    more = Content(40000, 0, b"more")
    assert "last section" in refusal(join(header, [*sections, more]), key)
    assert "another header" in refusal(join(header, [more, *sections]), key)
    swapped = join(header, [*sections[:-3], sections[-2], sections[-3], sections[-1]])
    assert "wrong" in refusal(swapped, key)


def test_other_keys_and_no_signature_are_refused(plain, key, signed):
    other = Key.new(hmac_key=key.algorithm == HMAC_SHA256)
    words = refusal(signed, other)
    assert key.id.hex() in words
    assert other.id.hex() in words
    assert "not signed" in refusal(write_pack(identified(plain)), key)
    # One that names our key but is by another.
    found = read_signature(signed)
    assert "wrong" in refusal(put_signature(signed, other.signature(found.signed)), key)
    assert "wrong" in refusal(put_signature(signed, bytes(len(found.value))), key)


def test_a_release_below_the_counter_is_refused(plain, key, signed):
    assert "5: a release before 6" in refusal(signed, key, 6)
    newer = sign(signed, key, 6)
    assert verify(newer, key, 6).counter == 6
    assert verify(newer, key).id == verify(signed, key).id
    none = sign(write_pack(plain), key)
    assert verify(none, key).counter == 0
    with pytest.raises(InputError, match="counter"):
        sign(signed, key, 2**32)


def test_sections_of_others_stay_and_a_lean_pack_is_small(plain, key):
    header, sections = split(write_pack(identified(plain)))
    own = Content(40000, 0, b"mine")
    made = sign(join(header, [own, *sections]), key)
    assert own in split(made)[1]
    assert [one.kind for one in split(made)[1]][-3:] == [13, 14, 15]
    lean = sign(made, key, 9, lean=True)
    assert {one.kind for one in split(lean)[1]}.isdisjoint({Kind.IDS, Kind.METADATA, 40000})
    assert verify(lean, key).counter == 9
    assert verify(lean, key).id == verify(made, key).id


def test_what_is_not_what_it_says_is_not_signed(plain, key):
    pack = identified(plain)
    wrong = Identity(b"x" * 16).content()
    for release, says in (
        (replace(pack.release, identity=wrong), "identity"),
        (replace(pack.release, self_test=pack.release.self_test[:-1] + b"\7"), "self-test"),
    ):
        data = write_pack(replace(pack, release=release))
        with pytest.raises(PackError, match=says):
            sign(data, key)
    with pytest.raises(PackError):
        sign(write_pack(pack)[:-16], key)


def test_keys_are_written_and_read(key, tmp_path):
    paths = write_key(key, tmp_path / "product")
    assert stat.S_IMODE(paths[0].stat().st_mode) == 0o600
    assert read_key(paths[0]) == key
    if key.public:
        assert read_key(paths[1]) == replace(key, secret=None)
        assert read_key(paths[1]).id == key.id
        with pytest.raises(InputError, match="public key"):
            read_key(paths[1]).signature(b"")
    assert key.secret.hex() not in repr(key)
    before = [path.read_bytes() for path in paths]
    with pytest.raises(InputError, match="never replaced"):
        write_key(Key.new(hmac_key=True), tmp_path / "product")
    assert [path.read_bytes() for path in paths] == before


def test_nothing_is_left_of_a_key_that_cannot_be_written(tmp_path, monkeypatch):
    def fails(*_arguments):
        raise InputError("cannot write it")

    def full(*_arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(signing, "write_file", fails)
    with pytest.raises(InputError, match="cannot write it"):
        write_key(Key.new(), tmp_path / "product")
    assert [*tmp_path.iterdir()] == []
    with pytest.raises(InputError, match="nowhere"):
        write_key(Key.new(), tmp_path / "nowhere" / "product")
    monkeypatch.setattr(signing.os, "fsync", full)
    with pytest.raises(InputError, match=r"cannot write .*product\.key: No space left on device"):
        write_key(Key.new(), tmp_path / "product")
    assert [*tmp_path.iterdir()] == []


def test_a_link_is_not_followed_to_where_a_key_would_be_written(tmp_path):
    (tmp_path / "product.key").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=r"cannot write .*product\.key: File exists"):
        write_key(Key.new(), tmp_path / "product")
    assert [path.name for path in tmp_path.iterdir()] == ["product.key"]
    assert (tmp_path / "product.key").is_symlink()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not a key"),
        ("ab" * 31, "not a key"),
        ("ab" * 65, "not a key"),
        ("xy" * 32, "not a key"),
        ("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "damaged"),
        ("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "damaged"),
    ],
)
def test_what_is_no_key_is_refused(tmp_path, text, says):
    (tmp_path / "key").write_text(text)
    with pytest.raises(InputError, match=says):
        read_key(tmp_path / "key")
    with pytest.raises(InputError, match="cannot read"):
        read_key(tmp_path / "none")


@openssl
def test_openssl_reads_our_keys_and_we_read_its_keys(tmp_path, plain):
    def run(words):
        done = subprocess.run(
            ["openssl", *words.split()], cwd=tmp_path, capture_output=True, check=True
        )
        return done.stdout

    key = Key.new()
    write_key(key, tmp_path / "product")
    shown = run("pkey -in product.key -pubout")
    assert shown == (tmp_path / "product.pub").read_bytes()
    signed = sign(write_pack(plain), key)
    found = read_signature(signed)
    (tmp_path / "message").write_bytes(found.signed)
    (tmp_path / "signature").write_bytes(found.value)
    rest = "-pubin -inkey product.pub -rawin -in message -sigfile signature"
    assert b"Success" in run(f"pkeyutl -verify {rest}")
    run("genpkey -algorithm ed25519 -out theirs.key")
    theirs = read_key(tmp_path / "theirs.key")
    assert verify(sign(signed, theirs), theirs)
    run("pkey -in theirs.key -aes256 -passout pass:abc -out locked.key")
    with pytest.raises(InputError, match="encrypted"):
        read_key(tmp_path / "locked.key")
    run("genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out ec.key")
    run("pkey -in ec.key -pubout -out ec.pub")
    for name in ("ec.key", "ec.pub"):
        with pytest.raises(InputError, match="another kind"):
            read_key(tmp_path / name)
    secret = Key.new(hmac_key=True)
    (path,) = write_key(secret, tmp_path / "shared")
    found = read_signature(sign(write_pack(plain), secret))
    (tmp_path / "message").write_bytes(found.signed)
    words = f"mac -digest SHA256 -macopt hexkey:{path.read_text().strip()} -in message HMAC"
    assert bytes.fromhex(run(words).decode()) == found.value


def test_without_the_library_hmac_still_works(plain, monkeypatch, tmp_path):
    secret, pair = Key.new(hmac_key=True), Key.new()
    write_key(pair, tmp_path / "product")
    signed = sign(write_pack(plain), pair)

    def none(*_modules):
        raise MissingPackageError("cryptography is not installed")

    monkeypatch.setattr(signing, "require", none)
    assert verify(sign(write_pack(plain), secret), secret)
    for work in (
        Key.new,
        lambda: read_key(tmp_path / "product.pub"),
        lambda: verify(signed, pair),
        lambda: sign(signed, pair),
    ):
        with pytest.raises(MissingPackageError):
            work()
