// Documents as files. Pure functions: the same document gives the same text.
#ifndef REPORTS_DOCUMENT_WRITERS_H_
#define REPORTS_DOCUMENT_WRITERS_H_

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "reports/document/document.h"

namespace convlab {

// The figures' folder, beside the document.
inline constexpr char kChartsFolder[] = "charts";

// GitHub's Markdown; figures are links to files in kChartsFolder.
std::string WriteMarkdown(const Document& document);

// The content of those files, SVG by name.
std::map<std::string, std::string> ChartFiles(const Document& document);

// Formats blocks without a document, for a terminal: the columns of tables are
// padded to equal widths. Where a table is wider than `width` characters, its
// widest columns are cut; 0: none is.
std::string WriteBlocks(const std::vector<Block>& blocks, size_t width = 0);

// One self-contained file with style and figures. It fits screens from 390
// pixels and A4 paper, and is dark where the reader's screen is. `more_style`
// is CSS of this document's own.
std::string WriteHtml(const Document& document,
                      absl::string_view more_style = "");
// The same for the program that makes a PDF of it: letters and distances on
// paper are scaled, and a link to itself, kEndId, marks the end of the text.
std::string WritePrintHtml(const Document& document, double scale);
inline constexpr char kEndId[] = "end-of-text";

// Escapes text so that it is not read as markup.
std::string EscapeMarkdown(absl::string_view text);
std::string EscapeHtml(absl::string_view text);

// Escapes a relative path, or "#" and an id, for the target of a link.
std::string EscapeUrl(absl::string_view target);

}  // namespace convlab

#endif  // REPORTS_DOCUMENT_WRITERS_H_
