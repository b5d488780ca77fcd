/* NEON intrinsics that the kernels use and 32-bit Arm lacks: most work on the upper halves of
 * vectors, or take a lane of a whole one. */

#ifndef TWIN_KERNELS_NEON32_H
#define TWIN_KERNELS_NEON32_H

#include <arm_neon.h>

/* Half of a vector that has the lane, of 16 bits or 32. */
#define HALF16(v, lane) ((lane) < 4 ? vget_low_s16(v) : vget_high_s16(v))
#define HALF32(v, lane) ((lane) < 2 ? vget_low_s32(v) : vget_high_s32(v))

#define ADD_TIMES_LANE(sum, a, v, lane) vmlal_lane_s16(sum, a, HALF16(v, lane), (lane)&3)
#define ADD_HIGH_TIMES_LANE(sum, a, v, lane)                                                       \
    vmlal_lane_s16(sum, vget_high_s16(a), HALF16(v, lane), (lane)&3)
#define TIMES_LANE(a, v, lane) vqrdmulhq_lane_s32(a, HALF32(v, lane), (lane)&1)

INLINE int32x4_t own_vmlal_high_s16(int32x4_t sum, int16x8_t a, int16x8_t b) {
    return vmlal_s16(sum, vget_high_s16(a), vget_high_s16(b));
}

INLINE int32x4_t own_vmlal_high_n_s16(int32x4_t sum, int16x8_t a, int16_t b) {
    return vmlal_n_s16(sum, vget_high_s16(a), b);
}

INLINE int32x4_t own_vmull_high_s16(int16x8_t a, int16x8_t b) {
    return vmull_s16(vget_high_s16(a), vget_high_s16(b));
}

INLINE int32x4_t own_vmovl_high_s16(int16x8_t a) {
    return vmovl_s16(vget_high_s16(a));
}

INLINE int16x8_t own_vmovn_high_s32(int16x4_t low, int32x4_t a) {
    return vcombine_s16(low, vmovn_s32(a));
}

INLINE int16x8_t own_vqmovn_high_s32(int16x4_t low, int32x4_t a) {
    return vcombine_s16(low, vqmovn_s32(a));
}

INLINE int16x8_t own_vraddhn_high_s32(int16x4_t low, int32x4_t a, int32x4_t b) {
    return vcombine_s16(low, vraddhn_s32(a, b));
}

INLINE int16x8_t own_vpmaxq_s16(int16x8_t a, int16x8_t b) {
    return vcombine_s16(vpmax_s16(vget_low_s16(a), vget_high_s16(a)),
                        vpmax_s16(vget_low_s16(b), vget_high_s16(b)));
}

INLINE int32x4_t own_vpmaxq_s32(int32x4_t a, int32x4_t b) {
    return vcombine_s32(vpmax_s32(vget_low_s32(a), vget_high_s32(a)),
                        vpmax_s32(vget_low_s32(b), vget_high_s32(b)));
}

INLINE int32_t own_vmaxvq_s32(int32x4_t a) {
    int32x2_t most = vpmax_s32(vget_low_s32(a), vget_high_s32(a));
    return vget_lane_s32(vpmax_s32(most, most), 0);
}

INLINE uint16_t own_vaddvq_u16(uint16x8_t a) {
    uint64x2_t all = vpaddlq_u32(vpaddlq_u16(a));
    return (uint16_t)(vgetq_lane_u64(all, 0) + vgetq_lane_u64(all, 1));
}

INLINE uint8x16_t own_vqtbl1q_u8(uint8x16_t table, uint8x16_t from) {
    uint8x8x2_t both = {{vget_low_u8(table), vget_high_u8(table)}};
    return vcombine_u8(vtbl2_u8(both, vget_low_u8(from)), vtbl2_u8(both, vget_high_u8(from)));
}

/* Under the names of 64-bit Arm. */
#define vmlal_high_s16   own_vmlal_high_s16
#define vmlal_high_n_s16 own_vmlal_high_n_s16
#define vmull_high_s16   own_vmull_high_s16
#define vmovl_high_s16   own_vmovl_high_s16
#define vmovn_high_s32   own_vmovn_high_s32
#define vqmovn_high_s32  own_vqmovn_high_s32
#define vraddhn_high_s32 own_vraddhn_high_s32
#define vpmaxq_s16       own_vpmaxq_s16
#define vpmaxq_s32       own_vpmaxq_s32
#define vmaxvq_s32       own_vmaxvq_s32
#define vaddvq_u16       own_vaddvq_u16
#define vqtbl1q_u8       own_vqtbl1q_u8

#endif
