/* Products of a prepared model by AMX, for x86_prepared.h: TDPBUSD and TDPBSSD multiply a tile of
 * 16 outputs by 64 one-byte weights with a tile of 64 bytes of each of 16 columns. An activation
 * has 16 bits, so there are two tiles of them, one with the lower bytes and one with the upper
 * ones:
 *
 *     activations    [4 neurons at a time][lower, upper][16 columns][4]
 *     weights        [16 outputs at a time][64 inputs at a time][16 outputs][64]
 *     sums           [outputs][lower, upper][16 columns] */

#define TILE      1024 /* bytes */
#define TILE_ROW  64   /* bytes */
#define TILE_ROWS 16

/* All eight tiles are whole. */
static void amx_enter_tiles(void) {
    static const struct {
        uint8_t palette, first_row, zero[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } config = {
        1,
        0,
        {0},
        {TILE_ROW, TILE_ROW, TILE_ROW, TILE_ROW, TILE_ROW, TILE_ROW, TILE_ROW, TILE_ROW},
        {TILE_ROWS, TILE_ROWS, TILE_ROWS, TILE_ROWS, TILE_ROWS, TILE_ROWS, TILE_ROWS, TILE_ROWS}};
    _tile_loadconfig(&config);
}

static void amx_leave_tiles(void) {
    _tile_release();
}

static uint32_t NAME(weight_bytes)(unsigned inputs, unsigned outputs) {
    return twini_align(inputs, TILE_ROW) * twini_align(outputs, TILE_ROWS);
}

static void NAME(arrange)(const twini_layer *from, const uint16_t *ranked, uint8_t *weights) {
    uint32_t across = twini_align(from->inputs, TILE_ROW) / TILE_ROW, o, i;
    for (o = 0; o < from->outputs; o++)
        for (i = 0; i < from->inputs; i++) {
            uint32_t tile = o / TILE_ROWS * across + i / TILE_ROW;
            weights[tile * TILE + o % TILE_ROWS * TILE_ROW + i % TILE_ROW] =
                from->weights[(size_t)ranked[o] * from->row + i];
        }
}

/* Bytes of the rows of two interleaved tiles. */
#define BOTH (2 * TILE_ROW)

/* Working memory of a layer: activations of the one before, and its own sums. */
static uint32_t NAME(block_bytes)(unsigned widest) {
    return BOTH / 4 * twini_align(widest, TILE_ROW);
}

static uint32_t NAME(work_bytes)(unsigned widest) {
    return NAME(block_bytes)(widest) + BOTH * twini_align(widest, 2 * TILE_ROWS);
}

/* Sums of a further layer, two tiles of outputs at a time; the second may be unused. */
static void NAME(sum_products)(const twini_prepared_layer *layer, const uint8_t *in, int32_t *to) {
    uint32_t across = twini_align(layer->inputs, TILE_ROW) / TILE_ROW, o, i;
    const uint8_t *weights = layer->weights;
    uint8_t *out = (uint8_t *)to;
    for (o = 0; o < layer->outputs; o += 2 * TILE_ROWS) {
        const uint8_t *others = o + TILE_ROWS < layer->outputs ? weights + across * TILE : weights;
        const uint8_t *h = in;
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
        for (i = 0; i < across; i++, h += BOTH * TILE_ROWS) {
            _tile_loadd(4, weights + i * TILE, TILE_ROW);
            _tile_loadd(6, h, BOTH);
            _tile_loadd(7, h + TILE_ROW, BOTH);
            _tile_loadd(5, others + i * TILE, TILE_ROW);
            _tile_dpbsud(0, 4, 6);
            _tile_dpbssd(1, 4, 7);
            _tile_dpbsud(2, 5, 6);
            _tile_dpbssd(3, 5, 7);
        }
        _tile_stored(0, out, BOTH);
        _tile_stored(1, out + TILE_ROW, BOTH);
        out += BOTH * TILE_ROWS;
        _tile_stored(2, out, BOTH);
        _tile_stored(3, out + TILE_ROW, BOTH);
        out += BOTH * TILE_ROWS;
        weights += 2 * across * TILE;
    }
}

/* Four lower bytes of each column, then four upper ones. */
INLINE void NAME(put_four)(uint8_t *in, uint32_t o, unsigned v, four h) {
    int32_t *to = (int32_t *)(void *)(in + BOTH / 4 * (size_t)o);
    words lower = V(set1_epi16)(255), *two = h.two;
    words order =
        NAME(everywhere)(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    words low = V(packus_epi16)(W(and)(two[0], lower), W(and)(two[1], lower));
    words high = V(packs_epi16)(V(srai_epi16)(two[0], 8), V(srai_epi16)(two[1], 8));
    (void)v; /* there is only one */
    keep(to, V(shuffle_epi8)(low, order));
    keep(to + LANES, V(shuffle_epi8)(high, order));
}

/* Activations of outputs o to o + 3 of a further layer. */
INLINE four NAME(four_of_sums)(const twini_prepared_layer *layer, const prepared_way *how,
                               const int32_t *sum, uint32_t o, unsigned v, int silu) {
    sums all[4];
    unsigned i;
    (void)v; /* there is only one */
    UNROLLED for (i = 0; i < 4; i++) {
        const int32_t *at = sum + 2 * ALL_COLUMNS * (size_t)(o + i);
        sums upper = V(slli_epi32)(load(at + ALL_COLUMNS), 8);
        all[i] = add(add(load(at), set(layer->bias[o + i])), upper);
    }
    return NAME(activate_four)(how, all, layer->multiplier + o, silu);
}

/* By bytes: the first byte of all lines, then the second, and so on. */
static void NAME(fill_table)(void *table, twin_flash curve, uint8_t fraction) {
    uint8_t *bytes = (uint8_t *)table;
    unsigned i, k;
    (void)fraction;
    for (i = 0; i < 4; i++)
        for (k = 0; k < TWIN_STEPS; k++)
            bytes[i * TWIN_STEPS + k] = (uint8_t)((uint32_t)x86_line_at(curve, k) >> 8 * i);
}

/* A byte of the lines with these numbers; VPERMB looks into 64 of them. Zero beyond the last. */
INLINE words amx_byte_of_lines(const prepared_way *how, unsigned byte, words number,
                               const uint64_t *from) {
    const int32_t *plane = how->lines + byte * (TWIN_STEPS / 4);
    words found = _mm512_maskz_permutexvar_epi8(from[0], number, load(plane));
    found = _mm512_mask_permutexvar_epi8(found, from[1], number, load(plane + 16));
    return _mm512_mask_permutexvar_epi8(found, from[2], number, load(plane + 32));
}

INLINE four NAME(subtract_bumps)(const prepared_way *how, four h, const four *z) {
    words r[2], k[2], line[4], number,
        weight = NAME(merge)(how->entry, V(slli_epi32)(how->entry, 16));
    uint64_t from[3]; /* from a multiple of 64 on */
    unsigned i;
    UNROLLED for (i = 0; i < 2; i++) k[i] = NAME(step_of)(how, z->two[i], &r[i]);
    number = _mm512_packus_epi16(k[0], k[1]);
    from[0] = _mm512_cmplt_epu8_mask(number, _mm512_set1_epi8((char)TWIN_STEPS));
    from[1] = from[0] & _mm512_cmpge_epu8_mask(number, _mm512_set1_epi8(64));
    from[2] = from[0] & _mm512_cmpge_epu8_mask(number, _mm512_set1_epi8((char)128));
    UNROLLED for (i = 0; i < 4; i++) line[i] = amx_byte_of_lines(how, i, number, from);
    UNROLLED for (i = 0; i < 2; i++) {
        words entry =
            i ? _mm512_unpackhi_epi8(line[0], line[1]) : _mm512_unpacklo_epi8(line[0], line[1]);
        words step =
            i ? _mm512_unpackhi_epi8(line[2], line[3]) : _mm512_unpacklo_epi8(line[2], line[3]);
        sums low = add_products(how->rounding, _mm512_unpacklo_epi16(entry, step),
                                _mm512_unpacklo_epi16(weight, r[i]));
        sums high = add_products(how->rounding, _mm512_unpackhi_epi16(entry, step),
                                 _mm512_unpackhi_epi16(weight, r[i]));
        words less = _mm512_packus_epi32(_mm512_srli_epi32(low, 12), _mm512_srli_epi32(high, 12));
        h.two[i] = _mm512_sub_epi16(h.two[i], less);
    }
    return h;
}
