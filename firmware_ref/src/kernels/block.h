/* From sums to a block of activations in plain C: NAME(put), NAME(finish) and NAME(pad). A kernel
 * file says how it stores a block, and includes this:
 *
 *     PAIRS          pairs in a block
 *     ELEMENT        type of an activation
 *     PLACE(i, c)    where activation i of column c is, in elements from the start of the block
 *
 * Column 2 j is (query, anchor j), column 2 j + 1 (anchor j, query). A block has a multiple of four
 * activations; those beyond the width are zero. */

#define COLUMNS (2 * PAIRS)

/* Activations of output o: stored, or folded into the totals. */
static inline void NAME(put)(const twini_layer *layer, uint32_t o, const int32_t *h, ELEMENT *out,
                             int32_t *totals) {
    unsigned c, t;
    if (out) {
        for (c = 0; c < COLUMNS; c++)
            out[PLACE(o, c)] = (ELEMENT)h[c];
        return;
    }
    for (t = 0; t < twini_outputs(layer); t++, totals += TWIN_TOTALS) {
        twin_flash fold = twini_fold_of(layer, t);
        int32_t weight;
#if TWIN_INTERVALS
        if (layer->scaled) {
            int32_t hard = twini_i16(fold + 4 * o + 6);
            weight = twini_i16(fold + 4 * o + 4);
            for (c = 0; c < PAIRS; c++) {
                totals[c] += weight * h[2 * c];
                totals[TWIN_BLOCK + c] += weight * h[2 * c + 1];
                totals[2 * TWIN_BLOCK + c] += hard * h[2 * c + 1];
            }
            continue;
        }
#endif
        weight = twini_i16(fold + 2 * o);
        for (c = 0; c < PAIRS; c++)
            totals[c] += weight * (h[2 * c] - h[2 * c + 1]);
    }
}

/* The same from its sums. */
static inline void NAME(finish)(const twini_layer *layer, uint32_t o, const int32_t *sum,
                                ELEMENT *out, int32_t *totals) {
    int32_t multiplier = twini_i16(layer->multiplier + 2 * o), h[COLUMNS];
    unsigned c;
    for (c = 0; c < COLUMNS; c++)
        h[c] = plain_activate(layer, sum[c], multiplier);
    NAME(put)(layer, o, h, out, totals);
}

/* Zeros up to a multiple of four, if there is a layer to read them. */
static inline void NAME(pad)(const twini_layer *layer, ELEMENT *out) {
    uint32_t o;
    unsigned c;
    for (o = layer->outputs; out && o % 4; o++)
        for (c = 0; c < COLUMNS; c++)
            out[PLACE(o, c)] = 0;
}
