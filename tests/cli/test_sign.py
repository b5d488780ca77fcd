"""Keys, signatures and what packs say of themselves, as users type it."""

import runpy
import stat
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from twinedge.cli import predict
from twinedge.pack import read_pack, write_pack
from twinedge.pack.release import Identity, SelfTest
from twinedge.runtime.self_test import identified, identity_of


@pytest.fixture
def signed(cli, pack):
    """A key product.key, and the pack signed.twin that it signed with counter 7."""
    assert cli("keys", "new", "product").code == 0
    answer = cli("sign", pack, "--key", "product.key", "--counter", "7", "-o", "signed.twin")
    assert (answer.code, answer.err) == (0, "")
    return "signed.twin"


def test_a_pack_is_signed_verified_and_shown(cli, pack, signed, tmp_path):
    found = cli("verify", signed, "--key", "product.pub", "--lowest-counter", "7", "--json").json
    own = identity_of(read_pack((tmp_path / signed).read_bytes()))
    key = cli("keys", "show", "product.pub", "--json").json
    assert found == {
        "pack": signed,
        "bytes": (tmp_path / signed).stat().st_size,
        "algorithm": "Ed25519",
        "key": key["id"],
        "id": own.id.hex(),
        "counter": 7,
        "parent": None,
        "schema": own.schema.hex(),
        "table": own.table.hex(),
    }
    words = cli("verify", signed, "--key", "product.key").out
    assert own.id.hex() in words
    shown = cli("inspect", signed, "--verify")
    assert shown.code == 0
    lines = dict(line.split(None, 1) for line in shown.out.splitlines()[:20])
    assert lines["id"] == own.id.hex()
    assert (lines["parent"], lines["counter"], lines["self-test"]) == ("none", "7", "4 answers")
    assert lines["signature"] == f"Ed25519 by key {key['id']}, not verified"
    assert shown.out.endswith("Verified: the id is right, and the self-test passes.\n")
    release = cli("inspect", signed, "--json").json["release"]
    assert release["identity"]["counter"] == 7
    assert release["signature"] == {"algorithm": "Ed25519", "key": key["id"]}
    assert cli("predict", signed, "--help").code == 0
    again = cli("sign", signed, "--key", "product.key", "-q")  # replaces it
    assert again.code == 0
    assert identity_of(read_pack((tmp_path / signed).read_bytes())) == own


def test_keys_as_typed(cli, refused, tmp_path):
    made = cli("keys", "new", "product", "--json").json
    assert made["files"] == ["product.key", "product.pub"]
    assert stat.S_IMODE((tmp_path / "product.key").stat().st_mode) == 0o600
    shown = cli("keys", "show", "product.key", "--json").json
    assert shown == {"file": "product.key", **{key: made[key] for key in list(made)[1:]}}
    assert shown["signs"]
    assert not cli("keys", "show", "product.pub", "--json").json["signs"]
    array = cli("keys", "show", "product.pub", "--c").out
    assert array.startswith("static const unsigned char twin_key[32] = {\n    0x")
    assert bytes(int(one, 16) for one in array.split("{")[1].strip("};\n ").split(",")) == (
        bytes.fromhex(made["public_key"])
    )
    secret = cli("keys", "new", "shared", "--hmac", "--json")
    assert secret.json["files"] == ["shared.key"]
    text = (tmp_path / "shared.key").read_text()
    assert text.strip() not in secret.out + cli("keys", "show", "shared.key").out
    assert "twin_key[32]" in cli("keys", "show", "shared.key", "--c").out
    refused("keys", "new", "product", says=["product.key exists", "choose another name"])
    refused("keys", "show", "none.key", says=["cannot read none.key"])


def test_what_is_not_ours_is_refused_before_anything_is_predicted(
    cli, refused, pack, signed, curve_csv, tmp_path
):
    require = ("--require-key", "product.pub")
    asked = ("predict", signed, curve_csv, *require)
    assert cli(*asked).out == cli("predict", pack, curve_csv).out
    found = cli(*asked, "--lowest-counter", "7", "--json").json
    assert found["id"] == cli("predict", pack, curve_csv, "--json").json["id"]
    assert found["id"] == identity_of(read_pack((tmp_path / signed).read_bytes())).id.hex()
    refused(*asked, "--lowest-counter", "8", says=[signed, "its counter is 7"])
    refused("predict", pack, curve_csv, *require, says=["it is not signed"])
    cli("keys", "new", "other")
    refused("predict", signed, curve_csv, "--require-key", "other.pub", says=["another key"])
    refused("verify", signed, "--key", "other.pub", says=[signed, "another key"])
    data = bytearray((tmp_path / signed).read_bytes())
    data[200] ^= 1
    (tmp_path / "bad.twin").write_bytes(data)
    refused("predict", "bad.twin", curve_csv, *require, says=["bad.twin", "damaged"])
    (tmp_path / "model.onnx").write_bytes(data)
    refused("predict", "model.onnx", curve_csv, *require, says=["only a .twin pack can be"])
    refused("predict", tmp_path, curve_csv, *require, says=["is not signed"])
    refused("predict", signed, curve_csv, "--lowest-counter", "3", says=["--require-key"])
    refused("predict", signed, curve_csv, "--require-key", signed, says=["is not a key"])


