// Fuzzes the settings file: loading any text returns settings that are unchanged after printing and
// loading them again, or an error of one line.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <unistd.h>

#include "base/assert.h"
#include "config/load.h"
#include "config/print.h"

namespace {

using namespace tubed;

Result<Settings> load_text(std::string_view text) {
  static const std::string path =
      (std::filesystem::temp_directory_path() / ("fuzz_settings." + std::to_string(::getpid())))
          .string();
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
  CommandLine line;
  line.config_file = path;
  auto settings = load_settings(line, true);
  std::filesystem::remove(path);
  return settings;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto settings = load_text({reinterpret_cast<const char*>(data), size});
  if (!settings) {
    TUBED_ASSERT(!settings.error().message.empty());
    TUBED_ASSERT(settings.error().message.find('\n') == std::string::npos);
    return 0;
  }
  const auto again = load_text(print_settings(settings.value()));
  TUBED_ASSERT(again.ok() && again.value() == settings.value());
  return 0;
}
