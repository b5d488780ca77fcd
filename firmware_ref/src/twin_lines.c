/* silu as straight lines, for kernels that prefer them to the curve they come from.
 *
 * With d = C[k + 1] - C[k] and b = d k - C[k], FORMAT.md's h in the first 128 steps of the curve,
 * to both sides of zero, is one of
 *
 *     (b 2^w + (1024 - d) z + 1023 - half) >> 10       where z is positive
 *     (b 2^w + d z + 1023 - half) >> 10                where it is negative
 *
 * where half is what rounds the bump: -floor(x / 1024) is floor((1023 - x) / 1024), and two shifts
 * in a row are one shift. Steps meet at the entries of the curve, where both agree. The bump itself
 * is (-b 2^w + d |z| + half) >> 10. */

#include "twin_arith.h"
#include "twin_model.h"

#if TWIN_WITH_LINES

#ifdef TWIN_KERNEL_HELIUM

TWIN_INTERNAL void twini_lines(twin_flash curve, uint32_t *lines) {
    int32_t low = twini_i16(curve);
    uint32_t reach = 0;
    int k;
    for (k = 0; k < TWIN_LINES / 2; k++) {
        int32_t next = twini_i16(curve += 2), step = next - low, base = low - step * k;
        uint32_t lower = (uint32_t)base & 65535u;
        low = next;
        step *= 32;
        reach |= (uint32_t)(base + 32768) | (uint32_t)(step + 32768) | (uint32_t)(32768 - step);
        lines[TWIN_LINES / 2 - 1 - k] = lower | (uint32_t)-step << 16;
        lines[TWIN_LINES / 2 + k] = lower | (uint32_t)step << 16;
    }
    if (reach >> 16) /* both have 16 bits */
        lines[0] = 0;
}

#else

/* The line at z, of a layer with 13 fraction bits. */
static int32_t twini_line(int32_t base, int32_t slope, int32_t z) {
    return (base * 256 + slope * z + 511) >> 10;
}

TWIN_INTERNAL void twini_lines(twin_flash curve, uint32_t *lines) {
    int32_t low = twini_i16(curve), base = 0, step = 0;
    uint32_t reach = 0;
    unsigned k;
    for (k = 0; k < TWIN_LINES / 2; k++) {
        int32_t next = twini_i16(curve += 2);
        uint32_t lower;
        step = next - low;
        base = step * (int32_t)k - low;
        low = next;
        reach |= (uint32_t)(base + 32768);
        lower = (uint32_t)base & 65535u;
        lines[TWIN_LINES / 2 - 1 - k] = lower | (uint32_t)step << 16;
        lines[TWIN_LINES / 2 + k] = lower | (uint32_t)(1024 - step) << 16;
    }
    /* A base has 16 bits. And with 13 fraction bits, -32768 is on the last line, but has to
     * count as -32767. */
    if (reach >> 16 || twini_line(base, step, -32768) != twini_line(base, step, -32767))
        lines[0] = 0;
}

#endif

#endif
