/* Two banks for packs, and what the journal says of them: FORMAT.md, section 18. */

#include "twin_slots.h"

#if TWIN_STORE

#include "twin_record.h"

enum { OWNER = 0x4B4E4142 }; /* BANK */
enum { STATE_WORDS = 5 };
enum { NO_UPDATE, WRITING, WRITTEN, CHECKED }; /* stages of an update */
enum { OPENING, TESTING };                     /* and of a check */
enum { PACK_LENGTH = 8 };                      /* of a pack, in its header */

/* While records are moved, the first one becomes the new state, and the others go: so the change
 * is one with the move, and a power cut leaves the old state or the new one. */
typedef struct twini_carrier {
    const twin_slots_state *state; /* until a record has it */
} twini_carrier;

static unsigned twini_carry(void *context, uint32_t number, uint8_t *record) {
    twini_carrier *carrier = (twini_carrier *)context;
    const twin_slots_state *state = carrier->state;
    (void)number;
    carrier->state = 0;
    if (state)
        twini_copy_words(record, state, STATE_WORDS);
    return state != 0;
}

/* Write the state to the journal. Until that succeeds, the journal may have it, or the one before.
 */
TWIN_NOT_INLINE static twin_status twini_settle(twin_slots *slots) {
    twin_journal *journal = &slots->journal;
    unsigned tries = 0;
    twini_carrier carrier;
    twin_status status;
    slots->settled = 0;
    do {
        twini_copy_words(journal->record, &slots->state, STATE_WORDS);
        status = twin_journal_append(journal);
        if (status != TWIN_MORE && status != TWIN_ERROR_FULL)
            break;
        carrier.state = &slots->state;
        status = twin_journal_move(journal, twini_carry, &carrier, 0);
        if (!status && !journal->count) /* there was no record to carry it */
            status = tries ? TWIN_ERROR_STORAGE : TWIN_MORE;
        tries++;
    } while (status == TWIN_MORE);
    slots->settled = !status;
    return status;
}

uint32_t twin_slots_size(const twin_storage *journal, const twin_storage *banks) {
    uint32_t unit = banks->program_size, bank = banks->block_size;
    uint32_t slot = twin_journal_slot(journal, 4 * STATE_WORDS);
    if (!slot || unit - 1 > 255 || (bank | unit) & (unit - 1) || bank >> 31 || !banks->program ||
        !banks->erase)
        return 0;
    return slot + twini_align(unit, 4);
}

twin_status twin_slots_open(twin_slots *slots, const twin_storage *journal,
                            const twin_storage *banks, void *memory) {
    twin_slots_state *state = &slots->state;
    uint32_t number;
    unsigned records = 0;
    twin_status status;
    slots->banks = 0;
    state->current = 0;
    state->trial = 0;
    state->lowest = 0;
    state->trials = 0;
    state->undone = 0;
    slots->features = 0;
    slots->bank = 0;
    slots->on_trial = 0;
    slots->settled = 0;
    slots->stage = NO_UPDATE;
    if (!twin_slots_size(journal, banks))
        return TWIN_ERROR_STORE;
    status = twin_journal_open(&slots->journal, journal, OWNER, 4 * STATE_WORDS, memory);
    if (status == TWIN_ERROR_STORE)
        return status;
    slots->banks = banks;
    slots->unit = (uint8_t *)memory + slots->journal.slot;
    status = twin_journal_next(&slots->journal, &number); /* which keeps the status of opening */
    while (status == TWIN_MORE) {
        twini_copy_words(state, slots->journal.record, STATE_WORDS);
        state->current &= 1; /* whatever a journal says */
        records++;
        status = twin_journal_next(&slots->journal, &number);
    }
    /* A block that cuts left half erased may look whole once, and lack records a moment later. */
    if (!status && records != slots->journal.count)
        status = TWIN_ERROR_STORAGE;
    if (status) {
        slots->journal.status = (int8_t)status; /* nobody knows what to change */
        return status;
    }
    slots->bank = (uint8_t)state->current;
    if (state->trial) {
        state->trial--;
        state->undone += !state->trial;
        status = twini_settle(slots);
        /* A start that is not counted would be one too many. */
        if (!status && state->trial) {
            slots->on_trial = 1;
            slots->bank ^= 1;
        }
    }
    return status;
}

/* Address of the bank that an update goes to. */
static uint32_t twini_idle_bank(const twin_slots *slots) {
    return slots->state.current ? 0 : slots->banks->block_size;
}

twin_status twin_slots_begin(twin_slots *slots) {
    const twin_storage *banks = slots->banks;
    twin_status status = TWIN_OK;
    slots->stage = NO_UPDATE;
    if (!banks)
        return TWIN_ERROR_STORE;
    if (slots->state.trial)
        return TWIN_ERROR_TRIAL;
    /* What the journal says after a power cut may read otherwise later: not before a bank has been
     * erased because of it. */
    if (!slots->settled)
        status = twini_settle(slots);
    if (status)
        return status;
    if (banks->erase(banks->context, twini_idle_bank(slots)))
        return TWIN_ERROR_STORAGE;
    slots->written = 0;
    slots->stage = WRITING;
    return TWIN_OK;
}

/* Program the unit that the last byte is in, if it is full or `ends`. A failure ends the update. */
TWIN_NOT_INLINE static twin_status twini_write_unit(twin_slots *slots, unsigned ends) {
    const twin_storage *banks = slots->banks;
    uint32_t last = banks->program_size - 1u, at = slots->written & last;
    if ((ends ? !at : at) ||
        !banks->program(banks->context, twini_idle_bank(slots) + ((slots->written - 1) & ~last),
                        slots->unit, last + 1))
        return TWIN_OK;
    slots->stage = NO_UPDATE;
    return TWIN_ERROR_STORAGE;
}

