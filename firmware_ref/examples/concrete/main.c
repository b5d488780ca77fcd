/* A maturity meter for concrete: how strong will this mix become?
 *
 * The pack knows other mixes. For the one at hand the meter learns how strong the youngest samples
 * are, one by one, and predicts the later ones before and after. It belongs to one mix at a time:
 * between mixes it forgets.
 *
 * concrete.py writes model.h and mixes.h, builds this for a Cortex-M4 and compares what it prints
 * with Python. */

#include "twin_store.h"
#include "board.h" /* board_write and board_exit; yours may be a UART */
#include "model.h"
#include "twin_release.h"
#include <string.h>

typedef struct sample {
    uint16_t days;
    float strength; /* in MPa */
} sample;

typedef struct mix {
    const sample *samples; /* the youngest first */
    uint16_t count;
    float amounts[MODEL_FEATURES - 1]; /* the last feature is the age in days */
} mix;

#include "mixes.h"

enum {
    MOST_LEARNT = 3, /* samples of a mix */
    POINTS = 8,      /* most points */
    BLOCK = 1024     /* bytes erased at once */
};

static uint8_t flash[2 * BLOCK];

/* The storage: two erasable blocks. Only these three functions know that they are in RAM. A meter
 * that keeps its points without power has its own versions instead:
 *
 *     fetch     copies from there; memcpy will do if flash is mapped into memory
 *     program   writes erased bytes: a multiple of program_size, at a multiple of it
 *     erase     prepares one of the blocks to be written
 *
 * The sizes are in `storage`. On failure they return anything but 0. */
static int fetch(void *context, uint32_t address, void *bytes, uint32_t size) {
    memcpy(bytes, (const uint8_t *)context + address, size);
    return 0;
}

static int program(void *context, uint32_t address, const void *bytes, uint32_t size) {
    memcpy((uint8_t *)context + address, bytes, size);
    return 0;
}

static int erase(void *context, uint32_t address) {
    memset((uint8_t *)context + address, 255, BLOCK);
    return 0;
}

static const twin_storage storage = {
    .read = fetch,
    .program = program,
    .erase = erase,
    .context = flash,
    .block_size = BLOCK,
    .program_size = 8,
};

static twin_model model;
static twin_store store;
static uint32_t scratch[MODEL_SCRATCH / 4];
static uint32_t points[64]; /* twin_store_size returns the bytes needed */

/* Whether a call succeeded; prints why not. One sample that is refused does not stop the meter. */
static int succeeded(twin_status status) {
    if (status != TWIN_OK) {
        board_write("refused: ");
        board_write(twin_text(status));
        board_write("\n");
    }
    return status == TWIN_OK;
}

/* For what the meter cannot do without. */
static void require(twin_status status) {
    if (!succeeded(status))
        board_exit(1);
}

/* A number whose last digits are decimals. */
static void write_digits(uint32_t value, unsigned decimals) {
    char text[16], *at = text + sizeof text - 1;
    unsigned written = 0;
    *at = 0;
    do {
        if (decimals && written == decimals)
            *--at = '.';
        *--at = (char)('0' + value % 10);
        value /= 10;
        written++;
    } while (value || written <= decimals);
    board_write(at);
}

static void write_number(float value) {
    if (value < 0.0f) {
        board_write("-");
        value = -value;
    }
    if (!(value < 1e6f)) { /* not a number, or none that these digits hold */
        board_write("?");
        return;
    }
    write_digits((uint32_t)(value * 100.0f + 0.5f), 2);
}

/* The features of a mix at an age. */
static const float *features(const mix *of, const sample *at) {
    static float x[MODEL_FEATURES];
    memcpy(x, of->amounts, sizeof of->amounts);
    x[MODEL_FEATURES - 1] = (float)at->days;
    return x;
}

static void learn(const mix *of, const sample *found) {
    if (!succeeded(twin_learn(&store, scratch, sizeof scratch, features(of, found), found->strength,
                              found->days)))
        return;
    board_write("learnt: ");
    write_digits(found->days, 0);
    board_write(" days ");
    write_number(found->strength);
    board_write("\n");
}

static void predict(const mix *of, const sample *at) {
    twin_prediction out;
    if (!succeeded(twin_predict_adapted(&store, scratch, sizeof scratch, features(of, at), &out)))
        return;
    board_write("    ");
    write_digits(at->days, 0);
    board_write(" days ");
    write_number(out.mean);
    board_write(" (");
    write_number(out.low);
    board_write(" to ");
    write_number(out.high);
    board_write("), measured ");
    write_number(at->strength);
    board_write("\n");
}

/* Predict later samples without any knowledge of the mix, and again after each sample learnt. */
static void follow(const mix *one) {
    const sample *last = one->samples + one->count - 1, *known = one->samples, *later;
    unsigned learnt;
    for (learnt = 0; learnt <= MOST_LEARNT; learnt++) {
        if (learnt) {
            known = one->samples + learnt - 1;
            if (known->days >= last->days)
                return;
            learn(one, known);
        }
        for (later = known + 1; later <= last; later++)
            if (later->days > known->days)
                predict(one, later);
    }
}

int main(void) {
    twin_status status;
    unsigned i;
    require(twin_open(&model, model_twin.bytes, MODEL_SIZE));
    require(twin_self_test(&model, model_twin.bytes, scratch, sizeof scratch));
    if (twin_store_size(&model, &storage, POINTS) > sizeof points)
        require(TWIN_ERROR_STORE);
    status = twin_store_open(&store, &model, model_twin.bytes, &storage, points, POINTS);
    while (status == TWIN_MORE)
        status = twin_store_step(&store, scratch, sizeof scratch);
    if (status != TWIN_ERROR_OTHER) /* points of another model are forgotten below */
        require(status);
    for (i = 0; i < sizeof mixes / sizeof *mixes; i++) {
        board_write("mix ");
        write_digits(i + 1, 0);
        board_write("\n");
        require(twin_forget(&store, 0, UINT32_MAX)); /* the mix before */
        follow(&mixes[i]);
    }
    board_write("done\n");
    return 0;
}
