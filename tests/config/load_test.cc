#include "config/load.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/config/loading.h"

namespace tubed::config_test {
namespace {

TEST_CASE("without a file, and with an empty file, the defaults apply") {
  CHECK(load_settings({}).value() == Settings());
  CHECK(load("").value() == Settings());
  CHECK(load("# nothing\n\n[limits]\n[log]\n").value() == Settings());
}

TEST_CASE("sections, dotted keys and inline tables are the same") {
  for (const auto* contents :
       {"[limits]\ntubes = 7\n", "limits.tubes = 7\n", "limits = {tubes = 7}\n"}) {
    CAPTURE(contents);
    CHECK(load(contents).value().queue.tubes == 7);
  }
}

TEST_CASE("integers are bytes and seconds") {
  CHECK(load("limits.job_memory = 2097152").value().queue.job_memory_bytes == 2U << 20);
  CHECK(load("limits.job_memory = \"2MiB\"").value().queue.job_memory_bytes == 2U << 20);
  CHECK(load("timeouts.stall = 30").value().stall_timeout == std::chrono::seconds(30));
  CHECK(load("timeouts.shutdown = \"50ms\"").value().shutdown_timeout ==
        std::chrono::milliseconds(50));
}

TEST_CASE("the journal's sync is a word or an interval, and 0 is always") {
  const auto sync = [](std::string_view value) {
    return load(fmt::format("[journal]\nsync = {}\n", value)).value().journal_sync;
  };
  CHECK(sync("\"always\"") == kSyncAlways);
  CHECK(sync("\"never\"") == kSyncNever);
  CHECK(sync("\"50ms\"") == std::chrono::milliseconds(50));
  CHECK(sync("2") == std::chrono::seconds(2));
  CHECK(sync("0") == kSyncAlways);
  CHECK(sync("\"0\"") == kSyncAlways);
  CHECK(load_error("journal.sync = true\n") ==
        "tubed.toml:1: journal.sync: expected \"always\", \"never\" or a duration such as "
        "\"50ms\", not a boolean");
  CHECK(load_error("journal.sync = 3601\n") ==
        "tubed.toml:1: journal.sync: 3601 is above the maximum of 1h");
  CHECK(load_error("journal.sync = \"sometimes\"\n") ==
        "tubed.toml:1: journal.sync: \"sometimes\" is not \"always\", \"never\" or a duration such "
        "as \"50ms\"");
}

TEST_CASE("an unknown key is reported with its line and a suggestion") {
  CHECK(load_error("[tcp]\n\nbacklog = 5\n[limits]\n\n\ntubes = 1\nconections = 5\n") ==
        "tubed.toml:8: limits.conections: unknown key; did you mean limits.connections?");
  CHECK(load_error("usr = \"x\"\n") == "tubed.toml:1: usr: unknown key; did you mean user?");
  CHECK(load_error("connections = 5\n") ==
        "tubed.toml:1: connections: unknown key; did you mean limits.connections?");
  CHECK(load_error("\n[limts]\ntubes = 1\n") ==
        "tubed.toml:2: limts: unknown table; did you mean limits?");
  CHECK(load_error("limts.tubes = 1\n") ==
        "tubed.toml:1: limts: unknown table; did you mean limits?");
  CHECK(load_error("entirely_different = 1\n") == "tubed.toml:1: entirely_different: unknown key");
  CHECK(
      load_error("\"limits.tubes\" = 1\n").starts_with("tubed.toml:1: \"limits.tubes\": unknown"));
  CHECK(load_error("\"a\\nb\" = 1\n") == "tubed.toml:1: a?b: unknown key");
  CHECK(load_error("[limits.more]\ntubes = 1\n").starts_with("tubed.toml:1: limits.more: unknown"));
  CHECK(load_error("[[listen]]\nadress = \"127.0.0.1\"\n") ==
        "tubed.toml:2: listen.adress: unknown key; did you mean listen.address?");
}

TEST_CASE("a section is a table") {
  CHECK(load_error("limits = 3") == "tubed.toml:1: limits: expected a table, not an integer");
  CHECK(load_error("[[limits]]\ntubes = 3") ==
        "tubed.toml:1: limits: expected a table, not an array");
  CHECK(load_error("[user]\nname = 3") == "tubed.toml:1: user: expected a string, not a table");
}

TEST_CASE("a bad value is reported with its line and the reason") {
  CHECK(load_error("\n[limits]\njob_bytes = 0\n") ==
        "tubed.toml:3: limits.job_bytes: 0 is below the minimum of 1");
  CHECK(load_error("timeouts.stall = \"10ms\"\n") ==
        "tubed.toml:1: timeouts.stall: 10ms is below the minimum of 1s");
  CHECK(load_error("log.level = \"loud\"\n") ==
        "tubed.toml:1: log.level: \"loud\" is not one of error, warning, info, debug");
}

TEST_CASE("the first mistake of the file is reported") {
  CHECK(load_error("user = 1\n[limits]\ntubes = 0\n").starts_with("tubed.toml:1: user: "));
  CHECK(load_error("[tcp]\nbacklog = 0\n[limits]\ntubes = 0\n")
            .starts_with("tubed.toml:2: tcp.backlog: "));
  CHECK(load_error("[limits]\ntubes = 0\nconnections = 0\n")
            .starts_with("tubed.toml:2: limits.tubes: "));
  CHECK(load_error("[[listen]]\naddress = 5\n[limits]\ntubes = 0\n")
            .starts_with("tubed.toml:2: listen.address: "));
  CHECK(load_error("[[listen]]\naddress = \"::1\"\n[limits]\ntubes = 0\n[[listen]]\nx = 1\n")
            .starts_with("tubed.toml:4: limits.tubes: "));
}

TEST_CASE("a file that is not TOML is reported with the line") {
  for (const auto* contents :
       {"user = \"x\"\nlimits = \n", "user = \"x\"\n[limits\n", "user = \"x\"\nuser = \"y\"\n",
        "[limits]\n[limits]\n", "user = \"x\"\nlimits.tubes = 99999999999999999999\n",
        "user = \"x\"\nx = \"\xff\"\n"}) {
    CAPTURE(contents);
    const auto error = load_error(contents);
    CHECK(error.starts_with("tubed.toml:2: not TOML: "));
    CHECK(error.find('\n') == std::string::npos);
  }
  CHECK(load_error("a = " + std::string(5000, '[')).starts_with("tubed.toml:1: not TOML: "));
}

TEST_CASE("a file that cannot be read is reported with the reason") {
  const TemporaryDirectory directory;
  CommandLine line;
  line.config_file = directory.path() + "/missing.toml";
  CHECK(load_settings(line).error().message ==
        line.config_file + ": cannot read: No such file or directory");
  line.config_file = directory.path();
  CHECK(load_settings(line).error().message.starts_with(line.config_file + ": cannot read: "));
  CHECK(load_error(std::string((1 << 20) + 1, '\n')) ==
        "tubed.toml: cannot read: larger than 1MiB");
  CHECK(load_error(std::string(1 << 20, '\n')) == "");
}

TEST_CASE("listeners of the file replace the default") {
  const auto settings =
      load(
          "[[listen]]\naddress = \"[::1]:7\"\n"
          "[[listen]]\ngroup = \"queue\"\nmode = \"0660\"\naddress = \"unix:/a\"\n")
          .value();
  REQUIRE(settings.listeners.size() == 2);
  CHECK(settings.listeners[0].host == "::1");
  CHECK(settings.listeners[0].port == 7);
  CHECK(settings.listeners[1].kind == Listen::Kind::unix_socket);
  CHECK(settings.listeners[1].path == "/a");
  CHECK(settings.listeners[1].mode == 0660);
  CHECK(settings.listeners[1].group == "queue");
  CHECK(load_error("listen = []") ==
        "tubed.toml:1: listen: is empty; for the default, leave it out");
  CHECK(load("listen = [{address = \"::1\"}]").value().listeners[0].host == "::1");
}

TEST_CASE("mistakes in listeners") {
  CHECK(load_error("[listen]\naddress = \"::1\"\n") ==
        "tubed.toml:1: listen: expected tables, each opened by [[listen]], not a table");
  CHECK(load_error("listen = \"::1\"\n").starts_with("tubed.toml:1: listen: expected tables"));
  CHECK(load_error("listen = [\"::1\"]\n").starts_with("tubed.toml:1: listen: expected tables"));
  CHECK(load_error("\n[[listen]]\n") == "tubed.toml:2: listen.address: missing");
  CHECK(load_error("[[listen]]\nmode = \"0660\"\n") == "tubed.toml:1: listen.address: missing");
  CHECK(load_error("[[listen]]\naddress = 5\n") ==
        "tubed.toml:2: listen.address: expected an address such as \"127.0.0.1:11300\", not an "
        "integer");
  CHECK(load_error("[[listen]]\naddress = \"localhost\"\n") ==
        "tubed.toml:2: listen.address: \"localhost\" is not a numeric address; names are not "
        "resolved: "
        "write 127.0.0.1 or [::1]");
  CHECK(load_error("[[listen]]\naddress = \"::1\"\nmode = \"0660\"\n") ==
        "tubed.toml:3: listen.mode: only a unix: address has one");
  CHECK(load_error("[[listen]]\ngroup = \"x\"\naddress = \"::1\"\n") ==
        "tubed.toml:2: listen.group: only a unix: address has one");
  CHECK(load_error("[[listen]]\naddress = \"unix:/a\"\nmode = 660\n") ==
        "tubed.toml:3: listen.mode: expected an octal mode such as \"0660\", not an integer");
  CHECK(load_error("[[listen]]\naddress = \"unix:/a\"\nmode = \"0999\"\n") ==
        "tubed.toml:3: listen.mode: \"0999\" is not an octal mode such as \"0660\"");
  CHECK(load_error("[[listen]]\nmode = \"0660\"\naddress = 5\n")
            .starts_with("tubed.toml:3: listen.address: "));
}

TEST_CASE("an address that is listened on twice is reported with both lines") {
  CHECK(load_error("[limits]\n\n[[listen]]\naddress = \"127.0.0.1\"\n\n[[listen]]\n"
                   "address = \"127.0.0.1:11300\"\n") ==
        "tubed.toml:7: listen.address: 127.0.0.1:11300 is already listened on (line 4)");
  CHECK(load_error("[[listen]]\naddress = \"::1\"\n[[listen]]\naddress = \"::2\"\n[[listen]]\n"
                   "address = \"0:0:0:0:0:0:0:1\"\n") ==
        "tubed.toml:6: listen.address: [::1]:11300 is already listened on (line 2)");
  CHECK(load_error("[[listen]]\naddress = \"unix:/a\"\n[[listen]]\naddress = \"unix:/a\"\n") ==
        "tubed.toml:4: listen.address: unix:/a is already listened on (line 2)");
  CHECK(load("[[listen]]\naddress = \"127.0.0.1:0\"\n[[listen]]\naddress = \"127.0.0.1:0\"\n")
            .value()
            .listeners.size() == 2);
}

TEST_CASE("flags override the file, and the file the defaults") {
  const auto* contents = "user = \"file\"\n[limits]\ntubes = 7\nwatches = 8\n";
  const auto settings = load(contents, accept({"--limits-tubes", "9", "-u", "flag"})).value();
  CHECK(settings.queue.tubes == 9);
  CHECK(settings.queue.watches == 8);
  CHECK(settings.user == "flag");
  CHECK(settings.connections == 10'000);
}

TEST_CASE("a mistake in the file is reported even if a flag overrides it") {
  CHECK(load_error("limits.tubes = 0", accept({"--limits-tubes", "9"})) ==
        "tubed.toml:1: limits.tubes: 0 is below the minimum of 1");
}

TEST_CASE("-l replaces all listeners of the file") {
  const auto* contents = "[[listen]]\naddress = \"::1\"\n[[listen]]\naddress = \"::2\"\n";
  const auto listeners =
      load(contents, accept({"-l", "10.0.0.1", "-l", "unix:/a"})).value().listeners;
  REQUIRE(listeners.size() == 2);
  CHECK(to_string(listeners[0]) == "10.0.0.1:11300");
  CHECK(to_string(listeners[1]) == "unix:/a");
}

TEST_CASE(
    "-p alone changes the port of the default listener, and is refused with listeners of the "
    "file") {
  const auto listeners = load("", accept({"-p", "7"})).value().listeners;
  REQUIRE(listeners.size() == 1);
  CHECK(to_string(listeners[0]) == "127.0.0.1:7");
  CHECK(load_error("[[listen]]\naddress = \"::1\"\n", accept({"-p", "7"})) ==
        "-p/--port: tubed.toml:2: listen.address has a port of its own; give -l as well, or, for a "
        "service, remove -p from its flags");
}

TEST_CASE("a journal with room for less than four segments is refused") {
  CHECK(load_error("journal.max_bytes = \"39MiB\"", accept({})) ==
        "tubed.toml:1: journal.max_bytes: 40894464 is less than 41943040, 4 segments of 10485760 "
        "bytes (journal.segment_size, the default)");
  CHECK(load("journal.max_bytes = \"40MiB\"", accept({})).value().journal_max_bytes == 40U << 20);
  CHECK(load("journal.max_bytes = \"1MiB\"", accept({"-s", "65536", "-z", "1000"}))
            .value()
            .journal_max_bytes == 1U << 20);
}

TEST_CASE("settings that contradict each other are reported with the origins of both") {
  const auto* journal = "[journal]\nmax_bytes = \"1MiB\"\n";
  CHECK(load_error(std::string(journal) + "segment_size = \"2MiB\"\n") ==
        "tubed.toml:2: journal.max_bytes: 1048576 is less than 8388608, 4 segments of 2097152 "
        "bytes (journal.segment_size, tubed.toml:3)");
  CHECK(load_error(journal, accept({"-s", "2097152"})) ==
        "tubed.toml:2: journal.max_bytes: 1048576 is less than 8388608, 4 segments of 2097152 "
        "bytes (journal.segment_size, -s/--journal-segment-size)");
  CHECK(load_error("\n\n[limits]\njob_bytes = \"2MiB\"\n",
                   accept({"--journal-max-bytes", "41943040"})) ==
        "--journal-max-bytes: 41943040 is less than 67125248, 4 segments of 16781312 bytes (eight "
        "jobs of limits.job_bytes, tubed.toml:4)");
  // A flag replaces the value of the file.
  CHECK(load_error(journal, accept({"--journal-max-bytes", "1048576"}))
            .starts_with("--journal-max-bytes: 1048576 is less than "));
}

TEST_CASE("-V raises the log level of the file or the flag, at most to debug") {
  CHECK(load("", accept({"-V"})).value().log_level == LogLevel::debug);
  CHECK(load("log.level = \"error\"", accept({"-V"})).value().log_level == LogLevel::warning);
  CHECK(load("log.level = \"error\"", accept({"-VV"})).value().log_level == LogLevel::info);
  CHECK(load("", accept({"-VVVVV", "-V"})).value().log_level == LogLevel::debug);
  CHECK(load("log.level = \"debug\"", accept({"--log-level", "error", "-V", "-V"}))
            .value()
            .log_level == LogLevel::info);
}

TEST_CASE("http.listen is an address of its own, with a port of its own") {
  CHECK_FALSE(load("").value().http_listen);
  CHECK_FALSE(load("[http]\nlisten = \"\"\n").value().http_listen);
  CHECK(to_string(*load("[http]\nlisten = \"::1\"\n").value().http_listen) == "[::1]:11380");
  CHECK(to_string(*load("", accept({"--http-listen", "0.0.0.0"})).value().http_listen) ==
        "0.0.0.0:11380");
  for (const std::string address : {"127.0.0.1:11300", "127.0.0.1:11380", "unix:/run/a"}) {
    const std::string http = "[http]\nlisten = \"" + address + "\"\n";
    const std::string listener = "[[listen]]\naddress = \"" + address + "\"\n";
    CHECK(load_error(http + listener) ==
          "tubed.toml:2: http.listen: clients already connect to " + address + " (tubed.toml:4)");
    CHECK(load_error(http, accept({"-l", address})) ==
          "tubed.toml:2: http.listen: clients already connect to " + address + " (-l/--listen)");
    CHECK(load_error(listener, accept({"--http-listen", address})) ==
          "--http-listen: clients already connect to " + address + " (tubed.toml:2)");
  }
  // The default listener counts as well.
  CHECK(load_error("[http]\nlisten = \"127.0.0.1:11300\"\n") ==
        "tubed.toml:2: http.listen: clients already connect to 127.0.0.1:11300 (the default)");
  CHECK(load_error("[http]\nlisten = \"127.0.0.1:7\"\n", accept({"-p", "7"})) ==
        "tubed.toml:2: http.listen: clients already connect to 127.0.0.1:7 (-p/--port)");
  CHECK(load("[http]\nlisten = \"127.0.0.1:0\"\n[[listen]]\naddress = \"127.0.0.1:0\"\n").ok());
}

}  // namespace
}  // namespace tubed::config_test