def test_a_pack_that_is_replaced_after_it_was_verified_is_refused(
    cli, signed, curve_csv, tmp_path, monkeypatch
):
    checked = predict.require_signature
    path = tmp_path / signed

    def replaced(*arguments):
        found = checked(*arguments)
        path.write_bytes(write_pack(replace(read_pack(path.read_bytes()), release=None)))
        return found

    monkeypatch.setattr(predict, "require_signature", replaced)
    answer = cli("predict", signed, curve_csv, "--require-key", "product.pub")
    assert (answer.code, answer.out) == (2, "")
    assert "was replaced while it was read" in answer.err


def test_what_cannot_be_signed(cli, refused, pack, signed, tmp_path):
    refused("sign", pack, "--key", "product.pub", says=["product.pub is a public key"])
    refused("sign", pack, "--key", "none.key", says=["cannot read none.key"])
    refused("sign", "none.twin", "--key", "product.key", says=["none.twin cannot be read"])
    refused("sign", pack, says=["--key"])
    found = read_pack((tmp_path / "model.twin").read_bytes())
    identity = replace(Identity.read(found.release.identity), id=bytes(range(16))).content()
    wrong = replace(found, release=replace(found.release, identity=identity))
    (tmp_path / "wrong.twin").write_bytes(write_pack(wrong))
    says = ["wrong.twin: its identity is 000102"]
    refused("sign", "wrong.twin", "--key", "product.key", says=says)
    for extra in ((), ("--json",)):  # shown all the same
        answer = cli("inspect", "wrong.twin", "--verify", *extra)
        assert answer.code == 2
        assert answer.err.startswith(f"twinedge: {says[0]}")
    bare = write_pack(replace(found, release=None))
    (tmp_path / "bare.twin").write_bytes(bare)
    answer = cli("inspect", "bare.twin", "--verify")
    assert (answer.code, "no identity" in answer.err) == (2, True)
    assert cli("sign", "bare.twin", "--key", "product.key").code == 0
    assert cli("inspect", "bare.twin", "--verify").code == 0
    damaged = replace(found, release=replace(found.release, self_test=b"damaged"))
    (tmp_path / "damaged.twin").write_bytes(write_pack(damaged))
    assert "the self-test does not fit" in cli("inspect", "damaged.twin").out


def test_calibrating_and_adapting_name_the_parent_and_drop_the_signature(
    cli, refused, signed, curve_csv, tmp_path
):
    first = identity_of(read_pack((tmp_path / signed).read_bytes()))
    assert cli("calibrate", signed, curve_csv, "-o", "calibrated.twin").code == 0
    assert cli("adapt", "calibrated.twin", curve_csv, "-o", "adapted.twin").code == 0
    parent = first
    for name in ("calibrated.twin", "adapted.twin"):
        release = cli("inspect", name, "--verify", "--json").json["release"]
        identity = release["identity"]
        assert "signature" not in release
        assert (identity["parent"], identity["counter"]) == (parent.id.hex(), 7)
        assert (identity["schema"], identity["table"]) == (first.schema.hex(), first.table.hex())
        parent = identity_of(read_pack((tmp_path / name).read_bytes()))
    refused("verify", "adapted.twin", "--key", "product.pub", says=["not signed"])


def test_a_lean_pack_for_a_small_device(cli, pack, signed, tmp_path):
    cli("keys", "new", "tiny", "--hmac")
    lean = ("--lean", "-o", "lean.twin", "--json")
    made = cli("sign", pack, "--key", "tiny.key", *lean).json
    assert made["algorithm"] == "HMAC-SHA-256"
    assert made["bytes"] == (tmp_path / "lean.twin").stat().st_size
    assert made["bytes"] < (tmp_path / signed).stat().st_size - 500
    assert cli("verify", "lean.twin", "--key", "tiny.key").code == 0


def test_the_self_test_has_every_target(cli, tmp_path):
    drawn = runpy.run_path(str(Path(__file__).parents[1] / "pack" / "random_packs.py"))
    pack = drawn["random_pack"](np.random.default_rng(1), features=3, outputs=3, scaled=True)
    pack = identified(pack)
    (tmp_path / "three.twin").write_bytes(write_pack(pack))
    assert cli("inspect", "three.twin", "--verify").code == 0
    test = SelfTest.read(pack.release.self_test, 3, 3)
    test.answers["mean"][0, 2] ^= 1
    wrong = replace(pack, release=replace(pack.release, self_test=test.content()))
    (tmp_path / "wrong.twin").write_bytes(write_pack(wrong))
    answer = cli("inspect", "wrong.twin", "--verify")
    assert (answer.code, "query 1 of" in answer.err) == (2, True)
