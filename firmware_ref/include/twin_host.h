/* Kernels of processors that run an operating system. Which ones a processor has is known at run
 * time only, so twin_open takes the fastest; a program that wants another one says so here. All of
 * them give the same bits. Where TWIN_HOST is 0, there is none of this. */

#ifndef TWIN_HOST_H
#define TWIN_HOST_H

#include "twin.h"

#if TWIN_HOST

#ifdef __cplusplus
extern "C" {
#endif

/* Name of kernel `number` of those that this processor has for the open model, the fastest first:
 * amx, vnni, avx_vnni, avx2, neon_i8mm, neon_dot, neon, portable. NULL behind the last. */
const char *twin_kernel_name(const twin_model *model, unsigned number);

/* Let kernel `number` evaluate the open model. Changes the scratch that is needed. Refused as
 * unsupported behind the last. */
twin_status twin_set_kernel(twin_model *model, unsigned number);

/* Bytes of memory that twin_prepare needs for the open model, at any alignment: at most three times
 * the pack, and 64 KB. 0 where the kernel has nothing to prepare, or would take more than that. */
uint32_t twin_prepared_size(const twin_model *model);

/* Arrange the weights as the kernel likes them, and compute once what does not depend on a query;
 * predictions are several times as fast then, and need other scratch. The memory must stay as it
 * is, as long as the model; it is only read, so copies of the model and threads may share it.
 * TWIN_ERROR_SCRATCH if it is too small, TWIN_ERROR_UNSUPPORTED if the size is 0: the model then
 * goes on without. twin_set_kernel undoes it. */
twin_status twin_prepare(twin_model *model, void *memory, uint32_t size);

#ifdef __cplusplus
}
#endif

#endif

#endif
