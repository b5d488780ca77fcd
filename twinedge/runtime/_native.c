/* The C runtime as a Python module: one type, Model, for an open pack.
 *
 * Arrays come in and go out as buffers, used where they lie; the caller makes them, and their types
 * are his promise (native.py). One query is soon answered, with the interpreter locked, as letting
 * go of it costs more than it brings. Several, or one that takes long, are answered without, in a
 * scratch of their own, so that threads may share a model; and a piece at a time, so that Ctrl-C
 * works. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "twin_host.h"
#include <string.h>

/* Python 3.10 has buffers, laid out as in all later versions, but only the limited API of 3.11
 * declares them. */
#if defined(Py_LIMITED_API) && Py_LIMITED_API + 0 < 0x030B0000
typedef struct {
    void *buf;
    PyObject *obj;
    Py_ssize_t len, itemsize;
    /* cppcheck-suppress unusedStructMember */
    int numbers[2]; /* readonly, ndim */
    /* cppcheck-suppress unusedStructMember */
    void *pointers[5]; /* format, shape, strides, suboffsets, internal */
} Py_buffer;
int PyObject_GetBuffer(PyObject *object, Py_buffer *buffer, int flags);
void PyBuffer_Release(Py_buffer *buffer);
#define PyBUF_SIMPLE   0
#define PyBUF_WRITABLE 1
#endif

#define MOST_FEATURES 1024
#define PATIENCE      (1 << 24) /* multiply-adds, about, between two looks for Ctrl-C */
#define SOON          (1 << 22) /* and of a query that is answered with the interpreter locked */

typedef struct {
    PyObject_HEAD Py_buffer pack; /* held as long as the model */
    twin_model model;
    const char *kernel;
    void *prepared; /* what twin_prepare made of the model, or NULL */
    void *scratch;  /* for single queries */
    uint32_t size;
} Model;

static PyObject *refuse(twin_status status) {
    PyObject *words = Py_BuildValue("is", (int)status, twin_text(status));
    if (words)
        PyErr_SetObject(PyExc_ValueError, words);
    Py_XDECREF(words);
    return NULL;
}

/* The kernel of this name; the fastest where there is no name. */
static int take_kernel(Model *self, const char *name) {
    unsigned number;
    for (number = 0;; number++) {
        const char *found = twin_kernel_name(&self->model, number);
        if (!found) {
            PyErr_Format(PyExc_ValueError, "no kernel '%s' for this pack on this processor", name);
            return -1;
        }
        if (!name || !strcmp(name, found)) {
            self->kernel = found;
            return twin_set_kernel(&self->model, number);
        }
    }
}

/* Where the kernel has something to prepare. */
static int prepare_model(Model *self) {
    uint32_t size = twin_prepared_size(&self->model);
    if (!size)
        return 0;
    self->prepared = PyMem_Malloc(size);
    if (!self->prepared) {
        PyErr_NoMemory();
        return -1;
    }
    return twin_prepare(&self->model, self->prepared, size);
}

static int open_model(Model *self, PyObject *pack, const char *kernel) {
    twin_status status = TWIN_ERROR_LENGTH;
    if (PyObject_GetBuffer(pack, &self->pack, PyBUF_SIMPLE))
        return -1;
    if ((uint64_t)self->pack.len <= UINT32_MAX)
        status = twin_open(&self->model, self->pack.buf, (uint32_t)self->pack.len);
    if (status) {
        refuse(status);
        return -1;
    }
    if (take_kernel(self, kernel) || prepare_model(self))
        return -1;
    self->size = twin_scratch_size(&self->model);
    self->scratch = PyMem_Malloc(self->size);
    if (!self->scratch)
        PyErr_NoMemory();
    return self->scratch ? 0 : -1;
}

static PyObject *model_new(PyTypeObject *type, PyObject *arguments, PyObject *named) {
    static char *names[] = {"pack", "kernel", NULL};
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    const char *kernel = NULL;
    PyObject *pack, *self;
    if (!PyArg_ParseTupleAndKeywords(arguments, named, "O|z:Model", names, &pack, &kernel))
        return NULL;
    self = allocate(type, 0); /* all zero */
    if (self && open_model((Model *)self, pack, kernel))
        Py_CLEAR(self);
    return self;
}

static void model_free(PyObject *object) {
    Model *self = (Model *)object;
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    PyMem_Free(self->scratch);
    PyMem_Free(self->prepared);
    PyBuffer_Release(&self->pack);
    release(object);
    Py_DECREF(type);
}

