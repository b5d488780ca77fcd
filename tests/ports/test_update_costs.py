"""What the parts of an update cost on boards, in bytes and instructions; and nothing if unused."""

import hmac
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from twinedge.budget import Model
from twinedge.pack import write_pack
from twinedge.pack.release import HMAC_SHA256
from twinedge.signing import Key, _with_public
from twinedge_export.boards import Builder, port_named
from twinedge_export.boards.build import flags_for, sizes_by_file
from twinedge_export.boards.reference_packs import random_pack
from twinedge_export.boards.run import instructions_of, run_program, time_limit

FLAGSHIP = Model.of(8, (128, 128), 32, intervals=True)
SMALL = Model.of(8, (8,), 2, intervals=True)
WORDS = {
    "empty": 1,
    **dict.fromkeys(("verified", "found", "signed", "begun", "written", "opened"), 2),
    **dict.fromkeys(("tested", "tried", "started", "confirmed", "stack"), 2),
    "done": 0,
}
BAD = 2**32 - 25  # TWIN_ERROR_SIGNATURE

# RFC 8032, section 7.1: secret key, public key, message, signature.
ED25519 = [
    (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
        "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
    (
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
        "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    ),
]
# RFC 4231, test cases with keys of up to 32 bytes (which zeros behind do not change): key, data.
HMAC = [
    ("0b" * 20, "4869205468657265"),
    ("4a656665", "7768617420646f2079612077616e7420666f72206e6f7468696e673f"),
    ("aa" * 20, "dd" * 50),
    ("0102030405060708090a0b0c0d0e0f10111213141516171819", "cd" * 50),
]
ORDER = 2**252 + 27742317777372353535851937790883648493


def repeated(signature):
    """The signature with its second half raised by the order of the curve: not to be accepted."""
    s = int.from_bytes(signature[32:], "little") + ORDER
    return signature[:32] + s.to_bytes(32, "little")


def messages(algorithm, key):
    """Signed messages: key, signature, message and whether it is good."""
    rows = []
    if algorithm == "HMAC":
        for own, data in HMAC:
            own, data = bytes.fromhex(own).ljust(32, b"\0"), bytes.fromhex(data)
            rows.append((own, hmac.digest(own, data, "sha256"), data, True))
    else:
        for _, public, data, signature in ED25519:
            row = *map(bytes.fromhex, (public, signature, data)), True
            rows += [row, (row[0], repeated(row[1]), row[2], False)]
    rng = np.random.default_rng(3)
    for size in (0, 55, 56, 111, 112):
        data = rng.bytes(size)
        own = key.public or key.secret
        signature = key.signature(data)
        wrong = bytearray(signature)
        wrong[int(rng.integers(len(wrong)))] ^= 1 << int(rng.integers(8))
        rows += [(own, signature, data, True), (own, bytes(wrong), data, False)]
        if size:
            rows.append((own, signature, data[:-1] + bytes([data[-1] ^ 128]), False))
    first = next(row for row in rows if row[0] == (key.public or key.secret))
    return [first, *rows]


def laid_out(rows):
    """As release.c takes them; float32, as images take queries."""
    content = b"".join(
        len(data).to_bytes(4, "little")
        + own
        + signature.ljust(64, b"\0")
        + data
        + bytes(-len(data) % 4)
        for own, signature, data, _ in rows
    )
    return np.frombuffer(content, "<f4")


@pytest.fixture(scope="module")
def costs(devices, monocypher, tmp_path_factory):
    """Run release.c with the flagship, once: ``costs(board, algorithm)``."""
    made = {}

    def run(board, algorithm):
        if (board, algorithm) not in made:
            secret = bytes(range(7, 39))  # counts depend on it, a little
            key = Key(HMAC_SHA256, None, secret) if algorithm == "HMAC" else _with_public(secret)
            flags, foreign = (*devices.FLAGS, "-DDEVICE_HMAC"), ()
            if algorithm == "Ed25519":
                flags = (*devices.FLAGS, f"-I{monocypher}")
                foreign = monocypher / "monocypher.c", monocypher / "monocypher-ed25519.c"
            builder = Builder(
                port_named(board),
                tmp_path_factory.mktemp(board),
                flags,
                False,
                "release",
                (),
                foreign,
            )
            rows = messages(algorithm, key)
            data = devices.released(random_pack(FLAGSHIP), 1, key)
            image = builder.image(data, laid_out(rows))
            output = run_program(builder.board, image, WORDS, time_limit(8e6))
            ((empty,),) = output["empty"]
            rate = builder.board.counts_per_instruction
            found = {
                word: [int(instructions_of(np.uint32(one[1]), empty, rate)) for one in output[word]]
                for word, count in WORDS.items()
                if count == 2 and word != "stack"
            }
            good = [one[0] for one in output["verified"]]
            wanted = [0 if right else BAD for *_, right in rows]
            assert [at for at, one in enumerate(good) if one != wanted[at]] == [], len(rows)
            for word in found:
                assert word == "verified" or output[word][0][0] == 0, word
            text = image.path.with_suffix(".map").read_text("utf-8", "replace")
            made[board, algorithm] = SimpleNamespace(
                bytes=len(data),
                instructions={word: one[0] for word, one in found.items()},
                stack=output["stack"][0],
                files=sizes_by_file(text),
            )
        return made[board, algorithm]

    return run


BOARDS = ("mps2-an386", "esp8266")
PAGE = Path(__file__).parents[2] / "docs" / "ports.md"
SLOTS_TEXT = 1200  # most bytes of twin_slots.c on a Cortex-M4
CALLS = {  # rows of the page that have instructions only
    "twin_slots_begin": "begun",
    "twin_slots_write": "written",
    "opening in steps": "opened",
    "self-test": "tested",
    "twin_slots_try": "tried",
    "twin_slots_open": "started",
    "twin_slots_confirm": "confirmed",
}


def bytes_of(sizes):
    return sizes.text + sizes.rodata + sizes.data


def table(run, board):
    """Bytes and instructions of each row of the page."""
    curve, shared = run(board, "Ed25519"), run(board, "HMAC")
    took = curve.instructions
    monocypher = [bytes_of(curve.files[name]) for name in ("monocypher", "monocypher-ed25519")]
    # The verifier of HMAC is a header: what it adds to the program.
    added = bytes_of(shared.files["release"]) - bytes_of(curve.files["release"])
    return {
        "twin_release.c": (bytes_of(curve.files["twin_release"]), took["found"]),
        "Ed25519": (sum(monocypher), took["signed"]),
        "HMAC-SHA-256": (added, shared.instructions["signed"]),
        "twin_slots.c": (bytes_of(curve.files["twin_slots"]), None),
        "twin_journal.c": (bytes_of(curve.files["twin_journal"]), None),
        **{row: (None, took[word]) for row, word in CALLS.items()},
    }


def printed(board):
    """The same as the page has it."""
    block = PAGE.read_text("utf-8").partition("<!-- updates -->")[2].partition("<!-- /updates -->")
    rows = {}
    for line in block[0].strip().splitlines()[2:]:
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        found = [int(cell) if cell else None for cell in cells]
        at = 2 * BOARDS.index(board)
        rows[re.sub("[`]|,.*", "", name)] = tuple(found[at : at + 2])
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("board", BOARDS)
def test_parts_cost_what_the_page_says(costs, board):
    """Vectors of RFCs and signatures of ours are verified there, too, and wrong ones refused."""
    found, stated = table(costs, board), printed(board)
    assert list(found) == list(stated)
    for row, (size, count) in found.items():
        assert stated[row][0] == size, row
        assert (stated[row][1] is None) == (count is None), row
        assert count is None or stated[row][1] == pytest.approx(count, rel=0.02, abs=2), row


@pytest.mark.slow
def test_banks_take_little_flash_and_stack(costs):
    found = costs("mps2-an386", "HMAC")
    assert found.files["twin_slots"].text <= SLOTS_TEXT
    assert found.files["twin_slots"][1:] == (0, 0, 0)
    assert found.files["twin_release"][1:] == (0, 0, 0)
    assert max(found.stack) <= 640
    assert max(costs("mps2-an386", "Ed25519").stack) <= 2048


@pytest.mark.parametrize("program", ["main", "store"])
@pytest.mark.parametrize(
    "board",
    ["mps2-an386", *(pytest.param(one, marks=pytest.mark.slow) for one in ("uno", "esp8266"))],
)
def test_a_program_that_does_not_use_them_has_no_byte_of_them(builder, devices, board, program):
    flags = (*flags_for(random_pack(SMALL)), *(devices.FLAGS if program == "store" else ()))
    made = builder(board, tuple(dict.fromkeys(flags)), program)
    image = made.image(write_pack(random_pack(SMALL)), np.zeros((1, 8), np.float32))
    kept = sizes_by_file(image.path.with_suffix(".map").read_text("utf-8", "replace"))
    assert sum(kept["twin_open"]) > 1000
    for name in ("twin_release", "twin_slots"):
        assert not any(kept.get(name, ())), name


@pytest.mark.slow
def test_a_device_of_80_kilobytes_has_room_for_two_packs(costs, devices, tmp_path):
    """The flagship twice in RAM, beside the program: what an ESP8266 has."""
    key = Key(HMAC_SHA256, None, bytes(range(32)))
    devices.write_key(key, tmp_path)
    flags = (*devices.FLAGS, f"-I{tmp_path}", "-DDEVICE_HMAC", "-DBANK_COPIES=1", "-DBANK=24576")
    source = (devices.EXAMPLE / "device.c",)
    board = port_named("esp8266")
    made = Builder(board, tmp_path / "image", flags, False, "update", source)
    data = devices.released(random_pack(FLAGSHIP), 1, key)
    image = made.image(data, np.zeros(1, np.float32))
    kept = sizes_by_file(image.path.with_suffix(".map").read_text("utf-8", "replace"))
    ram = sum(one.rodata + one.data + one.bss for one in kept.values())
    assert ram > 2 * 24576
    assert ram + costs("esp8266", "HMAC").stack[1] <= 80 * 1024
    device = devices.Device(board, image)
    try:
        x = np.linspace(-1, 1, 8, dtype=np.float32)
        assert device.predict(x)[0] == devices.means(data, [x])[0]
    finally:
        device.close()
