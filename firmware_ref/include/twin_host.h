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
 * vnni, avx2, neon_dot, neon, portable. NULL behind the last. */
const char *twin_kernel_name(const twin_model *model, unsigned number);

/* Let kernel `number` evaluate the open model. Changes the scratch that is needed. Refused as
 * unsupported behind the last. */
twin_status twin_set_kernel(twin_model *model, unsigned number);

#ifdef __cplusplus
}
#endif

#endif

#endif
