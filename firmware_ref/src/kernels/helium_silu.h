/* silu in kernel_helium.c: by the lines of twin_lines.c if all activations of eight outputs are on
 * them, otherwise by the curve itself. */

/* What a layer needs of its lines. */
typedef struct helium_lines {
    const uint32_t *zero; /* the line where z stops being negative */
    int32_t scale;        /* times 2 / 2^32 maps z in an upper half to its line number */
    uint32_t limit;       /* of |z|; 0 without lines */
    int32_t *folded;      /* columns, or NULL to store */
    uint32_t unit;        /* what bases are multiplied by */
    int32_t down;
    int32_t *sum[4]; /* of every other output, column 0 */
} helium_lines;

/* Sums of eight outputs to activations: stored at `place`, or folded with the weights there.
 * Returns false, with nothing folded, if one of them is not on a line. */
TWIN_ASSEMBLY int twini_helium_lines(const helium_lines *lines, twin_flash multiplier,
                                     const void *place);

/* Sums of a column to z; r10 becomes the largest |z|. */
#define SUMS(z, even, odd)                                                                         \
    "vldrw.u32 q3, [q2, " even "]\n"                                                               \
    "vmulh.s32 q3, q3, q0\n"                                                                       \
    "vrshl.s32 q3, r9\n"                                                                           \
    "vqmovnb.s32 " z ", q3\n"                                                                      \
    "vldrw.u32 q3, [q2, " odd "]\n"                                                                \
    "vmulh.s32 q3, q3, q1\n"                                                                       \
    "vrshl.s32 q3, r9\n"                                                                           \
    "vqmovnt.s32 " z ", q3\n"                                                                      \
    "vmaxav.s16 r10, " z "\n"

/* z to h. A line is a word of (base, slope), and one VQRDMLADH takes four of them and four words of
 * (unit, z) to bumps, rounded, in lower halves; or crosswise, of (z, unit), in upper halves. The
 * units stay in q0 and q1; only z is inserted there. `line` may be q1 the last time. */
#define LINES(z, line)                                                                             \
    "vsri.32 q1, " z ", #16\n"                                                                     \
    "vsli.32 q0, " z ", #16\n"                                                                     \
    "vqdmulh.s32 q2, " z ", r5\n"                                                                  \
    "vldrw.u32 q3, [r4, q2, uxtw #2]\n"                                                            \
    "vqrdmladhx.s16 q2, q3, q1\n"                                                                  \
    "vqdmulh.s32 q3, q0, r5\n"                                                                     \
    "vldrw.u32 " line ", [r4, q3, uxtw #2]\n"                                                      \
    "vqrdmladh.s16 q2, " line ", q0\n"                                                             \
    "vqshlu.s16 " z ", " z ", #0\n" /* max(z, 0) */                                                \
    "vsub.i16 " z ", " z ", q2\n"

/* clang-format off */
__asm(".pushsection .text.twini_helium_lines, \"ax\", %progbits\n"
      ".syntax unified\n"
      FUNCTION("twini_helium_lines")
      "push {r4-r10, lr}\n"
      FRAME("32")
      KEPT_R4_TO_R7("32", "28", "24", "20") KEPT("r8", "16") KEPT("r9", "12") KEPT("r10", "8")
      KEPT("lr", "4")
      "vpush {d8-d15}\n"
      FRAME("96")
      KEPT("d8", "96") KEPT("d9", "88") KEPT("d10", "80") KEPT("d11", "72")
      KEPT("d12", "64") KEPT("d13", "56") KEPT("d14", "48") KEPT("d15", "40")
      "sub sp, #16\n"
      FRAME("112")
      "vldrh.u16 q3, [r1]\n"
      "vshllb.s16 q0, q3, #16\n"
      "vshllt.s16 q1, q3, #16\n"
      "vldrw.u32 q2, [r0, #24]\n"
      "ldmia r0, {r4-r9}\n"
      "movs r0, #0\n"
      "mov r10, r0\n"
      SUMS("q7", "#12", "#28")
      "vstrw.32 q7, [sp]\n"
      SUMS("q4", "#0", "#16") SUMS("q5", "#4", "#20") SUMS("q6", "#8", "#24")
      "cmp r10, r6\n"
      "bhs 2f\n"
      "vdup.16 q0, r8\n"
      "vdup.16 q1, r8\n"
      LINES("q4", "q7") LINES("q5", "q7") LINES("q6", "q7")
      "vldrw.u32 q7, [sp]\n"
      LINES("q7", "q1")
      "movs r0, #1\n"
      "cbz r7, 1f\n"
      "vldrh.u16 q0, [r2]\n"
      "ldrd r4, r6, [r7]\n"
      "ldrd r8, r10, [r7, #8]\n"
      "vmladava.s16 r4, q0, q4\n"
      "vmladava.s16 r6, q0, q5\n"
      "vmladava.s16 r8, q0, q6\n"
      "vmladava.s16 r10, q0, q7\n"
      "strd r4, r6, [r7]\n"
      "strd r8, r10, [r7, #8]\n"
#if TWIN_INTERVALS
      "vldrh.u16 q0, [r2, #16]\n"
      "ldr r4, [r7, #20]\n"
      "ldr r6, [r7, #28]\n"
      "vmladava.s16 r4, q0, q5\n"
      "vmladava.s16 r6, q0, q7\n"
      "str r4, [r7, #20]\n"
      "str r6, [r7, #28]\n"
#endif
      "b 2f\n"
      "1:\n"
      "vstrh.16 q4, [r2]\n"
      "vstrh.16 q5, [r2, #16]\n"
      "vstrh.16 q6, [r2, #32]\n"
      "vstrh.16 q7, [r2, #48]\n"
      "2:\n"
      "add sp, #16\n"
      FRAME("96")
      "vpop {d8-d15}\n"
      FRAME("32")
      "pop {r4-r10, pc}\n"
      END_OF("twini_helium_lines")
      ".popsection");
