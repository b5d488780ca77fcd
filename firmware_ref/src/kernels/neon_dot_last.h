/* The last layer with relu, by dot products of bytes (neon_dot.h).
 *
 * The high bytes alone show for most outputs that they are zero in all columns of an eight, as what
 * the low ones can add is bounded. Only the others have their sums completed. */

#define ROWS   128                 /* outputs at a time, at most */
#define SPACE  (ROWS * (128 + 16)) /* bytes for their weights, if inputs are left out */
#define NOBODY ROWS                /* stands for no output, and adds nothing */

/* Some outputs of the layer, for one order. */
typedef struct dot_some {
    const int8_t *row[ROWS + 1];
    int32_t multiplier[ROWS + 1];
    int32_t start[ROWS + 1]; /* bias, and 128 times all weights */
    int32_t floor[ROWS];     /* the output is zero up to this sum of high bytes */
    int16_t fold[ROWS + 1];
    int16_t hard[ROWS + 1];    /* weights of the second output */
    uint8_t alive[ROWS + 8];   /* outputs that may be positive in an eight */
    int32_t high[ROWS + 1][8]; /* sums of high bytes over an eight */
    uint8_t squeezed[SPACE] __attribute__((aligned(16)));
} dot_some;

/* How many of `left` outputs to take, with `n` inputs. */
INLINE uint32_t dot_how_many(uint32_t left, uint32_t n, const squeeze *without) {
    uint32_t most = ROWS, fit = (uint32_t)(SPACE / dot_stride_of(n)) & ~7u;
    if (without && fit < most)
        most = fit;
    return left < most ? left : most;
}

/* All that depends on weights alone. */
INLINE void dot_take_some(dot_some *of, const twini_layer *layer, uint32_t first, uint32_t count,
                          uint32_t n, const squeeze *without) {
    uint32_t k, r;
    for (k = 0; k < count; k += 8) {
        dot_weighed eight;
        octet these;
        number_octet(&these, layer, first + k);
        describe_octet(&these, layer, count - k, 1);
        dot_weigh(&eight, layer, these.numbers, n, without, of->squeezed + k * dot_stride_of(n));
        EIGHT_TIMES {
            of->row[k + r] = eight.row[r];
            of->multiplier[k + r] = these.multiplier[r];
            of->fold[k + r] = these.fold[r];
            of->hard[k + r] = these.hard[r];
            of->start[k + r] = eight.start[r];
            of->floor[k + r] = eight.floor[r];
        }
    }
    of->row[NOBODY] = (const int8_t *)layer->weights;
    of->multiplier[NOBODY] = of->start[NOBODY] = of->fold[NOBODY] = of->hard[NOBODY] = 0;
    neon_keep(of->high[NOBODY], neon_set(0));
}

/* Sums of high bytes over an eight; returns how many outputs may be positive. */
INLINE uint32_t dot_first_half(dot_some *of, uint32_t count, uint32_t n, const int8_t *high) {
    uint32_t k, r, alive = 0;
    for (k = 0; k < count; k += 8) {
        neon_sums sum[8];
        int32x4_t most[8];
        uint64_t live;
        EIGHT_TIMES sum[r] = neon_set(0);
        dot_add_bytes(sum, of->row + k, dot_fours_of(n), high);
        EIGHT_TIMES {
            neon_keep(of->high[k + r], sum[r]);
            most[r] = vmaxq_s32(sum[r].low, sum[r].high);
        }
        most[0] = vpmaxq_s32(vpmaxq_s32(most[0], most[1]), vpmaxq_s32(most[2], most[3]));
        most[1] = vpmaxq_s32(vpmaxq_s32(most[4], most[5]), vpmaxq_s32(most[6], most[7]));
        live = vget_lane_u64(vreinterpret_u64_u8(vmovn_u16(vcombine_u16(
                                 vmovn_u32(vcgtq_s32(most[0], vld1q_s32(of->floor + k))),
                                 vmovn_u32(vcgtq_s32(most[1], vld1q_s32(of->floor + k + 4)))))),
                             0);
        if (count - k < 8)
            live &= ((uint64_t)1 << 8 * (count - k)) - 1;
        EIGHT_TIMES {
            of->alive[alive] = (uint8_t)(k + r);
            alive += (uint32_t)(live >> 8 * r) & 1;
        }
    }
    EIGHT_TIMES of->alive[alive + r] = NOBODY;
    return alive;
}

/* Low bytes of the outputs that are alive: what they add to the pairs of an eight. `hard`, unless
 * NULL, receives what they add to the second output. */
INLINE neon_sums dot_second_half(const dot_some *of, uint32_t alive, uint32_t n, const int8_t *low,
                                 const neon_way *how, neon_sums *hard) {
    neon_sums total = neon_set(0);
    uint32_t k, r;
    for (k = 0; k < alive; k += 8) {
        const uint8_t *one = of->alive + k;
        const int8_t *row[8];
        neon_sums sum[8];
        EIGHT_TIMES {
            row[r] = of->row[one[r]];
            sum[r] = dot_shifted(neon_load(of->high[one[r]]), of->start[one[r]]);
        }
        dot_add_bytes(sum, row, dot_fours_of(n), low);
        EIGHT_TIMES {
            neon_activations h = neon_activate(how, sum[r], of->multiplier[one[r]], 0);
            total = neon_fold_in(total, h, of->fold[one[r]]);
            if (hard)
                *hard = neon_fold_in(*hard, h, of->hard[one[r]]);
        }
    }
    return total;
}

#define last_work NAME(last_work)
typedef struct last_work {
    dot_some of;
    squeeze plan;
} last_work;

INLINE void dot_last_layer(const twini_layer *layer, const void *in, int32_t *totals) {
    size_t size = size_of_eight(LANES, layer->inputs);
    neon_way how = neon_way_of(layer);
    uint32_t first, count;
    unsigned order, c;
    block_header head;
    last_work *mine = (last_work *)layer->work;
    dot_some *of = &mine->of;
    memcpy(&head, in, sizeof head);
    for (order = 0; order < 2; order++) {
        uint32_t n = head.there[order];
        const squeeze *without = plan_squeeze(&mine->plan, in, order, n, layer->inputs);
        for (first = 0; first < layer->outputs; first += count) {
            count = dot_how_many(layer->outputs - first, n, without);
            dot_take_some(of, layer, first, count, n, without);
            for (c = 0; c < head.eights; c++) {
                const int8_t *from =
                    (const int8_t *)eight_at(in, LANES, order * head.eights + c, layer->inputs);
                uint32_t alive = dot_first_half(of, count, n, from);
                const int8_t *low = from + size / 2;
                neon_sums first_total, hard = neon_set(0);
                if (order && layer_is_scaled(layer))
                    first_total = dot_second_half(of, alive, n, low, &how, &hard);
                else
                    first_total = dot_second_half(of, alive, n, low, &how, 0);
                dot_add_totals(layer, totals + 8 * c, order, first_total, hard);
            }
        }
    }
}
