// The student's own words: a file in Markdown whose headings name the sections
// of a submission in which the text below them stands.
//
//   ## 4.2 Optimization: im2col_shared
//   ### Why should it help?
//   Every element of the input is loaded once for each block.
//
// Paragraphs, lists with dashes, fenced code, `code` and **strong** text are
// understood; everything else is plain text.
#ifndef REPORTS_DELIVERABLES_NOTES_H_
#define REPORTS_DELIVERABLES_NOTES_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "reports/document/document.h"

namespace convlab {

class Notes {
 public:
  // InvalidArgument, with the line's number, for text before the first heading,
  // a question outside a section, a heading that comes twice, and a fence that
  // does not end.
  static absl::StatusOr<Notes> Parse(absl::string_view text);

  // Puts the notes behind their headings in `blocks`: those of level 2 and,
  // below them, of level 3. Numbers before a heading do not count.
  // InvalidArgument, with the line's number and the headings there are, for
  // notes of a section that there is not.
  absl::Status InsertInto(std::vector<Block>& blocks) const;

 private:
  struct Note {
    int line = 0;
    std::string heading;  // as it was written
    std::vector<Block> blocks;
  };
  std::map<std::string, Note> notes_;  // by path of headings
};

// A file with all headings of the document that notes can have.
std::string NotesTemplate(const Document& document);

}  // namespace convlab

#endif  // REPORTS_DELIVERABLES_NOTES_H_
