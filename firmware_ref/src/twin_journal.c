/* Records in two erasable blocks: FORMAT.md, section 11. */

#include "twin_journal.h"
#include "twin_words.h"

#if TWIN_STORE

/* Offsets in a slot with a record, after its checksum; and in a head. The first slots of a block
 * are for heads. */
enum { SLOT_NUMBER = 4, SLOT_RECORD = 8 };
enum { HEAD_GENERATION = 4, HEAD_OWNER = 8, HEAD_STAMP = 12, HEAD_SIZES = 16 };
enum { HEAD_NUMBER = 20, HEAD_EXTENT = 24, HEAD_BYTES = 28, HEAD_SLOTS = 3 };
enum { LEAST_RECORD = 20, MOST_PROGRAM = 256, PIECE = 32 };

/* What became of a slot: it is right; right, but said to have failed; wrong; or nobody knows. */
enum { SLOT_RIGHT, SLOT_REPORTED, SLOT_WRONG, SLOT_UNREAD };

/* How far a block can be relied on: it has no head; one, but lacks records; or it is complete. */
enum { BLOCK_EMPTY, BLOCK_PARTIAL, BLOCK_VALID };

/* End of what means something in the buffer, for this slot of a block; and its checksum. */
static uint8_t *twini_slot_end(const twin_journal *journal, unsigned slot) {
    return slot < HEAD_SLOTS ? journal->buffer + HEAD_BYTES : journal->record + journal->size;
}

TWIN_APART uint32_t twini_slot_sum(const twin_journal *journal, unsigned slot,
                                   uint32_t generation) {
    const uint8_t *at = journal->buffer + SLOT_NUMBER, *end = twini_slot_end(journal, slot);
    uint32_t crc = UINT32_MAX;
    if (slot >= HEAD_SLOTS)
        crc = twini_crc_bits(crc, generation);
    do
        crc = twini_crc_bits(crc, twini_word(at));
    while ((at += 4) != end);
    return ~crc;
}

/* Read a slot of the block in use; `journal->failed` says if that failed. */
TWIN_APART void twini_read_slot(twin_journal *journal, unsigned slot) {
    const twin_storage *storage = journal->storage;
    if (storage->read(storage->context, journal->block + (uint32_t)slot * journal->slot,
                      journal->buffer, journal->slot))
        journal->failed = 1;
}

static unsigned twini_is_whole(const twin_journal *journal, unsigned slot) {
    return twini_word(journal->buffer) == twini_slot_sum(journal, slot, journal->generation);
}

/* Program the buffer, with its checksum, to a slot of the block that starts at `block`. Read it
 * back in pieces, so that it can be tried again elsewhere. */
TWIN_APART unsigned twini_write_slot(const twin_journal *journal, uint32_t block, unsigned slot,
                                     uint32_t generation) {
    const twin_storage *storage = journal->storage;
    uint8_t *at = journal->buffer, *end = twini_slot_end(journal, slot);
    unsigned result;
    uint8_t *rest;
    twini_put(at, twini_slot_sum(journal, slot, generation));
    for (rest = end; rest != at + journal->slot; rest++)
        *rest = 255;
    block += (uint32_t)slot * journal->slot;
    result =
        storage->program(storage->context, block, at, journal->slot) ? SLOT_REPORTED : SLOT_RIGHT;
    do {
        uint8_t piece[PIECE], *found = piece;
        uint32_t left = (uint32_t)(end - at);
        if (left > PIECE)
            left = PIECE;
        if (storage->read(storage->context, block, piece, left))
            return SLOT_UNREAD;
        block += left;
        do
            if (*found++ != *at++)
                result = SLOT_WRONG;
        while (--left);
    } while (at != end);
    return result;
}

static void twini_rewind(twin_journal *journal) {
    journal->at = HEAD_SLOTS;
    journal->least = 0;
    journal->failed = 0;
}

/* Read the next record that lies before slot `end`. Returns whether there is one. */
TWIN_APART unsigned twini_next_record(twin_journal *journal, unsigned end) {
    unsigned slot;
    while ((slot = journal->at) < end) {
        uint32_t number;
        twini_read_slot(journal, slot);
        if (journal->failed)
            return 0;
        number = twini_word(journal->buffer + SLOT_NUMBER);
        journal->at++;
        if (number - journal->least < UINT32_MAX - journal->least &&
            twini_is_whole(journal, slot)) {
            journal->least = number + 1;
            return 1;
        }
    }
    return 0;
}

/* Find the records of the block in use. Returns how many lie before slot `end`. */
TWIN_APART unsigned twini_find_records(twin_journal *journal, unsigned end) {
    unsigned before = 0;
    journal->at = HEAD_SLOTS;
    journal->least = 0;
    journal->count = 0;
    journal->end = HEAD_SLOTS;
    while (twini_next_record(journal, journal->slots)) {
        journal->count++;
        journal->end = journal->at;
        before += journal->at <= end;
    }
    if (journal->number < journal->least)
        journal->number = journal->least;
    return before;
}

