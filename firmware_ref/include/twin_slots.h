/* A new model over the air: two banks for packs, of which one is in use.
 *
 * An update goes into the other bank, is verified and tested there, and then has to prove itself:
 * it is on trial for a number of starts, until the program confirms it. If it does not, or says
 * that it will not, the device is back where it was. A small journal (twin_journal.h) says which
 * bank is in use, which is on trial, and which releases are too old; a power cut at any moment
 * leaves a pack that was verified and tested (FORMAT.md, section 18). At start:
 *
 *     if (twin_slots_size(&journal, &banks) > sizeof memory ||
 *         twin_slots_open(&slots, &journal, &banks, memory) == TWIN_ERROR_STORE)
 *         do_without_it();
 *     do {
 *         status = twin_check_begin(&check, &slots, &model, BANKS[slots.bank], verify, keys);
 *         while (status == TWIN_MORE) {
 *             feed_the_watchdog();
 *             status = twin_check_step(&check, 256, scratch, sizeof scratch);
 *         }
 *     } while (status != TWIN_OK && twin_slots_undo(&slots) == TWIN_OK);
 *     if (status != TWIN_OK)
 *         do_without_it();
 *
 * An update, while predictions go on from the pack in use:
 *
 *     status = twin_slots_begin(&slots);
 *     while (status == TWIN_OK && (count = receive(piece)) > 0)
 *         status = twin_slots_write(&slots, piece, count);
 *     if (status == TWIN_OK)
 *         status = twin_slots_finish(&slots);
 *     if (status == TWIN_OK)
 *         status = twin_check_begin(&check, &slots, &other, BANKS[!slots.bank], verify, keys);
 *     while (status == TWIN_MORE)
 *         status = twin_check_step(&check, 256, scratch, sizeof scratch);
 *     if (status == TWIN_OK)
 *         status = twin_slots_try(&slots, 3);
 *     if (status == TWIN_OK)
 *         restart();
 *     report(twin_text(status));
 *
 * And once it has predicted for a while, as the watch (twin_watch.h) says, for example:
 *
 *     if (slots.on_trial && twin_watch_flags(&watch) & TWIN_WATCH_DRIFT) {
 *         if (twin_slots_undo(&slots) == TWIN_OK)
 *             restart();
 *     } else if (slots.on_trial && watch.targets >= 100) {
 *         if (twin_slots_confirm(&slots) != TWIN_OK)
 *             report("not confirmed yet");
 *     }
 *
 * Nothing here knows how bytes arrive, nor any cryptography. The banks are flash that pointers
 * reach, or the program copies one into RAM before it is checked. Points of a store are not
 * touched: they belong to a schema, which an update must keep.
 *
 * If storage fails, a call returns TWIN_ERROR_STORAGE, nothing has changed as far as the device
 * knows, and it may be tried again; after a restart, the change may turn out to have happened.
 * There is no allocation and no recursion. Not available if TWIN_STORE is 0. */

#ifndef TWIN_SLOTS_H
#define TWIN_SLOTS_H

#include "twin_journal.h"
#include "twin_release.h"

#if TWIN_STORE

