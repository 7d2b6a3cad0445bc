"""Arrays of other libraries: where they are in memory, without a copy.

An array is told by a tuple (pointer, shape, place), as _call.describe returns it
for the arrays of NumPy and PyTorch that have no gaps. `read` is for all others,
and says what is wrong with those that are not taken. The place is a sum: HALVES,
CHANNELS_LAST for PyTorch's tensors in that order, whose shape is as without it,
TORCH, and DEVICE times the number of the GPU plus 1, which is 0 for the CPU.
What else stands in a tuple keeps the memory alive.
"""

import ctypes
import math
import sys

from convlab import _call
from convlab._call import CHANNELS_LAST, DEVICE, HALVES, TORCH

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


def device_of(place):
    """The number of the GPU; -1 for the CPU."""
    return place // DEVICE - 1


def kind_of(place):
    device = device_of(place)
    return ("float16" if place & HALVES else "float32") + (
        " on the CPU" if device < 0 else f" on GPU {device}"
    )


def bytes_of(shape, place):
    return math.prod(shape) * (2 if place & HALVES else 4)


def _is_dense(shape, strides):
    """Whether elements follow each other; strides count elements."""
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides)):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def _fail_type(name, what):
    raise TypeError(
        f"{name} has elements of type {what}, expected float32 or float16"
    )


def _fail_dense(name):
    raise ValueError(f"{name} has gaps or another order, expected C order")


def read(name, array, dimensions, written=False):
    """The tuple of an array of floats or halves with so many `dimensions`.

    Raises TypeError or ValueError, which call it `name`, for anything else.
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        # From now on describe knows its tensors, too.
        _call.use_torch(
            torch.Tensor,
            torch.float32,
            torch.float16,
            torch.is_grad_enabled,
            torch.empty_like,
            getattr(torch._C, "_cuda_getCurrentRawStream", None),
        )
        found = _read_torch(name, array, torch)
    elif hasattr(array, "__cuda_array_interface__"):
        interface = array.__cuda_array_interface__
        if interface.get("mask") is not None:
            raise ValueError(f"{name} has a mask, expected none")
        # CuPy's is a Device with an id. The driver is asked for others' by run.
        number = getattr(getattr(array, "device", None), "id", None)
        device = number if isinstance(number, int) else 0
        found = _read_interface(name, interface, False, device)
    elif hasattr(array, "__array_interface__"):
        found = _read_interface(name, array.__array_interface__, written, -1)
    elif hasattr(array, "__dlpack__"):
        found = _read_dlpack(name, array)
    else:
        raise TypeError(
            f"{name} is a {type(array).__name__}, expected an array of NumPy "
            "or one with __cuda_array_interface__ or __dlpack__"
        )
    check_shape(name, found[1], dimensions)
    return found


def check_shape(name, shape, dimensions):
    """Raises ValueError for an empty array, or one of other dimensions (if any)."""
    if dimensions is not None and len(shape) != dimensions:
        raise ValueError(
            f"{name} has shape {tuple(shape)}, expected {dimensions} dimensions"
        )
    if math.prod(shape) == 0:
        raise ValueError(f"{name} has shape {tuple(shape)}, which is empty")


def _read_torch(name, tensor, torch):
    # Faster than its interfaces, which make a dictionary or a capsule.
    place = TORCH
    if tensor.dtype is torch.float16:
        place += HALVES
    elif tensor.dtype is not torch.float32:
        _fail_type(name, tensor.dtype)
    if tensor.device.type not in ("cuda", "cpu"):
        raise TypeError(
            f"{name} is on {tensor.device}, expected a CPU or an NVIDIA GPU"
        )
    if tensor.requires_grad and torch.is_grad_enabled():
        raise ValueError(
            f"{name} requires a gradient, which convlab does not compute: detach it"
        )
    if not tensor.is_contiguous():
        if tensor.dim() != 4 or not tensor.is_contiguous(
            memory_format=torch.channels_last
        ):
            _fail_dense(name)
        place += CHANNELS_LAST
    place += DEVICE * (tensor.get_device() + 1)  # -1 on the CPU
    return tensor.data_ptr(), tensor.shape, place  # a tuple, too


def _read_interface(name, interface, written, device):
    halves = interface["typestr"] in ("<f2", "=f2")
    if not halves and interface["typestr"] not in ("<f4", "=f4"):
        _fail_type(name, interface["typestr"])
    shape = tuple(interface["shape"])
    strides = interface.get("strides")
    if strides is not None and not _is_dense(
        shape, [stride / (2 if halves else 4) for stride in strides]
    ):
        _fail_dense(name)
    pointer, read_only = interface["data"]
    if written and read_only:
        raise ValueError(f"{name} is read-only")
    return pointer, shape, DEVICE * (device + 1) + (HALVES if halves else 0)


def _read_dlpack(name, array):
    device_type, device = array.__dlpack_device__()
    if device_type not in (_DLPACK_CPU, *_DLPACK_CUDA):
        raise TypeError(
            f"{name} is on a device of DLPack's type {device_type}, "
            "expected a CPU or an NVIDIA GPU"
        )
    # By the protocol the producer makes the default stream wait for the data.
    if device_type in _DLPACK_CUDA:
        capsule = array.__dlpack__(stream=1)
        place = DEVICE * (device + 1)
    else:
        capsule = array.__dlpack__()
        place = 0
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype = ctypes.c_void_p
    get.argtypes = [ctypes.py_object, ctypes.c_char_p]
    tensor = _DLTensor.from_address(get(capsule, b"dltensor"))
    if (tensor.code, tensor.lanes) != (2, 1) or tensor.bits not in (16, 32):
        _fail_type(name, f"DLPack {tensor.code}, {tensor.bits} bits")
    if tensor.bits == 16:
        place += HALVES
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    if tensor.strides and not _is_dense(
        shape, [tensor.strides[i] for i in range(tensor.ndim)]
    ):
        _fail_dense(name)
    # The capsule frees what it manages when it goes.
    return tensor.data + tensor.byte_offset, shape, place, capsule


def stream_of(array, place):
    """The stream that a GPU array's library works in, as a number or None."""
    if place & TORCH:
        # Without the object that current_stream would make.
        torch = sys.modules["torch"]
        return torch._C._cuda_getCurrentRawStream(device_of(place))
    library = type(array).__module__.partition(".")[0]
    if library == "cupy":
        return sys.modules[library].cuda.get_current_stream().ptr
    # By the protocol 1 is the legacy default stream, 2 that of the thread;
    # CUDA has handles of these numbers.
    interface = getattr(array, "__cuda_array_interface__", None)
    return 1 if interface is None else interface.get("stream")


