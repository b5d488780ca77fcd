/* Arithmetic that is in the chip's ROM, and therefore not in its compiler's libgcc. QEMU has no
 * such ROM.
 *
 * Floats are rounded as in IEEE 754: to nearest, ties to even. The ROM may take more or fewer
 * instructions. */

#include <stdint.h>

enum { BIAS = 127, SPECIAL = 255 }; /* exponents, of 1 and of infinity or NaN */

#define SIGN     0x80000000u
#define INFINITE 0x7f800000u
#define NO_VALUE 0x7fc00000u

typedef union {
    float value;
    uint32_t bits;
} number;

/* Names of libgcc, which no header declares. */
float __addsf3(float a, float b);
float __subsf3(float a, float b);
float __mulsf3(float a, float b);
float __floatunsisf(uint32_t a);
float __floatsisf(int32_t a);
uint32_t __fixunssfsi(float a);
uint32_t __udivsi3(uint32_t a, uint32_t b);
uint32_t __umodsi3(uint32_t a, uint32_t b);
uint64_t __muldi3(uint64_t a, uint64_t b);

static float from_bits(uint32_t bits) {
    number all;
    all.bits = bits;
    return all.value;
}

static uint32_t to_bits(float value) {
    number all;
    all.value = value;
    return all.bits;
}

/* m shifted right; lost bits leave a 1 in the last place, so that they still break a tie. */
static uint32_t shifted(uint32_t m, uint32_t places) {
    if (places > 31)
        return m != 0;
    return m >> places | ((m & ((1u << places) - 1)) != 0);
}

/* The float nearest to m * 2^(exponent - BIAS - 31), for an m with its highest bit set. */
static float nearest(uint32_t sign, int exponent, uint32_t m) {
    uint32_t bits, rest;
    if (exponent >= SPECIAL)
        return from_bits(sign | INFINITE);
    if (exponent < 1) {
        m = shifted(m, (uint32_t)(1 - exponent));
        exponent = 1;
    }
    /* The highest bit of a normal number adds 1 to the exponent, as does a carry out of it. */
    bits = ((uint32_t)(exponent - 1) << 23) + (m >> 8);
    rest = m & 255;
    if (rest > 128 || (rest == 128 && (bits & 1)))
        bits++;
    return from_bits(sign | bits);
}

/* A finite number is significand * 2^(exponent_of - BIAS - 23). */
static uint32_t significand(uint32_t bits) {
    uint32_t m = bits & 0x7fffff;
    return bits & INFINITE ? m | 0x800000 : m;
}

static int exponent_of(uint32_t bits) {
    int exponent = (int)(bits >> 23 & 255);
    return exponent ? exponent : 1;
}

float __addsf3(float a, float b) {
    uint32_t large = to_bits(a), small = to_bits(b), m, n;
    int exponent, zeros;
    if ((large & ~SIGN) < (small & ~SIGN)) {
        uint32_t other = large;
        large = small;
        small = other;
    }
    exponent = exponent_of(large);
    if (exponent == SPECIAL) {
        int is_nan = (large & ~SIGN) > INFINITE || (large ^ SIGN) == small;
        return from_bits(is_nan ? NO_VALUE : large);
    }
    /* Seven bits below the last, and one above for the carry. */
    m = significand(large) << 7;
    n = shifted(significand(small) << 7, (uint32_t)(exponent - exponent_of(small)));
    m = (large ^ small) & SIGN ? m - n : m + n;
    if (!m)
        return from_bits(large & small & SIGN);
    zeros = __builtin_clz(m);
    return nearest(large & SIGN, exponent + 1 - zeros, m << zeros);
}

float __subsf3(float a, float b) {
    return __addsf3(a, from_bits(to_bits(b) ^ SIGN));
}

/* The product of two words, from halves: the core multiplies to 32 bits. */
static uint64_t product(uint32_t a, uint32_t b) {
    uint32_t a0 = a & 65535u, a1 = a >> 16, b0 = b & 65535u, b1 = b >> 16;
    uint32_t low = a0 * b0, one = a1 * b0, other = a0 * b1;
    uint32_t middle = (low >> 16) + (one & 65535u) + other; /* may wrap at most once */
    uint32_t high = a1 * b1 + (one >> 16) + (middle >> 16);
    if (middle < other)
        high += 65536u;
    return (uint64_t)high << 32 | middle << 16 | (low & 65535u);
}

float __mulsf3(float a, float b) {
    uint32_t x = to_bits(a), y = to_bits(b), sign = (x ^ y) & SIGN, m, n;
    int exponent = exponent_of(x) + exponent_of(y) - BIAS + 1, zeros;
    uint64_t both;
    x &= ~SIGN;
    y &= ~SIGN;
    if (x >= INFINITE || y >= INFINITE) {
        int is_nan = x > INFINITE || y > INFINITE || !x || !y;
        return from_bits(is_nan ? NO_VALUE : sign | INFINITE);
    }
    if (!x || !y)
        return from_bits(sign);
    m = significand(x) << 8;
    n = significand(y) << 8;
    zeros = __builtin_clz(m);
    m <<= zeros;
    exponent -= zeros;
    zeros = __builtin_clz(n);
    both = product(m, n << zeros);
    exponent -= zeros;
    if (!(both >> 63)) {
        both <<= 1;
        exponent--;
    }
    return nearest(sign, exponent, (uint32_t)(both >> 32) | ((uint32_t)both != 0));
}

float __floatunsisf(uint32_t a) {
    int zeros;
    if (!a)
        return 0;
    zeros = __builtin_clz(a);
    return nearest(0, BIAS + 31 - zeros, a << zeros);
}

float __floatsisf(int32_t a) {
    float size = __floatunsisf(a < 0 ? 0u - (uint32_t)a : (uint32_t)a);
    return a < 0 ? from_bits(to_bits(size) | SIGN) : size;
}

/* Towards zero; beyond the range, its nearer end. */
uint32_t __fixunssfsi(float a) {
    uint32_t bits = to_bits(a), m = significand(bits);
    int places = exponent_of(bits) - BIAS - 23;
    if ((bits & SIGN) || places < -23)
        return 0;
    if (places > 8)
        return UINT32_MAX;
    return places < 0 ? m >> -places : m << places;
}

/* a / b, one bit at a time; the remainder goes to *rest. */
static inline uint32_t divided(uint32_t a, uint32_t b, uint32_t *rest) {
    uint32_t quotient = 0;
    if (a >= b) {
        int digit = __builtin_clz(b) - __builtin_clz(a);
        for (; digit >= 0; digit--) {
            quotient <<= 1;
            if (a >= b << digit) {
                a -= b << digit;
                quotient |= 1;
            }
        }
    }
    *rest = a;
    return quotient;
}

uint32_t __udivsi3(uint32_t a, uint32_t b) {
    uint32_t rest;
    return divided(a, b, &rest);
}

uint32_t __umodsi3(uint32_t a, uint32_t b) {
    uint32_t rest;
    divided(a, b, &rest);
    return rest;
}

uint64_t __muldi3(uint64_t a, uint64_t b) {
    uint32_t a0 = (uint32_t)a, b0 = (uint32_t)b;
    uint32_t crossed = a0 * (uint32_t)(b >> 32) + (uint32_t)(a >> 32) * b0;
    return product(a0, b0) + ((uint64_t)crossed << 32);
}
