/* The module rowtide.connector.rows._native. */
#include "native.h"

#if PY_BIG_ENDIAN
#error "the compiled row path reads numbers of little-endian machines only; Python is used instead"
#endif

static PyMethodDef METHODS[] = {
    {"message_parts", message_parts, METH_VARARGS, "One text of each row, see rowtide.connector.rows.messages."},
    {"message_values", message_values, METH_VARARGS, "The values of messages, see rowtide.connector.rows.messages."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_native",
    .m_doc = "The compiled row path.",
    .m_size = -1,
    .m_methods = METHODS,
};

PyMODINIT_FUNC PyInit__native(void) {
    PyObject *module = PyModule_Create(&MODULE);
    if (module != NULL && (PyModule_AddType(module, &RowDecoderType) < 0)) {
        Py_CLEAR(module);
    }
    return module;
}
