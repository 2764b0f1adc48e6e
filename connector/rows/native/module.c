/* The module rowtide.connector.rows._native. */
#include "native.h"

#if PY_BIG_ENDIAN
#error "the compiled row path reads numbers of little-endian machines only; Python is used instead"
#endif

/* For columns whose values only Python makes, such as Engine's JsonText. */
static PyObject *json_text(PyObject *module, PyObject *arguments) {
    PyObject *stored;
    int server, plain = 0;
    if (!PyArg_ParseTuple(arguments, "Sp|p", &stored, &server, &plain)) {
        return NULL;
    }
    Output text;
    output_init(&text);
    Result result = write_json((const byte *)PyBytes_AS_STRING(stored), (size_t)PyBytes_GET_SIZE(stored),
                               server ? SERVER_STYLE : STREAM_STYLE, plain, &text);
    PyObject *found = result == DONE ? output_unicode(&text, 0) : result == FAILED ? NULL : Py_NewRef(Py_None);
    output_free(&text);
    return found;
}

static PyMethodDef METHODS[] = {
    {"json_text", json_text, METH_VARARGS, "The text of a document of binary JSON; None: Python has to convert it."},
    {"message_parts", message_parts, METH_VARARGS, "One text of each row, see rowtide.connector.rows.messages."},
    {"message_bytes", message_bytes, METH_O, "The size of messages, see rowtide.connector.rows.messages."},
    {"message_lines", message_lines, METH_VARARGS, "Messages as JSON, see rowtide.connector.engine.decoding.lines."},
    {"message_values", message_values, METH_VARARGS, "The values of messages, see rowtide.connector.rows.messages."},
    {"write_lines", write_lines, METH_VARARGS, "Write messages, see rowtide.connector.engine.decoding.lines."},
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
    prepare_lines();
    PyObject *module = import_datetime() ? PyModule_Create(&MODULE) : NULL;
    if (module != NULL && (PyModule_AddType(module, &RowDecoderType) < 0)) {
        Py_CLEAR(module);
    }
    return module;
}
