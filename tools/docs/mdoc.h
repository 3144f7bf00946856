// Prose of the tables as source of a manual page, mdoc(7).
//
// Used for every text that comes from a table; text that is written in the generators is mdoc
// already.
#pragma once

#include <string>
#include <string_view>

namespace tubed::docs {

// Prose as lines of mdoc: each sentence begins a line, and no word is a request or an escape.
std::string mdoc_text(std::string_view prose);

}  // namespace tubed::docs
