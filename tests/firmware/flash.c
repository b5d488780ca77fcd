/* A memory that is erased and programmed like flash, and loses power at bad moments.
 *
 * Erasing sets all bits to one value, programming sets some to the other; bytes may be encrypted,
 * so that erased ones read as noise. When the power is cut, some bytes are done and others are not,
 * and some bits of the latter are undecided: they read at random, each time, until they are erased
 * or programmed successfully. */

#include "flash.h"
#include <stddef.h>
#include <string.h>

enum { USED = 28 }; /* bytes of a slot that mean something, at least */

#define FAULT(wrong)                                                                               \
    do {                                                                                           \
        if ((wrong) && !memory->fault)                                                             \
            memory->fault = __LINE__;                                                              \
    } while (0)

uint32_t flash_draw(flash *memory) { /* xorshift64* */
    uint64_t x = memory->random;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    memory->random = x;
    return (uint32_t)((x * 0x2545F4914F6CDD1Du) >> 32);
}

uint32_t flash_below(flash *memory, uint32_t limit) {
    return (uint32_t)(((uint64_t)flash_draw(memory) * limit) >> 32);
}

/* Whether it is time for an error, or for one more. */
static int has_error(flash *memory) {
    int32_t late = memory->calls++ - memory->error;
    return late >= 0 && late < memory->burst;
}

static int flash_read(void *context, uint32_t address, void *bytes, uint32_t size) {
    flash *memory = (flash *)context;
    uint8_t *to = (uint8_t *)bytes;
    uint32_t i;
    FAULT(address % memory->block_size % 4 || size % 4 || !size);
    FAULT(address / memory->block_size != (address + size - 1) / memory->block_size);
    FAULT(address + size > 2 * memory->block_size);
    if (memory->dead || memory->fault || (int32_t)address == memory->unread)
        return 5;
    if (has_error(memory)) {
        memset(to, 0x5A, size);
        memory->hit[address >= memory->block_size] = 1;
        return 6;
    }
    for (i = address; i < address + size; i++) {
        uint8_t bits = memory->cell[i], weak = memory->weak[i];
        if (weak)
            bits = (uint8_t)((bits & ~weak) | (flash_draw(memory) & weak));
        *to++ = (uint8_t)(bits ^ memory->pad[i]);
    }
    return 0;
}

/* What a cut leaves: which bytes are done, and how many bits of the others are undecided. */
typedef struct wreck {
    uint32_t from, to; /* bytes between these are done, */
    uint32_t done;     /* and this many in 16 of the others */
    uint32_t weak;     /* undecided bits in 16 of the rest */
    uint32_t filled;   /* bytes in 16 of the rest: some flash is programmed before it is erased */
    uint32_t few;      /* undecided bits, anywhere */
} wreck;

static wreck break_down(flash *memory, uint32_t size, int erases) {
    static const uint32_t shares[] = {0, 0, 1, 8, 15};
    wreck how = {0, 0, 0, 0, 0, 0};
    switch (flash_below(memory, 4)) {
    case 0: /* almost done */
        how.to = size;
        how.few = flash_below(memory, 4);
        break;
    case 1: /* barely started */
        how.few = flash_below(memory, 4);
        break;
    case 2: /* one end of it, or a part in the middle */
        how.from = flash_below(memory, 2) ? flash_below(memory, size) : 0;
        how.to =
            flash_below(memory, 2) ? how.from + flash_below(memory, size - how.from + 1) : size;
        how.weak = shares[flash_below(memory, 5)];
        break;
    default:
        how.done = shares[flash_below(memory, 5)];
        how.weak = shares[flash_below(memory, 5)];
        how.filled = erases ? shares[flash_below(memory, 5)] : 0;
    }
    return how;
}

/* Program bytes, or erase if NULL, as far as `how` says. */
static void change(flash *memory, uint32_t address, uint32_t size, const uint8_t *bytes,
                   wreck how) {
    uint8_t erased = (uint8_t)memory->erased, bit;
    uint32_t i;
    for (i = 0; i < size; i++) {
        uint32_t at = address + i;
        uint8_t *cell = memory->cell + at, *weak = memory->weak + at;
        uint8_t wanted = bytes ? (uint8_t)(bytes[i] ^ memory->pad[at]) : erased, moved;
        if (bytes) /* a programmed bit stays programmed */
            wanted = (uint8_t)(erased ? *cell & wanted : *cell | wanted);
        moved = (uint8_t)(*cell ^ wanted) & (uint8_t)~memory->worn[at];
        if ((i >= how.from && i < how.to) || (how.done && flash_below(memory, 16) < how.done)) {
            /* Programming decides the bits that it programs, erasing all of them. */
            *weak = (uint8_t)(bytes ? *weak & (erased ? wanted : ~wanted) : 0);
            *cell = wanted;
        } else if (how.filled && flash_below(memory, 16) < how.filled) {
            *cell = (uint8_t)~erased;
            *weak = 0;
        } else if (how.weak) {
            for (bit = 1; bit; bit = (uint8_t)(2 * bit))
                if (moved & bit && flash_below(memory, 16) < how.weak)
                    *weak = (uint8_t)(*weak | bit);
        }
        if (how.few && moved && flash_below(memory, size - i) < how.few) {
            do
                bit = (uint8_t)(1u << flash_below(memory, 8));
            while (!(moved & bit));
            *weak = (uint8_t)(*weak | bit);
            how.few--;
        }
        *cell = (uint8_t)((*cell & ~memory->worn[at]) | memory->level[at]);
        *weak = (uint8_t)(*weak & ~memory->worn[at]);
    }
}

