// The ranking as a page in HTML.
#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "reports/comparison/ranking.h"
#include "reports/document/writers.h"
#include "reports/drawing/canvas.h"
#include "reports/quantities.h"

namespace convlab {
namespace {

namespace fs = std::filesystem;

// On a screen that is wide enough, a ranking's ten columns stand without a bar
// to scroll; text keeps the width at which it is read well.
constexpr char kWideStyle[] = R"css(
@media screen {
  body { max-width: 76rem; }
  p { max-width: 54rem; }
  figure { max-width: 54rem; }
}
)css";

std::string HistoryId(size_t index) {
  return absl::StrCat("history-", index + 1);
}

// The runs that count by op time, of the class of the first of them, in the
// order of their begin.
std::vector<const History::Entry*> Counted(const History& history) {
  std::vector<const History::Entry*> counted;
  for (const History::Entry& entry : history.entries) {
    if (entry.counts && entry.measure == Measure::kOpTime &&
        (counted.empty() ||
         counted[0]->accuracy_class == entry.accuracy_class)) {
      counted.push_back(&entry);
    }
  }
  return counted;
}

// A line over the runs, from 0 to the largest sum; the last one is labelled.
std::string Line(const std::vector<const History::Entry*>& runs) {
  using drawing::Ink;
  constexpr double kHeight = 150, kLeft = 12, kRight = 90, kTop = 16;
  constexpr double kBottom = kHeight - 12;
  drawing::Canvas canvas(640, "The sum of the op times of each run");
  double most = 0;
  for (const History::Entry* run : runs) most = std::max(most, run->sum_ns);
  canvas.Line(kLeft, kBottom, canvas.width() - kRight, kBottom, Ink::kGrey);
  std::string path;
  const auto x_of = [&](size_t i) {
    return kLeft + (canvas.width() - kLeft - kRight) * static_cast<double>(i) /
                       static_cast<double>(runs.size() - 1);
  };
  const auto y_of = [&](size_t i) {
    return kBottom - (kBottom - kTop) * runs[i]->sum_ns / most;
  };
  for (size_t i = 0; i < runs.size(); ++i) {
    absl::StrAppend(&path, path.empty() ? "M" : "L",
                    absl::StrFormat("%.1f %.1f", x_of(i), y_of(i)));
  }
  canvas.Path(path, Ink::kBlue, 2);
  for (size_t i = 0; i < runs.size(); ++i) {
    canvas.Mark(
        x_of(i), y_of(i), drawing::Shape::kCircle, Ink::kBlue,
        absl::StrCat(runs[i]->run, ": ", Milliseconds(runs[i]->sum_ns), " ms"));
  }
  const size_t last = runs.size() - 1;
  canvas.Text(x_of(last) + 9, y_of(last) + 5,
              Milliseconds(runs[last]->sum_ns) + " ms", {Ink::kText});
  return canvas.Finish(kHeight);
}

Text ReportLinks(const History& history, const fs::path& folder) {
  Text links;
  for (const std::string& report : history.reports) {
    if (!links.empty()) links += ", ";
    links += Link(fs::path(report).filename().string(),
                  fs::path(report).lexically_proximate(folder).string());
  }
  return links;
}

void AddHistory(const History& history, size_t index, const fs::path& folder,
                Document& document) {
  std::vector<Block>& blocks = document.blocks;
  blocks.push_back(Heading{3, history.name, HistoryId(index)});
  const Text links = ReportLinks(history, folder);
  if (!links.empty()) blocks.push_back(Paragraph{Text("Report: ") + links});
  if (history.entries.empty()) {
    blocks.push_back(Paragraph{"No run of these images."});
    return;
  }
  const std::vector<const History::Entry*> counted = Counted(history);
  if (counted.size() > 1) {
    blocks.push_back(
        Figure{{HistoryId(index), Line(counted), ""},
               "A line: the sum of the op times of each run that counts",
               absl::StrCat("Sum of the op times of the runs of class ",
                            counted.front()->accuracy_class,
                            " that count, from ", counted.front()->started,
                            " to ", counted.back()->started, ".")});
  }
  Table table = {{{"began", false},
                  {"run", false},
                  {"class", false},
                  {"sum, ms"},
                  {"of", false},
                  {"counts", false}},
                 {},
                 /*sortable=*/true};
  for (const History::Entry& entry : history.entries) {
    table.rows.push_back(
        {entry.started, Code(entry.run), entry.accuracy_class,
         Milliseconds(entry.sum_ns),
         entry.measure == Measure::kOpTime ? "op times" : "whole operations",
         entry.counts ? "yes" : "no"});
  }
  blocks.push_back(std::move(table));
}

// Makes the tables sortable and the participants' names links to their
// histories.
void LinkTables(const Ranking& ranking, std::vector<Block>& blocks) {
  for (Block& block : blocks) {
    Table* table = std::get_if<Table>(&block);
    if (table == nullptr) continue;
    table->sortable = true;
    for (std::vector<Text>& row : table->rows) {
      for (size_t i = 0; i < ranking.histories.size(); ++i) {
        const std::string& name = ranking.histories[i].name;
        // The name is in the column of that heading, or in the first.
        Text& cell = row[table->columns.size() > 3 ? 1 : 0];
        if (cell.spans().size() == 1 && cell.spans()[0].text == name) {
          cell = Link(name, "#" + HistoryId(i));
        }
      }
    }
  }
}

}  // namespace

std::string RankingPage(const Ranking& ranking, const RankingOptions& options,
                        const std::string& folder) {
  Document document;
  document.title = absl::StrCat("Ranking: ", options.network, ", ",
                                Plural(options.size, "image"));
  document.blocks = DescribeRanking(ranking, options);
  LinkTables(ranking, document.blocks);
  document.blocks.push_back(Heading{2, "Participants"});
  const fs::path absolute = fs::absolute(folder).lexically_normal();
  for (size_t i = 0; i < ranking.histories.size(); ++i) {
    AddHistory(ranking.histories[i], i, absolute, document);
  }
  return WriteHtml(document, kWideStyle);
}

}  // namespace convlab
