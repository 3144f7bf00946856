// The raft log, the state and the journal of a node as an earlier version has written them
// (tests/upgrade/golden): reading them gives exactly the contents in contents.txt there.
//
// tests/upgrade/run --goldens makes the files again. The case "write the contents that are not
// there", which runs only with --no-skip, then writes contents.txt.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cluster/entry.h"
#include "cluster/node_state.h"
#include "cluster/raft_recovery.h"
#include "journal/dump.h"
#include "tests/journal/test_disk.h"

namespace tubed::cluster {

namespace {

constexpr const char* kContents = "contents.txt";

std::string read_earlier(const std::string& name) {
  std::ifstream file(std::string(TUBED_EARLIER_FILES "/") + name, std::ios::binary);
  REQUIRE_MESSAGE(file, name);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Returns the files of the journal, or of the directory `cluster`, with the zeros at their ends.
journal::TestDisk::Contents earlier_files(bool of_cluster) {
  constexpr std::string_view kFolder = "cluster/";
  journal::TestDisk::Contents files;
  std::istringstream list(read_earlier("files.txt"));
  std::size_t size = 0;
  for (std::string name; list >> size >> name;) {
    if (name.starts_with(kFolder) != of_cluster) continue;
    std::string contents = read_earlier(name);
    REQUIRE(contents.size() <= size);
    contents.resize(size, '\0');
    files[of_cluster ? name.substr(kFolder.size()) : name] = std::move(contents);
  }
  return files;
}

std::string hex_of(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

// Prints the facts of an entry as the dump of a journal does.
class FactPrinter final : public FactSink {
 public:
  explicit FactPrinter(std::string& text)
      : printer_({}, journal::Bodies::text, [&text](std::string_view line) {
          // Without the place, which an entry does not have.
          text.append("  ").append(line.substr(line.find(' ') + 1)).push_back('\n');
        }) {}
  void fact(const Fact& fact) override { printer_.record(0, 0, 0, fact); }

 private:
  journal::RecordPrinter printer_;
};

std::string contents_of_entry(Index index, const Entry& entry) {
  std::string text = fmt::format("entry {} of term {}, type {}: ", index, entry.term,
                                 static_cast<int>(entry.type));
  if (entry.type != EntryType::facts) return text + hex_of(entry.data.view()) + "\n";
  const auto header = read_entry_header(entry.data.view());
  REQUIRE(header);
  text += fmt::format("level {}, {} facts, next id {}, time {}, chain {:016x}, leader {:016x}\n",
                      header->level, header->facts, header->next_job_id,
                      header->time.time_since_epoch().count(), header->chain, header->leader);
  FactPrinter printer(text);
  REQUIRE(read_facts(entry.data.view(), printer));
  return text;
}

std::string contents_of_earlier() {
  journal::TestDisk cluster(earlier_files(true));
  const auto state = load_node_state(cluster);
  REQUIRE(state);
  REQUIRE(*state);
  std::string text = fmt::format(
      "state: cluster {:016x}, node {:016x}, term {}, voted for {:016x}, level {}\n"
      "members of entry {}: {}\n",
      (*state)->cluster, (*state)->node, (*state)->term, (*state)->voted_for, (*state)->level,
      (*state)->configuration_index, hex_of((*state)->configuration));
  const auto log = examine_raft_log(cluster, (*state)->cluster);
  REQUIRE(log);
  CHECK_FALSE(log->cut);
  CHECK(log->leftovers.empty());
  Index index = log->first;
  for (const Entry& entry : log->entries) text += contents_of_entry(index++, entry);
  journal::TestDisk journal(earlier_files(false));
  REQUIRE(journal::dump(
      journal, [&](std::string_view line) { text.append(line).push_back('\n'); },
      journal::Bodies::text));
  return text;
}

}  // namespace

TEST_CASE("the files of an earlier version have their contents") {
  CHECK(contents_of_earlier() == read_earlier(kContents));
}

TEST_CASE("the entries of an earlier version continue each other, and need no later level") {
  journal::TestDisk cluster(earlier_files(true));
  const auto state = load_node_state(cluster);
  REQUIRE(state);
  REQUIRE(*state);
  CHECK((*state)->level == kFirstLevel);
  const auto log = examine_raft_log(cluster, (*state)->cluster);
  REQUIRE(log);
  std::optional<Chain> chain;  // known from the first entry of facts
  Index index = log->first;
  for (const Entry& entry : log->entries) {
    if (entry.type == EntryType::facts) {
      const auto header = read_entry_header(entry.data.view(), kFirstLevel);
      REQUIRE(header);
      if (chain) CHECK(header->chain == *chain);
      chain = header->chain;
    }
    if (chain) chain = chain_after(*chain, index, entry);
    ++index;
  }
  CHECK(chain);
}

TEST_CASE("write the contents that are not there" * doctest::skip()) {
  const std::string path = std::string(TUBED_EARLIER_FILES "/") + kContents;
  if (!std::filesystem::exists(path))
    std::ofstream(path, std::ios::binary) << contents_of_earlier();
}

}  // namespace tubed::cluster
