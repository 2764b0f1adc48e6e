/* The module rowtide.connector.kafka_producer.batches._native. */
#include "native.h"

static PyMethodDef METHODS[] = {
    {"crc32c", crc32c, METH_O, "The CRC-32C of bytes."},
    {"crc32c_portable", crc32c_portable, METH_O, "The same without the processor's instruction."},
    {"split_by_key", split_by_key, METH_VARARGS, "The messages of each partition, see the module partitions."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_native",
    .m_doc = "What is done for each record of Kafka's record batches.",
    .m_size = -1,
    .m_methods = METHODS,
};

PyMODINIT_FUNC PyInit__native(void) {
    crc32c_prepare();
    PyObject *module = PyModule_Create(&MODULE);
    if (module != NULL && PyModule_AddType(module, &RecordsType) < 0) {
        Py_CLEAR(module);
    }
    return module;
}
