/* Records in two erasable blocks: FORMAT.md, section 11. */

#include "twin_journal.h"
#include "twin_words.h"

#if TWIN_STORE

/* Offsets in a slot with a record, after its checksum; and in a head. The first slots of a block
 * are for heads. */
enum { SLOT_NUMBER = 4, SLOT_RECORD = 8 };
enum { HEAD_GENERATION = 4, HEAD_OWNER = 8, HEAD_STAMP = 12, HEAD_SIZES = 16 };
enum { HEAD_NUMBER = 20, HEAD_EXTENT = 24, HEAD_END = 28, HEAD_SLOTS = 3 };

/* What became of a slot: it is right; right, but reported to have failed; wrong; or nobody knows.
 */
enum { SLOT_RIGHT, SLOT_REPORTED, SLOT_WRONG, SLOT_UNREAD };

/* How far a block can be relied on: it has no head; one, but lacks records; or it is complete. */
enum { BLOCK_EMPTY, BLOCK_PARTIAL, BLOCK_VALID };

/* Words of the machine are at multiples of this. */
typedef struct twini_aligned {
    uint8_t byte;
    uint32_t word;
} twini_aligned;
enum { ALIGNED = sizeof(twini_aligned) - sizeof(uint32_t) };

/* Checksum of what means something in the buffer, for this slot of a block of this generation; and
 * where that ends. The generation of a record goes where its checksum is. */
TWIN_NOT_INLINE static uint32_t twini_slot_sum(const twin_journal *journal, unsigned slot,
                                               uint32_t generation, const uint8_t **ends) {
    const uint8_t *at = journal->buffer + SLOT_NUMBER, *end = journal->buffer + HEAD_END;
    uint32_t crc = UINT32_MAX;
    if (slot >= HEAD_SLOTS) {
        at = journal->buffer;
        twini_put(journal->buffer, generation);
        end = journal->record + journal->size;
    }
    do {
        crc = twini_crc_bits(crc, twini_word(at));
        at += 4;
    } while (at != end);
    *ends = end;
    return ~crc;
}

/* Read a slot of the block in use. Returns whether it is whole; `journal->failed` says if it could
 * not be read. */
TWIN_NOT_INLINE static unsigned twini_read_slot(twin_journal *journal, unsigned slot) {
    const twin_storage *storage = journal->storage;
    const uint8_t *end;
    uint32_t sum;
    if (storage->read(storage->context, journal->block + (uint32_t)slot * journal->slot,
                      journal->buffer, journal->slot)) {
        journal->failed = 1;
        return 0;
    }
    sum = twini_word(journal->buffer);
    /* Most slots that are not whole are erased: there is no need for a checksum to see that. */
    return (slot < HEAD_SLOTS || ~twini_word(journal->buffer + SLOT_NUMBER)) &&
           sum == twini_slot_sum(journal, slot, journal->generation, &end);
}

/* Program the buffer, with its checksum, to a slot: of the block in use, or of the other, for the
 * next generation. Read it back word by word, so that it can be tried again elsewhere. */
TWIN_NOT_INLINE static unsigned twini_write_slot(const twin_journal *journal, unsigned slot,
                                                 unsigned other) {
    const twin_storage *storage = journal->storage;
    const uint8_t *at = journal->buffer, *end;
    uint32_t address = journal->block;
    unsigned result;
    if (other)
        address = storage->block_size - address;
    address += (uint32_t)slot * journal->slot;
    twini_put(journal->buffer, twini_slot_sum(journal, slot, journal->generation + other, &end));
    result = storage->program(storage->context, address, at, journal->slot) != 0;
    do {
        uint32_t word, found;
        if (storage->read(storage->context, address, &found, sizeof found))
            return SLOT_UNREAD;
        TWIN_COPY(&word, TWIN_ALIGNED(at, 4), sizeof word);
        if (word != found)
            result = SLOT_WRONG;
        address += 4;
        at += 4;
    } while (at != end);
    return result;
}

TWIN_NOT_INLINE static void twini_rewind(twin_journal *journal) {
    journal->at = HEAD_SLOTS;
    journal->least = 0;
    journal->failed = 0;
}

/* Read the next record that lies before slot `end`. Returns whether there is one. */
TWIN_NOT_INLINE static unsigned twini_next_record(twin_journal *journal, unsigned end) {
    while (journal->at < end) {
        unsigned whole = twini_read_slot(journal, journal->at);
        uint32_t number = twini_word(journal->buffer + SLOT_NUMBER);
        if (journal->failed)
            break;
        journal->at++;
        if (whole && number >= journal->least) {
            journal->least = number + 1;
            return 1;
        }
    }
    return 0;
}

