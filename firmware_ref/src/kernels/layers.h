/* The layers of a block in eights (eights.h), from what a kernel file defines first:
 *
 *     LANES         columns in an eight
 *     sums          32 bits for each column; set, load, keep, add, subtract
 *     activations   of one output for each column; none: zeros; which: of eight outputs are not
 *                   zero in all eights of an order, as bits
 *     way           from sums to activations: way_of(layer), activate(way, sums, multiplier, silu),
 *                   the multiplier shifted by MULTIPLIER_SHIFT
 *     fold_in       adds activations times a weight to sums
 *     take_rows     weights of eight outputs: (rows, room, layer, weights, numbers, without). Their
 *                   types are `rows`, and `rows_room` to keep some of them in
 *     take_start    what the sums of a further layer start with: (start, layer, rows, numbers, n)
 *     sum_inputs    sums of eight outputs over an eight: (sums, start, rows, n, eight, size)
 *     store         activations of four outputs into an eight: (eight, size, first, activations)
 *     transpose     features of eight anchors into an eight: (eight, inputs, anchors)
 *
 * Neurons that are zero in all columns of an order are dropped on the way: activations wait in
 * slots until there are enough to store; a list says which of them stay. */

#define slot       NAME(slot)
#define outlet     NAME(outlet)
#define layer_work NAME(layer_work)

#define SLOTS 35 /* three left over, and four octets */

typedef activations slot[TWIN_BLOCK / LANES];

typedef struct outlet {
    slot *waiting; /* SLOTS, and one of zeros for padding */
    uint8_t list[SLOTS + 3];
    uint8_t *flags, *eights;
    size_t size;
    uint32_t done, width;
    unsigned listed, next, all;
} outlet;

INLINE void NAME(begin_order)(outlet *to, slot *waiting, void *block, unsigned order, unsigned all,
                              unsigned width) {
    to->waiting = waiting;
    to->flags = eight_flags_at(block, order, width);
    to->eights = eight_at(block, LANES, order * all, width);
    to->size = size_of_eight(LANES, width);
    to->done = 0;
    to->width = width;
    to->listed = to->next = 0;
    to->all = all;
}

/* An octet's activations in eight c of the order. */
INLINE void NAME(put)(outlet *to, unsigned c, const activations *h) {
    unsigned r;
    EIGHT_TIMES to->waiting[to->next + r][c] = h[r];
}

/* Store listed activations, first to last, four at a time; returns how many. */
INLINE unsigned NAME(store_listed)(outlet *to) {
    unsigned from, c, r;
    for (from = 0; from + 4 <= to->listed; from += 4) {
        for (c = 0; c < to->all; c++) {
            activations four[4];
            for (r = 0; r < 4; r++)
                four[r] = to->waiting[to->list[from + r]][c];
            store(to->eights + c * to->size, to->size, to->done, four);
        }
        to->done += 4;
    }
    return from;
}

/* The octet from o on is complete; with `stay`, zeros stay, too. */
INLINE void NAME(end_octet)(outlet *to, uint32_t o, int stay) {
    unsigned bits = stay ? 255 : which(to->waiting + to->next, to->all), r;
    for (r = 0; r < 8 && o + r < to->width; r++) {
        to->flags[o + r] = (uint8_t)(bits >> r & 1);
        to->list[to->listed] = (uint8_t)(to->next + r);
        to->listed += bits >> r & 1;
    }
    to->next += 8;
    if (to->next + 8 > SLOTS) {
        unsigned from = NAME(store_listed)(to), left = to->listed - from, c;
        for (r = 0; r < left; r++) {
            for (c = 0; c < to->all; c++)
                to->waiting[r][c] = to->waiting[to->list[from + r]][c];
            to->list[r] = (uint8_t)r;
        }
        to->listed = to->next = left;
    }
}

/* Returns how many activations are present. */
INLINE uint16_t NAME(end_order)(outlet *to) {
    uint32_t there = to->done + to->listed;
    unsigned c;
    for (c = 0; c < to->all; c++)
        to->waiting[SLOTS][c] = none();
    while (to->listed % 4)
        to->list[to->listed++] = SLOTS;
    NAME(store_listed)(to);
    return (uint16_t)there;
}

/* Working memory of a layer. */
typedef struct layer_work {
    slot waiting[SLOTS + 1];
    rows_room room;
    squeeze plan;
} layer_work;

/* Add the totals of one order of an eight: `first` of the output, `second` of the second. */
INLINE void NAME(add_totals)(const twini_layer *layer, int32_t *totals, unsigned order, sums first,
                             sums second) {
    if (!layer_is_scaled(layer) && order) {
        keep(totals, subtract(load(totals), first));
    } else if (order) {
        keep(totals + TWIN_BLOCK, add(load(totals + TWIN_BLOCK), first));
        keep(totals + 2 * TWIN_BLOCK, add(load(totals + 2 * TWIN_BLOCK), second));
    } else {
        keep(totals, add(load(totals), first));
    }
}

