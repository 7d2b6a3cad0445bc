// A profile in the format of nvprof's summaries, for people and for programs
// that read those.
#ifndef COMMON_RECORD_PROFILE_TEXT_H_
#define COMMON_RECORD_PROFILE_TEXT_H_

#include <string>

#include "common/record/profile.h"

namespace convlab {

// "948ns", "1.1200us", "16.772ms", "3.14080s": nvprof's digits.
std::string ProfileTime(double ns);

// A line with the columns' names, then a line per entry, GPU activities before
// API calls, each section in its entries' order. An absent value is "-". Lines
// at the end say what is missing from a section, "== Warning: API calls: not
// all: ...".
std::string ProfileText(const Profile& profile);

}  // namespace convlab

#endif  // COMMON_RECORD_PROFILE_TEXT_H_