/* Find the records of a block. Returns how many lie before slot `end`. */
static unsigned twini_find_records(twin_journal *journal, unsigned end) {
    unsigned before = 0, slot;
    uint32_t erased;
    journal->at = HEAD_SLOTS;
    journal->least = 0;
    journal->count = 0;
    journal->end = HEAD_SLOTS;
    while (twini_next_record(journal, journal->slots)) {
        journal->count++;
        journal->end = journal->at;
        if (journal->at <= end)
            before++;
    }
    if (journal->number < journal->least)
        journal->number = journal->least;
    /* Slots between records are damaged; those after them, if they are not like the last one. */
    journal->damaged = (uint16_t)(journal->end - HEAD_SLOTS - journal->count);
    slot = journal->slots - 1u;
    (void)twini_read_slot(journal, slot);
    erased = twini_word(journal->record);
    if (erased == twini_word(journal->buffer + SLOT_NUMBER))
        while (slot-- > journal->end) {
            (void)twini_read_slot(journal, slot);
            if (twini_word(journal->buffer + SLOT_NUMBER) != erased)
                journal->damaged++;
        }
    return before;
}

/* Sizes as a head has them. */
static uint32_t twini_sizes(const twin_journal *journal) {
    return journal->slot | (uint32_t)journal->size << 16;
}

/* Look at a block. Returns how far it can be relied on. */
TWIN_NOT_INLINE static unsigned twini_look_at(twin_journal *journal, uint32_t block) {
    const uint8_t *head = journal->buffer;
    uint32_t extent = 0;
    unsigned slot = HEAD_SLOTS, before;
    journal->block = block;
    journal->generation = 0;
    journal->number = 0;
    journal->stamp = 0;
    journal->heads = 0;
    journal->status = TWIN_OK;
    do {
        if (twini_read_slot(journal, --slot)) {
            journal->heads++;
            journal->generation = twini_word(head + HEAD_GENERATION);
            journal->number = twini_word(head + HEAD_NUMBER);
            journal->stamp = twini_word(head + HEAD_STAMP);
            extent = twini_word(head + HEAD_EXTENT);
            if (twini_word(head + HEAD_OWNER) != journal->owner ||
                twini_word(head + HEAD_SIZES) != twini_sizes(journal))
                journal->status = TWIN_ERROR_OTHER;
        }
    } while (slot);
    before = twini_find_records(journal, extent & 65535u);
    if (journal->heads == 1 && before != extent >> 16)
        return BLOCK_PARTIAL;
    return journal->heads ? BLOCK_VALID : BLOCK_EMPTY;
}

/* Program the head in the buffer to two of the first slots. Returns how many it is in.
 *
 * As long as there is none, one that may be there or not is the last: a block that is erased later,
 * but not completely, must not be left with two of them. */
TWIN_NOT_INLINE static unsigned twini_write_heads(const twin_journal *journal, unsigned other) {
    unsigned slot = 0, heads = 0;
    do {
        unsigned result = twini_write_slot(journal, slot, other);
        if (result <= SLOT_REPORTED)
            heads++;
        else if (result == SLOT_UNREAD && !heads)
            break;
    } while (++slot < HEAD_SLOTS && heads < 2);
    return heads;
}

/* Program again what a power cut may have left undecided. Returns whether that failed. */
static unsigned twini_finish_writing(twin_journal *journal) {
    unsigned left = journal->count, slot = 0;
    while (twini_next_record(journal, journal->end)) {
        left--;
        if (twini_write_slot(journal, journal->at - 1u, 0) > SLOT_REPORTED)
            return 1;
    }
    while (!twini_read_slot(journal, slot))
        if (++slot == HEAD_SLOTS)
            return 1;
    return left || !twini_write_heads(journal, 0);
}

/* Copy records to the other block. Returns its extent, as a head has it; or 0 if that failed. */
static uint32_t twini_copy_records(twin_journal *journal,
                                   unsigned (*keep)(void *, uint32_t, uint8_t *), void *context) {
    uint32_t extent = HEAD_SLOTS;
    while (twini_next_record(journal, journal->end)) {
        if (keep && !keep(context, journal->least - 1, journal->record))
            continue;
        do
            if ((extent & 65535u) == journal->slots)
                return 0;
        while (twini_write_slot(journal, extent++ & 65535u, 1));
        extent += 65536u;
    }
    return journal->failed ? 0 : extent;
}