/* What one call is about. */
typedef struct {
    Py_buffer in;  /* queries: float, double, or int16 for quantised ones */
    Py_buffer out; /* all means, and behind them, where there is room, all spreads, scales, lower
                    * and upper ends of intervals at each level; of each query, those of all targets
                    * side by side */
    Py_buffer members; /* or no room */
    Py_buffer levels;  /* coverages of intervals, in thousandths, as uint16; or none */
    Py_buffer flags;   /* features outside, then those missing, as bits; or no room */
    Py_ssize_t rows;
    Py_ssize_t cells;   /* answers: one for each query and target */
    Py_ssize_t columns; /* numbers in an answer */
    Py_ssize_t level_count;
    twin_model model;
    void *scratch;
    uint32_t size;
    uint16_t piece; /* anchors that are evaluated between two looks for Ctrl-C */
    int locked;     /* whether the interpreter stays so */
} Call;

static void begin_floats(twin_run *run, const Call *call, Py_ssize_t start, int32_t *members) {
    const float *x = (const float *)call->in.buf + start;
    float rounded[MOST_FEATURES];
    if (call->in.itemsize == 8) {
        const double *wide = (const double *)call->in.buf + start;
        unsigned i;
        for (i = 0; i < call->model.features; i++)
            rounded[i] = (float)wide[i];
        x = rounded;
    }
    (void)twin_begin(run, &call->model, call->scratch, call->size, x, members);
}

/* Begin with a query, an answer is to follow. */
static void begin(twin_run *run, const Call *call, Py_ssize_t row) {
    Py_ssize_t start = row * call->model.features;
    int32_t *members = (int32_t *)call->members.buf;
    if (members)
        members += row * call->model.members * call->model.targets;
    if (call->in.itemsize == 2)
        (void)twin_begin_raw(run, &call->model, call->scratch, call->size,
                             (const int16_t *)call->in.buf + start, members);
    else
        begin_floats(run, call, start, members);
}

/* An answer: floats, or for quantised queries integers. */
typedef union {
    float units;
    int32_t raw;
    uint32_t distance;
} Number;

typedef struct {
    Number mean, spread, scale, low, high;
    uint32_t outside, missing;
} Answer;

/* What there is of a target. A run of one target is read where it lies. */
static twin_status look(const twin_run *run, const Call *call, unsigned target, Answer *answer) {
    unsigned several = call->model.targets > 1;
    twin_status status;
    if (call->in.itemsize == 2) {
        twin_raw found;
        status = several ? twin_read_target_raw(run, target, &found) : twin_read_raw(run, &found);
        answer->mean.raw = found.mean;
        answer->spread.distance = found.root;
        answer->scale.distance = found.scale;
        answer->low.raw = found.low;
        answer->high.raw = found.high;
        answer->outside = found.outside;
        answer->missing = found.missing;
    } else {
        twin_prediction found;
        status = several ? twin_read_target(run, target, &found) : twin_read(run, &found);
        answer->mean.units = found.mean;
        answer->spread.units = found.spread;
        answer->scale.units = found.scale;
        answer->low.units = found.low;
        answer->high.units = found.high;
        answer->outside = found.outside;
        answer->missing = found.missing;
    }
    return status;
}

/* Write the ends of the intervals from `out` on. The model is the call's own, so its coverage may
 * change on the way. */
static void bound(const twin_run *run, Call *call, unsigned target, Answer *answer, Number *out) {
    Py_ssize_t i;
    for (i = 0; i < call->level_count; i++, out += 2 * call->cells) {
        if (call->level_count > 1) {
            (void)twin_set_coverage(&call->model, ((const uint16_t *)call->levels.buf)[i]);
            (void)look(run, call, target, answer);
        }
        out[0] = answer->low;
        out[call->cells] = answer->high;
    }
}

/* Write the answer. */
static twin_status end(const twin_run *run, Call *call, Py_ssize_t row) {
    Number *out = (Number *)call->out.buf + row * call->model.targets;
    unsigned target = 0;
    twin_status status;
    Answer answer;
    do {
        status = look(run, call, target, &answer);
        out[0] = answer.mean;
        if (call->columns > 1)
            out[call->cells] = answer.spread;
        if (call->columns > 2) {
            out[2 * call->cells] = answer.scale;
            bound(run, call, target, &answer, out + 3 * call->cells);
        }
        out++;
    } while (!status && ++target < call->model.targets);
    if (call->flags.buf) {
        uint32_t *flags = (uint32_t *)call->flags.buf + row;
        flags[0] = answer.outside;
        flags[call->rows] = answer.missing;
    }
    return status;
}

