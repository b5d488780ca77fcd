"""A second evaluator, written from FORMAT.md alone: Python's integers and struct, no numpy.

It shares no code with the package, and asserts that every intermediate value fits the width stated
in FORMAT.md. It trusts the file: refusing is the reader's business.
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
    """Round to binary32. Exact binary64 arithmetic rounded once equals f32 arithmetic."""
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
    """Sum of products; assert that it fits in any order of summation."""
    products = list(map(mul, weights, inputs))
    i32(sum(map(abs, products)) + abs(start))
    return i32(sum(products) + start)


class Taker:
    """Takes consecutive arrays from bytes."""

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
    """A pack, read and evaluated as FORMAT.md says: for its first target, or the selected one."""

    def __init__(self, data):
        assert data[:4] == b"TWIN"
        self.f, depth, self.activation = struct.unpack_from("<HBB", data, 20)
        self.widths = struct.unpack_from("<3H", data, 24)[:depth]
        self.kernel_type = "bh"[data[30]]
        twins, self.k, self.m, flags = struct.unpack_from("<4H", data, 32)
        self.scaled = bool(flags & 2)
        offsets = {}
        for number in range(struct.unpack_from("<H", data, 6)[0]):
            kind, _, offset, _ = struct.unpack_from("<HHII", data, 48 + 12 * number)
            offsets[kind] = offset
        self.targets = struct.unpack_from("<H", data, offsets[12])[0] if 12 in offsets else 1
        scaling = Taker(data, offsets[1])
        self.x_scaling = [scaling.take("f", 2) for _ in range(self.f)]
        self.y_scaling = [scaling.take("f", 2) for _ in range(self.targets)]
        self.map, self.g = None, self.f
        if 10 in offsets:
            self._read_map(Taker(data, offsets[10]))
        self.target_curves = [None] * self.targets
        if 11 in offsets:
            curve = Taker(data, offsets[11])
            self.target_curves = [self._target_curve(curve) for _ in range(self.targets)]
        records = Taker(data, offsets[2])
        self.twins = [self._twin(records) for _ in range(twins)]
        self.curve = Taker(data, offsets[3]).take("h", 193) if self.activation else None
        anchors = Taker(data, offsets[4])
        counts = anchors.take("H", twins)
        anchors.align(4)
        points = anchors.matrix("h", self.k, self.g)
        targets = zip(*(anchors.take("i", self.k) for _ in range(self.targets)), strict=True)
        owners = [twin for twin, count in enumerate(counts) for _ in range(count)]
        self.anchors = list(zip(owners, points, targets, strict=True))
        self.intervals, self.domain = [], None
        if self.scaled:
            intervals = Taker(data, offsets[7])
            for _ in range(self.targets):
                weights, (constant, *_, levels) = intervals.take("I", 3), intervals.take("I", 5)
                quantiles = dict(intervals.take("I", 2) for _ in range(levels))
                self.intervals.append((weights, constant, quantiles))
        self.select(0)
        if 8 in offsets:
            domain = Taker(data, offsets[8])
            self.domain = [domain.take("h", 3) for _ in range(self.f)]

    def select(self, target):
        """Evaluate this target from now on."""
        self.target = target
        self.y_offset, self.y_gain = self.y_scaling[target]
        self.target_curve, self.quantiles = self.target_curves[target], {}
        if self.scaled:
            self.weights, self.constant, self.quantiles = self.intervals[target]
        return self

    @staticmethod
    def _target_curve(taker):
        (first,), (shift, _), (bins,) = (taker.take(*one) for one in (("i", 1), ("B", 2), ("H", 1)))
        return (first, shift, taker.take("i", bins + 1)) if bins else None

    def _read_map(self, taker):
        self.g, rows = taker.take("H", 2)
        bins, self.map_shifts = taker.take("B", self.f), taker.take("B", self.g)
        taker.align(4)
        knots = taker.take("h", rows)
        taker.align(4)
        table = [taker.take("b", self.g) for _ in range(rows)]
        self.map, start = {}, 0
        for i, n in enumerate(bins):
            if n:
                mine = slice(start, start + n + 1)
                self.map[i] = knots[mine], table[mine]
                start += n + 1

    def _twin(self, taker):
        shifts, fractions = taker.take("B", 3), taker.take("B", 3)
        all_shifts, multipliers = taker.take("B", 2), taker.take("h", 2)
        (bias,) = taker.take("i", 1)
        scales = list(zip(multipliers, all_shifts, strict=True))
        layers, inputs = [], self.g
        for depth, width in enumerate(self.widths):
            kernel = taker.matrix(self.kernel_type, width, inputs)
            if depth == 0:
                second = taker.matrix(self.kernel_type, width, inputs)
                kernel = [a + b for a, b in zip(kernel, second, strict=True)]
            starts = taker.take("i", width)
            multipliers = taker.take("h", width)
            taker.align(4)
            layers.append((kernel, starts, multipliers, shifts[depth], fractions[depth]))
            inputs = width
        outputs = [self._outputs(taker, inputs, bias, scales)]
        for _ in range(1, self.targets):
            all_shifts, multipliers = taker.take("B", 2), taker.take("h", 2)
            assert taker.take("h", 1) == [0]
            (bias,) = taker.take("i", 1)
            scales = list(zip(multipliers, all_shifts, strict=True))
            outputs.append(self._outputs(taker, inputs, bias, scales))
        taker.align(16)
        return layers, outputs

    def _outputs(self, taker, inputs, bias, scales):
        """Weights, bias and scale of the output of a target, then of its difficulty."""
        if self.scaled:
            (hard_bias,) = taker.take("i", 1)
            folded = taker.take("h", 2 * pad4(inputs))[: 2 * inputs]
            weights, biases = (folded[::2], folded[1::2]), (bias, hard_bias)
        else:
            weights, biases = (taker.take("h", pad4(inputs))[:inputs], None), (0, 0)
        return list(zip(weights, biases, scales, strict=True))

    def query(self, x):
        q = []
        for i, (value, (offset, gain)) in enumerate(zip(x, self.x_scaling, strict=True)):
            if math.isnan(value):
                q.append(self.domain[i][2])
                assert q[-1] != -32768
                continue
            t = f32(f32(f32(value) - offset) * gain)
            assert not math.isnan(t)
            t = max(-32767.0, min(32767.0, t))
            whole = math.floor(abs(t))
            whole += abs(t) - whole >= 0.5
            q.append(whole if t > 0 else -whole)
        return q

    def mapped(self, q):
        """What the twins take in place of the query."""
        if self.map is None:
            return q
        acc = [0] * self.g
        for i, (knots, rows) in self.map.items():
            c = max(knots[0], min(knots[-1], q[i]))
            t = max(t for t in range(len(knots) - 1) if knots[t] <= c)
            phi = u32(u32(c - knots[t]) << 14) // u32(knots[t + 1] - knots[t])
            assert 0 <= phi <= 16384
            for j in range(self.g):
                part = rows[t][j] * (16384 - phi) + rows[t + 1][j] * phi
                assert abs(part) <= 2**21
                acc[j] = i32(acc[j] + part)
        added = [*q, *[0] * (self.g - self.f)]
        return [
            sat(i32(one + rsh(sum_, shift)))
            for one, sum_, shift in zip(added, acc, self.map_shifts, strict=True)
        ]

    def curved(self, m):
        """U: an estimate in units of the gain."""
        if self.target_curve is None:
            return m
        first, s, values = self.target_curve
        n = len(values) - 1
        d = u64(max(0, min(n << s, i64(i32(m) - first))))
        k = min(d >> s, n - 1)
        return values[k] + (i64((values[k + 1] - values[k]) * (d - (k << s))) >> s)

    def uncurved(self, u):
        """The estimate of a target in units of the gain."""
        if self.target_curve is None:
            return u
        first, s, values = self.target_curve
        u = max(values[0], min(values[-1], u))
        k = max(k for k in range(len(values) - 1) if values[k] <= u)
        return i32(first + (k << s) + u64((u - values[k]) << s) // (values[k + 1] - values[k]))

    def in_units(self, m):
        return f32(f32(f32(self.curved(m)) * self.y_gain) + self.y_offset)

    def deviation(self, m, raw, parts):
        if self.target_curve is None:
            return f32(f32(f32(raw) * self.y_gain) / f32(parts))
        d = raw // parts
        ends = [max(-(2**31), min(2**31 - 1, i64(m + one))) for one in (-d, d)]
        low, high = map(self.curved, ends)
        return f32(f32(f32(u32(high - low)) * self.y_gain) / 2)

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

    def outside(self, x):
        """Which features are outside: those that are missing are not."""
        if self.domain is None:
            return [False] * self.f
        ranges = zip(x, self.query(x), self.domain, strict=True)
        return [not math.isnan(value) and not a <= q <= b for value, q, (a, b, _) in ranges]

    def estimate(self, q, anchor):
        """The estimate of an anchor; in scaled packs its asymmetry and difficulty, too."""
        owner, point, targets = anchor
        twin = self.twins[owner]
        (output, bias, (multiplier, shift)), (hard, hard_bias, to_difficulty) = twin[1][self.target]
        mirrored = self.hidden(twin, point, q)
        forward, back = dot(output, self.hidden(twin, q, point)), dot(output, mirrored)
        assert max(abs(forward), abs(back)) < 2**30
        e = i32(rsh(mulw(i32(forward - back), multiplier), shift) + targets[self.target])
        if not self.scaled:
            return e, None, None
        u = rsh(mulw(i32(forward + back + bias), multiplier), shift)
        g = rsh(mulw(dot(hard, mirrored, hard_bias), to_difficulty[0]), to_difficulty[1])
        return e, u, g

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
        z = self.mapped(q)
        return self.combine([self.estimate(z, anchor)[0] for anchor in self.who(z)])

    def combine(self, e):
        n = len(e)
        total = i64(sum(e))
        mean = abs(total) // n
        mean += 2 * (abs(total) - mean * n) >= n
        mean = i32(mean if total > 0 else -mean)
        d = [max(-1048575, min(1048575, i64(one - e[0]))) for one in e]
        squares, single = u64(n * u64(sum(one * one for one in d))), u64(i64(sum(d)) ** 2)
        s = u32(math.isqrt(u64(squares - single)))
        return bits(self.in_units(mean)), bits(self.deviation(mean, s, n)), mean, s, e

    def bounds(self, x):
        """Scale as bits of f32 and as an integer; for each level both ends, likewise."""
        q = self.mapped(self.query(x))
        e, u, g = zip(*(self.estimate(q, anchor) for anchor in self.who(q)), strict=True)
        n, (*_, mean, s, _) = len(e), self.combine(list(e))
        u = [max(-1048575, min(1048575, one)) for one in u]
        hard = (sum(g) + 2**31) % 2**32 - 2**31  # signed 32 bits, which wrap around
        asymmetry = u32(math.isqrt(u64(n * u64(sum(one * one for one in u)))))
        signals = [s, asymmetry, max(i32(hard), 0), 16 * n]
        parts = [
            min(u64(weight * signal) >> 12, 2**31 - 1)
            for weight, signal in zip([*self.weights, self.constant], signals, strict=True)
        ]
        scale = u32(math.isqrt(u64(sum(part * part for part in parts))) // n)
        ends = {}
        for level, quantile in self.quantiles.items():
            width = min(u64(quantile * scale) >> 20, 2**31 - 1)
            low, high = max(-(2**31), i64(mean - width)), min(2**31 - 1, i64(mean + width))
            ends[level] = (bits(self.in_units(low)), bits(self.in_units(high)), low, high)
        return bits(self.deviation(mean, scale, 16)), scale, ends


def bits(a):
    assert not math.isnan(a)
    return struct.pack("<f", a).hex()
