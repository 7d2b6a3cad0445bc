#include <mshadow/tensor.h>
