/* Divides messages among the partitions of a topic as Java's producer does: by the hash of the key. */
#include "native.h"

static uint32_t little_endian(const byte *p) {
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* MurmurHash2 of 32 bits with the seed of org.apache.kafka.common.utils.Utils.murmur2. */
static uint32_t murmur2(const byte *p, size_t size) {
    const uint32_t m = 0x5bd1e995;
    uint32_t hash = 0x9747b28c ^ (uint32_t)size;
    for (; size >= 4; p += 4, size -= 4) {
        uint32_t k = little_endian(p) * m;
        k = (k ^ k >> 24) * m;
        hash = hash * m ^ k;
    }
    if (size > 0) {
        for (size_t i = 0; i < size; i++) {
            hash ^= (uint32_t)p[i] << 8 * i;
        }
        hash *= m;
    }
    hash = (hash ^ hash >> 13) * m;
    return hash ^ hash >> 15;
}

/* split_by_key(messages, partitions, unkeyed) -> {partition: messages}, see rowtide's module partitions. */
PyObject *split_by_key(PyObject *module, PyObject *args) {
    PyObject *messages, **items;
    Py_ssize_t partitions, unkeyed, count;
    if (!PyArg_ParseTuple(args, "Onn", &messages, &partitions, &unkeyed)
        || !read_items(messages, "messages are a list or a tuple", &items, &count)) {
        return NULL;
    }
    if (partitions < 1 || partitions > INT32_MAX || unkeyed < 0 || unkeyed >= partitions) {
        PyErr_SetString(PyExc_ValueError, "the partition for messages without a key is one of the topic's partitions");
        return NULL;
    }
    PyObject **lists = PyMem_Calloc((size_t)partitions, sizeof *lists); /* borrowed from the dict */
    PyObject *found = lists == NULL ? PyErr_NoMemory() : PyDict_New();
    for (Py_ssize_t i = 0; found != NULL && i < count; i++) {
        PyObject *key, *value, *headers;
        if (!read_message(items[i], &key, &value, &headers)) {
            Py_CLEAR(found);
            break;
        }
        Py_ssize_t partition = unkeyed;
        if (key != Py_None) {
            uint32_t hash = murmur2((const byte *)PyBytes_AS_STRING(key), (size_t)PyBytes_GET_SIZE(key));
            partition = (Py_ssize_t)(hash & INT32_MAX) % partitions;
        }
        if (lists[partition] == NULL) {
            PyObject *list = PyList_New(0), *number = PyLong_FromSsize_t(partition);
            bool added = list != NULL && number != NULL && PyDict_SetItem(found, number, list) == 0;
            Py_XDECREF(number);
            Py_XDECREF(list);
            if (!added) {
                Py_CLEAR(found);
                break;
            }
            lists[partition] = list;
        }
        if (PyList_Append(lists[partition], items[i]) < 0) {
            Py_CLEAR(found);
        }
    }
    PyMem_Free(lists);
    return found;
}
