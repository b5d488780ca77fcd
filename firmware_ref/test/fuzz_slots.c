/* Whatever bytes the journal of two banks holds, whatever comes as an update, and however both
 * storages fail, twin_slots.h stays within its memory, names one of the two banks, and never
 * touches the one in use; and self-test, identity and signature are found within the pack or not at
 * all.
 *
 * An input is eight bytes that describe the storages, then the two blocks of the journal, then the
 * update. Random bytes are neither records nor packs, so the mutator also writes those with the
 * right checksums, and changes one thing of them.
 *
 * To be linked with libFuzzer or with fuzz_alone.c. At the end it prints what it saw, as one line
 * of JSON. */

/* clang-format off */
#define COUNTERS(COUNTER)                                                                          \
    COUNTER(signed_packs) COUNTER(identities) COUNTER(verified) COUNTER(accepted) COUNTER(tried)   \
    COUNTER(confirmed) COUNTER(undone) COUNTER(restarts) COUNTER(failed)
/* clang-format on */

#include "fuzz_pack.h"
#include "fuzz_storage.h"
#include "fuzz_store_pack.h"
#include "twin_slots.h"

enum { CONTROL = 8, RECORD = 20, HEAD_BYTES = 28, OWNER = 0x4B4E4142 };
enum { SELF_TEST = 13, IDENTITY = 14, SIGNATURE = 15 };
enum { IDENTITY_BYTES = 72, SIGNATURE_HEAD = 20, ANSWER = 12, QUERIES = 2 };
enum { BANK = 2048, SCRATCH = 1 << 15 }; /* enough for every kernel */

static uint32_t slot_of(uint32_t unit) {
    return up(8 + RECORD, unit);
}

/* The journal that the first bytes of an input describe. */
static void describe_log(device *log, const uint8_t *data) {
    uint32_t unit = (uint32_t)1 << data[0] % 6;
    uint32_t slots = HEAD_SLOTS + 1 + data[1] % 6;
    describe_storage(log, unit, slots * slot_of(unit),
                     (data[3] % 4 ? 0 : FAILS) | (data[3] / 4 % 8 ? 0 : WANDERS) |
                         (data[3] / 32 % 2 ? 0 : ZEROS));
}

/* A pack of its own with a self-test that it passes, an identity and a signature of any bytes. */
static uint32_t make_release(uint8_t *out, uint32_t counter, uint64_t *rng) {
    static const uint32_t more[] = {SELF_TEST, IDENTITY, SIGNATURE};
    uint32_t old = get(PACK + 6, 2), count = old + 3, from = up(HEADER + ENTRY * old, 16), at, i;
    uint32_t entry = 2 * up(get(PACK + 20, 2), 2) + ANSWER;
    uint32_t lengths[] = {4 + QUERIES * entry, IDENTITY_BYTES, SIGNATURE_HEAD};
    uint32_t algorithm = 1 + below(rng, 2), key = algorithm == TWIN_ED25519 ? 64 : 32;
    uint32_t shift = up(HEADER + ENTRY * count, 16) - from;
    lengths[2] += key;
    memset(out, 0, BANK);
    memcpy(out, PACK, HEADER + ENTRY * old);
    memcpy(out + from + shift, PACK + from, sizeof PACK - from);
    for (i = 0; i < old; i++)
        put(out + HEADER + ENTRY * i + 4, get(out + HEADER + ENTRY * i + 4, 4) + shift, 4);
    at = (uint32_t)sizeof PACK + shift;
    for (i = 0; i < 3; i++) {
        uint8_t *place = out + HEADER + ENTRY * (old + i), *content = out + at;
        put(place, more[i], 2);
        put(place + 2, 0, 2);
        put(place + 4, at, 4);
        put(place + 8, lengths[i], 4);
        if (more[i] == SELF_TEST) {
            uint32_t q;
            put(content, QUERIES, 2);
            put(content + 2, 1, 2);
            for (q = 0; q < QUERIES; q++)
                put(content + 4 + q * entry, below(rng, 3) * 1000, 4);
        } else if (more[i] == IDENTITY) {
            memset(content, (int)below(rng, 256), 16);
            put(content + 32, counter, 4);
            put(content + 40, below(rng, 8) / 7, 4); /* of the schema */
        } else {
            put(content + 8, algorithm, 2);
            put(content + 10, key, 2);
            put(content + 12, draw(rng), 4);
            memset(content + SIGNATURE_HEAD, (int)below(rng, 256), key);
        }
        at = up(at + lengths[i], 16);
    }
    put(out + 4, 3, 2);
    put(out + 6, count, 2);
    put(out + 8, at, 4);
    return at;
}