#ifdef __cplusplus
extern "C" {
#endif

/* What the journal says. */
typedef struct twin_slots_state {
    uint32_t current; /* bank of the pack that was confirmed last: 0 or 1 */
    uint32_t trial;   /* 0 if there is none; else 1 more than the starts that are left to it */
    uint32_t lowest;  /* counter that a release has at least */
    uint32_t trials;  /* how many began so far */
    uint32_t undone;  /* how many of them were undone */
} twin_slots_state;

/* Open banks. The fields may be read. */
typedef struct twin_slots {
    uint8_t bank;      /* to use: 0 or 1 */
    uint8_t on_trial;  /* whether the pack there is on trial */
    uint8_t settled;   /* whether the journal has the state for certain */
    uint8_t stage;     /* of an update */
    uint16_t features; /* of the pack in use; 0 if it was not checked */
    twin_slots_state state;
    uint32_t counter;   /* of the pack in use */
    uint32_t schema[4]; /* likewise */
    uint32_t written;   /* bytes of an update */
    const twin_storage *banks;
    uint8_t *unit; /* the caller's, for what the banks program at once */
    twin_journal journal;
} twin_slots;

/* Bytes of memory that twin_slots_open needs. `banks` are the two blocks of a storage
 * (twin_journal.h), of which `read` is not called and may be NULL; `journal` is another one, for
 * records of 20 bytes: four slots are enough. 0 if one of them cannot serve. */
uint32_t twin_slots_size(const twin_storage *journal, const twin_storage *banks);

/* Find out which bank to use, `slots->bank`, and count the start if its pack is on trial. One that
 * has no start left is undone. A journal that was never written stands for a pack in bank 0 that
 * was put there with the program, and any counter. `memory` is aligned as uint32_t; it and both
 * storages must stay.
 *
 * TWIN_ERROR_STORE if twin_slots_size is 0, or the memory is not aligned. TWIN_ERROR_OTHER if
 * the journal has other records. TWIN_ERROR_STORAGE if it could not be read or written: `bank` is
 * then the current one, as far as that is known, and 0 if not. */
twin_status twin_slots_open(twin_slots *slots, const twin_storage *journal,
                            const twin_storage *banks, void *memory);

/* Begin an update: erase the bank that is not in use. TWIN_ERROR_TRIAL if there is a trial: there
 * is no such bank then. */
twin_status twin_slots_begin(twin_slots *slots);

/* Write the next bytes, as many as there are. TWIN_ERROR_EARLY if no update has begun,
 * TWIN_ERROR_LENGTH if the bank is too small. After an error, begin again. */
twin_status twin_slots_write(twin_slots *slots, const void *bytes, uint32_t size);

/* Write what is left of the last bytes. Then the update can be checked. */
twin_status twin_slots_finish(twin_slots *slots);

/* Let the update that was checked be in use at the next starts, this many times, 1 to 255, until it
 * is confirmed. TWIN_ERROR_EARLY if there is none that passed its check. */
twin_status twin_slots_try(twin_slots *slots, uint8_t starts);

/* Keep the pack in use, and refuse releases older than it from now on: one on trial, or one that
 * was put there with the program. TWIN_ERROR_EARLY if it was not checked. */
twin_status twin_slots_confirm(twin_slots *slots);

/* End a trial: `slots->bank` is the one before, whose pack has to be opened. TWIN_ERROR_TRIAL if
 * there is none. */
twin_status twin_slots_undo(twin_slots *slots);

/* Yours: returns 0 if the signature of a pack is good. The pack has not been opened. */
typedef int (*twin_verifier)(void *context, const twin_signed *part);

/* A pack being checked. The fields are private. */
typedef struct twin_check {
    uint8_t stage;
    int8_t status;
    uint16_t query; /* of the self-test */
    twin_slots *slots;
    twin_model *model;
    twin_flash pack;
    uint32_t size;
    twin_opening opening;
} twin_check;

/* Check a pack: the one in use, or, after twin_slots_finish, the update. `pack` is where it lies.
 * In this order, it must be signed so that `verify` returns 0 (with its `context`; NULL if nobody
 * signs); be sound, as twin_open says; have an identity with a counter that is not too old; have
 * the same columns and targets as the pack in use, if that was checked; and answer its self-test.
 * `model` is then open.
 *
 * TWIN_MORE: call twin_check_step until it returns something else; each checks this many bytes, as
 * twin_open_step, or predicts once. All other statuses are those of the first fault, and leave the
 * pack in use as it was. */
#define twin_check_begin TWIN_CONFIGURED(twin_check_begin)
twin_status twin_check_begin(twin_check *check, twin_slots *slots, twin_model *model,
                             twin_pack pack, twin_verifier verify, void *context);
#define twin_check_step TWIN_CONFIGURED(twin_check_step)
twin_status twin_check_step(twin_check *check, uint32_t bytes, void *scratch, uint32_t size);

#ifdef __cplusplus
}
#endif

#endif

#endif