/* Where a call is: a query that was begun, and how many were answered. */
typedef struct {
    Py_ssize_t row;
    twin_run run;
    int begun, refused;
} Place;

/* Go on with it for a piece. */
static void go_on(Place *place, Call *call) {
    uint16_t left = call->piece;
    while (left && !place->refused && place->row < call->rows) {
        if (!place->begun)
            begin(&place->run, call, place->row);
        place->begun = 1;
        if (call->model.members > left) {
            if (twin_step(&place->run, left))
                return;
            left = 0;
        } else {
            twin_step(&place->run, TWIN_ALL);
            left = (uint16_t)(left - call->model.members);
        }
        place->refused = end(&place->run, call, place->row) != TWIN_OK;
        place->begun = 0;
        place->row += !place->refused;
    }
}

static int fits(const Py_buffer *buffer, Py_ssize_t itemsize) {
    return buffer->itemsize == itemsize && (uintptr_t)buffer->buf % (size_t)itemsize == 0;
}

/* Check the levels, and take the last. */
static int take_levels(Call *call) {
    Py_ssize_t i;
    if (call->columns > 2 && !call->model.intervals) {
        refuse(TWIN_ERROR_LEVEL);
        return -1;
    }
    for (i = 0; i < call->level_count; i++) {
        uint16_t level = ((const uint16_t *)call->levels.buf)[i];
        twin_status status = twin_set_coverage(&call->model, level);
        if (status) {
            refuse(status);
            return -1;
        }
    }
    return 0;
}

/* Whether there is room for the means of each query, or for more: its spread, then its scale, then
 * two ends at each level. */
static int has_room(Call *call) {
    Py_ssize_t column = 4 * call->cells;
    call->level_count = call->levels.obj ? call->levels.len / 2 : 0;
    call->columns = column ? call->out.len / column : 1;
    if (!column)
        return !call->out.len;
    if (call->out.len % column)
        return 0;
    return call->level_count ? call->columns == 3 + 2 * call->level_count
                             : call->columns >= 1 && call->columns <= 3;
}

/* Check the sizes of all buffers, and find a scratch. */
static int prepare(Call *call, Model *self, long neighbors) {
    Py_ssize_t size = call->in.itemsize, query, work;
    call->model = self->model;
    if (neighbors >= 0 && neighbors <= 4096)
        twin_set_neighbors(&call->model, (uint16_t)neighbors);
    query = size * call->model.features;
    if ((size != 2 && size != 4 && size != 8) || !fits(&call->in, size) || call->in.len % query ||
        !fits(&call->out, 4) || (call->members.obj && !fits(&call->members, 4)) ||
        (call->levels.obj && !fits(&call->levels, 2)) ||
        (call->flags.obj && !fits(&call->flags, 4))) {
        PyErr_SetString(PyExc_ValueError, "buffers of other items than the model takes");
        return -1;
    }
    call->rows = call->in.len / query;
    call->cells = call->rows * call->model.targets;
    if (!has_room(call) || (call->flags.obj && call->flags.len != 8 * call->rows) ||
        (call->members.obj && call->members.len != 4 * call->cells * call->model.members)) {
        PyErr_SetString(PyExc_ValueError, "buffers of other sizes than the model needs");
        return -1;
    }
    if (take_levels(call))
        return -1;
    work = (Py_ssize_t)call->model.twin_size * 2;
    call->piece = (uint16_t)(work < PATIENCE / UINT16_MAX ? UINT16_MAX : 1 + PATIENCE / work);
    call->locked = call->rows == 1 && work * call->model.members <= SOON;
    call->scratch = self->scratch;
    call->size = self->size;
    if (neighbors >= 0 || !call->locked) {
        call->size = twin_scratch_size(&call->model);
        call->scratch = PyMem_Malloc(call->size);
        if (!call->scratch) {
            PyErr_NoMemory();
            return -1;
        }
    }
    return 0;
}

