/* The journal, whatever its storage holds and whichever of its calls fail: any sequence of calls on
 * any bytes. */

#include "storage.h"

#define MOST_SLOT 512

static twin_storage parts;
static uint32_t memory[MOST_SLOT / 4];

static unsigned any_keep(void *context, uint32_t number, uint8_t *record) {
    (void)context;
    (void)number;
    FILL(record, 20);
    return (unsigned)Frama_C_nondet(0, 1);
}

static void any_call(twin_journal *journal) {
    uint32_t number;
    switch (Frama_C_interval(0, 4)) {
    case 0:
        (void)twin_journal_next(journal, &number);
        break;
    case 1:
        if (!journal->status)
            FILL(journal->record, journal->size);
        (void)twin_journal_append(journal);
        break;
    case 2:
        (void)twin_journal_move(journal, any_keep, 0, ANY(0, UINT32_MAX));
        break;
    case 3:
        (void)twin_journal_move(journal, 0, 0, ANY(0, UINT32_MAX));
        break;
    default:
        (void)twin_journal_clear(journal, ANY(0, UINT32_MAX));
    }
}

void main(void) {
    twin_journal journal;
    uint32_t slot;
    uint16_t size = N_RECORD;
    twin_status status;
    fill_storage(&parts, N_BLOCK, N_UNIT);
    slot = twin_journal_slot(&parts, size);
    if (slot > MOST_SLOT)
        return;
    /* The slot is the end of the memory, so that a byte beyond it is outside. */
    status = twin_journal_open(&journal, &parts, ANY(0, UINT32_MAX), size,
                               memory + (MOST_SLOT - slot) / 4);
    if (status == TWIN_ERROR_STORE) {
        any_call(&journal);
        Frama_C_show_each_refused(status);
        return;
    }
    while (Frama_C_nondet(0, 1))
        any_call(&journal);
    Frama_C_show_each_end(journal.count);
}