/* clang-format on */

#undef SUMS
#undef LINES

/* Set up what a layer with sums in `sum` needs. */
static void helium_set_lines(helium_lines *lines, const twini_layer *layer, int32_t *sum,
                             int32_t *folded) {
    unsigned fraction = layer->fraction, i;
    lines->limit = 0;
    if (!layer->silu || fraction > 14 || !layer->lines[0])
        return;
    lines->zero = layer->lines + TWIN_LINES / 2;
    lines->scale = 1 << (20 - fraction);
    lines->limit = fraction < 13 ? 4u << fraction : 32768u; /* not above |-32768| */
    lines->folded = folded;
    lines->unit = 1u << fraction;
    lines->down = -(int32_t)layer->shift;
    for (i = 0; i < 4; i++)
        lines->sum[i] = sum + 8 * i;
}

/* Finish eight outputs from o on by lines, if possible. */
static int helium_on_lines(const helium_lines *lines, const twini_layer *layer, uint32_t o,
                           const int16_t *out) {
    int16x8_t fold[2];
    const void *place;
    if (!lines->limit || o + 8 > layer->outputs)
        return 0;
    if (out) {
        place = out + 4 * o;
    } else {
        fold[1] = vdupq_n_s16(0);
        fold[0] = helium_weights(layer, o, fold + 1);
        place = fold;
    }
    return twini_helium_lines(lines, layer->multiplier + 2 * o, place);
}

/* twini_bump of eight non-negative numbers. `width` is that of the curve's steps, less 15, and
 * `narrow` the largest number on narrow ones. */
static inline int16x8_t helium_bump(const int16_t *curve, int16x8_t a, int16_t width,
                                    uint16_t narrow) {
    int16x8_t up = vdupq_n_s16((int16_t)-width), low, high;
    uint16x8_t k;
    mve_pred16_t wide = vcmphiq_n_u16(vreinterpretq_u16_s16(a), narrow);
    if (wide) {
        a = vsubq_m_n_s16(a, a, (int16_t)(narrow + 1), wide);
        up = vsubq_m_n_s16(up, up, 2, wide);
    }
    /* The step of the curve is above the top bit, the remainder of `a` below it. */
    k = vreinterpretq_u16_s16(vshlq_s16(a, vsubq_n_s16(up, 15)));
    a = vbicq_n_s16(vshlq_s16(a, up), 0x8000);
    if (wide) {
        k = vaddq_m_n_u16(k, k, 128, wide);
        wide = vcmphiq_n_u16(k, 191);
        k = vpselq_u16(vdupq_n_u16(191), k, wide);
    }
    low = vldrhq_gather_shifted_offset_s16(curve, k);
    high = vldrhq_gather_shifted_offset_s16(curve + 1, k);
    low = vaddq_s16(low, vqdmulhq_s16(vsubq_s16(high, low), a));
    low = vrshlq_n_s16(low, width + 5);
    return wide ? vpselq_s16(vdupq_n_s16(0), low, wide) : low;
}