def is_captured(array, place):
    """Whether stream_of is being captured into a CUDA graph; no if nobody tells."""
    if place & TORCH:
        return sys.modules["torch"].cuda.is_current_stream_capturing()
    if type(array).__module__.partition(".")[0] == "cupy":
        return sys.modules["cupy"].cuda.get_current_stream().is_capturing()
    return False


def wait_for_stream(array, place):
    """Waits for what is queued in stream_of."""
    if place & TORCH:
        sys.modules["torch"].cuda.current_stream(device_of(place)).synchronize()
    elif type(array).__module__.partition(".")[0] == "cupy":
        sys.modules["cupy"].cuda.get_current_stream().synchronize()


def can_allocate(array, place):
    """Whether new_array and wait_for_stream know the array's library."""
    return (
        device_of(place) < 0
        or bool(place & TORCH)
        or type(array).__module__.partition(".")[0] == "cupy"
    )


def new_array(like, place, shape):
    """An array of the same library, in the same place, and in the same order."""
    if place & TORCH:
        if place & CHANNELS_LAST and len(shape) == 4:
            torch = sys.modules["torch"]
            return torch.empty(
                shape,
                dtype=like.dtype,
                device=like.device,
                memory_format=torch.channels_last,
            )
        return like.new_empty(shape)
    kind = "float16" if place & HALVES else "float32"
    if device_of(place) < 0:
        import numpy

        return numpy.empty(shape, kind)
    if type(like).__module__.partition(".")[0] == "cupy":
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(device_of(place)):
            return cupy.empty(shape, kind)
    raise ValueError(
        f"arrays of {type(like).__name__} on a GPU are not allocated here: "
        "give out, and workspace where the plan needs one"
    )
