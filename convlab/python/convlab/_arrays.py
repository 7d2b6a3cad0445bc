"""Arrays of other libraries: where they are in memory, without a copy."""

import ctypes
import math
import sys

_CPU = -1
_DLPACK_CPU = 1
_DLPACK_CUDA = (2, 13)  # device memory and managed memory


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


def _is_dense(shape, strides):
    """Whether elements follow each other; strides count elements."""
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides)):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def _is_numpy(array):
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(array, numpy.ndarray)


class Array:
    """Where an array of floats or halves of `dimensions` (None: any) is.

    Attributes: name, pointer, bytes, shape, device (-1: the CPU), halves,
      channels_last (a tensor of PyTorch, whose shape is that without it).

    Raises TypeError or ValueError for anything else than such an array.
    """

    def __init__(self, name, array, dimensions, written=False):
        self.name = name
        self._array = array
        self.torch = None
        self.channels_last = False
        count = None
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(array, torch.Tensor):
            self.torch = torch
            self._read_torch(array, torch)
            count = array.numel()
        elif _is_numpy(array):
            self._read_interface(array.__array_interface__, written)
            self.device = _CPU
        elif hasattr(array, "__cuda_array_interface__"):
            self._read_cuda(array.__cuda_array_interface__)
            self.device = self._device_of(array)
        elif hasattr(array, "__array_interface__"):
            self._read_interface(array.__array_interface__, written)
            self.device = _CPU
        elif hasattr(array, "__dlpack__"):
            self._read_dlpack(array)
        else:
            raise TypeError(
                f"{name} is a {type(array).__name__}, expected an array of NumPy "
                "or one with __cuda_array_interface__ or __dlpack__"
            )
        if dimensions is not None and len(self.shape) != dimensions:
            raise ValueError(
                f"{name} has shape {self.shape}, expected {dimensions} dimensions"
            )
        if count is None:
            count = math.prod(self.shape)
        if count == 0:
            raise ValueError(f"{name} has shape {self.shape}, which is empty")
        self.bytes = (2 if self.halves else 4) * count

    def kind(self):
        place = "the CPU" if self.device == _CPU else f"GPU {self.device}"
        return ("float16" if self.halves else "float32") + " on " + place

    def stream(self):
        """The stream that the array's library works in, as a number or None."""
        if self.device == _CPU:
            return None
        if self.torch is not None:
            # Without the object that current_stream would make.
            return self.torch._C._cuda_getCurrentRawStream(self.device)
        library = type(self._array).__module__.partition(".")[0]
        module = sys.modules.get(library)
        if library == "cupy":
            return module.cuda.get_current_stream().ptr
        # By the protocol 1 is the legacy default stream, 2 that of the thread;
        # CUDA has handles of these numbers.
        interface = getattr(self._array, "__cuda_array_interface__", None)
        return 1 if interface is None else interface.get("stream")

    def _read_torch(self, tensor, torch):
        # Faster than its interfaces, which make a dictionary or a capsule.
        self.halves = tensor.dtype is torch.float16
        if not self.halves and tensor.dtype is not torch.float32:
            self._fail_type(tensor.dtype)
        if tensor.device.type not in ("cuda", "cpu"):
            raise TypeError(
                f"{self.name} is on {tensor.device}, expected a CPU or an NVIDIA GPU"
            )
        if tensor.requires_grad and torch.is_grad_enabled():
            raise ValueError(
                f"{self.name} requires a gradient, which convlab does not compute: "
                "detach it"
            )
        if not tensor.is_contiguous():
            self.channels_last = tensor.dim() == 4 and tensor.is_contiguous(
                memory_format=torch.channels_last
            )
            if not self.channels_last:
                self._fail_dense()
        self.shape = tensor.shape  # a tuple, too
        self.pointer = tensor.data_ptr()
        self.device = tensor.get_device()  # -1 on the CPU

    def _fail_type(self, what):
        raise TypeError(
            f"{self.name} has elements of type {what}, expected float32 or float16"
        )

    def _fail_dense(self):
        raise ValueError(f"{self.name} has gaps or another order, expected C order")

    def _read_interface(self, interface, written):
        self.halves = interface["typestr"] in ("<f2", "=f2")
        if not self.halves and interface["typestr"] not in ("<f4", "=f4"):
            self._fail_type(interface["typestr"])
        self.shape = tuple(interface["shape"])
        strides = interface.get("strides")
        if strides is not None and not _is_dense(
            self.shape, [stride / (2 if self.halves else 4) for stride in strides]
        ):
            self._fail_dense()
        self.pointer, read_only = interface["data"]
        if written and read_only:
            raise ValueError(f"{self.name} is read-only")

    def _read_cuda(self, interface):
        if interface.get("mask") is not None:
            raise ValueError(f"{self.name} has a mask, expected none")
        self._read_interface(interface, False)

    def _device_of(self, array):
        # CuPy's is a Device with an id. The driver is asked for others' by run.
        number = getattr(getattr(array, "device", None), "id", None)
        return number if isinstance(number, int) else 0

    def _read_dlpack(self, array):
        device_type, device = array.__dlpack_device__()
        self.device = _CPU if device_type == _DLPACK_CPU else device
        if device_type not in (_DLPACK_CPU, *_DLPACK_CUDA):
            raise TypeError(
                f"{self.name} is on a device of DLPack's type {device_type}, "
                "expected a CPU or an NVIDIA GPU"
            )
        # By the protocol the producer makes the default stream wait for the data.
        if device_type in _DLPACK_CUDA:
            capsule = array.__dlpack__(stream=1)
        else:
            capsule = array.__dlpack__()
        # The capsule frees what it manages when it goes.
        self._capsule = capsule
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype = ctypes.c_void_p
        get.argtypes = [ctypes.py_object, ctypes.c_char_p]
        tensor = _DLTensor.from_address(get(capsule, b"dltensor"))
        self.halves = tensor.bits == 16
        if (tensor.code, tensor.lanes) != (2, 1) or tensor.bits not in (16, 32):
            self._fail_type(f"DLPack {tensor.code}, {tensor.bits} bits")
        self.shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
        if tensor.strides and not _is_dense(
            self.shape, [tensor.strides[i] for i in range(tensor.ndim)]
        ):
            self._fail_dense()
        self.pointer = tensor.data + tensor.byte_offset


def new_array(like, array, shape, halves=False):
    """An array of the same library, on the same device and in the same order."""
    torch = array.torch
    if torch is not None:
        if array.channels_last and len(shape) == 4:
            return torch.empty(
                shape,
                dtype=like.dtype,
                device=like.device,
                memory_format=torch.channels_last,
            )
        return like.new_empty(
            shape, dtype=torch.float16 if halves else torch.float32
        )
    library = sys.modules.get(type(like).__module__.partition(".")[0])
    if array.device == _CPU:
        import numpy

        return numpy.empty(shape, numpy.float16 if halves else numpy.float32)
    if getattr(library, "__name__", "") == "cupy":
        with library.cuda.Device(array.device):
            return library.empty(
                shape, library.float16 if halves else library.float32
            )
    raise ValueError(
        f"arrays of {type(like).__name__} on a GPU are not allocated here: "
        "give out, and workspace where the plan needs one"
    )
