/* Products of a prepared model by 16-bit words, for x86_prepared.h. Layouts: activations
 * [2 neurons at a time][16 columns][2], weights [OUTPUTS at a time][2 inputs at a time]
 * [OUTPUTS][2], sums [outputs][16 columns]. */

#define OUTPUTS (LANES == 16 ? 16 : 4) /* whose sums fit the registers */

#define EACH_OUTPUT UNROLLED for (r = 0; r < OUTPUTS; r++)

static uint32_t NAME(weight_bytes)(unsigned inputs, unsigned outputs) {
    return (uint32_t)sizeof(int16_t) * twini_align(inputs, 2) * twini_align(outputs, OUTPUTS);
}

static void NAME(arrange)(const twini_layer *from, const uint16_t *ranked, uint8_t *weights) {
    uint32_t pairs = twini_align(from->inputs, 2), o, i;
    int16_t *to = (int16_t *)(void *)weights;
    for (o = 0; o < from->outputs; o++)
        for (i = 0; i < from->inputs; i++) {
            uint32_t place = o / OUTPUTS * OUTPUTS * pairs + i / 2 * 2 * OUTPUTS + o % OUTPUTS * 2;
            to[place + i % 2] =
                (int16_t)twini_weight(from->weights + (size_t)ranked[o] * from->row, i, from->wide);
        }
}

/* Working memory of a layer: activations of the one before, and its own sums. */
static uint32_t NAME(block_bytes)(unsigned widest) {
    return (uint32_t)sizeof(int16_t) * ALL_COLUMNS * twini_align(widest, 16);
}

static uint32_t NAME(work_bytes)(unsigned widest) {
    return 3 * NAME(block_bytes)(widest);
}

/* Sums of a further layer. Not inlined, so that all of it stays in registers. */
TWIN_NOT_INLINE static void NAME(sum_products)(const twini_prepared_layer *layer, const uint8_t *in,
                                               int32_t *to) {
    const int32_t *weights = (const int32_t *)(const void *)layer->weights;
    uint32_t pairs = twini_align(layer->inputs, 2) / 2, o, i, r, v;
    for (o = 0; o < layer->outputs; o += OUTPUTS) {
        const int32_t *h = (const int32_t *)(const void *)in;
        sums sum[OUTPUTS][ACROSS];
        EACH_OUTPUT EACH_VECTOR sum[r][v] = set(layer->bias[o + r]);
        for (i = 0; i < pairs; i++, weights += OUTPUTS, h += ALL_COLUMNS) {
            sums x[ACROSS];
            EACH_VECTOR x[v] = load(h + LANES * v);
            EACH_OUTPUT {
                sums two = set(weights[r]);
                EACH_VECTOR sum[r][v] = add_products(sum[r][v], x[v], two);
            }
        }
        EACH_OUTPUT EACH_VECTOR keep(to + ALL_COLUMNS * (size_t)(o + r) + LANES * v, sum[r][v]);
    }
}

/* Activations of outputs o to o + 3 of a further layer, in vector v. */
INLINE four NAME(four_of_sums)(const twini_prepared_layer *layer, const prepared_way *how,
                               const int32_t *sum, uint32_t o, unsigned v, int silu) {
    sums all[4];
    unsigned i;
    UNROLLED for (i = 0; i < 4; i++) all[i] = load(sum + ALL_COLUMNS * (size_t)(o + i) + LANES * v);
    return NAME(activate_four)(how, all, layer->multiplier + o, silu);
}

INLINE void NAME(put_four)(uint8_t *in, uint32_t o, unsigned v, four h) {
    int32_t *to = (int32_t *)(void *)in + ALL_COLUMNS / 2 * (size_t)o + LANES * v;
    keep(to, NAME(side_by_side)(h.two[0]));
    keep(to + ALL_COLUMNS, NAME(side_by_side)(h.two[1]));
}

static void NAME(fill_table)(void *table, twin_flash curve, uint8_t fraction) {
    int32_t *lines = (int32_t *)table;
    unsigned k;
    (void)fraction;
    for (k = 0; k < TWIN_STEPS; k++)
        lines[k] = x86_line_at(curve, k);
}

/* Without optimisation, gcc's macro for the first of these takes the mask as signed. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"

/* Lines by their numbers; zero beyond the last. */
INLINE sums NAME(look_up)(const int32_t *lines, sums number) {
#if LANES == 16
    uint16_t there = _mm512_cmpgt_epi32_mask(set(TWIN_STEPS), number);
    return _mm512_mask_i32gather_epi32(set(0), there, number, lines, 4);
#else
    __m256i there = _mm256_cmpgt_epi32(set(TWIN_STEPS), number);
    return _mm256_mask_i32gather_epi32(set(0), lines, number, there, 4);
#endif
}

#pragma GCC diagnostic pop

/* Even columns, then odd ones. */
INLINE four NAME(subtract_bumps)(const prepared_way *how, four h, const four *z) {
    words upper = set(-65536);
    unsigned i;
    UNROLLED for (i = 0; i < 2; i++) {
        words r, k = NAME(step_of)(how, z->two[i], &r);
        sums even = add_products(how->rounding, NAME(look_up)(how->lines, W(andnot)(upper, k)),
                                 W(or)(V(slli_epi32)(r, 16), how->entry));
        sums odd = add_products(how->rounding, NAME(look_up)(how->lines, V(srli_epi32)(k, 16)),
                                W(or)(W(and)(r, upper), how->entry));
        words less = NAME(merge)(V(srli_epi32)(even, 12), V(slli_epi32)(odd, 4));
        h.two[i] = V(sub_epi16)(h.two[i], less);
    }
    return h;
}
