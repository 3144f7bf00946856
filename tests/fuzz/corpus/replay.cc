// Runs a fuzz target on each file of its corpus, without a fuzzer. An input with a fault ends the
// process.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

extern "C" {
int fuzz_api(const std::uint8_t* data, std::size_t size);
int fuzz_binlog(const std::uint8_t* data, std::size_t size);
int fuzz_conversation(const std::uint8_t* data, std::size_t size);
int fuzz_proxy_header(const std::uint8_t* data, std::size_t size);
int fuzz_recovery(const std::uint8_t* data, std::size_t size);
int fuzz_settings(const std::uint8_t* data, std::size_t size);
int fuzz_tls_records(const std::uint8_t* data, std::size_t size);
int fuzz_tokens(const std::uint8_t* data, std::size_t size);
}

namespace {

struct Target {
  std::string_view name;
  int (*run)(const std::uint8_t* data, std::size_t size);
};
constexpr std::array kTargets = {
    Target{"api", fuzz_api},           Target{"binlog", fuzz_binlog},
    Target{"recovery", fuzz_recovery}, Target{"conversation", fuzz_conversation},
    Target{"settings", fuzz_settings}, Target{"tls_records", fuzz_tls_records},
    Target{"tokens", fuzz_tokens},     Target{"proxy_header", fuzz_proxy_header},
};

}  // namespace

int main(int count, char** arguments) {
  const auto target = std::ranges::find(kTargets, count == 3 ? arguments[1] : "", &Target::name);
  if (target == kTargets.end()) {
    std::fputs("usage: replay_corpus TARGET DIRECTORY\n", stderr);
    return 2;
  }
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(arguments[2]))
    files.push_back(entry.path());
  std::ranges::sort(files);
  for (const std::filesystem::path& file : files) {
    std::ifstream stream(file, std::ios::binary);
    const std::string input(std::istreambuf_iterator<char>(stream), {});
    std::printf("%s: %zu bytes\n", file.c_str(), input.size());
    std::fflush(stdout);
    target->run(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
  }
  return files.empty() ? 1 : 0;
}
