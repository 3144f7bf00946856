#include "config/drop_ins.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "config/places.h"
#include "config/print.h"
#include "config/reload.h"
#include "tests/config/loading.h"

namespace tubed::config_test {
namespace {

// A tubed.toml and its drop-ins.
class Files {
 public:
  explicit Files(std::string_view contents) { line.config_file = directory.write(contents); }

  void drop_in(std::string_view name, std::string_view contents) const {
    directory.write(fmt::format("tubed.d/{}", name), contents);
  }

  std::string path(std::string_view name) const {
    return fmt::format("{}/{}", directory.path(), name);
  }

  Result<Settings> load() const { return load_settings(line, true); }

  // "" when it loads.
  std::string error() const {
    const auto loaded = load();
    return loaded ? "" : without(directory, loaded.error().message);
  }

  // As --print-config prints it.
  std::string printed() const {
    const auto loaded = load_with_lines(line, true);
    if (!loaded) return loaded.error().message;
    return without(directory,
                   print_settings(loaded->settings, config::Places(line, loaded->lines)));
  }

  TemporaryDirectory directory;
  CommandLine line;
};

TEST_CASE("the directory has the name of the file, with .d for .toml") {
  CHECK(config::drop_in_directory("/etc/tubed/tubed.toml") == "/etc/tubed/tubed.d");
  CHECK(config::drop_in_directory("a.toml.toml") == "a.toml.d");
  CHECK(config::drop_in_directory("/etc/tubed.conf") == "");
  CHECK(config::drop_in_directory("/etc/tubed.toml/tubed") == "");
  CHECK(config::drop_in_directory("toml") == "");
}

TEST_CASE("without a directory, or with an empty one, the file alone counts") {
  const Files files("limits.tubes = 7\n");
  CHECK(files.load().value().queue.tubes == 7);
  std::filesystem::create_directory(files.path("tubed.d"));
  CHECK(files.load().value().queue.tubes == 7);
}

TEST_CASE("a file whose name does not end in .toml has no drop-ins") {
  const Files files("");
  CommandLine line;
  line.config_file = files.directory.write("other", "limits.tubes = 7\n");
  files.directory.write("other.d/a.toml", "limits.tubes = 8\n");
  CHECK(load_settings(line).value().queue.tubes == 7);
}

TEST_CASE("a later file replaces single keys, in the byte order of the names") {
  const Files files("[limits]\ntubes = 1\nwatches = 1\nclient_watches = 1\nconnections = 1\n");
  files.drop_in("b.toml", "[limits]\nwatches = 3\nclient_watches = 3\n");
  files.drop_in("a.toml", "[limits]\ntubes = 2\nwatches = 2\nclient_watches = 2\n");
  files.drop_in("\xc3\xa4.toml", "limits.client_watches = 4\n");
  files.drop_in("Z.toml", "limits.client_watches = 5\n");
  files.drop_in("10.toml", "limits.watches = 6\n");
  files.drop_in("9.toml", "limits.watches = 7\n");
  const auto settings = files.load().value();
  CHECK(settings.connections == 1);
  CHECK(settings.queue.tubes == 2);
  CHECK(settings.queue.watches == 3);
  CHECK(settings.queue.session_watches == 4);
  const auto names = config::drop_in_files(files.line.config_file).value();
  std::string order;
  for (const auto& name : names) order += without(files.directory, name) + " ";
  CHECK(order ==
        "tubed.d/10.toml tubed.d/9.toml tubed.d/Z.toml tubed.d/a.toml tubed.d/b.toml "
        "tubed.d/\xc3\xa4.toml ");
}

TEST_CASE("a later file may set a key to its default again, and a list is one value") {
  const Files files("http.hosts = [\"a\", \"b\"]\nlimits.tubes = 7\n");
  files.drop_in("a.toml", "http.hosts = [\"c\"]\nlimits.tubes = 100000\n");
  CHECK(files.load().value().http.hosts == std::vector<std::string>{"c"});
  CHECK(files.load().value().queue.tubes == Settings().queue.tubes);
  files.drop_in("b.toml", "http.hosts = []\n");
  CHECK(files.load().value() == Settings());
}

TEST_CASE("flags override every file") {
  Files files("limits.tubes = 7\n");
  files.drop_in("a.toml", "limits.tubes = 8\nlimits.watches = 9\n");
  files.line.settings = accept({"--limits-tubes", "5"}).settings;
  CHECK(files.load().value().queue.tubes == 5);
  CHECK(files.load().value().queue.watches == 9);
}

TEST_CASE("listeners, roles and policies add up") {
  const Files files(
      "[[listen]]\naddress = \"127.0.0.1:1\"\n[[role]]\nname = \"a\"\nverbs = []\n"
      "[[policy]]\ntubes = \"a.*\"\n");
  files.drop_in("1.toml",
                "[[listen]]\naddress = \"127.0.0.1:2\"\nrole = \"c\"\n"
                "[[policy]]\ntubes = \"b.*\"\n[[role]]\nname = \"b\"\nverbs = []\n");
  files.drop_in("2.toml", "[[role]]\nname = \"c\"\nverbs = []\n");
  files.drop_in("3.toml", "role = []\npolicy = []\n");
  const auto settings = files.load().value();
  REQUIRE(settings.listeners.size() == 2);
  CHECK(settings.listeners[0].port == 1);
  CHECK(settings.listeners[1].port == 2);
  REQUIRE(settings.roles.size() == 3);
  CHECK(settings.roles[2].role.name == "c");
  REQUIRE(settings.policies.size() == 2);
  CHECK(settings.policies[0].tubes == "a.*");
  CHECK(settings.policies[1].tubes == "b.*");
}

TEST_CASE("a listener of a drop-in replaces the default listener") {
  const Files files("");
  files.drop_in("a.toml", "[[listen]]\naddress = \"127.0.0.1:2\"\n");
  const auto settings = files.load().value();
  REQUIRE(settings.listeners.size() == 1);
  CHECK(settings.listeners[0].port == 2);
  CHECK_FALSE(settings.default_listener);
}

TEST_CASE("other files of the directory are ignored") {
  const Files files("limits.tubes = 7\n");
  for (const auto* name : {".hidden.toml", ".toml", "a.toml~", "a.toml.dpkg-dist", "a.TOML", "a",
                           "README", "a.toml.d/a.toml", "atoml"}) {
    files.drop_in(name, "nonsense");
  }
  CHECK(files.load().value().queue.tubes == 7);
}

TEST_CASE("a mistake names its file and line") {
  const Files files("[limits]\ntubes = 7\n");
  files.drop_in("good.toml", "limits.watches = 7\n");
  files.drop_in("wrong.toml", "[limits]\n\ntubes = 0\n");
  CHECK(files.error() == "tubed.d/wrong.toml:3: limits.tubes: 0 is below the minimum of 1");
  files.drop_in("wrong.toml", "\n[limits\n");
  CHECK(files.error().starts_with("tubed.d/wrong.toml:2: not TOML: "));
  files.drop_in("wrong.toml", "limts.tubes = 1\n");
  CHECK(files.error() == "tubed.d/wrong.toml:1: limts: unknown table; did you mean limits?");
  // A mistake that only the settings of several files make.
  files.drop_in("wrong.toml", "\njournal.max_bytes = 4096\n");
  files.drop_in("more.toml", "journal.segment_size = \"1MiB\"\n");
  CHECK(files.error() ==
        "tubed.d/wrong.toml:2: journal.max_bytes: 4096 is less than 4194304, 4 segments of 1048576 "
        "bytes (journal.segment_size, tubed.d/more.toml:1)");
}

TEST_CASE("a mistake in a file counts even if a later file replaces the value") {
  const Files files("limits.tubes = 0\n");
  files.drop_in("a.toml", "limits.tubes = 1\n");
  CHECK(files.error() == "tubed.toml:1: limits.tubes: 0 is below the minimum of 1");
}

TEST_CASE("what two files have is reported with both") {
  const Files files(
      "[[listen]]\naddress = \"::1\"\n[[role]]\nname = \"a\"\nverbs = []\n"
      "tokens = [\"t\"]\n[[policy]]\ntubes = \"a\"\n");
  files.drop_in("a.toml", "\n[[listen]]\naddress = \"::1\"\n");
  CHECK(files.error() ==
        "tubed.d/a.toml:3: listen.address: [::1]:11300 is already listened on (tubed.toml:2)");
  files.drop_in("a.toml", "[[role]]\nname = \"a\"\nverbs = []\n");
  CHECK(files.error() ==
        "tubed.d/a.toml:1: role.name: \"a\" is another role already (tubed.toml:3)");
  files.drop_in("a.toml", "[[role]]\nname = \"b\"\nverbs = []\ntokens = [\"t\"]\n");
  CHECK(files.error() == "tubed.d/a.toml:1: role.tokens: \"t\" is in the role \"a\" already");
  files.drop_in("a.toml", "[[policy]]\ntubes = \"a\"\n");
  CHECK(files.error() ==
        "tubed.d/a.toml:1: policy.tubes: \"a\" has a policy already (tubed.toml:7)");
  files.drop_in("a.toml", "[[listen]]\naddress = \"::2\"\n[[listen]]\naddress = \"::2\"\n");
  CHECK(files.error() ==
        "tubed.d/a.toml:4: listen.address: [::2]:11300 is already listened on (line 2)");
}

TEST_CASE("a port with listeners of a drop-in names the drop-in") {
  Files files("");
  files.drop_in("a.toml", "[[listen]]\naddress = \"::1\"\n");
  files.line.port = 7;
  CHECK(files.error().starts_with("-p/--port: tubed.d/a.toml:2: listen.address "));
}

TEST_CASE("the number and the size of the drop-ins have bounds") {
  const Files files("");
  for (std::size_t i = 0; i < config::kMaxDropIns; ++i)
    files.drop_in(fmt::format("{}.toml", i), "");
  CHECK(files.error() == "");
  files.drop_in("one_more.toml", "");
  CHECK(files.error() == "tubed.d: cannot read: more than 100 files");
  std::filesystem::remove(files.path("tubed.d/one_more.toml"));
  files.drop_in("7.toml", std::string((1 << 20) + 1, '\n'));
  CHECK(files.error() == "tubed.d/7.toml: cannot read: larger than 1MiB");
}

TEST_CASE("a link to a file is followed, and only regular files are read") {
  const Files files("");
  files.directory.write("elsewhere", "limits.tubes = 7\n");
  std::filesystem::create_directory(files.path("tubed.d"));
  const auto link = files.path("tubed.d/link.toml");
  std::filesystem::create_symlink(files.path("elsewhere"), link);
  CHECK(files.load().value().queue.tubes == 7);
  std::filesystem::remove(link);
  std::filesystem::create_symlink(files.path("nowhere"), link);
  CHECK(files.error() == "tubed.d/link.toml: cannot read: No such file or directory");
  std::filesystem::remove(link);
  std::filesystem::create_directory(link);
  CHECK(files.error() == "tubed.d/link.toml: cannot read: not a regular file");
  std::filesystem::remove(link);
  REQUIRE(::mkfifo(link.c_str(), 0600) == 0);
  CHECK(files.error() == "tubed.d/link.toml: cannot read: not a regular file");
}

TEST_CASE("the directory may be a link, and has to be a directory") {
  const Files files("");
  files.directory.write("elsewhere/a.toml", "limits.tubes = 7\n");
  const auto directory = files.path("tubed.d");
  std::filesystem::create_directory_symlink(files.path("elsewhere"), directory);
  CHECK(files.load().value().queue.tubes == 7);
  std::filesystem::remove(directory);
  files.directory.write("tubed.d", "");
  CHECK(files.error() == "tubed.d: cannot read: Not a directory");
}

TEST_CASE("a reload has the changes of all files") {
  const Files files("limits.tubes = 7\n");
  const auto before = files.load().value();
  files.drop_in("a.toml", "limits.tubes = 8\ntcp.backlog = 9\n[[policy]]\ntubes = \"a\"\n");
  const auto plan = plan_reload(before, files.load().value());
  CHECK(plan.changed == std::vector<std::string>{"limits.tubes", "policy"});
  CHECK(plan.needs_restart == std::vector<std::string>{"tcp.backlog"});
  std::filesystem::remove(files.path("tubed.d/a.toml"));
  CHECK(plan_reload(plan.next, files.load().value()).next == before);
}

bool has_line(const std::string& text, std::string_view line) {
  return std::ranges::count(lines_of(text), line) == 1;
}

TEST_CASE("printed settings name the origin of each value") {
  Files files("[limits]\ntubes = 7\nwatches = 8\n[[listen]]\naddress = \"::1\"\n");
  files.drop_in("a.toml",
                "\nlimits.watches = 9\n[[role]]\nname = \"a\"\nverbs = []\n"
                "[[policy]]\ntubes = \"a\"\n[[listen]]\naddress = \"::2\"\n");
  files.drop_in("b.toml", "");
  files.line.settings = accept({"-z", "5", "-f", "20"}).settings;
  const auto printed = files.printed();
  CHECK(printed.starts_with(
      "# Read: tubed.toml\n# Read: tubed.d/a.toml\n# Read: tubed.d/b.toml\nuser = \"\"  # the "
      "default\n"));
  for (const auto* line :
       {"tubes = 7  # tubed.toml:2", "watches = 9  # tubed.d/a.toml:2",
        "job_bytes = 5  # -z/--limits-job-bytes", "sync = \"20ms\"  # --journal-sync",
        "connections = 10000  # the default", "#tls.certificate = []  # the default",
        "level = \"info\"  # the default", "[[listen]]  # tubed.toml:5",
        "[[listen]]  # tubed.d/a.toml:9", "[[role]]  # tubed.d/a.toml:3",
        "[[policy]]  # tubed.d/a.toml:6"}) {
    CAPTURE(line);
    CHECK(has_line(printed, line));
  }
  CHECK(load(printed).value() == files.load().value());
  files.line.log_level_steps = 1;
  CHECK(has_line(files.printed(), "level = \"debug\"  # -V"));
  files.line.listeners = accept({"-l", "::3"}).listeners;
  CHECK(has_line(files.printed(), "[[listen]]  # -l/--listen"));
}

TEST_CASE("printed settings without a file name flags and defaults") {
  const auto printed = [](const std::vector<std::string>& args) {
    const auto line = accept(args);
    const auto loaded = load_with_lines(line).value();
    return print_settings(loaded.settings, config::Places(line, loaded.lines));
  };
  CHECK(printed({}).starts_with("user = \"\"  # the default\n"));
  CHECK(has_line(printed({}), "[[listen]]  # the default"));
  CHECK(has_line(printed({"-p", "7"}), "[[listen]]  # -p/--port"));
  CHECK(has_line(printed({"--test-mode"}), "[[listen]]  # --test-mode"));
  CHECK(has_line(printed({"--test-mode"}), "level = \"error\"  # --test-mode"));
  CHECK(load(printed({"-z", "5"})).value() == load_settings(accept({"-z", "5"})).value());
}

TEST_CASE("a name of a file with odd characters does not break the printed comments") {
  const Files files("");
  files.drop_in("a\n\"\xff# b.toml", "limits.tubes = 7\n");
  const auto printed = files.printed();
  CHECK(has_line(printed, "tubes = 7  # tubed.d/a?\"?# b.toml:1"));
  CHECK(load(printed).value() == files.load().value());
}

}  // namespace
}  // namespace tubed::config_test
