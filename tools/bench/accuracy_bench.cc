#include "tools/bench/accuracy_bench.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/status/status.h"
#include "kernels/baseline/convolution.h"
#include "kernels/convolution/checking/contract.h"
#include "kernels/convolution/checking/families.h"
#include "kernels/convolution/checking/host_run.h"

namespace convlab {
namespace {

// How bad the worst output is: above 1 it breaks the contract.
double Score(const FamilyRow& row) {
  return row.c.value_or(std::numeric_limits<double>::infinity()) / row.allowed;
}

// "3.2", "4.7e+05", "inf"
std::string Factor(const std::optional<double>& c) {
  if (!c) return "inf";
  return *c < 1000 ? absl::StrFormat("%.1f", *c) : absl::StrFormat("%.1e", *c);
}

class AccuracyBench {
 public:
  AccuracyBench(const BenchOptions& options, Workers& workers,
                BenchRecord& record, Report& report)
      : options_(options),
        workers_(workers),
        record_(record),
        report_(report) {}

  // Runs our variants.
  absl::Status CompareVariants(const NamedLayer& layer) {
    Resources resources;
    resources.workers = &workers_;
    ASSIGN_OR_RETURN(const std::vector<const Variant*> variants,
                     VariantsFor(options_, layer.problem));
    for (const DataFamily& family : DataFamilies()) {
      report_.Progress(absl::StrCat(layer.name, ": ", family.name));
      for (const Recipe& recipe : RecipesToCompare(family)) {
        RETURN_IF_ERROR(
            CompareVariants(layer, family, recipe, variants, resources));
      }
    }
    return absl::OkStatus();
  }

  absl::Status ComparePeer(const NamedLayer& layer) {
    report_.Progress(absl::StrCat(layer.name, ": cuDNN"));
    CudnnSearch search;
    search.label_all = true;
    search.rule.min_samples = StoppingRule::kFewestSamples;
    search.rule.max_samples = StoppingRule::kFewestSamples;
    const auto measured =
        MeasureCudnn(layer.problem, AccuracyClass::kFp32, workers_, search);
    if (absl::IsUnavailable(measured.status())) {
      report_.Omit(layer, "cudnn", "", AccuracyClass::kFp32,
                   measured.status().message(), /*failed=*/false);
      report_.Tell(absl::StrCat(
          layer.name, ": not measured: cudnn: ", measured.status().message()));
      return absl::OkStatus();
    }
    if (!measured.ok()) return measured.status();
    record_.peer = absl::StrCat("cuDNN ", measured->version);
    for (const CudnnPlan& plan : measured->plans) {
      if (!plan.accuracy) continue;
      AccuracyRow& row =
          RowOf("cudnn", plan.algorithm.substr(0, plan.algorithm.find(" (")),
                *plan.accuracy);
      for (const FamilyError& one : plan.families) {
        AddWorst(one.family, layer.name, one.worst, row);
      }
      // One plan that does not keep the contract is enough.
      if (*plan.accuracy == AccuracyClass::kFp32Normwise) {
        row.accuracy_class = std::string(Name(*plan.accuracy));
      }
    }
    return absl::OkStatus();
  }

  // Reports the variants of class fp32 that are not.
  void ReportBroken() {
    for (const AccuracyRow& row : record_.accuracy) {
      if (row.provider != "convlab" ||
          row.accuracy_class != Name(AccuracyClass::kFp32)) {
        continue;
      }
      for (const FamilyRow& family : row.families) {
        if (Score(family) <= 1) continue;
        const auto layer = std::find_if(
            options_.layers.begin(), options_.layers.end(),
            [&](const NamedLayer& one) { return one.name == family.layer; });
        report_.Omit(*layer, row.provider, row.variant, AccuracyClass::kFp32,
                     absl::StrFormat("it breaks the contract of class fp32 on "
                                     "%s, %s: c = %s, expected at most %.1f",
                                     family.family, family.layer,
                                     Factor(family.c), family.allowed),
                     /*failed=*/true);
      }
    }
  }

