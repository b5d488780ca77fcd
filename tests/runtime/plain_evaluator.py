"""A second evaluator, written from FORMAT.md alone: Python's integers and struct, no numpy.

It shares no code with the package, and asserts of every intermediate value that it fits the width
FORMAT.md gives it. It trusts the file: refusing is the reader's business.
"""

import math
import struct
from operator import mul


def i16(a):
    assert -(2**15) <= a < 2**15
    return a


def i32(a):
    assert -(2**31) <= a < 2**31
    return a


def u32(a):
    assert 0 <= a < 2**32
    return a


def i64(a):
    assert -(2**63) <= a < 2**63
    return a


def u64(a):
    assert 0 <= a < 2**64
    return a


def f32(a):
    """Round to binary32. Exact arithmetic in binary64 rounded once more is what f32 would give."""
    try:
        return struct.unpack("<f", struct.pack("<f", a))[0]
    except OverflowError:
        return math.copysign(math.inf, a)


def mulw(a, m):
    assert 0 <= m <= 32767
    high, low = i32((i32(a) >> 16) * m), i32((a & 65535) * m)
    whole = i32(high + (low >> 16))
    assert whole == a * m // 65536
    return whole


def rsh(a, n):
    return i32(a + (1 << (n - 1))) >> n if n > 0 else a


def sat(a):
    return max(-32767, min(32767, a))


def pad4(n):
    return (n + 3) // 4 * 4


def dot(weights, inputs, start=0):
    """Sum of products; asserts that it fits in any order of adding."""
    products = list(map(mul, weights, inputs))
    i32(sum(map(abs, products)) + abs(start))
    return i32(sum(products) + start)


class Taker:
    """Takes arrays from bytes one behind the other."""

    def __init__(self, data, start):
        self.data, self.at = data, start

    def take(self, code, count):
        values = struct.unpack_from(f"<{count}{code}", self.data, self.at)
        self.at += struct.calcsize(f"<{count}{code}")
        return list(values)

    def matrix(self, code, rows, columns):
        return [self.take(code, pad4(columns))[:columns] for _ in range(rows)]

    def align(self, to):
        self.at += -self.at % to


