/* Why no sum of products overflows (FORMAT.md, section 9): if a reader's check of an output passes,
 * the sum of its products and its bias is within 32 bits, and so is every part of it, for any
 * inputs within -32767 .. 32767, for up to 2048 of them, in whatever order they come. */

/* clang-format off */
#include "proof.h"

/* Sum of the magnitudes of the first n weights. */
/*@ axiomatic Magnitudes {
      logic integer total{L}(int16_t *w, integer n) reads w[0 .. n - 1];
      axiom none{L}: \forall int16_t *w; total(w, 0) == 0;
      axiom next{L}: \forall int16_t *w, integer n; 0 <= n ==>
        total(w, n + 1) == total(w, n) + \abs(w[n]);
    } */

/* What a shift is, which WP does not know of one to the left. */
/*@ axiomatic Shift { axiom left: \forall integer a; a << 15 == 32768 * a; } */

/* The check of twin_open.c. */
/*@ assigns \nothing;
    ensures \result == 0 && bias <= 0x80000000 ==> 32767 * sum + bias <= 0x7FFFFFFF; */
static unsigned twini_overflows(uint32_t sum, uint32_t bias);

#include "../src/twin_open.c"

/*@ requires -32768 <= w <= 32767 && -32767 <= x <= 32767;
    assigns \nothing;
    ensures \result == w * x && -32767 * \abs(w) <= \result <= 32767 * \abs(w); */
static int32_t product(int32_t w, int32_t x) {
    return w * x;
}

/*@ requires n <= 2048 && \valid_read(w + (0 .. n - 1)) && \valid_read(x + (0 .. n - 1));
    requires \forall integer i; 0 <= i < n ==> -32767 <= x[i] <= 32767;
    requires magnitude == \abs(bias);
    assigns \nothing; */
int32_t check_and_add(const int16_t *w, const int16_t *x, uint32_t n, int32_t bias,
                      uint32_t magnitude) {
    uint32_t sum = 0, i;
    int32_t acc = bias;
    /*@ loop invariant 0 <= i <= n && sum == total(w, i) && 0 <= sum <= 32768 * i;
        loop invariant \forall integer k; 0 <= k <= i ==> 0 <= total(w, k) <= total(w, i);
        loop assigns i, sum;
        loop variant n - i; */
    for (i = 0; i < n; i++)
        sum += (uint32_t)(w[i] < 0 ? -w[i] : w[i]);
    if (twini_overflows(sum, magnitude))
        return 0;
    /*@ assert rule: 32767 * total(w, n) + \abs(bias) <= 0x7FFFFFFF; */
    /*@ loop invariant 0 <= i <= n;
        loop invariant \abs(acc) <= 32767 * total(w, i) + \abs(bias);
        loop assigns i, acc;
        loop variant n - i; */
    for (i = 0; i < n; i++) {
        int32_t p = product(w[i], x[i]);
        /*@ assert part: total(w, i + 1) == total(w, i) + \abs(w[i]) && total(w, i + 1) <= total(w, n); */
        acc += p;
    }
    return acc;
}
/* clang-format on */