/* Fold an octet into the totals of an eight. */
INLINE void NAME(fold_octet)(const twini_layer *layer, const octet *of, const way *how,
                             const sums *sum, int32_t *totals, unsigned order, int silu) {
    sums first = set(0), second = first;
    uint32_t r;
    EIGHT_TIMES {
        activations h = activate(how, sum[r], of->multiplier[r], silu);
        first = fold_in(first, h, of->fold[r]);
        second = fold_in(second, h, of->hard[r]); /* of zeros without a second output */
    }
    NAME(add_totals)(layer, totals, order, first, second);
}

#if TWIN_TARGETS > 1
/* The same for several targets, each with weights of its own. */
INLINE void NAME(fold_targets)(const twini_layer *layer, octet *of, uint32_t count, const way *how,
                               const sums *sum, int32_t *totals, unsigned order, int silu) {
    activations h[8];
    unsigned t;
    uint32_t r;
    EIGHT_TIMES h[r] = activate(how, sum[r], of->multiplier[r], silu);
    for (t = 0; t < layer->targets; t++, totals += TWIN_TOTALS) {
        sums first = set(0), second = first;
        weigh_octet(of, layer, twini_fold_of(layer, t), count);
        EIGHT_TIMES {
            first = fold_in(first, h[r], of->fold[r]);
            second = fold_in(second, h[r], of->hard[r]);
        }
        NAME(add_totals)(layer, totals, order, first, second);
    }
}
#endif

/* One order of a layer. `in` is the first eight of its inputs, of which `n` are present; `without`
 * says how to leave out the weights of the others. Returns how many outputs are present. */
INLINE uint16_t NAME(one_order)(const twini_layer *layer, twin_flash weights,
                                const squeeze *without, const int32_t *partial, const uint8_t *in,
                                uint32_t n, unsigned all, unsigned order, void *out,
                                int32_t *totals, int silu) {
    size_t size = size_of_eight(LANES, layer->inputs);
    layer_work *mine = (layer_work *)layer->work;
    way how = way_of(layer);
    outlet to;
    uint32_t o, r;
    unsigned c;
    NAME(begin_order)(&to, mine->waiting, out, order, all, layer->outputs);
    for (o = 0; o < layer->outputs; o += 8) {
        int32_t start[8];
        octet of;
        rows eight;
        number_octet(&of, layer, o);
        describe_octet(&of, layer, layer->outputs - o, !out);
        take_rows(&eight, &mine->room, layer, weights, of.numbers, without);
        if (partial)
            EIGHT_TIMES start[r] = partial[2 * of.numbers[r] + order];
        else
            take_start(start, layer, &eight, of.numbers, n);
        for (c = 0; c < all; c++) {
            sums sum[8];
            activations h[8];
            sum_inputs(sum, start, &eight, n, in + c * size, size);
            if (out) {
                EIGHT_TIMES h[r] = activate(&how, sum[r], of.multiplier[r], silu);
                NAME(put)(&to, c, h);
#if TWIN_TARGETS > 1
            } else if (layer->targets > 1) {
                NAME(fold_targets)
                (layer, &of, layer->outputs - o, &how, sum, totals + LANES * c, order, silu);
#endif
            } else {
                NAME(fold_octet)(layer, &of, &how, sum, totals + LANES * c, order, silu);
            }
        }
        if (out)
            NAME(end_octet)(&to, o, silu || layer->wide);
    }
    return (uint16_t)(out ? NAME(end_order)(&to) : 0);
}

/* First layer of a block; `partial` is {A q + bias, B q + bias} of each output. */
INLINE void NAME(first_layer)(const twini_layer *layer, const twini_pairs *pairs, void *out,
                              int32_t *totals, int silu) {
    unsigned all = (pairs->count + LANES - 1u) / LANES, c, order;
    const int32_t *partial = (const int32_t *)pairs->partial;
    uint8_t *features_by_eight = (uint8_t *)pairs->room;
    block_header head = {0, {0, 0}, 0};
    head.eights = (uint16_t)all;
    for (c = 0; c < all; c++) {
        uint8_t *eight = features_by_eight + c * size_of_eight(LANES, layer->inputs);
        transpose(eight, layer->inputs, pairs->anchor + LANES * c);
    }
    for (order = 0; order < 2; order++)
        head.there[order] =
            NAME(one_order)(layer, order ? layer->weights : layer->mirror, 0, partial,
                            features_by_eight, layer->inputs, all, order, out, totals, silu);
    if (out)
        memcpy(out, &head, sizeof head);
}

/* Further layer of a block. */
INLINE void NAME(further_layer)(const twini_layer *layer, const void *in, void *out,
                                int32_t *totals, int silu) {
    squeeze *plan = &((layer_work *)layer->work)->plan;
    unsigned order;
    block_header head;
    memcpy(&head, in, sizeof head);
    for (order = 0; order < 2; order++) {
        const uint8_t *eights = eight_at(in, LANES, order * head.eights, layer->inputs);
        uint32_t n = head.there[order];
        const squeeze *without = plan_squeeze(plan, in, order, n, layer->inputs);
        head.there[order] = NAME(one_order)(layer, layer->weights, without, 0, eights, n,
                                            head.eights, order, out, totals, silu);
    }
    if (out)
        memcpy(out, &head, sizeof head);
}
