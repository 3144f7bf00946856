#include "config/test_mode.h"

#include <doctest/doctest.h>

#include "tests/config/loading.h"

namespace tubed::config_test {
namespace {

std::string error_of(const std::vector<std::string>& args) {
  const auto settings = load_settings(accept(args));
  return settings ? "" : settings.error().message;
}

TEST_CASE("--test-mode takes the name of a clock, or none") {
  CHECK_FALSE(accept({}).test_mode);
  CHECK(accept({"--test-mode"}).test_mode->clock == TestClock::manual);
  CHECK(accept({"--test-mode=manual"}).test_mode->clock == TestClock::manual);
  CHECK(accept({"--test-mode=auto"}).test_mode->clock == TestClock::automatic);
  CHECK(accept({"--test-mode=real"}).test_mode->clock == TestClock::real);
  CHECK(refuse({"--test-mode=never"}).code == kExitConfig);
  CHECK(refuse({"--test-mode", "auto"}).code == kExitUsage);
}

TEST_CASE("the flags that belong to it, in any order") {
  const auto line =
      accept({"--no-stdin", "--address-file", "a", "--test-mode=auto", "--preload", "b"});
  CHECK(line.test_mode->clock == TestClock::automatic);
  CHECK_FALSE(line.test_mode->use_stdin);
  CHECK(line.test_mode->address_file == "a");
  CHECK(line.test_mode->preload == "b");
  CHECK(accept({"--test-mode"}).test_mode->use_stdin);
  for (const std::vector<std::string>& args : std::vector<std::vector<std::string>>{
           {"--no-stdin"}, {"--address-file", "a"}, {"--preload", "a"}}) {
    CHECK(refuse(args).text ==
          "tubed: " + args.front() + " needs --test-mode as well; try tubed --help\n");
  }
  CHECK(refuse({"--test-mode", "--preload", ""}).code == kExitConfig);
}

TEST_CASE("no file is read, and no task is done") {
  CHECK(refuse({"--test-mode", "--config", "/etc/tubed.toml"}).code == kExitUsage);
  CHECK(refuse({"--test-mode", "--dump", "/tmp"}).code == kExitUsage);
}

TEST_CASE("its defaults are a free port, and errors only in the log") {
  const auto settings = load_settings(accept({"--test-mode"}));
  REQUIRE(settings);
  Listen free_port;
  free_port.port = 0;
  CHECK(settings->listeners == std::vector<Listen>{free_port});
  CHECK(settings->log_level == LogLevel::error);
  CHECK(settings->journal_directory.empty());
  CHECK(load_settings(accept({"--test-mode", "-p", "7"}))->listeners.front().port == 7);
  CHECK(load_settings(accept({"--test-mode", "-VV"}))->log_level == LogLevel::info);
}

TEST_CASE("only this machine can connect") {
  for (const char* local : {"127.0.0.1", "127.1.2.3:0", "[::1]:0", "unix:/tmp/x"}) {
    CHECK(error_of({"--test-mode", "-l", local}).empty());
  }
  CHECK(error_of({"--test-mode", "-l", "0.0.0.0:7"}) ==
        "-l/--listen: 0.0.0.0:7: in test mode addresses are loopback or unix");
  CHECK_FALSE(error_of({"--test-mode", "-l", "127.0.0.1", "-l", "[::]"}).empty());
  CHECK_FALSE(error_of({"--test-mode", "--http-listen", "192.0.2.1"}).empty());
  CHECK(error_of({"-l", "0.0.0.0"}).empty());
}

}  // namespace
}  // namespace tubed::config_test
