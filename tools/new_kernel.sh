#!/bin/sh
# Makes the file and the row of a new kernel in this repository:
# bazel run //tools:new_kernel -- cuda my_tiled
set -eu

usage() {
  cat <<'END'
Usage: bazel run //tools:new_kernel -- cpu|cuda NAME

Makes a kernel of this repository: kernels/convolution/cpu/NAME.cc or
kernels/convolution/cuda/lessons/NAME.cu, a right and slow convolution to begin
with, and its row in kernels/convolution/variants.bzl. From then on tests,
milestones, the benchmark and the reports know it.

  cpu|cuda  where it runs
  NAME      lower-case letters, digits and underscores: my_tiled

A kernel in a file of its own needs none of this: --kernel FILE.
Exit status: 0 done, 2 wrong usage.
END
}

fail() {
  echo "new_kernel: $1" >&2
  exit 2
}

case ${1-} in
  -h | --help)
    usage
    exit 0
    ;;
esac
[ $# -eq 2 ] || fail "expected cpu or cuda, and a name; --help says more"
backend=$1
name=$2
case $backend in
  cpu) folder=cpu ending=cc ;;
  cuda) folder=cuda/lessons ending=cu ;;
  *) fail "'$backend' is no backend, expected cpu or cuda" ;;
esac
printf '%s\n' "$name" | grep -Eqx '[a-z][a-z0-9]*(_[a-z0-9]+)*' ||
  fail "'$name' is no name, expected lower-case letters, digits and underscores, such as my_tiled"

root=${BUILD_WORKSPACE_DIRECTORY:-.}
table=$root/kernels/convolution/variants.bzl
file=$root/kernels/convolution/$folder/$name.$ending
[ -f "$table" ] || fail "there is no $table: run it from the repository"
[ ! -e "$file" ] || fail "$file is there already"
if grep -q "_row(\"$name\", \"$backend" "$table"; then
  fail "$table has a row $name on $backend already"
fi

# im2col_eigen: Im2colEigen
class=$(printf '%s\n' "$name" | awk -F_ '{ for (i = 1; i <= NF; ++i) printf "%s%s", toupper(substr($i, 1, 1)), substr($i, 2) }')

# The chapter's lines are for the author to write.
chapter() {
  cat <<'END'
// One sentence that says what this kernel does.
//
// Idea. Why it should be fast.
//
// Cost. FLOPs, and bytes that it moves.
//
// Bound. What limits it: memory, arithmetic, latency.
//
// Reached. How close it comes (docs/journal).
END
}

cuda_file() {
  chapter
  cat <<END
#include "kernels/convolution/cuda/lib/kernel.h"

namespace convlab::cuda {
namespace {

constexpr int kThreads = 256;

// A thread computes an output element.
__global__ void ${class}Kernel(const float* x, const float* k, float* y, int C,
                               int H, int W, int M, int K,
                               int blocks_per_image) {
  const int H_out = H - K + 1;
  const int W_out = W - K + 1;
  const int64_t b = blockIdx.x / blocks_per_image;
  const int i = blockIdx.x % blocks_per_image * kThreads + threadIdx.x;
  if (i >= M * H_out * W_out) return;
  const int m = i / (H_out * W_out);
  const int h = i / W_out % H_out;
  const int w = i % W_out;
  // A tensor may exceed 2^31 elements; one image and one filter do not.
  const float* image = x + b * C * H * W;
  const float* filter = k + int64_t{m} * C * K * K;
  float sum = 0;
  for (int c = 0; c < C; ++c) {
    for (int p = 0; p < K; ++p) {
      for (int q = 0; q < K; ++q) {
        sum += image[(c * H + h + p) * W + w + q] * filter[(c * K + p) * K + q];
      }
    }
  }
  y[b * M * H_out * W_out + i] = sum;
}

int64_t BlocksPerImage(const Problem& p) {
  return CeilDivide(p.filters * p.output_height() * p.output_width(), kThreads);
}

// Why the kernel does not take the problem; null if it does.
const char* Reject(const Problem& problem) {
  if (const char* reason = RejectHugeImages(problem)) return reason;
  return problem.batch * BlocksPerImage(problem) > kMaxGridX ? kTooManyBlocks
                                                             : nullptr;
}

class ${class} : public Kernel {
 public:
  using Kernel::Kernel;

  Error Run(const float* x, const float* k, float* y,
            cudaStream_t stream) override {
    const Problem& p = problem_;
    const int64_t blocks_per_image = BlocksPerImage(p);
    ${class}Kernel<<<p.batch * blocks_per_image, kThreads, 0, stream>>>(
        x, k, y, p.channels, p.height, p.width, p.filters, p.kernel_size,
        blocks_per_image);
    return CheckLaunch("${class}Kernel");
  }
};

}  // namespace

extern const KernelVariant k${class};
const KernelVariant k${class} = {
    "$name",
    AccuracyClass::kFp32,
    Track::kSpecialty,
    "What it does, in one sentence.",
    "Why it should be fast, in one sentence.",
    Reject,
    Make<${class}>,
};

}  // namespace convlab::cuda
END
}