/* Count slots without a record: those between records; and those after them that were programmed,
 * if the last slot shows what erased bytes are. */
static void twini_count_damaged(twin_journal *journal) {
    unsigned slot = journal->slots - 1u;
    uint8_t erased;
    journal->damaged = (uint16_t)(journal->end - HEAD_SLOTS - journal->count);
    twini_read_slot(journal, slot);
    erased = *journal->buffer;
    for (; slot >= journal->end; slot--) {
        unsigned left = journal->slot;
        twini_read_slot(journal, slot);
        while (left && journal->buffer[left - 1] == erased)
            left--;
        if (left) {
            if (slot + 1u == journal->slots)
                break;
            journal->damaged++;
        }
    }
}

/* Sizes as a head has them. */
static uint32_t twini_sizes(const twin_journal *journal) {
    return journal->slot | (uint32_t)journal->size << 16;
}

/* Look at a block, and at its records if it has one head only. Returns how far it can be relied
 * on. */
TWIN_APART unsigned twini_look_at(twin_journal *journal, uint32_t block) {
    const uint8_t *head = journal->buffer;
    uint32_t extent = 0;
    unsigned slot;
    journal->block = block;
    journal->generation = 0;
    journal->number = 0;
    journal->stamp = 0;
    journal->heads = 0;
    journal->status = TWIN_OK;
    for (slot = 0; slot < HEAD_SLOTS; slot++) {
        twini_read_slot(journal, slot);
        if (!twini_is_whole(journal, slot))
            continue;
        if (!journal->heads) {
            journal->generation = twini_word(head + HEAD_GENERATION);
            journal->number = twini_word(head + HEAD_NUMBER);
            journal->stamp = twini_word(head + HEAD_STAMP);
            extent = twini_word(head + HEAD_EXTENT);
            if (twini_word(head + HEAD_OWNER) != journal->owner ||
                twini_word(head + HEAD_SIZES) != twini_sizes(journal))
                journal->status = TWIN_ERROR_OTHER;
        }
        journal->heads =
            (uint8_t)(journal->heads + (twini_word(head + HEAD_GENERATION) == journal->generation));
    }
    if (journal->heads == 1 && twini_find_records(journal, extent & 65535u) != extent >> 16)
        return BLOCK_PARTIAL;
    return journal->heads ? BLOCK_VALID : BLOCK_EMPTY;
}

/* Program the head in the buffer to two of the first slots, beginning with `slot`. Returns how many
 * it is in.
 *
 * As long as there is none, one that may be there or not is the last: a block that is erased later,
 * but not completely, must not be left with two of them. */
TWIN_APART uint8_t twini_write_heads(const twin_journal *journal, uint32_t block, unsigned slot) {
    unsigned left = HEAD_SLOTS;
    uint8_t heads = 0;
    do {
        unsigned result = twini_write_slot(journal, block, slot, 0);
        if (result <= SLOT_REPORTED)
            heads++;
        else if (result == SLOT_UNREAD && !heads)
            break;
        slot = slot == HEAD_SLOTS - 1 ? 0 : slot + 1;
    } while (--left && heads < 2);
    return heads;
}

/* Program again what a power cut may have left undecided. Returns whether that failed. */
static unsigned twini_settle(twin_journal *journal) {
    unsigned left = journal->count, slot = 0;
    while (twini_next_record(journal, journal->end)) {
        left--;
        if (twini_write_slot(journal, journal->block, journal->at - 1u, journal->generation) >
            SLOT_REPORTED)
            return 1;
    }
    do
        twini_read_slot(journal, slot);
    while ((!twini_is_whole(journal, slot) ||
            twini_word(journal->buffer + HEAD_GENERATION) != journal->generation) &&
           ++slot < HEAD_SLOTS);
    if (left || journal->failed || slot == HEAD_SLOTS)
        return 1;
    journal->heads = twini_write_heads(journal, journal->block, slot);
    return !journal->heads;
}

/* Move what is to be kept of the records before slot `end`. */
TWIN_APART twin_status twini_relocate(twin_journal *journal, unsigned end,
                                      unsigned (*keep)(void *, uint32_t, uint8_t *), void *context,
                                      uint32_t stamp) {
    const twin_storage *storage = journal->storage;
    uint32_t block = storage->block_size - journal->block, generation = journal->generation + 1;
    uint8_t *buffer = journal->buffer, heads;
    uint32_t next = HEAD_SLOTS, count = 0;
    journal->next = journal->slots; /* the other block may be valid even if this fails */
    journal->moved = 0;
    if (!journal->status && journal->heads == 1) {
        twini_rewind(journal);
        if (twini_settle(journal))
            return TWIN_ERROR_STORAGE;
    }
    twini_rewind(journal);
    if (storage->erase(storage->context, block))
        return TWIN_ERROR_STORAGE;
    while (twini_next_record(journal, end)) {
        if (keep && !keep(context, journal->least - 1, journal->record))
            continue;
        count++;
        do
            if (next == journal->slots)
                return TWIN_ERROR_STORAGE;
        while (twini_write_slot(journal, block, next++, generation));
    }
    if (journal->failed)
        return TWIN_ERROR_STORAGE;
    twini_put(buffer + HEAD_GENERATION, generation);
    twini_put(buffer + HEAD_OWNER, journal->owner);
    twini_put(buffer + HEAD_STAMP, stamp);
    twini_put(buffer + HEAD_SIZES, twini_sizes(journal));
    twini_put(buffer + HEAD_NUMBER, journal->number);
    twini_put(buffer + HEAD_EXTENT, next | count << 16);
    heads = twini_write_heads(journal, block, 0);
    if (!heads)
        return TWIN_ERROR_STORAGE;
    journal->block = block;
    journal->generation = generation;
    journal->stamp = stamp;
    journal->heads = heads;
    journal->count = (uint16_t)count;
    journal->next = journal->end = (uint16_t)next;
    journal->damaged = (uint16_t)(next - HEAD_SLOTS - count);
    journal->moved = 1;
    journal->status = TWIN_OK;
    return TWIN_OK;
}

