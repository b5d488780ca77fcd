/* The C runtime as a Python module: one type, Model, for an open pack.
 *
 * Arrays come in and go out as buffers, used where they lie; the caller makes them, and their types
 * are his promise (native.py). One query is answered with the interpreter locked, as letting go of
 * it costs more than it brings; several are answered without, in a scratch of their own, so that
 * threads may share a model. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "kernels/host.h"
#include <string.h>

#define MOST_FEATURES 1024
#define PATIENCE      (1 << 24) /* multiply-adds, about, between two looks for Ctrl-C */

typedef struct {
    PyObject_HEAD Py_buffer pack; /* held as long as the model */
    twin_model model;
    const char *kernel;
    void *scratch; /* for single queries */
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
        const char *found;
        const twin_kernel *kernel = twin_host_kernel(&self->model, number, &found);
        if (!kernel) {
            PyErr_Format(PyExc_ValueError, "no kernel '%s' for this pack on this processor", name);
            return -1;
        }
        if (!name || !strcmp(name, found)) {
            self->model.kernel = kernel;
            self->kernel = found;
            return 0;
        }
    }
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
    if (take_kernel(self, kernel))
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
    PyBuffer_Release(&self->pack);
    release(object);
    Py_DECREF(type);
}

/* What one call is about. */
typedef struct {
    Py_buffer in;      /* queries: float, double, or int16 for quantised ones */
    Py_buffer out;     /* means, and the spreads behind them where there is room */
    Py_buffer members; /* or no room */
    Py_ssize_t rows;
    twin_model model;
    void *scratch;
    uint32_t size;
} Call;

static twin_status predict_floats(const Call *call, Py_ssize_t start, twin_prediction *out,
                                  int32_t *members) {
    const float *x = (const float *)call->in.buf + start;
    float rounded[MOST_FEATURES];
    if (call->in.itemsize == 8) {
        const double *wide = (const double *)call->in.buf + start;
        unsigned i;
        for (i = 0; i < call->model.features; i++)
            rounded[i] = (float)wide[i];
        x = rounded;
    }
    return twin_predict(&call->model, call->scratch, call->size, x, out, members);
}

/* Answer the queries from `row` up to `end`; returns the first that is refused, or `end`. */
static Py_ssize_t answer(const Call *call, Py_ssize_t row, Py_ssize_t end) {
    const twin_model *model = &call->model;
    int both = call->out.len > call->rows * 4;
    for (; row < end; row++) {
        int32_t *members = (int32_t *)call->members.buf;
        Py_ssize_t start = row * model->features;
        twin_status status;
        if (members)
            members += row * model->members;
        if (call->in.itemsize == 2) {
            twin_raw raw;
            status = twin_predict_raw(model, call->scratch, call->size,
                                      (const int16_t *)call->in.buf + start, &raw, members);
            if (status)
                break;
            ((int32_t *)call->out.buf)[row] = raw.mean;
            if (both)
                ((uint32_t *)call->out.buf)[call->rows + row] = raw.root;
        } else {
            twin_prediction prediction;
            status = predict_floats(call, start, &prediction, members);
            if (status)
                break;
            ((float *)call->out.buf)[row] = prediction.mean;
            if (both)
                ((float *)call->out.buf)[call->rows + row] = prediction.spread;
        }
    }
    return row;
}

/* Check the sizes of all buffers, and find a scratch. */
static int prepare(Call *call, Model *self, long neighbours) {
    Py_ssize_t size = call->in.itemsize, query;
    call->model = self->model;
    if (neighbours >= 0 && neighbours <= 4096)
        twin_set_neighbours(&call->model, (uint16_t)neighbours);
    query = size * call->model.features;
    call->rows = call->in.len / query;
    if ((size != 2 && size != 4 && size != 8) || call->in.len % query || call->out.itemsize != 4 ||
        (call->out.len != 4 * call->rows && call->out.len != 8 * call->rows) ||
        (call->members.obj && call->members.len != 4 * call->rows * call->model.members)) {
        PyErr_SetString(PyExc_ValueError, "buffers of other sizes than the model needs");
        return -1;
    }
    call->scratch = self->scratch;
    call->size = self->size;
    if (neighbours >= 0 || call->rows > 1) {
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
static Py_ssize_t answer_all(const Call *call) {
    Py_ssize_t row = 0, end = 0, some;
    if (call->rows == 1)
        return answer(call, 0, 1);
    some = 1 + PATIENCE / ((Py_ssize_t)call->model.twin_size * call->model.members);
    while (row == end && end < call->rows) {
        end = call->rows - row < some ? call->rows : row + some;
        Py_BEGIN_ALLOW_THREADS;
        row = answer(call, row, end);
        Py_END_ALLOW_THREADS;
        if (PyErr_CheckSignals())
            return -1;
    }
    return row;
}

static PyObject *model_predict(PyObject *object, PyObject *const *given, Py_ssize_t count) {
    Model *self = (Model *)object;
    Py_ssize_t row = -1;
    long neighbours;
    Call call;
    if (count != 4) {
        PyErr_SetString(PyExc_TypeError, "predict(queries, out, members, neighbours)");
        return NULL;
    }
    call.out.obj = call.members.obj = NULL;
    call.members.buf = call.scratch = NULL;
    neighbours = PyLong_AsLong(given[3]);
    if (neighbours == -1 && PyErr_Occurred())
        return NULL;
    if (PyObject_GetBuffer(given[0], &call.in, PyBUF_SIMPLE))
        return NULL;
    if (!PyObject_GetBuffer(given[1], &call.out, PyBUF_WRITABLE) &&
        (given[2] == Py_None || !PyObject_GetBuffer(given[2], &call.members, PyBUF_WRITABLE)) &&
        !prepare(&call, self, neighbours))
        row = answer_all(&call);
    if (call.scratch != self->scratch)
        PyMem_Free(call.scratch);
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
    unsigned number;
    const char *name;
    (void)nothing;
    for (number = 0; names && twin_host_kernel(&((Model *)self)->model, number, &name); number++) {
        PyObject *word = PyUnicode_FromString(name);
        if (!word || PyList_Append(names, word))
            Py_CLEAR(names);
        Py_XDECREF(word);
    }
    return names;
}

static PyMethodDef methods[] = {
    {"predict", (PyCFunction)(void (*)(void))model_predict, METH_FASTCALL,
     "predict(queries, out, members, neighbours)\n--\n\n"
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
