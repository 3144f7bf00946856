#include "config/command_line.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "config/table.h"
#include "tests/config/loading.h"

namespace tubed::config_test {
namespace {

TEST_CASE("no arguments are fine") {
  const auto line = accept({});
  CHECK(line.warnings.empty());
  CHECK(line.config_file.empty());
  CHECK_FALSE(line.check_config);
  CHECK_FALSE(line.print_config);
  CHECK(line.listeners.empty());
  CHECK_FALSE(line.port.has_value());
}

TEST_CASE("the flags that are no settings") {
  const auto line = accept({"--config", "/etc/x.toml", "--check-config", "--print-config"});
  CHECK(line.config_file == "/etc/x.toml");
  CHECK(line.check_config);
  CHECK(line.print_config);
}

TEST_CASE("help and version go to stdout, whatever else was given") {
  for (const auto* flag : {"-h", "--help"}) {
    const auto exit = refuse({flag, "--limits-tubes", "0", "-b", "x"});
    CHECK(exit.code == 0);
    CHECK(exit.text.starts_with("Usage: tubed"));
  }
  for (const auto* flag : {"-v", "--version"}) {
    const auto exit = refuse({flag});
    CHECK(exit.code == 0);
    CHECK(exit.text == "tubed " TUBED_VERSION "\n");
  }
}

TEST_CASE("help mentions every row, and fits the screen") {
  const auto text = refuse({"--help"}).text;
  for (const auto& row : config::settings_table()) {
    CAPTURE(row.key);
    CHECK(text.find(row.flag()) != std::string::npos);
    CHECK(text.find(to_text(row.type, row.default_value())) != std::string::npos);
    CHECK(text.find(bounds(row.type)) != std::string::npos);
    if (row.short_flag) {
      CHECK(text.find(fmt::format("-{}, {}", row.short_flag, row.flag())) != std::string::npos);
    }
  }
  for (const auto& row : config::options_table()) {
    CAPTURE(row.names());
    CHECK(text.find("\n  " + row.names() + " ") != std::string::npos);
  }
  std::size_t start = 0;
  for (auto end = text.find('\n'); end != std::string::npos; end = text.find('\n', start)) {
    CHECK(end - start <= 100);
    start = end + 1;
  }
  CHECK(start == text.size());
}

TEST_CASE("what is no flag is a usage error on one line") {
  CHECK(refuse({"--bogus"}).text == "tubed: unknown flag --bogus; try tubed --help\n");
  CHECK(refuse({"--limits-tube", "5"}).text ==
        "tubed: unknown flag --limits-tube (did you mean --limits-tubes?); try tubed --help\n");
  CHECK(refuse({"--config"}).text ==
        "tubed: --config: 1 required FILE missing; try tubed --help\n");
  CHECK(refuse({"file.toml"}).text ==
        "tubed: unexpected argument \"file.toml\"; try tubed --help\n");
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{{"--bogus"},
                                             {"--bogus=5"},
                                             {"-x"},
                                             {"-Vx"},
                                             {"file.toml"},
                                             {""},
                                             {"-"},
                                             {"--config"},
                                             {"-p"},
                                             {"-l"},
                                             {"-b"},
                                             {"-z"},
                                             {"--limits-tubes"},
                                             {"--check-config=false"},
                                             {"--check-config", "false"},
                                             {"-l", "127.0.0.1", "127.0.0.2"},
                                             {"--", "x"},
                                             {"--a\nb"},
                                             {"a\nb"}}) {
    CAPTURE(fmt::format("{}", args.front()));
    const auto exit = refuse(args);
    CHECK(exit.code == 64);
    CHECK(exit.text.starts_with("tubed: "));
    CHECK(exit.text.ends_with("; try tubed --help\n"));
    CHECK(exit.text.find('\n') == exit.text.size() - 1);
  }
}

TEST_CASE("a bad value names the flag and the reason") {
  CHECK(refuse({"-z", "0"}).text == "tubed: -z/--limits-job-bytes: 0 is below the minimum of 1\n");
  CHECK(refuse({"--limits-tubes", "-5"}).text ==
        "tubed: --limits-tubes: -5 is below the minimum of 1\n");
  CHECK(refuse({"-p", "65536"}).text ==
        "tubed: -p/--port: \"65536\" is not a port from 0 to 65535\n");
  CHECK(refuse({"--config", ""}).text == "tubed: --config: the name of the file is empty\n");
  CHECK(refuse({"-l", "localhost"}).text ==
        "tubed: -l/--listen: \"localhost\" is not a numeric address; names are not resolved\n");
  CHECK(refuse({"-l", "::1", "--listen", "[::1]:11300"}).text ==
        "tubed: -l/--listen: [::1]:11300 is given twice\n");
  for (const auto* text : {"", "-1", "x", "1x"}) CHECK(refuse({"-p", text}).code == 78);
}

TEST_CASE("of a flag that is given twice the last counts") {
  CHECK(load("", accept({"-z", "5", "--limits-job-bytes", "6"})).value().queue.job_bytes == 6);
  CHECK(accept({"-p", "5", "-p", "6"}).port == 6);
  CHECK(refuse({"-z", "0", "-z", "6"}).code == 78);
}

TEST_CASE("beanstalkd's flags, apart and attached") {
  const auto line = accept(
      {"-l", "[::1]", "-l", "::2", "-l", "127.0.0.1:5", "-p11301", "-z100", "-u", "tubed", "-VV"});
  CHECK(line.warnings.empty());
  REQUIRE(line.listeners.size() == 3);
  CHECK(to_string(line.listeners[0]) == "[::1]:11301");
  CHECK(to_string(line.listeners[1]) == "[::2]:11301");
  CHECK(to_string(line.listeners[2]) == "127.0.0.1:5");
  CHECK(line.louder == 2);
  const auto settings = load("", line).value();
  CHECK(settings.queue.job_bytes == 100);
  CHECK(settings.user == "tubed");
}

TEST_CASE("flags that need a journal are ignored with a warning each") {
  for (const std::vector<std::string>& args : std::vector<std::vector<std::string>>{
           {"-f", "50"}, {"-f0"}, {"-F"}, {"-s", "10485760"}, {"-c"}, {"-n"}}) {
    CAPTURE(args.front());
    const auto line = accept(args);
    REQUIRE(line.warnings.size() == 1);
    CHECK(line.warnings[0].starts_with(args[0].substr(0, 2) + ": ignored: without a journal"));
    CHECK(line.warnings[0].find('\n') == std::string::npos);
    CHECK(load("", line).value() == Settings());
  }
  CHECK(accept({"-c", "-n", "-F", "-F"}).warnings.size() == 3);
}

TEST_CASE("-b is refused: jobs would be lost") {
  for (const auto& args :
       {std::vector<std::string>{"-b", "/var/lib/x"}, {"-b/var/lib/x", "-p", "x"}}) {
    const auto exit = refuse(args);
    CHECK(exit.code == 78);
    CHECK(exit.text ==
          "tubed: -b DIR: refused: this version has no journal and would lose the jobs at a "
          "restart\n");
  }
}

}  // namespace
}  // namespace tubed::config_test
