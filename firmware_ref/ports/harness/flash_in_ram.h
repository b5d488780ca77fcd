/* A storage in RAM, for programs that declare `storage` first. */

#ifndef FLASH_IN_RAM_H
#define FLASH_IN_RAM_H

/* Blocks that behave like flash: programming clears bits, and erasing sets them. */
static int fetch(void *blocks, uint32_t address, void *bytes, uint32_t size) {
    const uint8_t *from = (const uint8_t *)blocks + (size_t)address;
    uint8_t *to = (uint8_t *)bytes;
    for (; size; size--)
        *to++ = *from++;
    return 0;
}

static int program(void *blocks, uint32_t address, const void *bytes, uint32_t size) {
    const uint8_t *from = (const uint8_t *)bytes;
    uint8_t *to = (uint8_t *)blocks + (size_t)address;
    for (; size; size--, to++)
        *to = (uint8_t)(*to & *from++);
    return 0;
}

static int erase(void *blocks, uint32_t address) {
    uint8_t *at = (uint8_t *)blocks + (size_t)address;
    uint32_t left;
    for (left = storage.block_size; left; left--)
        *at++ = 255;
    return 0;
}

/* Set up the storage but for its context, two blocks of the bytes returned: the fewest slots. */
static size_t lay_out_blocks(size_t features, size_t room) {
    size_t block = (3 + room) * (24 + 4 * features);
    storage.read = fetch;
    storage.program = program;
    storage.erase = erase;
    storage.program_size = 4;
    storage.block_size = (uint32_t)block;
    return block;
}

#endif
