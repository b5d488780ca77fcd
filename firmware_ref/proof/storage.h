/* A storage whose reads return anything, and each of whose calls may fail. */

#ifndef TWIN_PROOF_STORAGE_H
#define TWIN_PROOF_STORAGE_H

#include "proof.h"

#include "twin_journal.h"

/* Reads of one address may return different bytes each time: power cuts leave such bytes. */
static int storage_read(void *context, uint32_t address, void *bytes, uint32_t size) {
    const twin_storage *parts = context;
    //@ assert multiple: address % 4 == 0 && size % 4 == 0;
    //@ assert inside: address + size <= 2 * parts->block_size;
    if (Frama_C_nondet(0, 1))
        return 1;
    FILL(bytes, size);
    return 0;
}

static int storage_program(void *context, uint32_t address, const void *bytes, uint32_t size) {
    const twin_storage *parts = context;
    //@ assert multiple: address % parts->program_size == 0 && size % parts->program_size == 0;
    //@ assert inside: address + size <= 2 * parts->block_size;
    //@ assert readable: \valid_read((char *)bytes + (0 .. size - 1));
    return Frama_C_nondet(0, 1);
}

static int storage_erase(void *context, uint32_t address) {
    const twin_storage *parts = context;
    //@ assert block: address == 0 || address == parts->block_size;
    return Frama_C_nondet(0, 1);
}

static void fill_storage(twin_storage *parts, uint32_t block, uint16_t unit) {
    parts->read = storage_read;
    parts->program = storage_program;
    parts->erase = storage_erase;
    parts->context = parts;
    parts->block_size = block;
    parts->program_size = unit;
}

#endif
