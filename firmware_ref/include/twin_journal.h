/* A journal: records of one size in two erasable blocks, safe from power cuts (FORMAT.md, 11).
 *
 * The blocks may be flash, EEPROM or FRAM, a file or RAM, behind three functions. A power cut at
 * any moment leaves the records as they were before the call that it hit, or as they would have
 * been after it. A slot that cannot be programmed is passed over; a record that can no longer be
 * read is left out, and `damaged` counts it.
 *
 *     static uint32_t slot[32];
 *     twin_journal journal;
 *     if (twin_journal_slot(&storage, 24) > sizeof slot ||
 *         twin_journal_open(&journal, &storage, OWNER, 24, slot) != TWIN_OK)
 *         do_without_it();
 *     while ((status = twin_journal_next(&journal, &number)) == TWIN_MORE)
 *         use(number, journal.record);
 *     do {
 *         fill_in(journal.record);
 *         status = twin_journal_append(&journal);
 *     } while (status == TWIN_MORE &&
 *              (status = twin_journal_move(&journal, NULL, NULL, journal.stamp)) == TWIN_OK);
 *
 * The loop is for the first change after opening, and for when a block is full: then records are
 * moved to the other block, through the memory that the new record was in.
 *
 * A read or write that fails takes nothing back: what was confirmed stays, and a later call tries
 * again. There is no allocation and no recursion, and no call takes longer than to program a block
 * twice. A journal knows nothing of twins. Not available if TWIN_STORE is 0. */

#ifndef TWIN_JOURNAL_H
#define TWIN_JOURNAL_H

#include "twin.h"

#if TWIN_STORE

#ifdef __cplusplus
extern "C" {
#endif

/* Two blocks: the first at address 0, the second at `block_size`. The functions return 0 on
 * success, anything else on failure.
 *
 * - `program` is only called for bytes that were erased; or, to finish what a power cut or a
 *   failure has interrupted, with the bytes that are already there, which it may refuse. Addresses
 *   and sizes are multiples of `program_size`. If the power is cut, those bytes may be anything,
 *   and read differently each time until their block is erased; others must stay as they are.
 * - `erase` may leave any bytes, as long as they read the same each time: 255, 0, or what
 *   decryption makes of them.
 * - `read` gets addresses and sizes that are multiples of 4 from the start of a block. It must not
 *   fail because of what a power cut has left: a memory that detects corrupt bytes may return any.
 */
typedef struct twin_storage {
    int (*read)(void *context, uint32_t address, void *bytes, uint32_t size);
    int (*program)(void *context, uint32_t address, const void *bytes, uint32_t size);
    int (*erase)(void *context, uint32_t address); /* the block that starts there */
    void *context;
    uint32_t block_size;   /* bytes of each block: a multiple of `program_size` */
    uint16_t program_size; /* bytes that a power cut can damage at once: a power of two up to 256 */
} twin_storage;

/* An open journal. The fields may be read, and `record` points to what may be written. */
typedef struct twin_journal {
    int8_t status;  /* that of opening */
    uint8_t heads;  /* slots that say what the block is, up to 3; fewer than 2 after a power cut */
    uint8_t moved;  /* whether nothing was appended since records were moved */
    uint8_t failed; /* whether the last read failed */
    uint16_t size;  /* bytes of a record */
    uint16_t slot;  /* bytes of a slot */
    uint16_t slots; /* in a block; all but 3 can hold records */
    uint16_t count; /* records */
    uint16_t damaged; /* slots of the block that hold no record, though one was written there */
    uint16_t at;      /* slot to read next */
    uint16_t end;     /* slot after the last record */
    uint16_t next;    /* slot to program next; `slots` if records must be moved first */
    const twin_storage *storage;
    uint8_t *buffer;     /* the caller's, for one slot */
    uint8_t *record;     /* `size` bytes in it: the record read last, or to be appended */
    uint32_t owner;      /* of the records */
    uint32_t stamp;      /* what the owner likes to know of all records */
    uint32_t block;      /* address of the block in use */
    uint32_t generation; /* how often a block was erased and filled, in sequence */
    uint32_t number;     /* of the next record */
    uint32_t least;      /* number that the next record read has at least */
} twin_journal;

/* Bytes of a slot for records of `size` bytes, a multiple of 4, at least 20. 0 if that or the
 * storage is invalid: a function is NULL, the program size is not a power of two from 1 to 256,
 * blocks are not multiples of it, or have fewer than 4 slots or more than 2^31 bytes. */
uint32_t twin_journal_slot(const twin_storage *storage, uint16_t size);

/* Find what a journal holds; one that was never written is empty. `buffer`, aligned as uint32_t,
 * has room for one slot; it and the storage must stay as long as the journal is used.
 *
 * TWIN_ERROR_STORE if twin_journal_slot is 0, or the buffer is not aligned. TWIN_ERROR_OTHER if the
 * records belong to another owner: only twin_journal_clear is then possible. TWIN_ERROR_STORAGE if
 * a read failed: nothing is possible then, except to open it again. */
twin_status twin_journal_open(twin_journal *journal, const twin_storage *storage, uint32_t owner,
                              uint16_t size, void *buffer);

/* Read the next record into `journal->record`, the oldest first: TWIN_MORE, and its number.
 * TWIN_OK if there was none left; the next call begins again, as it does after all other calls.
 * TWIN_ERROR_STORAGE if a read failed: the next call tries again. */
twin_status twin_journal_next(twin_journal *journal, uint32_t *number);

/* Append `journal->record`, with the number `journal->number`. TWIN_OK means that it is stored.
 *
 * TWIN_MORE if the records must be moved first, which also overwrites `journal->record`.
 * TWIN_ERROR_FULL if moving them would make no room. TWIN_ERROR_STORAGE if no slot could be
 * programmed, even after they were moved. */
twin_status twin_journal_append(twin_journal *journal);

/* Move records to the other block, with a new stamp: those for which `keep` returns 1, which may
 * also change them, or all if it is NULL. It is called for one after the other, and again for all
 * of them if a move that failed is repeated. A record that can no longer be read is left out.
 *
 * TWIN_ERROR_STORAGE if a block could not be read, erased or programmed. Then nothing is moved; but
 * if that was found out late, it may be when the journal is opened again. */
twin_status twin_journal_move(twin_journal *journal,
                              unsigned (*keep)(void *context, uint32_t number, uint8_t *record),
                              void *context, uint32_t stamp);

/* Remove all records, also those of another owner. */
twin_status twin_journal_clear(twin_journal *journal, uint32_t stamp);

#ifdef __cplusplus
}
#endif

#endif

#endif
