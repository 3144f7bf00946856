#include "config/command_line.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "config/table.h"
#include "tests/config/loading.h"

namespace tubed::config_test {
namespace {

TEST_CASE("no arguments are needed") {
  const auto line = accept({});
  CHECK(line.warnings.empty());
  CHECK(line.config_file.empty());
  CHECK_FALSE(line.check_config);
  CHECK_FALSE(line.print_config);
  CHECK(line.listeners.empty());
  CHECK_FALSE(line.port.has_value());
}

TEST_CASE("the flags that are not settings") {
  const auto line = accept({"--config", "/etc/x.toml", "--check-config", "--print-config"});
  CHECK(line.config_file == "/etc/x.toml");
  CHECK(line.check_config);
  CHECK(line.print_config);
}

TEST_CASE("help and version go to stdout, whatever other flags are given") {
  for (const auto* flag : {"-h", "--help"}) {
    const auto exit = refuse({flag, "--limits-tubes", "0", "-b", "x"});
    CHECK(exit.code == 0);
    CHECK(exit.text.starts_with("Usage: tubed"));
  }
  for (const auto* flag : {"-v", "--version"}) {
    const auto exit = refuse({flag});
    CHECK(exit.code == 0);
    CHECK(exit.text.starts_with("tubed " TUBED_VERSION "\ncluster: "));
    CHECK(exit.text.ends_with(TUBED_RAFT[0] == '\0' ? ": not built in\n"
                                                    : ": libraft " TUBED_RAFT "\n"));
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

TEST_CASE("an unknown flag and an unexpected argument are usage errors on one line") {
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

TEST_CASE("a long flag is not abbreviated") {
  CHECK(refuse({"--use", "x"}).text ==
        "tubed: unknown flag --use (did you mean --user?); try tubed --help\n");
  CHECK(refuse({"--us=x"}).text ==
        "tubed: unknown flag --us (did you mean --user?); try tubed --help\n");
  CHECK(refuse({"--limits-job-byte"}).text ==
        "tubed: unknown flag --limits-job-byte (did you mean --limits-job-bytes?); try tubed "
        "--help\n");
  CHECK(refuse({"--check-conf=x"}).text ==
        "tubed: unknown flag --check-conf (did you mean --check-config?); try tubed --help\n");
  CHECK(refuse({"--lim"}).text == "tubed: unknown flag --lim; try tubed --help\n");
  // A whole flag is itself, also where a longer one begins with it.
  CHECK(accept({"--check", "x"}).task == Task::check);
}

TEST_CASE("an unknown letter is named with the rest of its cluster") {
  CHECK(refuse({"-Vxy"}).text == "tubed: unknown flag -xy; try tubed --help\n");
  CHECK(refuse({"-xp"}).text == "tubed: unknown flag -xp; try tubed --help\n");
  CHECK(refuse({"-V=5"}).text == "tubed: unknown flag -; try tubed --help\n");
  CHECK(refuse({"-V\xc3\xa9"}).text == "tubed: unknown flag -\xc3\xa9; try tubed --help\n");
  CHECK(refuse({"-V\xff"}).text == "tubed: unknown flag -?; try tubed --help\n");
  CHECK(refuse({"-V-user"}).text ==
        "tubed: unknown flag -V-user (did you mean --user?); try tubed --help\n");
  for (const auto* flag : {"-?", "-:", "-;", "-+", "-W", "-1"}) {
    CHECK(refuse({flag}).text == fmt::format("tubed: unknown flag {}; try tubed --help\n", flag));
  }
}

TEST_CASE("the first mistake is reported") {
  CHECK(refuse({"--bogus", "-p"}).text == "tubed: unknown flag --bogus; try tubed --help\n");
  CHECK(refuse({"file", "-x"}).text == "tubed: unexpected argument \"file\"; try tubed --help\n");
  CHECK(refuse({"-z", "0", "-x"}).text == "tubed: unknown flag -x; try tubed --help\n");
  CHECK(refuse({"--help", "--bogus"}).code == 64);
}

TEST_CASE("a switch takes no argument") {
  for (const auto* text : {"--check-config=", "--check-config=true", "--check-config=false"}) {
    CHECK(refuse({text}).text == "tubed: --check-config takes no argument; try tubed --help\n");
  }
}

TEST_CASE("no flag and no argument may follow two dashes") {
  for (const auto& args :
       {std::vector<std::string>{"--"}, {"--", "-V"}, {"-V", "--", "file"}, {"--", "-p"}}) {
    CHECK(refuse(args).text == "tubed: unknown flag --; try tubed --help\n");
  }
}

TEST_CASE("what follows a flag with an argument is its argument, whatever it looks like") {
  for (const auto* text : {"--", "-V", "--help", "--user=", "-", "=x", "a b"}) {
    CAPTURE(text);
    CHECK(load("", accept({"-u", text})).value().user == text);
    CHECK(load("", accept({"--user", text})).value().user == text);
    CHECK(load("", accept({fmt::format("--user={}", text)})).value().user == text);
    CHECK(load("", accept({fmt::format("-Vu{}", text)})).value().user == text);
  }
}

TEST_CASE("one command line leaves nothing for the next") {
  CHECK(refuse({"-Vxp", "5"}).code == 64);
  CHECK(accept({"-p", "6"}).port == 6);
  CHECK(refuse({"-p"}).text == "tubed: --port: 1 required PORT missing; try tubed --help\n");
  CHECK(accept({"-VV"}).log_level_steps == 2);
}

TEST_CASE("a bad value names the flag and the reason") {
  CHECK(refuse({"-z", "0"}).text == "tubed: -z/--limits-job-bytes: 0 is below the minimum of 1\n");
  CHECK(refuse({"--limits-tubes", "-5"}).text ==
        "tubed: --limits-tubes: -5 is below the minimum of 1\n");
  CHECK(refuse({"-p", "65536"}).text ==
        "tubed: -p/--port: \"65536\" is not a port from 0 to 65535\n");
  CHECK(refuse({"--config", ""}).text == "tubed: --config: the name of the file is empty\n");
  CHECK(refuse({"-l", "localhost"}).text ==
        "tubed: -l/--listen: \"localhost\" is not a numeric address; names are not resolved: write "
        "127.0.0.1 or [::1]\n");
  CHECK(refuse({"-l", "::1", "--listen", "[::1]:11300"}).text ==
        "tubed: -l/--listen: [::1]:11300 is given twice\n");
  for (const auto* text : {"", "-1", "x", "1x"}) CHECK(refuse({"-p", text}).code == 78);
}

TEST_CASE("of a flag that is given twice, the last takes effect") {
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
  CHECK(line.log_level_steps == 2);
  const auto settings = load("", line).value();
  CHECK(settings.queue.job_bytes == 100);
  CHECK(settings.user == "tubed");
}

TEST_CASE("-c and -n are ignored with a warning each, as compaction is automatic") {
  for (const auto* flag : {"-c", "-n"}) {
    const auto line = accept({flag});
    REQUIRE(line.warnings.size() == 1);
    CHECK(line.warnings[0] == fmt::format("{}: ignored: compaction is automatic", flag));
    CHECK(load("", line).value() == Settings());
  }
  CHECK(accept({"-c", "-n", "-n"}).warnings.size() == 2);
}

TEST_CASE("beanstalkd's flags for the binlog set the journal") {
  const auto line = accept({"-b", "/var/lib/x", "-f", "20", "-s", "20480"});
  CHECK(line.warnings.empty());
  const auto settings = load("", line).value();
  CHECK(settings.journal_directory == "/var/lib/x");
  CHECK(settings.journal_sync == std::chrono::milliseconds(20));
  CHECK(settings.journal_segment_bytes == 20'480);
  CHECK(load("", accept({"-bx/y", "-s1MiB"})).value().journal_directory == "x/y");
  CHECK(load("", accept({"-f0"})).value().journal_sync == kSyncAlways);
  CHECK(load("", accept({"-f", "3600000"})).value().journal_sync == std::chrono::hours(1));
  CHECK(load("", accept({"-F"})).value().journal_sync == kSyncNever);
}

TEST_CASE("of -f, -F and --journal-sync, the last takes effect") {
  const auto sync = [](const std::vector<std::string>& args) {
    return load("journal.sync = \"1s\"", accept(args)).value().journal_sync;
  };
  CHECK(sync({}) == std::chrono::seconds(1));
  CHECK(sync({"-F", "-f", "7"}) == std::chrono::milliseconds(7));
  CHECK(sync({"-f", "7", "-F"}) == kSyncNever);
  CHECK(sync({"-F", "-f7", "-F", "-f", "0"}) == kSyncAlways);
  CHECK(sync({"-Ff7"}) == std::chrono::milliseconds(7));
  CHECK(sync({"--journal-sync", "2s", "-F", "-z", "7"}) == kSyncNever);
  CHECK(sync({"-F", "-f", "7", "--journal-sync=2s"}) == std::chrono::seconds(2));
}

TEST_CASE("mistakes in beanstalkd's flags for the binlog") {
  CHECK(refuse({"-f", "3600001"}).text == "tubed: -f: 3600001ms is above the maximum of 1h\n");
  for (const auto* text : {"", "5s", "-1", "x", "1.5", "always", "+5"}) {
    CAPTURE(text);
    const auto exit = refuse({"-f", text});
    CHECK(exit.code == 78);
    CHECK(exit.text == fmt::format("tubed: -f: \"{}\" is not a whole number\n", text));
  }
  CHECK(refuse({"-f", "x", "-f", "5"}).code == 78);
  CHECK(refuse({"-s", "4095"}).text ==
        "tubed: -s/--journal-segment-size: 4095 is below the minimum of 4KiB\n");
}

TEST_CASE("an empty directory is refused and does not switch the journal off") {
  for (const auto& args : {std::vector<std::string>{"-b", ""},
                           {"--journal-directory", ""},
                           {"--journal-directory="},
                           {"--journal-directory=", "-V"},
                           {"-b", "", "-b", "x"}}) {
    const auto exit = refuse(args);
    CHECK(exit.code == 78);
    CHECK(exit.text == "tubed: -b/--journal-directory: its argument is empty\n");
  }
}

TEST_CASE("a flag that ends with = has an empty argument and does not use the next word") {
  const auto line = accept({"--user=", "-V", "-z", "5"});
  CHECK(line.warnings.empty());
  CHECK(line.log_level_steps == 1);
  CHECK(load("user = \"x\"", line).value().user.empty());
  CHECK(refuse({"--config=", "-V"}).text == "tubed: --config: the name of the file is empty\n");
  CHECK(refuse({"--check-config="}).code == 64);
  CHECK(accept({"-u", "x="}).warnings.empty());
}

TEST_CASE("a task is done instead of serving") {
  CHECK(accept({"-b", "x"}).task == Task::serve);
  CHECK(accept({}).task_directory.empty());
  const auto task = [](const std::vector<std::string>& args, Task expected) {
    CAPTURE(args.front());
    const auto line = accept(args);
    CHECK(line.warnings.empty());
    CHECK(line.task == expected);
    CHECK(line.task_directory == "a/b");
  };
  task({"--dump", "a/b"}, Task::dump);
  task({"--check=a/b"}, Task::check);
  task({"--salvage", "a/b", "-b", "x"}, Task::salvage);
  task({"-bx", "--backup", "a/b"}, Task::backup);
  task({"--backup", "a/b", "--journal-directory=x"}, Task::backup);
}

TEST_CASE("one task at a time, with its directory") {
  for (const auto& args : {std::vector<std::string>{"--dump", "x", "--check", "y"},
                           {"--check", "x", "--check", "x"},
                           {"--check", "x", "--backup", "y"}}) {
    const auto exit = refuse(args);
    CHECK(exit.code == 64);
    CHECK(exit.text.ends_with(": only one task can be done at a time; try tubed --help\n"));
  }
  CHECK(refuse({"--dump"}).code == 64);
  CHECK(refuse({"--dump", "x", "y"}).code == 64);
  CHECK(refuse({"--dump", ""}).text == "tubed: --dump: the name of the directory is empty\n");
  CHECK(refuse({"--check=", "-V"}).code == 78);
  CHECK(refuse({"--check", "a\nb"}).text ==
        "tubed: --check: \"a?b\" has control characters or is not UTF-8\n");
}

TEST_CASE("--salvage and --backup need a journal, from the flag or the file") {
  for (const auto* flag : {"--salvage", "--backup"}) {
    CAPTURE(flag);
    const auto exit = refuse({flag, "x"});
    CHECK(exit.code == 64);
    CHECK(exit.text ==
          fmt::format("tubed: {} needs -b/--journal-directory as well; try tubed --help\n", flag));

    const auto line = accept({flag, "x", "--config", "y"});
    CHECK(load("journal.directory = \"z\"", line).value().journal_directory == "z");
    CHECK(load_error("[journal]\n", line) ==
          "tubed.toml: journal.directory is not set; give -b as well");
    CHECK(load_error("journal.directory = \"\"", line) != "");
    CHECK(load_error("", accept({flag, "x", "-b", "z"})) == "");
  }
  CHECK(load_error("", accept({"--dump", "x"})) == "");
  CHECK(load_error("", accept({"--check", "x", "--config", "y"})) == "");
}

}  // namespace
}  // namespace tubed::config_test