/* Erase or program. Returns whether this is reported as failed: the power is cut meanwhile, or an
 * error occurs, after some of it, all of it, or nothing. */
static int attempt(flash *memory, uint32_t address, uint32_t size, const uint8_t *bytes) {
    wreck how = {0, size, 0, 0, 0, 0};
    int cut = memory->changes++ == memory->cut;
    int error = has_error(memory);
    if (cut) {
        how = break_down(memory, size, !bytes);
        memory->dead = 1;
    } else if (error) {
        how.to = flash_below(memory, 2) ? flash_below(memory, 2) * size : flash_below(memory, size);
    }
    if (cut || error)
        memory->hit[address >= memory->block_size] = 1;
    change(memory, address, size, bytes, how);
    return cut || error;
}

static int flash_program(void *context, uint32_t address, const void *bytes, uint32_t size) {
    flash *memory = (flash *)context;
    const uint8_t *from = (const uint8_t *)bytes;
    uint32_t *hit = memory->hit + (address >= memory->block_size);
    uint32_t i;
    FAULT(address % memory->program_size || size % memory->program_size || !size);
    FAULT(address / memory->block_size != (address + size - 1) / memory->block_size);
    FAULT(address + size > 2 * memory->block_size);
    if (memory->dead || memory->fault)
        return -1;
    if ((int32_t)address == memory->fail || (int32_t)address == memory->skip) {
        *hit = 1;
        return (int32_t)address == memory->fail;
    }
    if (memory->once && memchr(memory->done + address, 1, size))
        return 3;
    if ((int32_t)address == memory->lie)
        *hit = 1;
    for (i = address; i < address + size; i++, from++) {
        if (memory->worn[i])
            *hit = 1;
        /* Twice is an error, unless the block is unfinished and the bytes are the same. */
        if (memory->done[i]) {
            FAULT(!*hit);
            FAULT(!memory->is_worn && i < address + USED && *from != memory->meant[i] &&
                  (*from ^ memory->pad[i] ^ memory->cell[i]) & ~memory->weak[i]);
        }
        memory->done[i] = 1;
        memory->meant[i] = *from;
    }
    return attempt(memory, address, size, (const uint8_t *)bytes) ||
           (int32_t)address == memory->lie;
}

static int flash_erase(void *context, uint32_t address) {
    flash *memory = (flash *)context;
    FAULT(address != 0 && address != memory->block_size);
    if (memory->dead || memory->fault || (int32_t)address == memory->stuck)
        return 1;
    memory->erasures[address != 0]++;
    if (attempt(memory, address, memory->block_size, 0))
        return 2;
    memset(memory->done + address, 0, memory->block_size);
    memory->hit[address != 0] = 0;
    return 0;
}

void flash_reset(flash *memory, twin_storage *storage, uint32_t block_size, uint16_t program_size,
                 uint32_t erased, uint32_t key, uint32_t seed) {
    uint32_t i;
    memset(memory, 0, sizeof *memory);
    memset(memory->cell, (int)erased, sizeof memory->cell);
    memory->erased = erased;
    memory->key = key;
    for (i = 0; key && i < sizeof memory->pad; i++) {
        key ^= key << 13;
        key ^= key >> 17;
        key ^= key << 5;
        memory->pad[i] = (uint8_t)key;
    }
    memory->block_size = storage->block_size = block_size;
    memory->program_size = storage->program_size = program_size;
    memory->random = seed + ((uint64_t)1 << 63);
    memory->cut = memory->error = NEVER;
    memory->burst = 1;
    memory->fail = memory->skip = memory->lie = memory->stuck = memory->unread = -1;
    storage->read = flash_read;
    storage->program = flash_program;
    storage->erase = flash_erase;
    storage->context = memory;
}

void flash_wear(flash *memory, uint32_t address, uint8_t bit, unsigned level) {
    memory->is_worn = 1;
    memory->worn[address] = (uint8_t)(memory->worn[address] | bit);
    memory->level[address] = (uint8_t)((memory->level[address] & ~bit) | (level ? bit : 0));
    memory->weak[address] = (uint8_t)(memory->weak[address] & ~bit);
    memory->cell[address] = (uint8_t)((memory->cell[address] & ~bit) | (level ? bit : 0));
}

void flash_copy(flash *to, const flash *from) {
    uint32_t size = 2 * from->block_size;
    uint64_t random = to->random;
    memcpy(to, from, offsetof(flash, cell));
    to->random = random;
    memcpy(to->cell, from->cell, size);
    memcpy(to->weak, from->weak, size);
    memcpy(to->worn, from->worn, size);
    memcpy(to->level, from->level, size);
    memcpy(to->done, from->done, size);
    memcpy(to->meant, from->meant, size);
    memcpy(to->pad, from->pad, size);
}