static uint8_t *section_of(uint8_t *pack, uint32_t size, uint32_t kind) {
    section all[MOST_SECTIONS];
    uint32_t i, count = read_table(all, pack, size);
    for (i = 0; i < count; i++)
        if (all[i].kind == kind && all[i].length >= ANSWER)
            return pack + all[i].at;
    return 0;
}

/* Write the answers of a model behind the queries of a self-test that ends before `end`. */
static void answer_queries(const twin_model *model, uint8_t *test, const uint8_t *end) {
    uint32_t entry = 2 * up(model->features, 2) + ANSWER, i, q;
    static uint32_t scratch[SCRATCH / 4];
    for (q = 0; q < QUERIES; q++) {
        uint8_t *at = test + 4 + q * entry, *answer = at + entry - ANSWER;
        int16_t query[8];
        twin_raw raw;
        if (at + entry > end)
            return;
        for (i = 0; i < model->features; i++)
            query[i] = (int16_t)get_signed(at + 2 * i, 2);
        if (twin_predict_raw(model, scratch, sizeof scratch, query, &raw, 0) != TWIN_OK)
            return;
        put(answer, (uint32_t)raw.mean, 4);
        put(answer + 4, raw.root, 4);
        put(answer + 8, raw.scale, 4);
    }
}

/* Let the self-test have the answers of this model, the signature the copies of the header, and
 * repair the checksums. */
static void complete_release(uint8_t *pack, uint32_t size) {
    uint8_t *test = section_of(pack, size, SELF_TEST), *sign = section_of(pack, size, SIGNATURE);
    if (sign)
        memcpy(sign, pack + 4, 8);
    repair_file(pack, size);
    if (test && get(pack + 20, 2) == get(PACK + 20, 2)) {
        uint32_t *copy = (uint32_t *)allocate(size);
        twin_model model;
        memcpy(copy, pack, size);
        if (twin_open(&model, copy, size) == TWIN_OK)
            answer_queries(&model, test, pack + size);
        free(copy);
        repair_file(pack, size);
    }
}

/* All bytes that it is given, so that AddressSanitizer sees whether they are there. */
/* cppcheck-suppress constParameter */
static int verify(void *context, const twin_signed *part) {
    uint32_t i, sum = 0;
    for (i = 0; i < part->message_size; i++)
        sum += part->message[i];
    for (i = 0; i < part->size; i++)
        sum += part->signature[i];
    for (i = 0; i < 8; i++)
        sum += part->key[i];
    CHECK(part->size == (part->algorithm == TWIN_ED25519 ? 64 : 32));
    CHECK(part->message + part->message_size == part->signature);
    ADD(verified, 1);
    return context && sum % 4 == 0; /* some signatures are wrong */
}

/* Signature and identity of bytes that nobody has checked, in exactly as much memory. */
static void try_sections(const uint8_t *data, uint32_t size) {
    uint8_t *pack = (uint8_t *)allocate(size);
    twin_signed part;
    twin_release release;
    memcpy(pack, data, size);
    if (twin_signature(pack, size, &part) == TWIN_OK) {
        (void)verify(0, &part);
        CHECK(part.message == pack + 20 && part.signature + part.size <= pack + size);
        ADD(signed_packs, 1);
    }
    if (twin_identity(pack, size, &release) == TWIN_OK) {
        uint32_t i, sum = 0;
        for (i = 0; i < 16; i++)
            sum +=
                (uint32_t)release.id[i] + release.parent[i] + release.schema[i] + release.table[i];
        ADD(identities, sum || release.counter);
    }
    free(pack);
}

