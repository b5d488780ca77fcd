/* The journal, whatever its storage holds and whichever of its calls fail: any sequence of calls on
 * any bytes. */

#include "proof.h"

#include "twin_journal.h"

#define MOST_SLOT 512

static twin_storage parts;
static uint32_t memory[MOST_SLOT / 4];

/* Reads of one address may return different bytes each time: power cuts leave such bytes. */
static int storage_read(void *context, uint32_t address, void *bytes, uint32_t size) {
    (void)context;
    //@ assert multiple: address % 4 == 0 && size % 4 == 0;
    //@ assert inside: address + size <= 2 * parts.block_size;
    if (Frama_C_nondet(0, 1))
        return 1;
    FILL(bytes, size);
    return 0;
}

static int storage_program(void *context, uint32_t address, const void *bytes, uint32_t size) {
    (void)context;
    //@ assert multiple: address % parts.program_size == 0 && size % parts.program_size == 0;
    //@ assert inside: address + size <= 2 * parts.block_size;
    //@ assert readable: \valid_read((char *)bytes + (0 .. size - 1));
    return Frama_C_nondet(0, 1);
}

static int storage_erase(void *context, uint32_t address) {
    (void)context;
    //@ assert block: address == 0 || address == parts.block_size;
    return Frama_C_nondet(0, 1);
}

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
    parts.read = storage_read;
    parts.program = storage_program;
    parts.erase = storage_erase;
    parts.block_size = N_BLOCK;
    parts.program_size = N_UNIT;
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
