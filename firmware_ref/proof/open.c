/* Opening a pack, in one go or in steps of N_STEP bytes. Its header has the shape of the macros,
 * and its table names the sections of that shape in their order; all other bytes may be anything:
 * checksums, offsets, lengths, flags, and what the sections hold. */

#include "proof.h"

#include "twin.h"

static uint32_t pack[(N_SIZE + 3) / 4];
#define AT(type, offset) (*(type *)((uint8_t *)pack + (offset)))

static uint16_t sections;

static void add_section(uint16_t kind) {
    AT(uint16_t, 48 + 12 * sections) = kind;
    sections++;
}

static void fill_shape(void) {
    AT(uint32_t, 0) = 0x4E495754u;
    AT(uint16_t, 4) = (uint16_t)(N_OUTPUTS || N_BINS ? 3 : ANY(1, 3));
    AT(uint16_t, 20) = N_FEATURES;
    AT(uint8_t, 22) = N_LAYERS;
    AT(uint8_t, 23) = N_SILU;
    AT(uint16_t, 24) = N_H1;
    AT(uint16_t, 26) = N_H2;
    AT(uint16_t, 28) = N_H3;
    AT(uint16_t, 30) = N_WIDE;
    AT(uint16_t, 32) = N_TWINS;
    AT(uint16_t, 34) = N_ANCHORS;
    AT(uint16_t, 36) = N_NEIGHBORS;
    AT(uint16_t, 38) = 2 * N_SCALED;
    AT(uint32_t, 40) = 0;
    AT(uint32_t, 44) = 0;
    add_section(1);
    add_section(2);
    if (N_SILU)
        add_section(3);
    add_section(4);
    if (N_SCALED)
        add_section(7);
    if (N_DOMAIN)
        add_section(8);
    if (N_OUTPUTS) {
        add_section(10);
        AT(uint32_t, 48 + 12 * sections - 8) = N_MAP_AT; /* where its size is */
        AT(uint16_t, N_MAP_AT) = N_OUTPUTS;
        AT(uint16_t, N_MAP_AT + 2) = N_ROWS;
    }
    if (N_BINS) {
        add_section(11);
        AT(uint16_t, N_CURVE_AT + 6) = N_BINS;
    }
    add_section(6); /* metadata, of any length */
    AT(uint16_t, 6) = sections;
    if (N_SCALED)
        AT(uint32_t, N_INTERVALS_AT + 28) = 2; /* levels */
}

void main(void) {
    static twin_model model;
    twin_opening opening;
    twin_status status;
    FILL(pack, sizeof pack);
    fill_shape();
    if (N_STEP) {
        status = twin_open_begin(&opening, &model, pack, N_SIZE);
        while (status == TWIN_MORE)
            status = twin_open_step(&opening, N_STEP);
    } else {
        status = twin_open(&model, pack, N_SIZE);
    }
    if (status == TWIN_OK)
        Frama_C_show_each_open(model.members);
    Frama_C_show_each_end(status);
}
