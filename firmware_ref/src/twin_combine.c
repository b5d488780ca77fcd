/* What the estimates of a run amount to: mean and spread, scale and interval (FORMAT.md, section
 * 8). */

#include "twin_model.h"

/* a / n, rounded down, for quotients of 32 bits, in 16-bit digits: 64-bit division is a large
 * library function on small devices. */
TWIN_SHARED uint32_t twini_divide(uint64_t a, uint32_t n) {
    uint32_t rest = (uint32_t)(a >> 32), high;
    rest = (rest % n) << 16 | ((uint32_t)a >> 16);
    high = rest / n;
    rest = (rest % n) << 16 | ((uint32_t)a & 65535u);
    return high << 16 | rest / n;
}

/* Bit by bit. */
TWIN_SHARED uint32_t twini_root(uint64_t a) {
    uint32_t root = 0, bit;
    for (bit = (uint32_t)1 << 31; bit; bit >>= 1)
        if ((uint64_t)(root | bit) * (root | bit) <= a)
            root |= bit;
    return root;
}

#if TWIN_INTERVALS || TWIN_TARGET_CURVE
TWIN_INTERNAL TWIN_NOT_INLINE uint32_t twini_product(uint32_t a, uint32_t b, uint8_t shift) {
    uint64_t product = ((uint64_t)a * b) >> shift;
    return product >> 31 ? (uint32_t)INT32_MAX : (uint32_t)product;
}
#endif

#if TWIN_INTERVALS
/* The scale, once the spread is known. */
static uint32_t twini_scale(const twin_run *run, uint32_t root) {
    twin_flash weight = run->model->intervals;
    uint32_t n = run->count, signal[4];
    uint64_t square = 0;
    unsigned i;
    signal[0] = root;
    signal[1] = twini_root(n * run->sums->asymmetries);
    signal[2] = run->sums->difficulty >> 31 ? 0 : run->sums->difficulty;
    signal[3] = 16 * n;
    for (i = 0; i < 4; i++) {
        uint32_t part = twini_product(twini_u32(weight), signal[i], 12);
        square += (uint64_t)part * part;
        weight += 4;
    }
    return twini_root(square) / n;
}
#endif

TWIN_INTERNAL TWIN_NOT_INLINE void twini_combine(const twin_run *run, twin_raw *out) {
    uint32_t n = run->count, mean;
    uint64_t sum = (uint64_t)run->sums->sum;
    /* Below 2^32, so the low half of the magnitude suffices. */
    uint32_t off =
        (uint32_t)(run->sums->deviations < 0 ? -run->sums->deviations : run->sums->deviations);
    if (run->sums->sum < 0)
        sum = 0 - sum;
    mean = n ? twini_divide(2 * sum + n, 2 * n) : 0;
    out->mean = (int32_t)(run->sums->sum < 0 ? 0 - mean : mean);
    out->root = twini_root(n * run->sums->squares - (uint64_t)off * off);
    out->count = (uint16_t)n;
#if TWIN_INTERVALS
    out->points = 0;
    out->intervals = 0;
    if (n && twini_is_scaled(run->model)) {
        out->intervals = 1;
        out->scale = twini_scale(run, out->root);
        twini_bound(run->model, out);
    }
#endif
}

twin_status twin_read_raw(const twin_run *run, twin_raw *out) {
    twini_combine(run, out);
#if TWIN_INTERVALS
    if (!out->intervals) {
        out->scale = 0;
        out->low = 0;
        out->high = 0;
    }
    out->outside = run->outside;
    out->missing = run->missing;
#endif
    return twini_status(run);
}