/* That of opening; memory that is zero was never opened. */
static twin_status twini_journal_status(const twin_journal *journal) {
    /* A refused one has a status, but no storage. */
    return journal->status || journal->storage ? (twin_status)journal->status : TWIN_ERROR_STORE;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the type is that of `keep` */
static unsigned twini_none(void *context, uint32_t number, uint8_t *record) {
    (void)context;
    (void)number;
    (void)record;
    return 0;
}

twin_status twin_journal_move(twin_journal *journal,
                              unsigned (*keep)(void *context, uint32_t number, uint8_t *record),
                              void *context, uint32_t stamp) {
    const twin_storage *storage;
    uint32_t block, extent = 0;
    uint8_t *buffer;
    unsigned heads = 0;
    twin_status status = twini_journal_status(journal);
    if (status && (status != TWIN_ERROR_OTHER || keep != twini_none))
        return status;
    storage = journal->storage;
    buffer = journal->buffer;
    block = storage->block_size - journal->block;
    journal->next = journal->slots; /* the other block may be valid even if this fails */
    journal->moved = 0;
    twini_rewind(journal);
    if (status || journal->heads != 1 || !twini_finish_writing(journal)) {
        twini_rewind(journal);
        if (!storage->erase(storage->context, block))
            extent = twini_copy_records(journal, keep, context);
    }
    if (extent) {
        twini_put(buffer + HEAD_GENERATION, journal->generation + 1);
        twini_put(buffer + HEAD_OWNER, journal->owner);
        twini_put(buffer + HEAD_STAMP, stamp);
        twini_put(buffer + HEAD_SIZES, twini_sizes(journal));
        twini_put(buffer + HEAD_NUMBER, journal->number);
        twini_put(buffer + HEAD_EXTENT, extent);
        heads = twini_write_heads(journal, 1);
    }
    twini_rewind(journal);
    if (!heads)
        return TWIN_ERROR_STORAGE;
    journal->block = block;
    journal->generation++;
    journal->stamp = stamp;
    journal->heads = (uint8_t)heads;
    journal->count = (uint16_t)(extent >> 16);
    journal->end = (uint16_t)extent;
    journal->next = journal->end;
    journal->damaged = (uint16_t)(journal->end - HEAD_SLOTS - journal->count);
    journal->moved = 1;
    journal->status = TWIN_OK;
    return TWIN_OK;
}

twin_status twin_journal_clear(twin_journal *journal, uint32_t stamp) {
    return twin_journal_move(journal, twini_none, 0, stamp);
}

uint32_t twin_journal_slot(const twin_storage *storage, uint16_t size) {
    uint32_t unit = storage->program_size, block = storage->block_size, slot;
    if (unit - 1 > 255 || (block | unit) & (unit - 1) || block >> 31 || size < 20 || size & 3 ||
        !storage->read || !storage->program || !storage->erase)
        return 0;
    slot = twini_align(size + (uint32_t)SLOT_RECORD, unit);
    block /= slot;
    return block <= HEAD_SLOTS || (block | slot) >> 16 ? 0 : slot;
}

twin_status twin_journal_open(twin_journal *journal, const twin_storage *storage, uint32_t owner,
                              uint16_t size, void *buffer) {
    uint32_t slot = twin_journal_slot(storage, size), generation;
    unsigned first, second;
    journal->status = TWIN_ERROR_STORE;
    if (!slot || (uintptr_t)buffer & (ALIGNED - 1))
        return TWIN_ERROR_STORE;
    journal->storage = storage;
    journal->buffer = (uint8_t *)buffer;
    journal->record = journal->buffer + SLOT_RECORD;
    journal->owner = owner;
    journal->size = size;
    journal->slot = (uint16_t)slot;
    journal->slots = (uint16_t)(storage->block_size / slot);
    journal->next = journal->slots;
    journal->moved = 0;
    journal->failed = 0;
    first = twini_look_at(journal, 0);
    generation = journal->generation;
    second = twini_look_at(journal, storage->block_size);
    /* What a power cut has left may read differently now: then the other block is good. */
    if ((first == second ? (int32_t)(journal->generation - generation) <= 0 : first > second) &&
        twini_look_at(journal, 0) < first)
        (void)twini_look_at(journal, storage->block_size);
    if (journal->status)
        journal->number = 0; /* that of the first record, if this owner takes over */
    if (journal->failed)
        journal->status = TWIN_ERROR_STORAGE;
    twini_rewind(journal);
    return (twin_status)journal->status;
}

twin_status twin_journal_next(twin_journal *journal, uint32_t *number) {
    twin_status status = twini_journal_status(journal);
    if (status)
        return status;
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
    twin_status status = twini_journal_status(journal);
    if (status)
        return status;
    if (!~journal->number || journal->count + HEAD_SLOTS == journal->slots)
        return TWIN_ERROR_FULL;
    twini_put(journal->buffer + SLOT_NUMBER, journal->number);
    while (journal->next < journal->slots) {
        if (!twini_write_slot(journal, journal->next++, 0)) {
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

#endif
