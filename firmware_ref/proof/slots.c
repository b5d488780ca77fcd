/* Two banks, whatever their journal holds, whichever calls of both storages fail, and whatever
 * bytes come as an update: any sequence of calls.
 *
 * The journal, opening a pack and its self-test are functions here that may return anything that
 * the real ones can: journal.c, open.c and self_test.c show what those do with any bytes. */

#include "proof.h"

#include "twin_kernel.h"
#include "twin_slots.h"

enum { RECORD = 20, SLOT = 32, MEMORY = SLOT + (N_UNIT + 3) / 4 * 4, SECTION_AT = 64 };

static twin_storage parts, banks;
static uint32_t memory[MEMORY / 4], pack[N_BANK / 4];
#define AT(type, offset) (*(type *)((uint8_t *)pack + (offset)))

static int bank_program(void *context, uint32_t address, const void *bytes, uint32_t size) {
    (void)context;
    //@ assert unit: address % N_UNIT == 0 && size == N_UNIT;
    //@ assert inside: address + size <= 2 * N_BANK;
    //@ assert readable: \valid_read((char *)bytes + (0 .. size - 1));
    return Frama_C_nondet(0, 1);
}

static int bank_erase(void *context, uint32_t address) {
    (void)context;
    //@ assert block: address == 0 || address == N_BANK;
    return Frama_C_nondet(0, 1);
}

static twin_status any_status(void) {
    return (twin_status)Frama_C_interval(TWIN_ERROR_SELF_TEST, TWIN_MORE);
}

uint32_t twin_journal_slot(const twin_storage *storage, uint16_t size) {
    (void)storage;
    //@ assert record: size == RECORD;
    return Frama_C_nondet(0, 1) ? SLOT : 0;
}

twin_status twin_journal_open(twin_journal *journal, const twin_storage *storage, uint32_t owner,
                              uint16_t size, void *buffer) {
    (void)storage;
    (void)owner;
    (void)size;
    if (Frama_C_nondet(0, 1))
        return TWIN_ERROR_STORE;
    journal->slot = SLOT;
    journal->record = (uint8_t *)buffer + SLOT - RECORD;
    journal->count = (uint16_t)ANY(0, 65535);
    journal->status =
        (int8_t)Frama_C_nondet(TWIN_OK, Frama_C_nondet(TWIN_ERROR_OTHER, TWIN_ERROR_STORAGE));
    return (twin_status)journal->status;
}

twin_status twin_journal_next(twin_journal *journal, uint32_t *number) {
    FILL(journal->record, RECORD);
    *number = ANY(0, UINT32_MAX);
    return any_status();
}

twin_status twin_journal_append(twin_journal *journal) {
    if (!journal->slot)
        return TWIN_ERROR_STORE;
    //@ assert record: \initialized(journal->record + (0 .. RECORD - 1));
    journal->count = (uint16_t)ANY(0, 65535);
    return any_status();
}

twin_status twin_journal_move(twin_journal *journal,
                              unsigned (*keep)(void *context, uint32_t number, uint8_t *record),
                              void *context, uint32_t stamp) {
    (void)stamp;
    while (Frama_C_nondet(0, 1)) {
        FILL(journal->record, RECORD);
        (void)keep(context, ANY(0, UINT32_MAX), journal->record);
    }
    journal->count = (uint16_t)ANY(0, 65535);
    return any_status();
}

twin_status twin_open_begin(twin_opening *opening, twin_model *model, twin_pack at, uint32_t size) {
    (void)opening;
    //@ assert whole: \valid_read((char *)at + (0 .. size - 1));
    model->features = (uint16_t)ANY(1, 1024);
    model->kernel = Frama_C_nondet(0, 1) ? &twini_kernel_portable : 0;
    return any_status();
}

twin_status twin_open_step(twin_opening *opening, uint32_t bytes) {
    (void)opening;
    (void)bytes;
    return any_status();
}

twin_status twin_self_test_step(const twin_model *model, twin_pack at, uint16_t number,
                                void *scratch, uint32_t size) {
    (void)model;
    (void)at;
    (void)number;
    (void)scratch;
    (void)size;
    return any_status();
}

static int verify(void *context, const twin_signed *part) {
    (void)context;
    //@ assert message: \valid_read(part->message + (0 .. part->message_size - 1));
    //@ assert signature: \valid_read(part->signature + (0 .. part->size - 1));
    return Frama_C_nondet(0, 1);
}

/* Any bytes but for the place of the one section that its table has. */
static void any_pack(void) {
    FILL(pack, sizeof pack);
    AT(uint16_t, 6) = 1;
    AT(uint32_t, 52) = SECTION_AT;
}

static twin_model model;
static twin_check check;

static void begin_check(twin_slots *slots) {
    any_pack();
    (void)twin_check_begin(&check, slots, &model, pack, Frama_C_nondet(0, 1) ? verify : 0, 0);
}

static void any_call(twin_slots *slots) {
    uint8_t piece[20];
    switch (Frama_C_interval(0, 7)) {
    case 0:
        (void)twin_slots_begin(slots);
        break;
    case 1:
        FILL(piece, sizeof piece);
        (void)twin_slots_write(slots, piece, ANY(0, sizeof piece));
        break;
    case 2:
        (void)twin_slots_finish(slots);
        break;
    case 3:
        (void)twin_slots_try(slots, (uint8_t)ANY(0, 255));
        break;
    case 4:
        (void)twin_slots_confirm(slots);
        break;
    case 5:
        (void)twin_slots_undo(slots);
        break;
    case 6:
        begin_check(slots);
        break;
    default:
        (void)twin_check_step(&check, ANY(0, UINT32_MAX), 0, 0);
    }
    //@ assert bank: slots->bank <= 1 && slots->state.current <= 1;
}

static void any_calls(twin_slots *slots) {
    while (Frama_C_nondet(0, 1))
        any_call(slots);
}

void main(void) {
    static twin_slots slots;
    twin_status status;
    banks.program = bank_program;
    banks.erase = bank_erase;
    banks.block_size = N_BANK;
    banks.program_size = N_UNIT;
    /* A byte beyond what it needs is outside of the memory. */
    if (twin_slots_size(&parts, &banks) != MEMORY)
        return;
    status = twin_slots_open(&slots, &parts, &banks, memory);
    //@ assert bank: slots.bank <= 1;
    if (status == TWIN_ERROR_STORE) {
        any_call(&slots); /* among them a step of a check that has not begun */
        Frama_C_show_each_refused(status);
        return;
    }
    begin_check(&slots);
    any_calls(&slots);
    Frama_C_show_each_end(slots.bank);
}