uint32_t twin_journal_slot(const twin_storage *storage, uint16_t size) {
    uint32_t unit = storage->program_size, block = storage->block_size, slot;
    if (!unit || unit > MOST_PROGRAM || unit & (unit - 1) || block & (unit - 1) || block >> 31 ||
        size < LEAST_RECORD || size & 3 || !storage->read || !storage->program || !storage->erase)
        return 0;
    slot = twini_align(size + (uint32_t)SLOT_RECORD, unit);
    return slot >> 16 || block / slot <= HEAD_SLOTS ? 0 : slot;
}

twin_status twin_journal_open(twin_journal *journal, const twin_storage *storage, uint32_t owner,
                              uint16_t size, void *buffer) {
    uint32_t slot = twin_journal_slot(storage, size), slots, generation;
    unsigned first, second;
    journal->status = TWIN_ERROR_STORE;
    if (!slot || (uintptr_t)buffer & 3)
        return TWIN_ERROR_STORE;
    slots = storage->block_size / slot;
    journal->storage = storage;
    journal->buffer = (uint8_t *)buffer;
    journal->record = journal->buffer + SLOT_RECORD;
    journal->owner = owner;
    journal->size = size;
    journal->slot = (uint16_t)slot;
    journal->next = journal->slots = (uint16_t)(slots >> 16 ? UINT16_MAX : slots);
    journal->moved = 0;
    twini_rewind(journal);
    first = twini_look_at(journal, 0);
    generation = journal->generation;
    second = twini_look_at(journal, storage->block_size);
    /* What a power cut has left may read differently now: then the other block is good. */
    if ((first == second ? (int32_t)(journal->generation - generation) <= 0 : first > second) &&
        twini_look_at(journal, 0) < first)
        twini_look_at(journal, storage->block_size);
    if (journal->heads != 1)
        twini_find_records(journal, 0);
    twini_count_damaged(journal);
    if (journal->status)
        journal->number = 0; /* that of the first record, if this owner takes over */
    if (journal->failed)
        journal->status = TWIN_ERROR_STORAGE;
    twini_rewind(journal);
    return (twin_status)journal->status;
}

twin_status twin_journal_next(twin_journal *journal, uint32_t *number) {
    if (journal->status)
        return (twin_status)journal->status;
    journal->failed = 0;
    if (twini_next_record(journal, journal->end)) {
        *number = journal->least - 1;
        return TWIN_MORE;
    }
    if (journal->failed)
        return TWIN_ERROR_STORAGE;
    twini_rewind(journal);
    return TWIN_OK;
}

twin_status twin_journal_append(twin_journal *journal) {
    if (journal->status)
        return (twin_status)journal->status;
    if (!~journal->number || journal->count + HEAD_SLOTS == journal->slots)
        return TWIN_ERROR_FULL;
    while (journal->next < journal->slots) {
        twini_put(journal->buffer + SLOT_NUMBER, journal->number);
        if (!twini_write_slot(journal, journal->block, journal->next++, journal->generation)) {
            journal->number++;
            journal->count++;
            journal->end = journal->next;
            journal->moved = 0;
            return TWIN_OK;
        }
        journal->damaged++;
    }
    if (!journal->moved)
        return TWIN_MORE;
    journal->moved = 0;
    return TWIN_ERROR_STORAGE;
}

twin_status twin_journal_move(twin_journal *journal,
                              unsigned (*keep)(void *context, uint32_t number, uint8_t *record),
                              void *context, uint32_t stamp) {
    twin_status status = (twin_status)journal->status;
    if (!status)
        status = twini_relocate(journal, journal->end, keep, context, stamp);
    twini_rewind(journal);
    return status;
}

twin_status twin_journal_clear(twin_journal *journal, uint32_t stamp) {
    twin_status status = (twin_status)journal->status;
    if (!status || status == TWIN_ERROR_OTHER)
        status = twini_relocate(journal, 0, 0, 0, stamp);
    twini_rewind(journal);
    return status;
}

#endif
