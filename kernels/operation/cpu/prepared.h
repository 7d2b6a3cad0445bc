// What prepared.h makes ready on the CPU besides variants.
#ifndef KERNELS_OPERATION_CPU_PREPARED_H_
#define KERNELS_OPERATION_CPU_PREPARED_H_

#include <memory>

#include "common/parallel/parallel.h"
#include "kernels/operation/operation.h"
#include "kernels/operation/prepared_operation.h"

namespace convlab::cpu {

// The general kernel for an operation on plain tensors.
std::unique_ptr<PreparedOperation> PrepareGenerally(const Operation& operation,
                                                    Workers& workers);

// What is prepared for plain tensors, with copies before and after it.
std::unique_ptr<PreparedOperation> Converted(
    const Operation& operation, Workers& workers,
    std::unique_ptr<PreparedOperation> plain);

}  // namespace convlab::cpu

#endif  // KERNELS_OPERATION_CPU_PREPARED_H_
