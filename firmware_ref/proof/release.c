/* Signature and identity of a pack that nobody has checked: any bytes in a file of N_SIZE, or of
 * less. Its table has N_ENTRIES entries, unless the header says something that is refused. */

#include "proof.h"

#include "twin_release.h"

static uint32_t pack[N_SIZE / 4];
#define AT(type, offset) (*(type *)((uint8_t *)pack + (offset)))

/* Only the entry that is found counts, so all of them may have the same place. */
static void fill(uint16_t entries, uint32_t place) {
    uint32_t i;
    FILL(pack, sizeof pack);
    AT(uint16_t, 6) = entries;
    for (i = 0; i < N_ENTRIES; i++)
        AT(uint32_t, 52 + 12 * i) = place;
}

static void look_for_signature(uint32_t size) {
    twin_signed part;
    if (twin_signature(pack, size, &part) != TWIN_OK)
        return;
    //@ assert message: \valid_read(part.message + (0 .. part.message_size - 1));
    //@ assert signature: \valid_read(part.signature + (0 .. part.size - 1));
    //@ assert key: \valid_read(part.key + (0 .. 7));
    //@ assert algorithm: part.algorithm == TWIN_ED25519 || part.algorithm == TWIN_HMAC_SHA256;
    Frama_C_show_each_signed(part.message_size);
}

static void look_for_identity(uint32_t size) {
    twin_release release;
    if (twin_identity(pack, size, &release) != TWIN_OK)
        return;
    //@ assert id: \valid_read(release.id + (0 .. 15));
    //@ assert parent: \valid_read(release.parent + (0 .. 15));
    //@ assert schema: \valid_read(release.schema + (0 .. 15));
    //@ assert table: \valid_read(release.table + (0 .. 15));
    Frama_C_show_each_named(release.counter);
}

void main(void) {
    uint32_t place, more, size = Frama_C_nondet(0, 1) ? N_SIZE : ANY(0, N_SIZE - 1);
    switch (Frama_C_interval(0, 3)) {
    case 0: /* a place in the file that may be right */
        place = 16 * ANY(0, N_SIZE / 16);
        //@ split place;
        fill(N_ENTRIES, place);
        break;
    case 1: /* one that is no multiple of 16 */
        more = ANY(1, 15);
        //@ split more;
        fill(N_ENTRIES, 16 * ANY(0, UINT32_MAX / 16) + more);
        break;
    case 2: /* one outside */
        fill(N_ENTRIES, ANY(N_SIZE + 1, UINT32_MAX));
        break;
    default: /* none, or too many */
        fill(Frama_C_nondet(0, 1) ? 0 : (uint16_t)ANY(33, 65535), ANY(0, UINT32_MAX));
    }
    if (Frama_C_nondet(0, 1))
        look_for_signature(size);
    else
        look_for_identity(size);
    Frama_C_show_each_end(size);
}