cpu_file() {
  chapter
  cat <<END
#include <cstdint>
#include <memory>

#include "kernels/convolution/convolution.h"

namespace convlab::cpu {
namespace {

class ${class} : public Convolution {
 public:
  ${class}(const Problem& problem, Workers& workers)
      : problem_(problem), workers_(workers) {}

  absl::Status Run(const float* x, const float* k, float* y, Stream) override {
    const int64_t C = problem_.channels, M = problem_.filters;
    const int64_t H = problem_.height, W = problem_.width;
    const int64_t K = problem_.kernel_size;
    const int64_t H_out = problem_.output_height();
    const int64_t W_out = problem_.output_width();
    // A piece of work is one plane of the output: an image and a filter.
    const auto compute = [&](int, int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) {
        const float* const image = x + plane / M * C * H * W;
        const float* const filter = k + plane % M * C * K * K;
        float* const out = y + plane * H_out * W_out;
        for (int64_t h = 0; h < H_out; ++h) {
          for (int64_t w = 0; w < W_out; ++w) {
            float sum = 0;
            for (int64_t c = 0; c < C; ++c) {
              for (int64_t p = 0; p < K; ++p) {
                for (int64_t q = 0; q < K; ++q) {
                  sum += image[(c * H + h + p) * W + w + q] *
                         filter[(c * K + p) * K + q];
                }
              }
            }
            out[h * W_out + w] = sum;
          }
        }
      }
    };
    workers_.For(problem_.batch * M, /*grain=*/1, compute);
    return absl::OkStatus();
  }

 private:
  const Problem problem_;
  Workers& workers_;
};

}  // namespace

extern const Variant k${class};
const Variant k${class} = {
    "$name",
    Backend::kCpu,
    AccuracyClass::kFp32,
    Track::kSpecialty,
    "What it does, in one sentence.",
    "Why it should be fast, in one sentence.",
    SupportsAll,
    [](const Problem& problem, const Epilogue&, const Resources& resources)
        -> absl::StatusOr<std::unique_ptr<Convolution>> {
      return std::make_unique<${class}>(problem, *resources.workers);
    },
};

}  // namespace convlab::cpu
END
}

# The row is the last of the backend's lessons.
case $backend in
  cpu) next='    # The lessons on the GPU, one path.' ;;
  cuda) next='    # Specialties: few images, techniques, lower precision.' ;;
esac
grep -qxF "$next" "$table" || fail "$table has no line '$next', before which the row belongs"
awk -v next_line="$next" -v row="    _row(\"$name\", \"$folder\")," '
  { lines[++count] = $0 }
  END {
    for (i = 1; i <= count; ++i) {
      if (lines[i + 1] == next_line && lines[i] == "") print row
      print lines[i]
    }
  }' "$table" >"$table.new"
"${backend}_file" >"$file.new"
mv "$file.new" "$file"
mv "$table.new" "$table"

run=m3
[ "$backend" = cuda ] || run=m2
cat <<END
made kernels/convolution/$folder/$name.$ending
added its row to kernels/convolution/variants.bzl
next: bazel run //milestones:$run -- fa19 100 --variant $name
      bazel test //kernels/convolution/checking:parity_test --test_filter='*_${name}_*'
END
