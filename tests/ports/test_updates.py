"""Updates over a serial line of emulated boards: tried, confirmed, refused, undone, and cut."""

from dataclasses import replace

import numpy as np
import pytest

from twinedge.budget import Model
from twinedge.pack import write_pack
from twinedge.pack.release import SelfTest, prepare_signature, put_signature
from twinedge.runtime.self_test import identified
from twinedge.signing import Key
from twinedge_export.boards import Builder, port_named
from twinedge_export.boards.reference_packs import random_pack

ENOUGH = 100  # measurements that confirm a trial, in device.c
X = np.random.default_rng(0).normal(size=(4 * ENOUGH, 3)).astype(np.float32)
# A board, how it verifies, and whether it has to copy packs into RAM.
DEVICES = {
    "mps2-an386": ("Ed25519", False),
    "esp8266": ("HMAC", True),
}


@pytest.fixture(scope="module")
def pack():
    return random_pack(Model.of(3, (8,), 4, intervals=True))


@pytest.fixture(scope="module", params=DEVICES)
def maker(request, devices, pack, tmp_path_factory):
    """Build the program of a device and sign for it: ``image(enough)``, ``release(pack, n)``."""
    return Maker(request, devices, pack, tmp_path_factory.mktemp("device"))


# Verifying takes most of the time with Ed25519, and what follows it is the same.
quick_on_one = pytest.mark.parametrize(
    "maker", ["esp8266", pytest.param("mps2-an386", marks=pytest.mark.slow)], indirect=True
)


class Maker:
    def __init__(self, request, devices, pack, folder):
        self.devices, self.pack, self.folder = devices, pack, folder
        self.board = port_named(request.param)
        algorithm, copies = DEVICES[request.param]
        self.key = Key.new(hmac_key=algorithm == "HMAC")
        devices.write_key(self.key, folder)
        self.flags = (*devices.FLAGS, f"-I{folder}", f"-DBANK_COPIES={int(copies)}")
        self.foreign = ()
        if algorithm == "HMAC":
            self.flags += ("-DDEVICE_HMAC",)
        else:
            home = request.getfixturevalue("monocypher")
            self.flags += (f"-I{home}",)
            self.foreign = home / "monocypher.c", home / "monocypher-ed25519.c"
        self.first = self.release(pack, 5)
        self.images = {}

    def image(self, *flags):
        if flags not in self.images:
            builder = Builder(
                self.board,
                self.folder / str(len(self.images)),
                (*self.flags, *flags),
                program="update",
                sources=(self.devices.EXAMPLE / "device.c",),
                foreign=self.foreign,
            )
            self.images[flags] = builder.image(self.first, np.zeros(1, np.float32))
        return self.images[flags]

    def release(self, pack, counter, key=None):
        return self.devices.released(pack, counter, key or self.key)

    def moved(self, by, counter):
        """A later release that predicts something else, but hardly."""
        return self.release(replace(self.pack, targets=self.pack.targets + by), counter)


@pytest.fixture
def run(maker):
    """Start a device: ``run(*flags)``."""
    running = []

    def start(*flags):
        running.append(maker.devices.Device(maker.board, maker.image(*flags)))
        return running[-1]

    yield start
    for one in running:
        one.close()


def measure(device, maker, start, count):
    """Measure what the first pack is right about, until the device starts again."""
    truth = maker.devices.means(maker.first, X)
    noise = np.random.default_rng(1).normal(0, 0.5, len(X))
    for at in range(start, start + count):
        if device.measure(X[at], truth[at] + noise[at]) is None:
            return at
    return None


def test_an_update_is_tried_and_confirmed(native, run, maker):
    device, second = run(), maker.moved(40, 6)
    assert device.last == (0, 0, 0, 5, 0, 0, 0, 0)
    right = maker.devices.means(maker.first, X)
    assert measure(device, maker, 0, 5) is None  # which it learns
    seen = []
    status = device.update(second, 100, lambda: seen.append(device.predict(X[7])[0]))
    assert status == 0
    assert len(seen) >= 5
    assert set(seen) == {right[7]}  # predictions went on
    assert device.last == (0, 1, 1, 6, 0, 1, 0, 5)
    now = maker.devices.means(second, X)
    assert [device.predict(one)[0] for one in X[:5]] == now[:5].tolist()
    assert device.status("b") == -31  # not during a trial
    assert measure(device, maker, 5, ENOUGH) is None
    found = device.restart()
    assert found[:7] == (0, 1, 0, 6, 6, 1, 0)
    assert found.points >= 24
    assert device.predict(X[0])[0] == now[0]
    assert native.name_of(device.update(maker.moved(41, 5))) == "counter"
    assert device.update(maker.moved(42, 6)) == 0  # into the first bank


def failing(pack):
    """The pack with a self-test that it does not pass."""
    made = identified(pack, counter=9)
    test = SelfTest.read(made.release.self_test, pack.features, 1)
    test.answers["mean"][0] += 1
    return replace(made, release=replace(made.release, self_test=test.content()))


