/* The self-test of a pack that opening accepts: the section is as long as N_QUERIES queries or
 * less, opening does not look into it, and it may hold any bytes. */

#include "shape.h"

#include "twin_release.h"

/* The header and the table as opening has checked them, with the self-test as the last section. */
static void fill_table(void) {
    uint32_t i;
    AT(uint32_t, 0) = 0x4E495754u;
    AT(uint16_t, 4) = (uint16_t)ANY(1, 3);
    AT(uint16_t, 6) = 4;
    AT(uint32_t, 8) = SIZE;
    for (i = 0; i < 3; i++)
        AT(uint16_t, 48 + 12 * i) = (uint16_t)ANY(1, 12);
    AT(uint16_t, 84) = (uint16_t)ANY(1, 13);
    AT(uint16_t, 86) = 0;
    AT(uint32_t, 88) = TEST_AT;
    AT(uint32_t, 92) = ANY(0, TEST_SIZE);
}

void main(void) {
    static twin_model model;
    uint32_t size, queries = ANY(0, N_QUERIES);
    twin_status status;
    fill_pack();
    fill_model(&model);
    fill_table();
    //@ split queries;
    AT(uint16_t, TEST_AT) = (uint16_t)queries;
    if (Frama_C_nondet(0, 1))
        AT(uint16_t, TEST_AT) = (uint16_t)ANY(N_QUERIES + 1, 65535);
    size = twin_scratch_size(&model);
    //@ assert size == N_SCRATCH;
    status =
        twin_self_test(&model, pack, SCRATCH, Frama_C_nondet(0, 1) ? size : ANY(0, N_SCRATCH - 1));
    if (status == TWIN_OK)
        Frama_C_show_each_passed(queries);
    Frama_C_show_each_end(status);
}
