/* The part of the Python package that each call passes through: where an array
 * is, and the call itself. By Python's stable interface, so that one build
 * serves every version from 3.11 on. Arrays of other kinds _arrays.py reads. */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <stdint.h>

/* What describe tells of an array's elements and place, added up; the number of
 * its GPU, or -1 for the CPU, is added as (device + 1) * kDevice. */
enum { kHalves = 1, kChannelsLast = 2, kTorch = 4, kDevice = 8 };

/* Of PyTorch, once it is imported; and the names of what is asked for. */
static PyObject *torch_tensor, *torch_float32, *torch_float16, *torch_grad;
static PyObject *name_dtype, *name_requires_grad, *name_is_contiguous,
    *name_is_cuda, *name_is_cpu, *name_get_device, *name_data_ptr, *name_shape;

/* Whether object.name is true; -1 with an exception. */
static int IsTrue(PyObject* object, PyObject* name) {
  PyObject* const value = PyObject_GetAttr(object, name);
  if (value == NULL) return -1;
  const int is_true = PyObject_IsTrue(value);
  Py_DECREF(value);
  return is_true;
}

/* The result of object.name(); null with an exception. */
static PyObject* Call(PyObject* object, PyObject* name) {
  return PyObject_CallMethodObjArgs(object, name, NULL);
}

static int CallIsTrue(PyObject* object, PyObject* name) {
  PyObject* const value = Call(object, name);
  if (value == NULL) return -1;
  const int is_true = PyObject_IsTrue(value);
  Py_DECREF(value);
  return is_true;
}

/* (pointer, shape, place); takes `pointer` and `shape`, which may be null. */
static PyObject* Describe(PyObject* pointer, PyObject* shape, long place) {
  PyObject* const its_place = PyLong_FromLong(place);
  PyObject* described = NULL;
  if (pointer != NULL && shape != NULL && its_place != NULL) {
    described = PyTuple_Pack(3, pointer, shape, its_place);
  }
  Py_XDECREF(pointer);
  Py_XDECREF(shape);
  Py_XDECREF(its_place);
  return described;
}

/* A tensor without gaps, of floats or halves, that wants no gradient; None for
 * others. */
static PyObject* DescribeTensor(PyObject* tensor) {
  long place = kTorch;
  PyObject* const dtype = PyObject_GetAttr(tensor, name_dtype);
  if (dtype == NULL) return NULL;
  Py_DECREF(dtype); /* torch's own object */
  if (dtype == torch_float16) {
    place += kHalves;
  } else if (dtype != torch_float32) {
    Py_RETURN_NONE;
  }
  int wants = IsTrue(tensor, name_requires_grad);
  if (wants == 1) {
    PyObject* const enabled = PyObject_CallNoArgs(torch_grad);
    if (enabled == NULL) return NULL;
    wants = PyObject_IsTrue(enabled);
    Py_DECREF(enabled);
  }
  if (wants < 0) return NULL;
  if (wants == 1) Py_RETURN_NONE;
  const int dense = CallIsTrue(tensor, name_is_contiguous);
  if (dense < 0) return NULL;
  if (dense == 0) Py_RETURN_NONE;
  const int on_gpu = IsTrue(tensor, name_is_cuda);
  if (on_gpu < 0) return NULL;
  if (on_gpu == 1) {
    PyObject* const device = Call(tensor, name_get_device);
    if (device == NULL) return NULL;
    place += kDevice * (PyLong_AsLong(device) + 1);
    Py_DECREF(device);
  } else {
    const int on_cpu = IsTrue(tensor, name_is_cpu);
    if (on_cpu < 0) return NULL;
    if (on_cpu == 0) Py_RETURN_NONE;
  }
  return Describe(Call(tensor, name_data_ptr),
                  PyObject_GetAttr(tensor, name_shape), place);
}

/* An array with Python's buffer interface, as NumPy's have; None for others. */
static PyObject* DescribeBuffer(PyObject* array, int written) {
  Py_buffer view;
  if (PyObject_GetBuffer(array, &view,
                         PyBUF_C_CONTIGUOUS | PyBUF_FORMAT |
                             (written ? PyBUF_WRITABLE : 0)) != 0) {
    PyErr_Clear();
    Py_RETURN_NONE;
  }
  const char* const format =
      view.format == NULL ? "" : view.format + (view.format[0] == '<');
  const int halves = format[0] == 'e';
  PyObject* described = NULL;
  if ((halves || format[0] == 'f') && format[1] == '\0') {
    PyObject* shape = PyTuple_New(view.ndim);
    for (int i = 0; shape != NULL && i < view.ndim; ++i) {
      PyObject* const size = PyLong_FromSsize_t(view.shape[i]);
      if (size == NULL || PyTuple_SetItem(shape, i, size) != 0) {
        Py_CLEAR(shape);
      }
    }
    described =
        Describe(PyLong_FromVoidPtr(view.buf), shape, halves ? kHalves : 0);
  } else {
    described = Py_NewRef(Py_None);
  }
  PyBuffer_Release(&view);
  return described;
}

