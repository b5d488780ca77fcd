/* The whole program of a device that predicts, learns from what is measured, and takes new models
 * over a serial line, of which each has to prove itself.
 *
 * The host sends frames: a letter, a number of bytes, and the bytes. Each is answered by one line;
 * if the device starts again because of it, by the one of the start.
 *
 *     q X...      predict from features, floats
 *     m X... Y    the same, and then Y is what was measured: for the watch and the store
 *     b           begin an update: erase the bank that is not in use
 *     w BYTES     its next bytes; predictions may go on in between
 *     f           it is complete: check it, and start again with it on trial
 *
 * Answers are a word and words of 32 bits:
 *
 *     started STATUS BANK ON_TRIAL COUNTER LOWEST TRIALS UNDONE POINTS    at each start
 *     predicted MEAN LOW HIGH ADAPTED TARGETS                             floats, and how many Y
 *     done STATUS                                                         of any other frame
 *
 * A trial is confirmed when the watch has seen enough measurements without a flag, and undone at
 * the first flag that says that errors are not those that the pack's intervals promise. */

#include "device.h"
#include "twin_slots.h"
#include "twin_store.h"
#include "twin_watch.h"

#include "product_key.h" /* twinedge keys show product.pub --c > product_key.h */

#ifdef DEVICE_HMAC
#include "hmac_sha256.h"
#define VERIFY hmac_verify
#else
#include "ed25519.h"
#define VERIFY ed25519_verify
#endif

#ifndef DEVICE_SCRATCH
#define DEVICE_SCRATCH 4096 /* bytes */
#endif
#ifndef DEVICE_ENOUGH
#define DEVICE_ENOUGH 100 /* measurements that confirm a trial */
#endif

enum { FRAME = 255, FEATURES = 16, POINTS = 32, KEPT = 24 };
enum { STARTS = 3 }; /* of a trial */
enum { STEP = 1024, TRIES = 4 };

static twin_slots slots;
static twin_model model, other;
static twin_store store;
static twin_watch watch;
static uint32_t slots_memory[128], store_memory[FEATURES + 16 + 5 * POINTS];
static uint32_t scratch[DEVICE_SCRATCH / 4];
static twin_status started; /* how the start went */
static uint32_t now;

static void copy(void *to, const uint8_t *from, unsigned size) {
    uint8_t *at = (uint8_t *)to;
    for (; size; size--)
        *at++ = *from++;
}

static void say_status(twin_status status) {
    uint32_t number = (uint32_t)status;
    device_say("done", &number, 1);
}

/* Check a pack in steps; a device with a watchdog feeds it in between. */
static twin_status check_pack(unsigned bank, twin_model *into) {
    twin_check check;
    twin_status status = twin_check_begin(&check, &slots, into, (twin_pack)device_bank(bank),
                                          VERIFY, (void *)twin_key);
    while (status == TWIN_MORE)
        status = twin_check_step(&check, STEP, scratch, sizeof scratch);
    return status;
}

/* ---- start */

static void open_slots(void) {
    unsigned tries = TRIES;
    started = TWIN_ERROR_STORE;
    if (twin_slots_size(&device_journal, &device_banks) > sizeof slots_memory)
        return;
    do /* what a power cut has left may read otherwise the next time */
        started = twin_slots_open(&slots, &device_journal, &device_banks, slots_memory);
    while (started == TWIN_ERROR_STORAGE && --tries);
    if (started == TWIN_ERROR_STORE)
        return;
    do
        started = check_pack(slots.bank, &model);
    while (started != TWIN_OK && slots.on_trial && twin_slots_undo(&slots) == TWIN_OK);
}

static void open_store(void) {
    twin_status status = TWIN_ERROR_STORE;
    twin_pack pack = (twin_pack)device_bank(slots.bank);
    if (model.features <= FEATURES &&
        twin_store_size(&model, &device_points, POINTS) <= sizeof store_memory)
        status = twin_store_open(&store, &model, pack, &device_points, store_memory, POINTS);
    while (status == TWIN_MORE)
        status = twin_store_step(&store, scratch, sizeof scratch);
    now = store.count ? store.points[store.count - 1].time : 0;
    if (twin_watch_begin(&watch, &model, 900) != TWIN_OK && !status)
        status = TWIN_ERROR_LEVEL;
    started = status == TWIN_ERROR_FULL ? TWIN_OK : status;
}