twin_status twin_slots_write(twin_slots *slots, const void *bytes, uint32_t size) {
    const uint8_t *from = (const uint8_t *)bytes;
    twin_status status = TWIN_OK;
    uint32_t i;
    if (slots->stage != WRITING)
        return TWIN_ERROR_EARLY;
    if (size > slots->banks->block_size - slots->written) {
        slots->stage = NO_UPDATE;
        return TWIN_ERROR_LENGTH;
    }
    for (i = 0; i < size && !status; i++) {
        slots->unit[slots->written & (slots->banks->program_size - 1u)] = from[i];
        slots->written++;
        status = twini_write_unit(slots, 0);
    }
    return status;
}

twin_status twin_slots_finish(twin_slots *slots) {
    if (slots->stage != WRITING)
        return TWIN_ERROR_EARLY;
    slots->stage = WRITTEN;
    return twini_write_unit(slots, 1);
}

twin_status twin_slots_try(twin_slots *slots, uint8_t starts) {
    twin_status status;
    if (slots->stage != CHECKED)
        return TWIN_ERROR_EARLY;
    if (!starts)
        return TWIN_ERROR_VALUE;
    if (!slots->state.trial) /* not if this is repeated */
        slots->state.trials++;
    slots->state.trial = (uint32_t)starts + 1;
    status = twini_settle(slots);
    if (!status)
        slots->stage = NO_UPDATE;
    return status;
}

twin_status twin_slots_confirm(twin_slots *slots) {
    twin_slots_state *state = &slots->state;
    if (!slots->features)
        return TWIN_ERROR_EARLY;
    if (state->trial && !slots->on_trial)
        return TWIN_ERROR_TRIAL;
    if (state->lowest < slots->counter)
        state->lowest = slots->counter;
    state->current = slots->bank;
    state->trial = 0;
    slots->on_trial = 0;
    return twini_settle(slots);
}

twin_status twin_slots_undo(twin_slots *slots) {
    twin_slots_state *state = &slots->state;
    if (!state->trial)
        return TWIN_ERROR_TRIAL;
    if (slots->on_trial)
        slots->features = 0; /* those of the pack in use now are not known */
    slots->on_trial = 0;
    slots->bank = (uint8_t)state->current;
    slots->stage = NO_UPDATE;
    state->trial = 0;
    state->undone++;
    return twini_settle(slots);
}

static unsigned twini_is_update(const twin_check *check) {
    return check->slots->stage >= WRITTEN;
}

/* Compare what the pack says of itself with what the device accepts; or keep it, if the pack is
 * the one in use. */
static twin_status twini_check_release(const twin_check *check) {
    twin_slots *slots = check->slots;
    unsigned i, update = twini_is_update(check), other = slots->features != check->model->features;
    twin_release release;
    twin_status status = twin_identity((twin_pack)check->pack, check->size, &release);
    if (status)
        return status;
    if (release.counter < slots->state.lowest)
        return TWIN_ERROR_COUNTER;
    if (!update)
        slots->counter = release.counter;
    for (i = 0; i < 4; i++) {
        uint32_t word = twini_u32(release.schema + 4 * i);
        if (!update)
            slots->schema[i] = word;
        other |= slots->schema[i] != word;
    }
    return update && slots->features && other ? TWIN_ERROR_SCHEMA : TWIN_MORE;
}

/* Keep a status; a pack that was refused does not predict. */
TWIN_NOT_INLINE static twin_status twini_end_step(twin_check *check, twin_status status) {
    check->status = (int8_t)status;
    if (status < 0)
        check->model->kernel = 0;
    return status;
}

twin_status twin_check_begin(twin_check *check, twin_slots *slots, twin_model *model,
                             twin_pack pack, twin_verifier verify, void *context) {
    twin_flash at = (twin_flash)pack;
    twin_status status = !slots->banks             ? TWIN_ERROR_STORE
                         : slots->stage == WRITING ? TWIN_ERROR_EARLY
                                                   : TWIN_OK;
    twin_signed part;
    check->slots = slots;
    check->model = model;
    check->pack = at;
    check->query = 0;
    check->stage = OPENING;
    if (!status) {
        check->size = slots->written;
        if (!twini_is_update(check)) {
            slots->features = 0;
            check->size = twini_u32(at + PACK_LENGTH);
            if (check->size > slots->banks->block_size)
                check->size = slots->banks->block_size;
        }
        if (verify) {
            status = twin_signature(pack, check->size, &part);
            if (!status && verify(context, &part))
                status = TWIN_ERROR_SIGNATURE;
        }
    }
#if TWIN_OPEN_STEPS
    if (!status)
        status = twin_open_begin(&check->opening, model, pack, check->size);
#else
    if (!status)
        status = TWIN_MORE;
#endif
    return twini_end_step(check, status);
}

twin_status twin_check_step(twin_check *check, uint32_t bytes, void *scratch, uint32_t size) {
    twin_pack pack = (twin_pack)check->pack;
    twin_status status;
    if (!check->slots) /* never begun */
        return TWIN_ERROR_MODEL;
    if (check->status != TWIN_MORE)
        return (twin_status)check->status;
    if (check->stage == OPENING) {
#if TWIN_OPEN_STEPS
        status = twin_open_step(&check->opening, bytes);
#else
        (void)bytes;
        status = twin_open(check->model, pack, check->size);
#endif
        if (!status) {
            check->stage = TESTING;
            status = twini_check_release(check);
        }
    } else {
        status = twin_self_test_step(check->model, pack, check->query++, scratch, size);
        if (!status && twini_is_update(check))
            check->slots->stage = CHECKED;
        else if (!status)
            check->slots->features = check->model->features;
    }
    return twini_end_step(check, status);
}

#endif
