// Names of single convolutions: the course's layers, and any sizes.
#ifndef TOOLS_BENCH_LAYERS_H_
#define TOOLS_BENCH_LAYERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/convolution/problem.h"

namespace convlab {

struct NamedLayer {
  std::string name;  // "fa19-L2", or the sizes "B,C,H,W,M,K"
  Problem problem;
  std::string neighbour_of = "";  // another layer's name
};

// A convolution by its name, "fa19-L2" for the second of fa19 (a network of one
// convolution may leave out "-L1", and fa17 stands for fa17-high), or by its
// sizes, "B,C,H,W,M,K". `batch` applies to named layers. The error lists the
// names.
absl::StatusOr<NamedLayer> ParseLayer(absl::string_view text, int64_t batch);

// A list, such as "fa18,fa19-L2;100,3,20,20,8,5": names separated by commas,
// sizes of one layer between semicolons, a network's name for all of its
// layers, and "all" for the course's nine. Named layers are repeated for each
// of `batches`.
absl::StatusOr<std::vector<NamedLayer>> ParseLayers(
    absl::string_view text, const std::vector<int64_t>& batches);

// "1,100,1000", each at least 1.
absl::StatusOr<std::vector<int64_t>> ParseBatches(absl::string_view text);

// Each layer, followed by its neighbours: height and width differ by one,
// filters by one, channels by one more, the kernel's size by two. Invalid
// problems are left out.
std::vector<NamedLayer> WithNeighbours(const std::vector<NamedLayer>& layers);

}  // namespace convlab

#endif  // TOOLS_BENCH_LAYERS_H_
