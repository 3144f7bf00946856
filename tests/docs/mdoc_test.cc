#include "tools/docs/mdoc.h"

#include <doctest/doctest.h>

namespace tubed::docs {
namespace {

TEST_CASE("each sentence begins a line, and words are no requests or escapes") {
  CHECK(mdoc_text("") == "");
  CHECK(mdoc_text("One. Two, of e.g. three; four") == "One.\nTwo, of e.g.\nthree; four\n");
  CHECK(mdoc_text(".Bad 'use of \\n") == "\\&.Bad 'use of \\en\n");
  CHECK(mdoc_text("'Dc") == "\\&'Dc\n");
  CHECK(mdoc_text("with --drain or -b, when-idle") == "with \\-\\-drain or \\-b, when-idle\n");
}

TEST_CASE("lines are wrapped at 78 columns") {
  const auto text = mdoc_text(std::string(40, 'a') + ' ' + std::string(40, 'b') + " c");
  CHECK(text == std::string(40, 'a') + '\n' + std::string(40, 'b') + " c\n");
}

}  // namespace
}  // namespace tubed::docs
