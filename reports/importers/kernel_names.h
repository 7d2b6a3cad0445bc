// Kernels' names as tables show them.
#ifndef REPORTS_IMPORTERS_KERNEL_NAMES_H_
#define REPORTS_IMPORTERS_KERNEL_NAMES_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace convlab {

// Characters of UTF-8, for columns of a terminal.
size_t Width(absl::string_view text);

// Returns `name` without unnamed namespaces, which tools write in several ways.
// ncu drops the namespaces around them, and of "<unnamed>::" the bracket too:
// "void unnamed>::Kernel<2>(int)" and "Kernel<unnamed>::Type>(int)", whose
// bracket is the template's.
std::string WithoutUnnamed(absl::string_view name);

// A kernel's name in at most `width` characters, at least 8: without unnamed
// namespaces; where it is still too long without the return type, then without
// its parameters, then with some template arguments only.
std::string ShortKernelName(absl::string_view name, size_t width);

}  // namespace convlab

#endif  // REPORTS_IMPORTERS_KERNEL_NAMES_H_
