// The output of a benchmark run: a table on standard output while it runs, and
// the record at its end.
#ifndef TOOLS_BENCH_REPORT_H_
#define TOOLS_BENCH_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/record/bench_record.h"
#include "kernels/convolution/checking/contract.h"
#include "kernels/convolution/convolution.h"
#include "tools/bench/layers.h"
#include "tools/bench/options.h"

namespace convlab {

// One measured convolution; times in nanoseconds.
struct Measurement {
  std::string provider;
  std::string variant;
  AccuracyClass accuracy = AccuracyClass::kFp32;
  double error = 0;                  // relative, L2
  std::optional<WorstOutput> worst;  // by the contract of class fp32
  std::vector<int64_t> samples_ns;
  std::optional<double> sm_clock_mhz;
  int64_t bytes = 0;  // the least that must move
};

class Report {
 public:
  Report(const BenchOptions& options, BenchRecord& record)
      : options_(options), record_(record) {}

  // Adds the row, whose floor is derived from the ceilings.
  void Add(const NamedLayer& layer, const Measurement& measurement,
           const Ceilings& ceilings);
  // Adds an omission. If `failed`, the run fails at its end; omissions for
  // missing hardware or unsupported problems are not failures.
  void Omit(const NamedLayer& layer, absl::string_view provider,
            absl::string_view variant, AccuracyClass accuracy,
            absl::string_view reason, bool failed);

  // Prints the layer's rows and omissions, which were added last, with the
  // table's head before the first layer.
  void PrintLayer();

  // Prints the neighbours' shares of their floors compared with their layers'.
  void PrintNeighbours() const;

  // Print on standard error: the current layer, the current step (on a terminal
  // only), and remarks.
  void BeginLayer(const NamedLayer& layer);
  void Progress(absl::string_view text);
  void Tell(absl::string_view text);

  // Internal, with their number and the first, if any row failed.
  absl::Status Outcome() const;

 private:
  // The width of the layer's column.
  int LayerWidth() const;

  const BenchOptions& options_;
  BenchRecord& record_;
  size_t printed_rows_ = 0, printed_omissions_ = 0;
  size_t layers_begun_ = 0;
  bool progress_shown_ = false;
  int failures_ = 0;
  std::string first_failure_;
};

// The arguments that repeat this measurement.
std::string Arguments(const BenchOptions& options, const NamedLayer& layer,
                      absl::string_view provider, absl::string_view variant,
                      AccuracyClass accuracy);

// The table's head and one of its lines; `width` is that of the layer's column.
// If not wide, the main columns, which fit terminals of 100 columns.
std::string TableHead(Backend backend, int width, bool wide);
std::string TableLine(const BenchRecord& record, const BenchRow& row, int width,
                      bool wide);

// A table of the neighbours, and a line about those that fall behind.
std::string NeighboursTable(const BenchRecord& record);

// "ceilings: fill 4321 GB/s, ..."
std::string CeilingsLine(const Ceilings& ceilings);

}  // namespace convlab

#endif  // TOOLS_BENCH_REPORT_H_