def test_what_is_wrong_is_refused_and_changes_nothing(native, run, maker):
    device, good = run(), maker.moved(40, 6)
    assert measure(device, maker, 0, 3) is None
    x, expected = X[9], maker.devices.means(maker.first, X)[9]
    wide = random_pack(Model.of(4, (8,), 4, intervals=True))
    flipped = bytearray(good)
    flipped[len(good) // 2] ^= 1
    torn = good[:200] + b"\xff" * 64 + good[264:]
    # Signed as it is, whatever it says of itself.
    unsound = failing(maker.pack)
    wrong = {
        "signature": [bytes(flipped), torn, maker.release(maker.pack, 9, Key.new(hmac_key=True))],
        "truncated": [good[:200] + good[264:], good[:-16], b""],
        "length": [good + bytes(64)],
        "schema": [maker.release(wide, 9)],
        "unsigned": [write_pack(identified(maker.pack, counter=9), metadata=False)],
        "magic": [b"no pack at all, but some words to fill a header with, and more of them"],
        "self_test": [signed_as_is(write_pack(unsound, metadata=False), maker.key)],
    }
    for status, updates in wrong.items():
        for data in updates:
            assert native.name_of(device.update(data)) == status
            assert native.name_of(device.status("f")) == "early"
            assert device.predict(x)[0] == expected
    assert device.restart() == (0, 0, 0, 5, 0, 0, 0, 3)
    assert device.update(good) == 0


def signed_as_is(data, key):
    """Sign bytes without checking what they are, as a broken tool might."""
    room, message = prepare_signature(data, key.algorithm, key.id)
    return put_signature(room, key.signature(message))


@quick_on_one
def test_a_pack_whose_intervals_fail_is_undone(run, maker):
    """It opens and passes its self-test, but its errors are not those that it promises."""
    device = run()
    assert measure(device, maker, 0, 4) is None
    narrow = {level: one // 8 for level, one in maker.pack.intervals.quantiles.items()}
    intervals = replace(maker.pack.intervals, quantiles=narrow, constant=10)
    assert device.update(maker.release(replace(maker.pack, intervals=intervals), 6)) == 0
    assert device.last[:3] == (0, 1, 1)
    ended = measure(device, maker, 4, ENOUGH)
    assert ended is not None
    assert device.last[:7] == (0, 0, 0, 5, 0, 1, 1)
    assert device.last.points >= 4
    assert measure(device, maker, ended, ENOUGH) is None  # the pack before goes on
    shifted = replace(maker.pack, y_offset=np.float32(3))
    assert device.update(maker.release(shifted, 6)) == 0
    assert measure(device, maker, 0, ENOUGH) is not None
    assert device.last[:7] == (0, 0, 0, 5, 0, 2, 2)


@quick_on_one
def test_a_trial_that_is_not_confirmed_is_undone(run, maker):
    device = run()
    assert device.update(maker.moved(40, 6)) == 0
    seen = [device.last.bank, *(device.restart().bank for _ in range(3))]
    assert seen == [1, 1, 1, 0]
    assert device.last == (0, 0, 0, 5, 0, 1, 1, 0)


def cut_everywhere(device, maker, moments):
    """Cut the power of updates, one after the other, at each of these changes; return how many."""
    known, at, in_use, counter = 0, 0, maker.first, 5
    for cuts, changes in enumerate(moments):
        update = maker.moved(counter, counter + 1)
        old, new = (maker.devices.means(one, X[:1])[0] for one in (in_use, update))
        device.cut(changes, changes % 4)
        assert device.update(update, 200) in (0, None)
        while True:
            found = device.last
            assert found.status == 0
            assert found.points in (known, known + 1, 24, 25)  # the latest, if there were too many
            assert found.lowest <= found.counter
            assert device.predict(X[0])[0] == (new if found.counter == counter + 1 else old)
            known = found.points
            if not found.on_trial and found.counter == counter:  # the update has to begin again
                assert device.update(update, 200) in (0, None)
                continue
            ended = measure(device, maker, at % ENOUGH, ENOUGH)
            at += 1
            known = known + ENOUGH if ended is None else device.last.points
            known = known if known <= 32 else 32 - (32 - known) % 8
            if ended is None:
                break
        left = device.frame("c")
        if left != [0]:
            return cuts
        found = device.restart()
        assert (found.on_trial, found.counter, found.lowest) == (0, counter + 1, counter + 1)
        known, in_use, counter = found.points, update, counter + 1
    return len(moments)


CHANGES = 36  # of memories, by an update, its first start and the first points


@quick_on_one
def test_the_power_may_fail_at_every_write(run, maker):
    """Of updates, in both banks; of trials; and of points that are learnt."""
    moments = range(CHANGES) if maker.board.name == "esp8266" else range(4, CHANGES, 16)
    assert cut_everywhere(run(), maker, moments) == len(moments)


@pytest.mark.slow
def test_the_power_may_fail_at_every_write_of_a_long_trial(run, maker):
    assert cut_everywhere(run(), maker, range(220)) > 150


@pytest.mark.slow
def test_the_host_builds_a_device_for_any_pack(devices, tmp_path):
    key = Key.new(hmac_key=True)
    wide = random_pack(Model.of(12, (16, 16), 16, intervals=True))
    pack = devices.released(wide, 3, key)
    with devices.Device(*devices.build(pack, key, tmp_path / "board", enough=5)) as device:
        assert device.last == (0, 0, 0, 3, 0, 0, 0, 0)
        x = np.random.default_rng(2).normal(size=(40, 12)).astype(np.float32)
        truth = devices.means(pack, x)
        assert [device.predict(one)[0] for one in x] == truth.tolist()
        for one, y in zip(x, truth, strict=True):
            device.measure(one, y)
        assert device.restart().points in range(24, 33)
        assert device.update(devices.released(wide, 2, key)) == 0  # nothing was confirmed yet
        assert [device.measure(one, y) for one, y in zip(x[:5], truth, strict=False)][-1] == 5
        assert device.restart()[2:5] == (0, 2, 2)
    with pytest.raises(ValueError, match=r"README\.md"):
        devices.build(pack, Key.new(), tmp_path / "other")
