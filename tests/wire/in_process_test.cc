// Every transcript in process, with virtual time: whole, cut at every byte, and byte by byte.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "tests/share.h"
#include "tests/wire/cutting_driver.h"
#include "tests/wire/in_process_driver.h"
#include "tests/wire/run.h"
#include "tests/wire/transcript.h"

namespace {

using namespace tubed::wire;

// Each cut plays the whole transcript. Transcripts with long bodies are cut only at this many
// places, including the first and the last.
constexpr std::size_t kMaxCuts = 2000;

std::vector<Transcript> transcripts() {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(TUBED_TRANSCRIPTS)) {
    if (entry.path().extension() == ".wire") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Transcript> all;
  for (const std::string& path : paths) {
    auto transcript = load(path);
    REQUIRE_MESSAGE(transcript.ok(), path);
    all.push_back(std::move(*transcript));
  }
  return all;
}

void check_passed(const PlayResult& result) {
  for (const std::string& failure : result.failures) FAIL_CHECK(failure);
}

// Plays a transcript uncut. Returns how many bytes its clients send.
std::size_t bytes_of(const Transcript& transcript) {
  InProcessDriver driver(transcript.options);
  CuttingDriver uncut = CuttingDriver::cut_at(driver, 0);
  check_passed(play(transcript, uncut));
  return uncut.bytes_sent();
}

std::vector<std::size_t> positions(std::size_t bytes) {
  std::vector<std::size_t> chosen;
  const std::size_t step = (bytes > kMaxCuts ? bytes / kMaxCuts + 1 : 1) * tubed::kOneIn;
  for (std::size_t at = 1; at < bytes; ++at) {
    const bool near_an_end = at < kMaxCuts / 4 || at + kMaxCuts / 4 > bytes;
    if ((near_an_end && at % tubed::kOneIn == 0) || at % step == 0) chosen.push_back(at);
  }
  return chosen;
}

}  // namespace

TEST_CASE("every transcript passes in process") {
  const auto all = transcripts();
  CHECK(all.size() >= 120);
  for (const Transcript& transcript : all) {
    InProcessDriver driver(transcript.options);
    check_passed(play(transcript, driver));
  }
}

TEST_CASE("every transcript passes byte by byte" * doctest::test_suite("slow")) {
  for (const Transcript& transcript : transcripts()) {
    // A few transcripts with large bodies take longer than all others together.
    if (tubed::kOneIn > 1 && bytes_of(transcript) > kMaxCuts) continue;
    InProcessDriver driver(transcript.options);
    CuttingDriver cutting = CuttingDriver::byte_by_byte(driver);
    check_passed(play(transcript, cutting));
  }
}

TEST_CASE("every transcript passes cut at every byte" * doctest::test_suite("slow")) {
  std::size_t plays = 0;
  for (const Transcript& transcript : transcripts()) {
    for (const std::size_t position : positions(bytes_of(transcript))) {
      InProcessDriver driver(transcript.options);
      CuttingDriver cutting = CuttingDriver::cut_at(driver, position);
      const PlayResult result = play(transcript, cutting);
      INFO("cut before byte ", position);
      check_passed(result);
      ++plays;
    }
  }
  MESSAGE(plays, " plays");
}
