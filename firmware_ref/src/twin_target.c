/* The target curve: from estimates to the target, and back (FORMAT.md, section 8). */

#include "twin_model.h"

#if TWIN_TARGET_CURVE

int32_t twin_target_raw(const twin_model *model, int32_t estimate) {
    twin_flash at = model->target_curve;
    uint32_t off, bin;
    uint8_t shift;
    int32_t low;
    if (!model->kernel || !at)
        return estimate;
    off = (uint32_t)estimate - twini_u32(at);
    if (estimate < twini_i32(at))
        off = 0;
    shift = twini_u8(at + TWIN_CURVE_SHIFT);
    bin = off >> shift;
    off -= bin << shift;
    if (bin >= twini_u16(at + TWIN_CURVE_BINS)) {
        bin = twini_u16(at + TWIN_CURVE_BINS);
        off = 0;
    }
    at += TWIN_CURVE_HEAD + 4 * (twini_size)bin;
    low = twini_i32(at);
    return off ? low + (int32_t)twini_product(twini_u32(at + 4) - (uint32_t)low, off, shift) : low;
}

int32_t twin_estimate_raw(const twin_model *model, int32_t target) {
    twin_flash at = model->target_curve;
    uint32_t off = 0, rest, width, estimate;
    uint16_t left;
    uint8_t shift;
    int32_t low, high;
    if (!model->kernel || !at)
        return target;
    estimate = twini_u32(at);
    shift = twini_u8(at + TWIN_CURVE_SHIFT);
    left = twini_u16(at + TWIN_CURVE_BINS);
    at += TWIN_CURVE_HEAD;
    high = twini_i32(at);
    if (target < high)
        target = high;
    for (;;) {
        low = high;
        at += 4;
        high = twini_i32(at);
        if (!--left || target < high)
            break;
        estimate += (uint32_t)1 << shift;
    }
    if (target > high)
        target = high;
    rest = (uint32_t)target - (uint32_t)low;
    width = (uint32_t)high - (uint32_t)low;
    /* A long division, bit by bit: one of 64 bits is a large library function. */
    for (;;) {
        if (rest >= width) {
            rest -= width;
            off++;
        }
        if (!shift--)
            return (int32_t)(estimate + off);
        rest <<= 1;
        off <<= 1;
    }
}

#endif