/* What a start leaves: the slots, and their memory. */
typedef struct opened_slots {
    twin_slots slots;
    void *memory;
} opened_slots;

static twin_status open_slots(opened_slots *all, const device *log, const device *banks) {
    uint32_t tries = 0;
    twin_status status;
    all->memory = allocate(twin_slots_size(&log->storage, &banks->storage));
    do {
        memset(&all->slots, 0xA5, sizeof all->slots);
        status = twin_slots_open(&all->slots, &log->storage, &banks->storage, all->memory);
    } while (status == TWIN_ERROR_STORAGE && ++tries < 4);
    CHECK(all->slots.bank <= 1);
    return status;
}

/* Check the pack of a bank, in memory that ends with it. */
static twin_status check_bank(twin_slots *slots, const device *banks, uint32_t bank,
                              uint64_t *rng) {
    uint8_t *pack = (uint8_t *)allocate(BANK);
    memory scratch = allocate_anywhere(one_in(rng, 32) ? 64 : SCRATCH, rng);
    uint32_t step = 1 + below(rng, 400), steps = 0;
    int some_fail = one_in(rng, 4);
    twin_model model;
    twin_check check;
    twin_release release;
    twin_status status;
    memset(&check, 0xA5, sizeof check);
    memset(&model, 0xA5, sizeof model);
    memcpy(pack, banks->cells + bank * BANK, BANK);
    status = twin_check_begin(&check, slots, &model, pack, one_in(rng, 8) ? 0 : verify,
                              some_fail ? slots : 0);
    while (status == TWIN_MORE) {
        CHECK(++steps < 8192);
        status = twin_check_step(&check, step, scratch.start, scratch.size);
    }
    CHECK(twin_check_step(&check, step, scratch.start, scratch.size) == status);
    CHECK(status <= TWIN_OK && status > -STATUSES && (status == TWIN_OK) == (model.kernel != 0));
    if (!status) {
        CHECK(twin_identity(pack, get(pack + 8, 4), &release) == TWIN_OK);
        CHECK(release.counter >= slots->state.lowest);
        CHECK(twin_self_test(&model, pack, scratch.start, scratch.size) == TWIN_OK);
        ADD(accepted, 1);
    }
    free(scratch.block);
    free(pack);
    return status;
}

static twin_status send(twin_slots *slots, const uint8_t *data, uint32_t size, uint64_t *rng) {
    twin_status status = twin_slots_begin(slots);
    uint32_t at = 0;
    while (!status && at < size) {
        uint32_t most = any_size(rng, 9), more = most < size - at ? most : size - at;
        uint8_t *piece = (uint8_t *)allocate(more);
        memcpy(piece, data + at, more);
        status = twin_slots_write(slots, piece, more);
        free(piece);
        at += more;
    }
    return status ? status : twin_slots_finish(slots);
}

static twin_status update(twin_slots *slots, const device *banks, const uint8_t *data,
                          uint32_t size, uint64_t *rng) {
    twin_status status = send(slots, data, size, rng);
    if (!status)
        status = check_bank(slots, banks, !slots->bank, rng);
    if (!status)
        status = twin_slots_try(slots, (uint8_t)(1 + below(rng, 3)));
    ADD(tried, !status);
    return status;
}