static PyObject* DescribeArray(PyObject* self, PyObject* const* args,
                               Py_ssize_t count) {
  (void)self;
  if (count != 2) {
    PyErr_SetString(PyExc_TypeError, "describe takes an array and a bool");
    return NULL;
  }
  const int written = PyObject_IsTrue(args[1]);
  if (written < 0) return NULL;
  if (torch_tensor != NULL &&
      PyObject_TypeCheck(args[0], (PyTypeObject*)torch_tensor)) {
    return DescribeTensor(args[0]);
  }
  if (PyObject_CheckBuffer(args[0])) return DescribeBuffer(args[0], written);
  Py_RETURN_NONE;
}

static PyObject* UseTorch(PyObject* self, PyObject* const* args,
                          Py_ssize_t count) {
  (void)self;
  if (count != 4 || !PyType_Check(args[0])) {
    PyErr_SetString(PyExc_TypeError,
                    "use_torch takes a type and three objects");
    return NULL;
  }
  PyObject** const kept[] = {&torch_tensor, &torch_float32, &torch_float16,
                             &torch_grad};
  for (int i = 0; i < 4; ++i) {
    Py_XDECREF(*kept[i]);
    *kept[i] = Py_NewRef(args[i]);
  }
  Py_RETURN_NONE;
}

/* convlab_run and convlab_run_prepared. */
typedef int32_t (*Run)(void* plan, const void* x, const void* weights,
                       const void* bias, void* y, void* workspace,
                       size_t workspace_bytes, void* stream);

static PyObject* RunPlan(PyObject* self, PyObject* const* args,
                         Py_ssize_t count) {
  (void)self;
  if (count != 9) {
    PyErr_SetString(PyExc_TypeError, "run takes 9 numbers");
    return NULL;
  }
  void* values[9];
  for (int i = 0; i < 9; ++i) {
    values[i] = args[i] == Py_None ? NULL : PyLong_AsVoidPtr(args[i]);
    if (values[i] == NULL && PyErr_Occurred() != NULL) return NULL;
  }
  int32_t status = 0;
  Py_BEGIN_ALLOW_THREADS;
  /* ISO C knows no conversion between these pointers, POSIX does. */
  status = ((Run)(uintptr_t)values[0])(values[1], values[2], values[3],
                                       values[4], values[5], values[6],
                                       (size_t)values[7], values[8]);
  Py_END_ALLOW_THREADS;
  return PyLong_FromLong(status);
}

static PyMethodDef methods[] = {
    {"describe", (PyCFunction)(void (*)(void))DescribeArray, METH_FASTCALL,
     "describe(array, written): (pointer, shape, place) of an array without "
     "gaps that is NumPy's or PyTorch's, or None."},
    {"use_torch", (PyCFunction)(void (*)(void))UseTorch, METH_FASTCALL,
     "use_torch(Tensor, float32, float16, is_grad_enabled)"},
    {"run", (PyCFunction)(void (*)(void))RunPlan, METH_FASTCALL,
     "run(function, plan, x, weights, bias, y, workspace, workspace_bytes, "
     "stream): the status of convlab_run, or of convlab_run_prepared, whose "
     "address `function` is. None is null."},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_call", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__call(void) {
  const struct {
    PyObject** name;
    const char* text;
  } names[] = {{&name_dtype, "dtype"},
               {&name_requires_grad, "requires_grad"},
               {&name_is_contiguous, "is_contiguous"},
               {&name_is_cuda, "is_cuda"},
               {&name_is_cpu, "is_cpu"},
               {&name_get_device, "get_device"},
               {&name_data_ptr, "data_ptr"},
               {&name_shape, "shape"}};
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
    *names[i].name = PyUnicode_InternFromString(names[i].text);
    if (*names[i].name == NULL) return NULL;
  }
  PyObject* const made = PyModule_Create(&module);
  if (made == NULL || PyModule_AddIntConstant(made, "HALVES", kHalves) != 0 ||
      PyModule_AddIntConstant(made, "CHANNELS_LAST", kChannelsLast) != 0 ||
      PyModule_AddIntConstant(made, "TORCH", kTorch) != 0 ||
      PyModule_AddIntConstant(made, "DEVICE", kDevice) != 0) {
    return NULL;
  }
  return made;
}
