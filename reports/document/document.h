// A report before it has a format: blocks of text, tables and figures, which
// the writers beside this file turn into Markdown and HTML. Text is plain: each
// writer escapes what its format would interpret as markup.
//
//   Document document;
//   document.title = "Milestone 1";
//   document.blocks.push_back(Heading{2, "Kernels"});
//   document.blocks.push_back(Paragraph{"The kernel " + Code(name) + " ran."});
#ifndef REPORTS_DOCUMENT_DOCUMENT_H_
#define REPORTS_DOCUMENT_DOCUMENT_H_

#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace convlab {

struct Span {
  enum class Kind { kPlain, kCode, kStrong, kLink };

  Kind kind = Kind::kPlain;
  std::string text;
  std::string target = {};  // of a link: a relative path, or "#" and an id
};

// One line or paragraph of text.
class Text {
 public:
  Text() = default;
  // Plain text converts implicitly.
  Text(const char* plain) : Text(std::string(plain)) {}  // NOLINT
  Text(std::string plain) {                              // NOLINT
    spans_.push_back({Span::Kind::kPlain, std::move(plain)});
  }
  explicit Text(Span span) { spans_.push_back(std::move(span)); }

  Text& operator+=(const Text& other) {
    spans_.insert(spans_.end(), other.spans_.begin(), other.spans_.end());
    return *this;
  }
  friend Text operator+(Text a, const Text& b) { return std::move(a += b); }

  const std::vector<Span>& spans() const { return spans_; }
  bool empty() const { return spans_.empty(); }

 private:
  std::vector<Span> spans_;
};

// Names, commands and file names.
inline Text Code(std::string text) {
  return Text(Span{Span::Kind::kCode, std::move(text)});
}
inline Text Strong(std::string text) {
  return Text(Span{Span::Kind::kStrong, std::move(text)});
}
inline Text Link(std::string text, std::string target) {
  return Text(Span{Span::Kind::kLink, std::move(text), std::move(target)});
}

// A drawing as SVG (reports/drawing). A page shows the wide one on paper and on
// wide screens, and the narrow one, if there is one, on a phone's.
struct Chart {
  std::string name;  // of its file, without ".svg"
  std::string wide, narrow;
};

struct Heading {
  int level = 2;  // 2 to 4; the title is 1
  Text text;
  std::string id = {};  // of links to it: letters, digits and dashes
};
// The headings that have an id, as links to them.
struct Contents {};
// Prose that a program wrote, for anybody's numbers, is marked as such.
struct Paragraph {
  Text text;
  bool is_generated = false;
};
struct List {
  std::vector<Text> items;
  bool is_generated = false;
};
struct Table {
  struct Column {
    Text heading;
    bool number = true;  // set flush right
  };
  std::vector<Column> columns;
  std::vector<std::vector<Text>> rows;  // each as long as `columns`
  // Readers of the HTML page sort the rows by a click on a column's heading.
  bool sortable = false;
};
struct Figure {
  Chart chart;
  std::string description;  // alternative text
  Text caption;
};
struct Verbatim {
  std::vector<std::string> lines;
};
using Block =
    std::variant<Heading, Contents, Paragraph, List, Table, Figure, Verbatim>;

struct Document {
  std::string title;
  std::vector<Block> blocks;
};

inline Paragraph Generated(Text text) {
  return {std::move(text), /*is_generated=*/true};
}

inline void Append(std::vector<Block>& blocks, std::vector<Block> more) {
  for (Block& block : more) blocks.push_back(std::move(block));
}

}  // namespace convlab

#endif  // REPORTS_DOCUMENT_DOCUMENT_H_
