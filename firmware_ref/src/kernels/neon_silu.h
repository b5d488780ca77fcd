/* The layers of a prepared model with silu, from what a kernel file defines:
 *
 *     NAME(put_silu)     activations of four neurons, as inputs: (in, first, activations)
 *     END_INPUTS         after all of them: (in, count)
 *     STEP               outputs whose sums it makes at once: four, or eight
 *     NAME(step_sums)    these, of all inputs: (sums, mine, layer, first output,
 * lookups); it may look up some of the entries that wait, four at a time */

/* Activations of four outputs from `o` on. Weights of those beyond the last are zero. */
INLINE void NAME(send_four)(const neon_prepared_work *mine, const twini_prepared_layer *layer,
                            uint32_t o, const neon_activations *h, neon_course where,
                            neon_sums *total, neon_sums *second) {
    uint32_t r;
    if (where == ONWARD)
        NAME(put_silu)(mine->next, o, h);
    else if (where == TO_BLOCK)
        FOUR_TIMES vst1q_s16((int16_t *)(void *)mine->sum + TWIN_EIGHT * (size_t)(o + r), h[r]);
    else
        neon_fold_four(total, layer->fold + o, h);
    if (where == TO_BOTH)
        neon_fold_four(second, layer->hard + o, h);
}

/* The first layer. Entries are loaded once z of the next four outputs is known, as what was just
 * stored takes a while to be read. */
INLINE void NAME(first_silu)(const neon_prepared_work *mine, const twini_prepared_layer *layer,
                             const int32_t *share, const int32_t *of_query, neon_course where,
                             int32_t *totals, int32_t *hard) {
    const neon_silu_way how = neon_silu_way_of(layer);
    const uint32_t outputs = layer->outputs;
    neon_sums total = neon_set(0), second = total;
    int16_t z[2][4][8];
    uint16_t offsets[2][4][8];
    uint32_t o, r, odd = 0;
    for (o = 0; o < outputs + 4; o += 4) {
        if (o < outputs) {
            neon_sums sum[4];
            neon_step_shares(sum, share, of_query, o);
            neon_squash_four(z[odd], offsets[odd], &how, o, sum);
        }
        odd ^= 1;
        if (o) {
            neon_activations h[4];
            FOUR_TIMES h[r] =
                neon_bend(vld1q_s16(z[odd][r]), neon_load_entries(how.table, offsets[odd][r]));
            NAME(send_four)(mine, layer, o - 4, h, where, &total, &second);
        }
    }
    neon_keep_totals(where, total, second, totals, hard);
}

/* A further layer. While it sums products for a step, it looks up the entries of the step
 * before.
 */
INLINE void NAME(further_silu)(const neon_prepared_work *mine, const twini_prepared_layer *layer,
                               neon_course where, int32_t *totals, int32_t *hard) {
    const neon_silu_way how = neon_silu_way_of(layer);
    const uint32_t outputs = layer->outputs;
    neon_sums total = neon_set(0), second = total;
    int16_t z[STEP][8];
    uint16_t offsets[STEP][8];
    uint32_t o, k, r;
    for (o = 0;; o += STEP) {
        uint16_t *start = (uint16_t *)(void *)offsets;
        neon_lookups waiting = {how.table, start, start + (o ? 8 * STEP : 0)};
        neon_sums sum[STEP];
        if (o < outputs)
            NAME(step_sums)(sum, mine, layer, o, &waiting);
        neon_look_up_all(&waiting);
        if (o)
            UNROLLED for (k = 0; k < STEP; k += 4) {
                neon_activations h[4];
                FOUR_TIMES h[r] = neon_bend(vld1q_s16(z[k + r]), vld1q_u16(offsets[k + r]));
                NAME(send_four)(mine, layer, o - STEP + k, h, where, &total, &second);
            }
        if (o >= outputs)
            break;
        UNROLLED for (k = 0; k < STEP; k += 4)
            neon_squash_four(z + k, offsets + k, &how, o + k, sum + k);
        /* All registers are needed for sums, so z has to stay in memory. */
        __asm__ volatile("" : : "r"(z) : "memory");
    }
    neon_keep_totals(where, total, second, totals, hard);
}

/* Not inlined, so that registers suffice in each. */
TWIN_NOT_INLINE static void NAME(first_onward)(const neon_prepared_work *mine,
                                               const twini_prepared_layer *layer,
                                               const int32_t *share, const int32_t *of_query) {
    NAME(first_silu)(mine, layer, share, of_query, ONWARD, 0, 0);
}

TWIN_NOT_INLINE static void NAME(first_to_both)(const neon_prepared_work *mine,
                                                const twini_prepared_layer *layer,
                                                const int32_t *share, const int32_t *of_query,
                                                int32_t *totals, int32_t *hard) {
    NAME(first_silu)(mine, layer, share, of_query, TO_BOTH, totals, hard);
}

TWIN_NOT_INLINE static void NAME(onward)(const neon_prepared_work *mine,
                                         const twini_prepared_layer *layer) {
    NAME(further_silu)(mine, layer, ONWARD, 0, 0);
}

TWIN_NOT_INLINE static void NAME(to_one)(const neon_prepared_work *mine,
                                         const twini_prepared_layer *layer, int32_t *totals) {
    NAME(further_silu)(mine, layer, TO_ONE, totals, 0);
}

TWIN_NOT_INLINE static void NAME(to_both)(const neon_prepared_work *mine,
                                          const twini_prepared_layer *layer, int32_t *totals,
                                          int32_t *hard) {
    NAME(further_silu)(mine, layer, TO_BOTH, totals, hard);
}

#if TWIN_TARGETS > 1
TWIN_NOT_INLINE static void NAME(first_to_block)(const neon_prepared_work *mine,
                                                 const twini_prepared_layer *layer,
                                                 const int32_t *share, const int32_t *of_query) {
    NAME(first_silu)(mine, layer, share, of_query, TO_BLOCK, 0, 0);
}

TWIN_NOT_INLINE static void NAME(to_block)(const neon_prepared_work *mine,
                                           const twini_prepared_layer *layer) {
    NAME(further_silu)(mine, layer, TO_BLOCK, 0, 0);
}
#endif

INLINE void NAME(silu_order)(const twini_prepared_twin *twin, const int32_t *of_query,
                             const int32_t *of_anchors, neon_prepared_work *mine, int32_t *totals,
                             int32_t *hard) {
    const twini_prepared_layer *layer = twin->layer, *last = layer + twin->layers - 1;
#if TWIN_TARGETS > 1
    if (layer == last && twin->targets > 1) {
        NAME(first_to_block)(mine, layer, of_anchors, of_query);
        neon_fold_block(twin, layer, mine->sum, totals, hard);
        return;
    }
#endif
    if (layer == last) {
        NAME(first_to_both)(mine, layer, of_anchors, of_query, totals, hard);
        return;
    }
    NAME(first_onward)(mine, layer, of_anchors, of_query);
    for (;;) {
        END_INPUTS(mine->next, layer->outputs);
        neon_swap_rooms(mine);
        mine->count = layer->outputs;
        if (++layer == last)
            break;
        NAME(onward)(mine, layer);
    }
#if TWIN_TARGETS > 1
    if (twin->targets > 1) {
        NAME(to_block)(mine, layer);
        neon_fold_block(twin, layer, mine->sum, totals, hard);
        return;
    }
#endif
    if (hard)
        NAME(to_both)(mine, layer, totals, hard);
    else
        NAME(to_one)(mine, layer, totals);
}
