/* Counts what the parts of an update take, and verifies signatures, with the verifier that it is
 * compiled with. Instead of queries the image has messages that were signed: for each the bytes of
 * the message, a word; the key, 32 bytes; 64 bytes of signature; and the message, filled up to a
 * multiple of 4. The pack is signed, too, by the first of the keys.
 *
 *     empty COUNTS                 of measuring nothing
 *     verified STATUS COUNTS       for each message
 *     found STATUS COUNTS          twin_signature
 *     signed STATUS COUNTS         verifying the pack
 *     begun STATUS COUNTS          twin_slots_begin; here and below without the memories' own work
 *     written STATUS COUNTS        twin_slots_write of all bytes, and twin_slots_finish
 *     opened STATUS COUNTS         the pack, in steps
 *     tested STATUS COUNTS         its self-test
 *     tried STATUS COUNTS          twin_slots_try
 *     started STATUS COUNTS        twin_slots_open, which counts a start
 *     confirmed STATUS COUNTS
 *     stack BYTES BYTES            high-water marks of verifying, and of the other calls
 *     done */

#include "../../src/twin_slots.h"
#include "board.h"

static uint32_t number[2];
static uintptr_t top;

#include "marks.h"

#ifdef DEVICE_HMAC
#include "../../examples/update/hmac_sha256.h"
#define VERIFY    hmac_verify
#define ALGORITHM TWIN_HMAC_SHA256
#else
#include "../../examples/update/ed25519.h"
#define VERIFY    ed25519_verify
#define ALGORITHM TWIN_ED25519
#endif

enum { KEY = 32, SIGNATURE = 64, UNIT = 64, SLOTS = 4, LOG = SLOTS * 28, PIECE = 64 };

static twin_model model;
static twin_slots slots;
static twin_check check;
static uint32_t memory[64];
static uint8_t *scratch;
static size_t scratch_size;
static uint32_t spent; /* counts by the memories themselves */

/* Blocks that behave like flash: programming clears bits, and erasing sets them. */
typedef struct blocks {
    uint8_t *bytes;
    uint32_t size; /* of one */
} blocks;

static int fetch(void *context, uint32_t address, void *bytes, uint32_t size) {
    const uint8_t *from = ((const blocks *)context)->bytes + address;
    uint8_t *to = (uint8_t *)bytes;
    uint32_t before = board_counter();
    for (; size; size--)
        *to++ = *from++;
    spent += board_counter() - before;
    return 0;
}

static int program(void *context, uint32_t address, const void *bytes, uint32_t size) {
    const uint8_t *from = (const uint8_t *)bytes;
    uint8_t *to = ((const blocks *)context)->bytes + address;
    uint32_t before = board_counter();
    for (; size; size--, to++)
        *to = (uint8_t)(*to & *from++);
    spent += board_counter() - before;
    return 0;
}

static int erase(void *context, uint32_t address) {
    const blocks *own = (const blocks *)context;
    uint8_t *at = own->bytes + address;
    uint32_t before = board_counter(), left;
    for (left = own->size; left; left--)
        *at++ = 255;
    spent += board_counter() - before;
    return 0;
}

static blocks log_blocks, bank_blocks;
static twin_storage storage = {fetch, program, erase, &log_blocks, LOG, 4};
static twin_storage banks = {0, program, erase, &bank_blocks, 0, UNIT};

static void begin(void) {
    spent = 0;
    number[1] = board_counter();
}

static void end(const char *word, twin_status status) {
    number[1] = board_counter() - number[1] - spent;
    number[0] = (uint32_t)status;
    write_line(word, 2);
}

static twin_status verify(twin_flash key, const twin_signed *part) {
    return VERIFY((void *)(uintptr_t)key, part) ? TWIN_ERROR_SIGNATURE : TWIN_OK;
}

static void verify_messages(void) {
    twin_flash at = PLACE(board_queries), last = at + 4 + twini_u32(at);
    for (at += 4; at < last;) {
        twin_signed part = {0, 0, 0, 0, 0, 0};
        twin_flash key = at + 4;
        part.algorithm = ALGORITHM;
        part.message_size = twini_u32(at);
        part.signature = key + KEY;
        part.message = part.signature + SIGNATURE;
        at = part.message + twini_align(part.message_size, 4);
        begin();
        end("verified", verify(key, &part));
    }
}

/* Give the storages their blocks. */
static void lay_out(uint32_t bank) {
    uint8_t *room = (uint8_t *)board_memory(2 * LOG + 2 * bank + scratch_size);
    uint32_t i;
    if (!room)
        stop("out of memory\n");
    log_blocks.bytes = room;
    log_blocks.size = LOG;
    bank_blocks.bytes = room + 2 * LOG;
    bank_blocks.size = banks.block_size = bank;
    scratch = room + 2 * LOG + 2 * bank;
    for (i = 0; i < 2; i++)
        (void)erase(&log_blocks, i * LOG);
}

static void receive(twin_flash pack, uint32_t size) {
    uint32_t at, left;
    begin();
    end("begun", twin_slots_begin(&slots));
    begin();
    for (at = 0; at < size; at += left) {
        left = size - at < PIECE ? size - at : PIECE;
        if (twin_slots_write(&slots, pack + at, left))
            stop("not written\n");
    }
    end("written", twin_slots_finish(&slots));
}

static void verify_pack(twin_flash pack, uint32_t size, twin_flash key) {
    twin_signed part;
    twin_status status;
    begin();
    status = twin_signature(pack, size, &part);
    end("found", status);
    begin();
    end("signed", verify(key, &part));
}

static void check_update(twin_flash pack) {
    twin_status status = twin_check_begin(&check, &slots, &model, (twin_pack)pack, 0, 0);
    begin();
    while (status == TWIN_MORE && check.stage == 0)
        status = twin_check_step(&check, 1024, scratch, (uint32_t)scratch_size);
    end("opened", status == TWIN_MORE ? TWIN_OK : status);
    begin();
    while (status == TWIN_MORE)
        status = twin_check_step(&check, 1024, scratch, (uint32_t)scratch_size);
    end("tested", status);
}

int main(void) {
    twin_flash pack = PLACE(board_pack), key = PLACE(board_queries) + 8;
    uint32_t size = twini_u32(pack + 8), verifying, bank = UNIT;
    if (twin_open(&model, (twin_pack)pack, size))
        stop("refused\n");
    scratch_size = twin_scratch_size(&model);
    while (bank < size)
        bank *= 2;
    lay_out(bank);
    board_start_counter();
    begin();
    number[0] = board_counter() - number[1];
    write_line("empty", 1);
    top = stack_pointer();
    paint();
    verify_messages();
    verify_pack(pack, size, key);
    verifying = (uint32_t)used();
    paint();
    if (twin_slots_size(&storage, &banks) > sizeof memory ||
        twin_slots_open(&slots, &storage, &banks, memory))
        stop("not opened\n");
    receive(pack, size);
    check_update(bank_blocks.bytes + bank);
    begin();
    end("tried", twin_slots_try(&slots, 2));
    begin();
    end("started", twin_slots_open(&slots, &storage, &banks, memory));
    slots.features = model.features;
    begin();
    end("confirmed", twin_slots_confirm(&slots));
    if (twin_slots_undo(&slots) != TWIN_ERROR_TRIAL) /* there is none now */
        stop("undone\n");
    number[0] = verifying;
    number[1] = (uint32_t)used();
    write_line("stack", 2);
    write_line("done", 0);
    board_exit(0);
}
