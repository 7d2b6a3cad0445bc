#include "reports/explorer/explorer.h"

#include <cstdint>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status/status.h"
#include "reports/document/page_style.h"
#include "reports/document/writers.h"
#include "reports/drawing/canvas.h"
#include "reports/explorer/page_data.h"
#include "reports/quantities.h"

namespace convlab {
namespace {

constexpr char kDraw[] =
#include "reports/explorer/draw_js.inc"
    ;
constexpr char kScript[] =
#include "reports/explorer/explorer_js.inc"
    ;
constexpr char kBody[] =
#include "reports/explorer/explorer_html.inc"
    ;

constexpr char kExplorerStyle[] = R"css(
.pair { display: flex; flex-wrap: wrap; gap: .5rem 1rem; }
label { display: inline-flex; gap: .4rem; align-items: center; max-width: 100%; }
select, input { font: inherit; max-width: 100%; min-width: 0; color: var(--ink);
  background-color: var(--paper); border: 1px solid; border-radius: 4px;
  border-color: var(--muted); padding: .15rem .3rem; }
.pair[hidden] { display: none; }
.plot svg { display: block; max-width: 100%; }
.name { paint-order: stroke; stroke: var(--paper); stroke-width: 3px; }
)css";

}  // namespace

Explorer MakeExplorer(const Records& records) {
  const std::vector<PageEntry> entries = EntriesOf(records);
  const std::string style =
      absl::StrCat(drawing::LightRules(), PageStyle(), kExplorerStyle);
  Explorer explorer;
  size_t size =
      sizeof(kDraw) + sizeof(kScript) + sizeof(kBody) + style.size() + 4000;
  std::map<std::string, std::string> lists = {
      {"runs", ""}, {"wholes", ""}, {"contracts", ""}};
  std::vector<std::string> machines;
  for (const PageEntry& entry : entries) {
    size_t more = 0;
    for (const auto& [list, text] : entry.values) more += text.size() + 2;
    if (size + more > kLargestPage) break;
    size += more;
    for (const auto& [list, text] : entry.values) {
      absl::StrAppend(&lists[list], lists[list].empty() ? "" : ",\n", text);
    }
    machines.push_back(entry.machine);
    ++explorer.shown;
  }
  explorer.left_out = entries.size() - explorer.shown;
  std::string data = "{";
  for (const auto& [list, texts] : lists) {
    absl::StrAppend(&data, "\"", list, "\":[", texts, "],\n");
  }
  absl::StrAppend(&data, "\"machines\":", PeaksOf(machines), "}");
  const std::string note = absl::StrCat(
      Plural(static_cast<int64_t>(explorer.shown), "record"), " of ",
      OneLine(records.folder),
      explorer.left_out == 0
          ? ""
          : absl::StrCat("; ", explorer.left_out,
                         " older ones left out, since the page would be larger "
                         "than 2 MB"),
      records.broken.empty()
          ? ""
          : absl::StrCat(
                "; ",
                Plural(static_cast<int64_t>(records.broken.size()), "other"),
                " could not be read"),
      ".");
  explorer.html = absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n<title>Records of convolutions</title>\n<link "
      "rel=\"icon\" href=\"data:,\">\n<style>",
      style,
      "</style>\n</head>\n<body>\n<main>\n<h1>Records of convolutions"
      "</h1>\n<p>",
      EscapeHtml(note), "</p>\n", kBody,
      "</main>\n<script type=\"application/json\" id=\"data\">", data,
      "</script>\n<script>", kDraw, kScript, "</script>\n</body>\n</html>\n");
  return explorer;
}

}  // namespace convlab
