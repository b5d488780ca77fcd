"""Ten thousand updates that are damaged, old, foreign or wrong: each is refused for what it is."""

import ctypes
import random
from collections import Counter
from dataclasses import replace

import pytest

BANK, TABLE, ENTRY, CHECKSUMS = 2048, 48, 12, slice(12, 20)
LOWEST = 5
HEAD = {"magic", "version", "truncated", "length", "header"}


class Wrong:
    """Ways to be wrong: each returns bytes, and the statuses that these may get."""

    def __init__(self, rng, releases, cases, packs):
        self.rng, self.releases = rng, releases
        self.pack = cases.draw(packs, "one-anchor-one-feature", scaled=True)
        self.other = cases.draw(packs, "some-of-everything", scaled=True)  # two features
        self.good = [releases.release(self.moved(at), LOWEST + 1) for at in range(4)]
        self.plain = [releases.released(self.moved(at), LOWEST + 1) for at in range(4)]

    def moved(self, by=None):
        by = self.rng.randrange(1000) if by is None else by
        return replace(self.pack, targets=self.pack.targets // 2 + by)

    def one(self):
        """Return a copy of a release that would be accepted."""
        return bytearray(self.rng.choice(self.good))

    def entries(self, data):
        return TABLE + ENTRY * data[6]

    def a_bit_flipped(self):
        data = self.one()
        at = self.rng.randrange(self.entries(data), len(data))
        data[at] ^= 1 << self.rng.randrange(8)
        return data, {"signature"}  # or, in the zeros behind it, those of its checksum or padding

    def a_bit_of_the_head_flipped(self):
        data = self.one()
        at = self.rng.choice([*range(12), *range(20, self.entries(data))])
        data[at] ^= 1 << self.rng.randrange(8)
        return data, {"signature", "unsigned", "section", *HEAD}

    def a_wrong_checksum(self):
        data = self.one()
        at = self.rng.randrange(CHECKSUMS.start, CHECKSUMS.stop)
        data[at] ^= 1 << self.rng.randrange(8)
        return data, {"header_crc" if at >= 16 else "body_crc", "header_crc"}

    def a_piece_that_never_came(self):
        data = self.one()
        at = self.rng.randrange(self.entries(data), len(data) - 80)
        size = self.rng.randrange(4, 64)
        data[at : at + size] = b"\xff" * len(data[at : at + size])
        return data, {"signature"}

    def pieces_in_another_order(self):
        data = self.one()
        at, by = self.entries(data), self.rng.randrange(16, 100)
        data[at : at + by], data[at + by : at + 2 * by] = (
            data[at + by : at + 2 * by],
            data[at : at + by],
        )
        return data, {"signature"}

    def an_end_that_is_missing(self):
        data = self.one()
        return data[: self.rng.randrange(1, len(data))], {"truncated"}

    def more_than_there_was(self):
        return self.one() + self.rng.randbytes(self.rng.randrange(1, 100)), {"length"}

    def more_than_the_bank_holds(self):
        return self.one() + bytes(BANK), {"length"}

    def something_else(self):
        return self.rng.randbytes(self.rng.randrange(48, BANK)), {"magic"}

    def an_old_release(self):
        old = self.releases.release(self.moved(), self.rng.randrange(LOWEST))
        return old, {"counter"}

    def another_key(self):
        return self.releases.release(self.moved(), 9, self.rng.randbytes(32)), {"signature"}

    def another_signature(self):
        data, donor = (bytearray(one) for one in self.rng.sample(self.good, 2))
        data[-32:] = donor[-32:]
        return data, {"signature"}

    def no_signature(self):
        return self.rng.choice(self.plain), {"unsigned"}

    def another_schema(self):
        named = self.rng.randbytes(16)
        return self.releases.release(self.moved(), 9, schema=named), {"schema"}

    def more_features(self):
        return self.releases.release(self.other, 9), {"schema"}

    def a_test_that_fails(self):
        pack = self.moved()
        return self.releases.release(pack, 9, test=self.releases.failing(pack)), {"self_test"}

    def no_test(self):
        return self.releases.release(self.moved(), 9, test=None), {"untested"}

    def no_identity(self):
        return self.releases.release(self.moved(), 9, identity=False), {"identity"}

    def a_later_format(self):
        data = bytearray(self.rng.choice(self.plain))
        data[4] = 200
        return data, {"version"}


WAYS = [name for name in vars(Wrong) if name not in {"moved", "one", "entries"} and name[0] != "_"]
MADE = {  # slower to make than to damage: fewer of them
    *("an_old_release", "another_key", "another_schema", "more_features"),
    *("a_test_that_fails", "no_test", "no_identity"),
}


def test_ten_thousand_wrong_updates_change_nothing(native, flash, releases, library, cases, packs):
    rng = random.Random(42)
    wrong = Wrong(rng, releases, cases, packs)
    made = {name: [getattr(wrong, name)() for _ in range(20)] for name in MADE}
    first = releases.release(wrong.pack, LOWEST)
    device = releases.Device(native, flash, library, first, bank=BANK, unit=rng.choice([4, 64]))
    assert device.start() == "ok"
    assert device.call("confirm") == "ok"
    before = device.state()
    where = ctypes.addressof(device.memory.cell)
    seen = Counter()
    for count in range(10_000):
        name = WAYS[count % len(WAYS)]
        data, expected = rng.choice(made[name]) if name in MADE else getattr(wrong, name)()
        status = device.update(bytes(data), piece=rng.choice([64, 100, 256, BANK, 3 * BANK]))
        if status not in expected:  # the zeros behind a signature are not signed
            assert name == "a_bit_flipped", (name, status)
            assert status in {"body_crc", "padding"}
        seen[name, status] += 1
        assert device.call("try", 3) == "early"
        assert ctypes.string_at(where, len(first)) == first
        assert device.state() == before
        if count % 1000 == 0:
            assert device.start() == "ok"
            assert device.in_use() == first
    assert len({status for _, status in seen}) >= 15
    assert device.update(wrong.good[0]) == "ok"  # and a good one is still accepted


@pytest.mark.parametrize("name", WAYS)
def test_a_device_says_what_is_wrong(native, flash, releases, library, cases, packs, name):
    """The first fault in the order of the page, whatever was in use before."""
    wrong = Wrong(random.Random(name), releases, cases, packs)
    device = releases.Device(
        native, flash, library, releases.release(wrong.pack, LOWEST), bank=BANK
    )
    assert device.start() == "ok"
    assert device.call("confirm") == "ok"
    data, expected = getattr(wrong, name)()
    assert device.update(bytes(data)) in expected | {"body_crc", "padding"}
