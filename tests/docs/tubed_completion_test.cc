#include "tools/docs/tubed_completion.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "config/table.h"
#include "tests/docs/mentions.h"

namespace tubed::docs {
namespace {

TEST_CASE("bash and zsh know every flag") {
  const auto bash = bash_completion();
  const auto zsh = zsh_completion();
  for (const auto& row : config::settings_table()) {
    CAPTURE(row.key);
    CHECK(mentions(bash, row.flag()));
    CHECK(mentions(zsh, row.flag() + '='));
  }
  for (const auto& row : config::options_table()) {
    CAPTURE(row.names());
    if (!row.long_flag.empty()) CHECK(mentions(bash, row.long_flag));
    if (!row.long_flag.empty()) CHECK(mentions(zsh, row.long_flag));
    if (row.short_flag != '\0') CHECK(mentions(zsh, fmt::format("-{}", row.short_flag)));
  }
}

TEST_CASE("the completion of an argument depends on its type") {
  const auto bash = bash_completion();
  CHECK(
      mentions(bash,
               "    --config | --address-file | --preload | --pid-file | --http-tls-certificate | "
               "--http-tls-key | --http-tls-client-ca | --auth-tokens | --cluster-secret-file | "
               "--cluster-tls-certificate | --cluster-tls-key | --cluster-tls-ca)\n"
               "      compopt -o filenames\n"));
  CHECK(mentions(bash, " | -b | --journal-directory)\n      compopt -o filenames\n"));
  CHECK(mentions(bash,
                 "    --log-level)\n"
                 "      mapfile -t COMPREPLY < <(compgen -W 'error warning info debug' --"));
  CHECK(mentions(bash, "compgen -W 'always never' --"));
  const auto zsh = zsh_completion();
  CHECK(mentions(
      zsh, "'--config=''[Read the settings of this TOML file and its drop-ins]:FILE:_files'"));
  CHECK(mentions(zsh, ":DIR:_files -/'"));
  CHECK(mentions(zsh, ":WORD:(never when-idle when-empty)'"));
}

TEST_CASE("characters that would end a description or its quotes are escaped") {
  const auto zsh = zsh_completion();
  CHECK(mentions(zsh, "HOST:PORT, \\[HOST\\]:PORT or"));
  CHECK(mentions(zsh, "all clients'\\'' watch lists"));
}

}  // namespace
}  // namespace tubed::docs
