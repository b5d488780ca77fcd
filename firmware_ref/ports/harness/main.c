/* Evaluates the queries of the image with its pack, and reports the results to the host.
 *
 * Each line is a word and numbers of eight hexadecimal digits:
 *
 *     open ANYTHING CONTEXT STACK        bytes of twin_model, high-water mark of twin_open
 *     kernel BYTES BYTES                 the first eight of twin_kernel, of which six are numbers
 *     scratch BYTES STACK                twin_scratch_size, mark of the first prediction
 *     empty COUNTS                       of measuring nothing
 *     opening COUNTS                     of twin_open
 *     query MEAN SPREAD MEMBERS COUNTS   for each: bits of the floats, a hash of the estimates
 *     bound SCALE LOW HIGH OUTSIDE MISSING   after each, if the runtime has intervals
 *     done
 *
 * For several targets, query and bound of each, the first one first, with the counts of all.
 *
 * A hash of 0 means that the estimates were not kept, for lack of memory. */

#include "board.h"
#include "../../include/twin_host.h"
#include "../../src/twin_read.h"

static twin_model model;
static twin_prediction out[TWIN_TARGETS];
static uint32_t number[4 + TWIN_INTERVALS];
static size_t scratch_size;
static uint8_t *scratch;
static uintptr_t top; /* the stack pointer where painting starts */
static unsigned char counting;
static int32_t *members;
static float *x;

#include "marks.h"

/* Constant where this build has no choice. */
#define TARGETS (TWIN_TARGETS > 1 ? model.targets : 1u)

static uint32_t hash(unsigned target) {
    const int32_t *mine = members + target * (size_t)model.members;
    uint32_t value = 2166136261u;
    unsigned i;
    for (i = 0; i < model.members; i++)
        value = (value ^ (uint32_t)mine[i]) * 16777619u;
    return value;
}

/* Find memory for the query and the scratch, and for the estimates if there is enough. */
static void find_room(void) {
    size_t query = 4 * (size_t)model.features;
    size_t estimates = 4 * (size_t)model.members * TARGETS;
    uint8_t *memory;
    scratch_size = (size_t)twin_scratch_size(&model);
    memory = (uint8_t *)board_memory(scratch_size + query + estimates);
    if (memory) {
        members = (int32_t *)(void *)memory;
        memory += estimates;
    } else {
        memory = (uint8_t *)board_memory(scratch_size + query);
    }
    if (!memory)
        stop("out of memory\n");
    x = (float *)(void *)memory;
    scratch = memory + query;
}

#if TWIN_HOST
/* A host prepares its model: half of this is for that, the rest for its scratch. */
#define ROOMY ((size_t)1 << 24)

static void prepare(void) {
    uint32_t size = twin_prepared_size(&model);
    uint8_t *memory = (uint8_t *)board_memory(ROOMY);
    if (size && twin_prepare(&model, memory + ROOMY / 2, size))
        stop("not prepared\n");
    find_room();
}
#endif

static twin_status predict_targets(void) {
#if TWIN_TARGETS > 1
    twin_run run;
    if (model.targets > 1) {
        (void)twin_begin(&run, &model, scratch, (uint32_t)scratch_size, x, members);
        (void)twin_step(&run, TWIN_ALL); /* which read_targets refuses where begin has */
        return twin_read_targets(&run, out, model.targets);
    }
#endif
    return twin_predict(&model, scratch, (uint32_t)scratch_size, x, out, members);
}

/* Predict from the query at `at`; counts go to number[3]. */
static void predict(twin_flash at) {
    uint32_t *feature = (uint32_t *)(void *)x;
    unsigned left;
    for (left = model.features; left; left--, at += 4)
        *feature++ = twini_u32(at);
    if (!counting) {
        top = stack_pointer();
        paint();
    }
    number[3] = board_counter();
    if (predict_targets())
        stop("refused\n");
    number[3] = board_counter() - number[3];
}

/* Counts go to number[0]. */
static void open_pack(void) {
    twin_flash pack = PLACE(board_pack);
    number[0] = board_counter();
    if (twin_open(&model, pack, twini_u32(pack + 8)))
        stop("refused\n");
    number[0] = board_counter() - number[0];
}

int main(void) {
    twin_flash at = PLACE(board_queries), end;

    top = stack_pointer();
    paint();
    open_pack();
    number[2] = (uint32_t)used();
    number[1] = sizeof model;
    write_line("open", 3);
    __builtin_memcpy(number, model.kernel, 8);
    write_line("kernel", 2);
    find_room();
    end = at + (twini_size)twini_u32(at) + 4;
    at += 4;
    predict(at);
    number[1] = (uint32_t)used();
    number[0] = (uint32_t)scratch_size;
    write_line("scratch", 2);

    board_start_counter();
    counting = 1;
    number[0] = board_counter();
    number[0] = board_counter() - number[0];
    write_line("empty", 1);
    open_pack();
    write_line("opening", 1);
#if TWIN_HOST
    prepare();
#endif
    for (; at != end; at += 4 * model.features) {
        uint32_t counts;
        unsigned target;
        predict(at);
        counts = number[3];
        for (target = 0; target < TARGETS; target++) {
            __builtin_memcpy(number, out + target, 8);
            number[2] = members ? hash(target) : 0;
            number[3] = counts;
            write_line("query", 4);
#if TWIN_INTERVALS
            __builtin_memcpy(number, &out[target].scale, sizeof number);
            write_line("bound", 5);
#endif
        }
    }
    write_line("done", 0);
    board_exit(0);
}