static void start(void) {
    uint32_t numbers[8];
    device_begin();
    open_slots();
    if (started == TWIN_OK)
        open_store();
    numbers[0] = (uint32_t)started;
    numbers[1] = slots.bank;
    numbers[2] = slots.on_trial;
    numbers[3] = slots.counter;
    numbers[4] = slots.state.lowest;
    numbers[5] = slots.state.trials;
    numbers[6] = slots.state.undone;
    numbers[7] = store.count;
    device_say("started", numbers, 8);
}

/* ---- predictions, and what they are worth */

/* Evidence about a pack on trial. The watch has seen what the pack alone predicted: points learnt
 * on site must not hide that it is worse. */
static void decide_trial(void) {
    if (!slots.on_trial)
        return;
    if (twin_watch_flags(&watch) & TWIN_WATCH_DRIFT) {
        if (twin_slots_undo(&slots) == TWIN_OK)
            device_restart();
    } else if (watch.targets >= DEVICE_ENOUGH) {
        (void)twin_slots_confirm(&slots); /* if it fails, the next measurement tries again */
    }
}

static void learn(const float *x, const twin_prediction *given, float target) {
    twin_status status = TWIN_ERROR_FULL;
    twin_watch_add_target(&watch, &model, given, target);
    if (store.count < POINTS)
        status = twin_learn(&store, scratch, sizeof scratch, x, target, ++now);
    if (status == TWIN_ERROR_FULL && twin_keep_latest(&store, KEPT) == TWIN_OK)
        (void)twin_learn(&store, scratch, sizeof scratch, x, target, ++now);
}

static void predict(const uint8_t *frame, unsigned size, unsigned measured) {
    float x[FEATURES + 1];
    twin_prediction own, adapted;
    uint32_t numbers[5];
    twin_status status = started;
    if (status == TWIN_OK && size != 4 * (model.features + measured))
        status = TWIN_ERROR_QUERY;
    if (status == TWIN_OK) {
        copy(x, frame, size);
        status = twin_predict(&model, scratch, sizeof scratch, x, &own, 0);
    }
    if (status == TWIN_OK)
        status = twin_predict_adapted(&store, scratch, sizeof scratch, x, &adapted);
    if (status != TWIN_OK) {
        say_status(status);
        return;
    }
    twin_watch_add_prediction(&watch, &model, &own);
    if (measured)
        learn(x, &own, x[model.features]);
    copy(numbers, (const uint8_t *)&own.mean, 4);
    copy(numbers + 1, (const uint8_t *)&own.low, 4);
    copy(numbers + 2, (const uint8_t *)&own.high, 4);
    copy(numbers + 3, (const uint8_t *)&adapted.mean, 4);
    numbers[4] = watch.targets;
    decide_trial();
    device_say("predicted", numbers, 5);
}

/* ---- updates */

static void finish(void) {
    twin_status status = twin_slots_finish(&slots);
    if (status == TWIN_OK)
        status = check_pack(!slots.bank, &other);
    if (status == TWIN_OK)
        status = twin_slots_try(&slots, STARTS);
    say_status(status);
    if (status == TWIN_OK)
        device_restart();
}

int main(void) {
    uint8_t frame[2 + FRAME];
    start();
    for (;;) {
        const uint8_t *bytes = frame + 2;
        unsigned size;
        device_read(frame, 2);
        size = frame[1];
        device_read(frame + 2, size);
        if (frame[0] == 'q' || frame[0] == 'm')
            predict(bytes, size, frame[0] == 'm');
        else if (frame[0] == 'b')
            say_status(twin_slots_begin(&slots));
        else if (frame[0] == 'w')
            say_status(twin_slots_write(&slots, bytes, size));
        else if (frame[0] == 'f')
            finish();
        else
            device_other(frame[0], bytes, size);
    }
}