/* Any call, in any order. */
static twin_status any_call(twin_slots *slots, const device *banks, const uint8_t *data,
                            uint32_t size, uint64_t *rng) {
    twin_status status;
    switch (below(rng, 9)) {
    case 0:
        return check_bank(slots, banks, slots->bank, rng);
    case 1:
        status = twin_slots_confirm(slots);
        ADD(confirmed, !status);
        return status;
    case 2:
        status = twin_slots_undo(slots);
        ADD(undone, !status);
        return status;
    case 3:
        return twin_slots_try(slots, (uint8_t)below(rng, 3));
    case 4:
        return twin_slots_write(slots, data, below(rng, size + 1));
    case 5:
        return twin_slots_finish(slots);
    case 6:
        return twin_slots_begin(slots);
    default:
        return update(slots, banks, data, size, rng);
    }
}

/* Starts and calls; the bank in use keeps its bytes, and what is settled is there at the next
 * start. */
static void try_slots(device *log, device *banks, const uint8_t *data, uint32_t size,
                      uint64_t *rng) {
    uint32_t starts = 1 + below(rng, 4);
    while (starts--) {
        uint32_t calls = below(rng, 8);
        opened_slots all, again;
        twin_slots *slots = &all.slots;
        twin_status status = open_slots(&all, log, banks);
        CHECK(status <= TWIN_OK && status > -STATUSES);
        statuses[-status]++;
        ADD(restarts, 1);
        while (calls--) {
            uint32_t bank = slots->bank;
            uint32_t crc = crc_of(banks->cells + bank * BANK, BANK);
            status = any_call(slots, banks, data, size, rng);
            CHECK(status <= TWIN_OK && status > -STATUSES);
            CHECK(crc == crc_of(banks->cells + bank * BANK, BANK));
            CHECK(slots->bank <= 1 && slots->state.current <= 1);
            ADD(failed, status == TWIN_ERROR_STORAGE);
            statuses[-status]++;
        }
        if (is_reliable(log) && is_reliable(banks) && slots->settled) {
            twin_slots_state old = slots->state;
            CHECK(open_slots(&again, log, banks) == TWIN_OK);
            CHECK(again.slots.state.current == old.current);
            CHECK(again.slots.state.lowest == old.lowest);
            CHECK(again.slots.state.trial == old.trial - (old.trial != 0));
            CHECK(again.slots.state.undone == old.undone + (old.trial == 1));
            free(again.memory);
        }
        free(all.memory);
    }
}

static void report(void) {
    (void)printf("{");
    print_counts();
    (void)printf("}\n");
}

/* Random numbers depend on the bytes alone, so findings can be repeated. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t control[CONTROL] = {0};
    uint32_t there, length;
    uint64_t rng = crc_of(data, (uint32_t)size);
    device log, banks;
    CHECK(executions || !atexit(report));
    memcpy(control, data, size < CONTROL ? size : CONTROL);
    describe_log(&log, control);
    describe_storage(&banks, (uint32_t)1 << control[2] % 9, BANK, control[4] % 4 ? 0 : FAILS);
    banks.storage.read = 0;
    log.rng = rng;
    banks.rng = rng + 1;
    erase_all(&log);
    erase_all(&banks);
    length = 2 * log.storage.block_size;
    there = size < CONTROL ? 0 : (uint32_t)size - CONTROL;
    if (there)
        memcpy(log.cells, data + CONTROL, there < length ? there : length);
    data += CONTROL + length;
    there = there > length ? there - length : 0;
    if (there > BANK + 64)
        there = BANK + 64;
    if (control[5] % 4) { /* what came with the program */
        uint64_t own = control[5];
        complete_release(banks.cells, make_release(banks.cells, control[6] % 4, &own));
    } else {
        memcpy(banks.cells, data, there < BANK ? there : BANK);
    }
    if (there) {
        try_sections(data, there);
        try_slots(&log, &banks, data, there, &rng);
    } else {
        try_slots(&log, &banks, control, CONTROL, &rng);
    }
    free(banks.cells);
    free(log.cells);
    executions++;
    return 0;
}

/* Mutations. */