 private:
  absl::Status CompareVariants(const NamedLayer& layer,
                               const DataFamily& family, const Recipe& recipe,
                               const std::vector<const Variant*>& variants,
                               const Resources& resources) {
    const ConvolutionData data = MakeData(layer.problem, recipe);
    const ContractReference reference(layer.problem, data.x.data(),
                                      data.k.data(), workers_);
    for (const Variant* variant : variants) {
      if (!IsFloat32(variant->accuracy)) continue;
      const absl::Status supported =
          variant->supports(layer.problem, resources);
      if (absl::IsUnimplemented(supported)) continue;
      if (!supported.ok()) return Annotate(supported, variant->name);
      const auto y =
          RunOnHostTensors(*variant, layer.problem, resources, data.x, data.k);
      if (!y.ok()) return Annotate(y.status(), variant->name);
      AddWorst(family.name, layer.name, reference.Worst(y->data(), workers_),
               RowOf("convlab", variant->name, variant->accuracy));
    }
    return absl::OkStatus();
  }

  AccuracyRow& RowOf(const std::string& provider, const std::string& variant,
                     AccuracyClass accuracy) {
    for (AccuracyRow& row : record_.accuracy) {
      if (row.provider == provider && row.variant == variant) return row;
    }
    record_.accuracy.push_back(
        {provider, variant, std::string(Name(accuracy)), {}});
    return record_.accuracy.back();
  }

  const BenchOptions& options_;
  Workers& workers_;
  BenchRecord& record_;
  Report& report_;
};

}  // namespace

void AddWorst(const std::string& family, const std::string& layer,
              const WorstOutput& worst, AccuracyRow& row) {
  FamilyRow added = {family, layer, std::nullopt, worst.allowed};
  if (std::isfinite(worst.factor)) added.c = worst.factor;
  const auto found =
      std::find_if(row.families.begin(), row.families.end(),
                   [&](const FamilyRow& one) { return one.family == family; });
  if (found == row.families.end()) {
    row.families.push_back(std::move(added));
  } else if (Score(added) > Score(*found)) {
    *found = std::move(added);
  }
}

std::string AccuracyTable(const std::vector<AccuracyRow>& rows) {
  std::string table =
      absl::StrFormat("%-8s %-22s %-13s %9s %9s %-15s %-9s %s\n", "provider",
                      "variant", "class", "worst c", "allowed", "on", "of",
                      "families that break the contract");
  for (const AccuracyRow& row : rows) {
    const auto worst =
        std::max_element(row.families.begin(), row.families.end(),
                         [](const FamilyRow& a, const FamilyRow& b) {
                           return Score(a) < Score(b);
                         });
    if (worst == row.families.end()) continue;
    const auto broken =
        std::count_if(row.families.begin(), row.families.end(),
                      [](const FamilyRow& one) { return Score(one) > 1; });
    absl::StrAppend(
        &table,
        absl::StrFormat("%-8s %-22s %-13s %9s %9.1f %-15s %-9s %d of %d\n",
                        row.provider, row.variant, row.accuracy_class,
                        Factor(worst->c), worst->allowed, worst->family,
                        worst->layer, broken, row.families.size()));
  }
  return table;
}

absl::Status BenchAccuracy(const BenchOptions& options, Workers& workers,
                           BenchRecord& record, Report& report) {
  AccuracyBench bench(options, workers, record, report);
  for (const NamedLayer& layer : options.layers) {
    report.BeginLayer(layer);
    RETURN_IF_ERROR(bench.CompareVariants(layer));
    if (options.peers && options.backend == Backend::kCuda) {
      RETURN_IF_ERROR(bench.ComparePeer(layer));
    }
  }
  bench.ReportBroken();
  report.Tell(absl::StrCat(record.accuracy.size(), " rows"));
  absl::PrintF("%s", AccuracyTable(record.accuracy));
  return absl::OkStatus();
}

}  // namespace convlab
