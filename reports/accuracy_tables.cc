#include "reports/accuracy_tables.h"

#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "reports/bench_tables.h"

namespace convlab {
namespace {

double Score(const FamilyRow& row) {
  return row.c.value_or(std::numeric_limits<double>::infinity()) / row.allowed;
}

// "2.3", "**480,000**" with an exponent, "**∞**"
std::string Cell(const FamilyRow& row) {
  const std::string c = !row.c          ? "∞"
                        : *row.c < 1000 ? absl::StrFormat("%.1f", *row.c)
                                        : absl::StrFormat("%.0e", *row.c);
  return Score(row) > 1 ? absl::StrCat("**", c, "**") : c;
}

// The worst of the implementations of a provider in a class; null if there are
// none.
const FamilyRow* WorstOf(const BenchRecord& record, size_t family,
                         const char* provider, const char* accuracy_class) {
  const FamilyRow* worst = nullptr;
  for (const AccuracyRow& row : record.accuracy) {
    if (row.provider != provider || row.accuracy_class != accuracy_class) {
      continue;
    }
    const FamilyRow& one = row.families[family];
    if (worst == nullptr || Score(one) > Score(*worst)) worst = &one;
  }
  return worst;
}

}  // namespace

absl::Status CheckAccuracy(const BenchRecord& record) {
  if (record.accuracy.empty()) {
    return absl::InvalidArgumentError("the record lacks rows of accuracy");
  }
  const std::vector<FamilyRow>& first = record.accuracy[0].families;
  for (size_t i = 0; i < record.accuracy.size(); ++i) {
    const std::vector<FamilyRow>& families = record.accuracy[i].families;
    bool right = families.size() == first.size() && !families.empty();
    for (size_t f = 0; right && f < families.size(); ++f) {
      // Not "<= 0": NaN is no number either.
      right = families[f].family == first[f].family && families[f].allowed > 0;
    }
    if (right) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "record.accuracy[", i, "], of ", record.accuracy[i].variant,
        ": expected the families of the first row, and what is allowed"));
  }
  return absl::OkStatus();
}

std::string AccuracyTable(const BenchRecord& record) {
  std::string table = absl::StrCat(Caption(record),
                                   "\n\n| implementation | class |"),
              rule = "|---|---|";
  for (const FamilyRow& family : record.accuracy[0].families) {
    absl::StrAppend(&table, " ", family.family, " |");
    rule += "---|";
  }
  absl::StrAppend(&table, "\n", rule, "\n");
  for (const AccuracyRow& row : record.accuracy) {
    absl::StrAppend(&table, "| ",
                    row.provider == "convlab"
                        ? absl::StrCat("`", row.variant, "`")
                        : absl::StrCat("cuDNN ", row.variant),
                    " | ", row.accuracy_class, " |");
    for (const FamilyRow& family : row.families) {
      absl::StrAppend(&table, " ", Cell(family), " |");
    }
    table += "\n";
  }
  return table;
}

std::string AccuracyDigest(const BenchRecord& record) {
  struct Column {
    const char* head;
    const char* provider;
    const char* accuracy_class;
  };
  constexpr Column kColumns[] = {
      {"our variants of class `fp32`", "convlab", "fp32"},
      {"our `fp32-normwise`", "convlab", "fp32-normwise"},
      {"cuDNN's plans of class `fp32`", "cudnn", "fp32"},
      {"its `fp32-normwise`", "cudnn", "fp32-normwise"}};
  std::string table = absl::StrCat(Caption(record), "\n\n| data |");
  std::string rule = "|---|";
  for (const Column& column : kColumns) {
    absl::StrAppend(&table, " ", column.head, " |");
    rule += "---|";
  }
  absl::StrAppend(&table, "\n", rule, "\n");
  const std::vector<FamilyRow>& families = record.accuracy[0].families;
  for (size_t f = 0; f < families.size(); ++f) {
    absl::StrAppend(&table, "| ", families[f].family, " |");
    for (const Column& column : kColumns) {
      const FamilyRow* const worst =
          WorstOf(record, f, column.provider, column.accuracy_class);
      absl::StrAppend(&table, " ", worst == nullptr ? "–" : Cell(*worst), " |");
    }
    table += "\n";
  }
  return table;
}

}  // namespace convlab
