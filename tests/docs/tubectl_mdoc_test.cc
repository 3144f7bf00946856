#include "tools/docs/tubectl_mdoc.h"

#include <string>

#include <doctest/doctest.h>

#include "tests/docs/mentions.h"
#include "tubectl/commands/table.h"

namespace tubed::docs {
namespace {

// A page with a section for each subcommand, with a head for each of its options.
std::string whole_page() {
  std::string page = ".Sh DESCRIPTION\n.It Fl s\n.It Fl -json\n.It Fl -raw\n.Sh SUBCOMMANDS\n";
  for (const tubectl::Subcommand* subcommand : tubectl::subcommands()) {
    page.append(".Ss Cm ").append(subcommand->name).append(" Op Ar options\n");
    for (const options::OptionRow& row : tubectl::options_of(*subcommand)) {
      const auto names = options::split_names(row).names;
      if (!names.empty())
        page.append(".It Fl ").append(names.front().substr(1)).append("\nText.\n");
    }
  }
  return page + ".Sh FILES\n";
}

std::string replaced(std::string text, const std::string& old, const std::string& by) {
  const auto at = text.find(old);
  REQUIRE(at != text.npos);
  return text.replace(at, old.size(), by);
}

TEST_CASE("tubectl(1): a head has the names and the value of its row") {
  const auto page = tubectl_man_page(whole_page());
  REQUIRE(page.ok());
  for (const auto* head :
       {".It Fl s , Fl -server Ar ADDRESS\n", ".It Fl -json\n", ".It Fl t , Fl -tube Ar TUBE\n",
        ".It Fl u , Fl -unique Ar KEY Ns Oo : Ns Ar SECONDS Oc\n",
        ".It Fl -on-failure Cm release | bury | delete\n", ".It Fl -sort Ar KEY\n"}) {
    CHECK(mentions(page.value(), head));
  }
  CHECK(tubectl_man_page(page.value()).value() == page.value());
}

TEST_CASE("tubectl(1): a head may have several options") {
  const auto page = replaced(whole_page(), ".It Fl -delay\nText.\n.It Fl -priority\n",
                             ".It Fl -delay Ar T , Fl -priority\n");
  CHECK(mentions(tubectl_man_page(page).value(), ".It Fl -delay Ar TIME , Fl -priority Ar N\n"));
}

TEST_CASE("tubectl(1): an option without a row, and a row without a description, are mistakes") {
  CHECK(tubectl_man_page(replaced(whole_page(), ".It Fl -ttr\n", ".It Fl -tr\n")).error().message ==
        "the section of put has no option --tr");
  CHECK(tubectl_man_page(replaced(whole_page(), ".It Fl -ttr\n", "")).error().message ==
        "the section of put lacks --ttr");
  CHECK(
      tubectl_man_page(replaced(whole_page(), ".It Fl -raw\n", ".It Fl -rare\n")).error().message ==
      "the section of tubectl itself has no option --rare");
  CHECK(tubectl_man_page(replaced(whole_page(), ".Ss Cm put ", ".Ss Cm putt ")).error().message ==
        "there is no subcommand putt");
}

TEST_CASE("tubectl(1): an option may be described within prose") {
  CHECK(tubectl_man_page(replaced(whole_page(), ".It Fl -ttr\n", ".Fl -ttr\n")).ok());
}

}  // namespace
}  // namespace tubed::docs