/* Returns the number of the first query that is refused, of all if none is, -1 on an error. */
static Py_ssize_t answer_all(Call *call) {
    Place place;
    place.row = 0;
    place.begun = place.refused = 0;
    if (call->locked) {
        begin(&place.run, call, 0);
        twin_step(&place.run, TWIN_ALL);
        return end(&place.run, call, 0) == TWIN_OK;
    }
    while (!place.refused && place.row < call->rows) {
        Py_BEGIN_ALLOW_THREADS;
        go_on(&place, call);
        Py_END_ALLOW_THREADS;
        if (PyErr_CheckSignals())
            return -1;
    }
    return place.row;
}

/* Levels and flags, each of which may be None. */
static int take_more(Call *call, PyObject *const *given) {
    if (given[0] != Py_None && PyObject_GetBuffer(given[0], &call->levels, PyBUF_SIMPLE))
        return -1;
    return given[1] == Py_None ? 0 : PyObject_GetBuffer(given[1], &call->flags, PyBUF_WRITABLE);
}

static PyObject *model_predict(PyObject *object, PyObject *const *given, Py_ssize_t count) {
    Model *self = (Model *)object;
    Py_ssize_t row = -1;
    long neighbors;
    Call call;
    if (count != 4 && count != 6) {
        PyErr_SetString(PyExc_TypeError,
                        "predict(queries, out, members, neighbors[, levels, flags])");
        return NULL;
    }
    call.out.obj = call.members.obj = call.levels.obj = call.flags.obj = NULL;
    call.members.buf = call.flags.buf = call.scratch = NULL;
    neighbors = PyLong_AsLong(given[3]);
    if (neighbors == -1 && PyErr_Occurred())
        return NULL;
    if (PyObject_GetBuffer(given[0], &call.in, PyBUF_SIMPLE))
        return NULL;
    if (!PyObject_GetBuffer(given[1], &call.out, PyBUF_WRITABLE) &&
        (given[2] == Py_None || !PyObject_GetBuffer(given[2], &call.members, PyBUF_WRITABLE)) &&
        (count == 4 || !take_more(&call, given + 4)) && !prepare(&call, self, neighbors))
        row = answer_all(&call);
    if (call.scratch != self->scratch)
        PyMem_Free(call.scratch);
    if (count > 4) {
        PyBuffer_Release(&call.flags);
        PyBuffer_Release(&call.levels);
    }
    PyBuffer_Release(&call.members);
    PyBuffer_Release(&call.out);
    PyBuffer_Release(&call.in);
    return row < 0 ? NULL : PyLong_FromSsize_t(row);
}

static PyObject *model_kernel(PyObject *self, PyObject *nothing) {
    (void)nothing;
    return PyUnicode_FromString(((Model *)self)->kernel);
}

static PyObject *model_kernels(PyObject *self, PyObject *nothing) {
    PyObject *names = PyList_New(0);
    unsigned number = 0;
    const char *name;
    (void)nothing;
    while (names && (name = twin_kernel_name(&((Model *)self)->model, number++))) {
        PyObject *word = PyUnicode_FromString(name);
        if (!word || PyList_Append(names, word))
            Py_CLEAR(names);
        Py_XDECREF(word);
    }
    return names;
}

static PyMethodDef methods[] = {
    {"predict", (PyCFunction)(void (*)(void))model_predict, METH_FASTCALL,
     "predict(queries, out, members, neighbors, levels=None, flags=None)\n--\n\n"
     "Answer queries; returns how many there were before the first that is refused."},
    {"kernel", model_kernel, METH_NOARGS, "kernel()\n--\n\nName of the kernel that evaluates."},
    {"kernels", model_kernels, METH_NOARGS,
     "kernels()\n--\n\nNames of the kernels this processor has for the pack, the fastest first."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, (void *)model_new},
    {Py_tp_dealloc, (void *)model_free},
    {Py_tp_methods, methods},
    {Py_tp_doc, "Model(pack, kernel=None)\n--\n\nAn open pack."},
    {0, NULL},
};

static PyType_Spec model_type = {
    "twinedge.runtime._native.Model", sizeof(Model), 0, Py_TPFLAGS_DEFAULT, slots,
};

static int fill_module(PyObject *module) {
    PyObject *type = PyType_FromSpec(&model_type);
    int failed = !type || PyModule_AddObjectRef(module, "Model", type);
    Py_XDECREF(type);
    return failed ? -1 : 0;
}

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, (void *)fill_module}, {0, NULL}};

static PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_native", "The C runtime.", 0, NULL, module_slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__native(void) {
    return PyModuleDef_Init(&module);
}
