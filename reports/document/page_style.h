// What all pages have in common: their style, and the script that sorts tables.
#ifndef REPORTS_DOCUMENT_PAGE_STYLE_H_
#define REPORTS_DOCUMENT_PAGE_STYLE_H_

#include <string>

namespace convlab {

// The content of <style>: light or dark as the reader's screen is, from 390
// pixels to wide screens, and A4 paper, on which letters and distances can be
// scaled.
std::string PageStyle(double print_scale = 1);

// The content of <script>: tables of class "sortable" are sorted by a click on
// a column's heading.
std::string SortScript();

}  // namespace convlab

#endif  // REPORTS_DOCUMENT_PAGE_STYLE_H_