/* A journal as slots write it, with states of all kinds. */
static void write_log(uint8_t *at, const device *log, uint64_t *rng) {
    uint32_t slot = slot_of(log->storage.program_size), slots = log->storage.block_size / slot;
    uint32_t generation = 1 + below(rng, 3), count = below(rng, slots - HEAD_SLOTS + 1), i, k;
    memset(at, erased_cell(log), log->storage.block_size);
    for (i = 0; i < count; i++) {
        uint8_t *record = at + (HEAD_SLOTS + i) * slot, sum[8 + RECORD];
        put(record + 4, i, 4);
        for (k = 0; k < RECORD; k += 4)
            put(record + 8 + k, one_in(rng, 8) ? draw(rng) : below(rng, k ? 4 : 2), 4);
        put(sum, generation, 4);
        memcpy(sum + 4, record + 4, 4 + RECORD);
        put(record, crc_of(sum, sizeof sum), 4);
    }
    put(at + 4, generation, 4);
    put(at + 8, one_in(rng, 32) ? draw(rng) : OWNER, 4);
    put(at + 12, 0, 4);
    put(at + 16, slot | RECORD << 16, 4);
    put(at + 20, 0, 4);
    put(at + 24, (HEAD_SLOTS + count) | count << 16, 4);
    put(at, crc_of(at + 4, HEAD_BYTES - 4), 4);
    for (i = 1; i < HEAD_SLOTS; i++)
        memcpy(at + i * slot, at, HEAD_BYTES);
}

/* Change a field of the header, of the table or of a section of a release, or any byte. */
static void change_release(uint8_t *pack, uint32_t size, uint64_t *rng) {
    uint32_t count = get(pack + 6, 2), kind = SELF_TEST + below(rng, 3);
    uint8_t *content = section_of(pack, size, kind);
    uint8_t *at = pack + below(rng, size - 4);
    if (one_in(rng, 3) && count < MOST_SECTIONS)
        at = pack + HEADER + ENTRY * (count - 1 - below(rng, 3)) + 4 * below(rng, 3);
    else if (one_in(rng, 2) && content && content + 40 < pack + size)
        at = content + 4 * below(rng, 10);
    if (at + 4 > pack + size)
        return;
    put(at, one_in(rng, 3) ? draw(rng) : get(at, 4) + (one_in(rng, 2) ? 1 : 16 * below(rng, 8)), 4);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
    uint64_t rng = seed;
    uint32_t length, there;
    uint8_t *pack;
    device log;
    if (most < USUAL_BYTES)
        return LLVMFuzzerMutate(data, size, most);
    if (size < CONTROL || one_in(&rng, 4)) {
        put(data, draw(&rng), 4);
        put(data + 4, draw(&rng), 4);
        size = CONTROL;
    }
    describe_log(&log, data);
    length = CONTROL + 2 * log.storage.block_size;
    pack = data + length;
    if (size <= length) {
        memset(data + CONTROL, erased_cell(&log), length - CONTROL);
        if (!one_in(&rng, 4))
            write_log(data + CONTROL + below(&rng, 2) * log.storage.block_size, &log, &rng);
        there = make_release(pack, below(&rng, 6), &rng);
        complete_release(pack, there);
        return length + there;
    }
    there = (uint32_t)size - length;
    switch (below(&rng, 8)) {
    case 0:
        write_log(data + CONTROL + below(&rng, 2) * log.storage.block_size, &log, &rng);
        break;
    case 1:
        flip_bit(data + CONTROL, length - CONTROL, &rng);
        break;
    case 2:
        there = (uint32_t)LLVMFuzzerMutate(pack, there, USUAL_BYTES - length);
        break;
    case 3:
        there = make_release(pack, below(&rng, 6), &rng);
        complete_release(pack, there);
        break;
    default:
        if (there > HEADER + ENTRY)
            change_release(pack, there, &rng);
        if (there > HEADER + ENTRY && !one_in(&rng, 4))
            repair_file(pack, there);
    }
    return length + there;
}