class Plain:
    """A pack, read and evaluated by the page."""

    def __init__(self, data):
        assert data[:4] == b"TWIN"
        self.f, depth, self.activation = struct.unpack_from("<HBB", data, 20)
        self.widths = struct.unpack_from("<3H", data, 24)[:depth]
        self.kernel_type = "bh"[data[30]]
        twins, self.k, self.m, _ = struct.unpack_from("<4H", data, 32)
        offsets = {}
        for number in range(struct.unpack_from("<H", data, 6)[0]):
            kind, _, offset, _ = struct.unpack_from("<HHII", data, 48 + 12 * number)
            offsets[kind] = offset
        scaling = Taker(data, offsets[1])
        self.x_scaling = [scaling.take("f", 2) for _ in range(self.f)]
        self.y_offset, self.y_gain = scaling.take("f", 2)
        records = Taker(data, offsets[2])
        self.twins = [self._twin(records) for _ in range(twins)]
        self.curve = Taker(data, offsets[3]).take("h", 193) if self.activation else None
        anchors = Taker(data, offsets[4])
        counts = anchors.take("H", twins)
        anchors.align(4)
        points = anchors.matrix("h", self.k, self.f)
        targets = anchors.take("i", self.k)
        owners = [twin for twin, count in enumerate(counts) for _ in range(count)]
        self.anchors = list(zip(owners, points, targets, strict=True))

    def _twin(self, taker):
        shifts, fractions = taker.take("B", 3), taker.take("B", 3)
        out_shift, _ = taker.take("B", 2)
        out_multiplier = taker.take("h", 1)[0]
        taker.take("B", 6)
        layers, inputs = [], self.f
        for depth, width in enumerate(self.widths):
            kernel = taker.matrix(self.kernel_type, width, inputs)
            if depth == 0:
                second = taker.matrix(self.kernel_type, width, inputs)
                kernel = [a + b for a, b in zip(kernel, second, strict=True)]
            bias = taker.take("i", width)
            multipliers = taker.take("h", width)
            taker.align(4)
            layers.append((kernel, bias, multipliers, shifts[depth], fractions[depth]))
            inputs = width
        output = taker.take("h", pad4(inputs))[:inputs]
        taker.align(16)
        return layers, output, out_multiplier, out_shift

    def query(self, x):
        q = []
        for value, (offset, gain) in zip(x, self.x_scaling, strict=True):
            t = f32(f32(f32(value) - offset) * gain)
            assert not math.isnan(t)
            t = max(-32767.0, min(32767.0, t))
            whole = math.floor(abs(t))
            whole += abs(t) - whole >= 0.5
            q.append(whole if t > 0 else -whole)
        return q

    def bump(self, a, b):
        curve = self.curve
        if a < i32(4 << b):
            w, r = b - 5, a
            k = r >> w
        else:
            w, r = b - 3, a - (4 << b)
            k = 128 + (r >> w)
            if k >= 192:
                return 0
        product = (curve[k + 1] - curve[k]) * (r & ((1 << w) - 1))
        assert abs(product) < 2**24
        g = curve[k] + (product >> w)
        assert 0 <= g <= 16383
        return rsh(g, 15 - b)

    def hidden(self, twin, p, r):
        h = p + r
        for kernel, bias, multipliers, shift, fraction in twin[0]:
            after = []
            for row, start, multiplier in zip(kernel, bias, multipliers, strict=True):
                scaled = mulw(dot(row, h, start), multiplier)
                assert abs(scaled) <= 2**30
                z = sat(rsh(scaled, shift))
                below = self.bump(abs(z), fraction) if self.activation else 0
                after.append(max(z, 0) - below)
                assert -16383 <= after[-1] <= 32767
            h = after
        return h

    def estimate(self, q, anchor):
        owner, point, target = anchor
        twin = self.twins[owner]
        _, output, multiplier, shift = twin
        forward, back = (
            dot(output, self.hidden(twin, q, point)),
            dot(output, self.hidden(twin, point, q)),
        )
        assert max(abs(forward), abs(back)) < 2**30
        return i32(rsh(mulw(i32(forward - back), multiplier), shift) + target)

    def who(self, q):
        if self.m == 0:
            return self.anchors
        chosen = []
        for twin in range(len(self.twins)):
            mine = [j for j, anchor in enumerate(self.anchors) if anchor[0] == twin]
            distance = {
                j: i64(sum(u32((a - b) ** 2) for a, b in zip(q, self.anchors[j][1], strict=True)))
                for j in mine
            }
            chosen += sorted(sorted(mine, key=lambda j: (distance[j], j))[: self.m])
        return [self.anchors[j] for j in chosen]

    def evaluate(self, x):
        return self.evaluate_raw(self.query(x))

    def evaluate_raw(self, q):
        """Prediction and spread as bits of f32, M, s, and all estimates."""
        e = [self.estimate(q, anchor) for anchor in self.who(q)]
        n = len(e)
        total = i64(sum(e))
        mean = abs(total) // n
        mean += 2 * (abs(total) - mean * n) >= n
        mean = i32(mean if total > 0 else -mean)
        d = [max(-1048575, min(1048575, i64(one - e[0]))) for one in e]
        squares, single = u64(n * u64(sum(one * one for one in d))), u64(i64(sum(d)) ** 2)
        s = u32(math.isqrt(u64(squares - single)))
        prediction = f32(f32(f32(mean) * self.y_gain) + self.y_offset)
        spread = f32(f32(f32(s) * self.y_gain) / f32(n))
        return bits(prediction), bits(spread), mean, s, e


def bits(a):
    assert not math.isnan(a)
    return struct.pack("<f", a).hex()
