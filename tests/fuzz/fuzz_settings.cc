// Fuzzes the settings files: loading any text, and any drop-in of it, returns settings that are
// unchanged after printing and loading them again, with or without their origins, or an error of
// one line.
#include <algorithm>
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
#include "config/places.h"
#include "config/print.h"

namespace {

using namespace tubed;

const std::string& path_without_ending() {
  static const std::string path =
      (std::filesystem::temp_directory_path() / ("fuzz_settings." + std::to_string(::getpid())))
          .string();
  return path;
}

CommandLine command_line() {
  CommandLine line;
  line.config_file = path_without_ending() + ".toml";
  return line;
}

void write(const std::string& file, std::string_view text) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << text;
}

// The text after the first NUL is that of a drop-in.
Result<LoadedSettings> load_text(std::string_view text) {
  const CommandLine line = command_line();
  const std::string drop_ins = path_without_ending() + ".d";
  const auto end = std::min(text.find('\0'), text.size());
  write(line.config_file, text.substr(0, end));
  if (end < text.size()) {
    std::filesystem::create_directory(drop_ins);
    write(drop_ins + "/a.toml", text.substr(end + 1));
  }
  auto loaded = load_with_lines(line, true);
  std::filesystem::remove(line.config_file);
  if (end < text.size()) std::filesystem::remove_all(drop_ins);
  return loaded;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto loaded = load_text({reinterpret_cast<const char*>(data), size});
  if (!loaded) {
    TUBED_ASSERT(!loaded.error().message.empty());
    TUBED_ASSERT(loaded.error().message.find('\n') == std::string::npos);
    return 0;
  }
  const Settings& settings = loaded->settings;
  const CommandLine line = command_line();
  for (const std::string& printed :
       {print_settings(settings), print_settings(settings, config::Places(line, loaded->lines))}) {
    const auto again = load_text(printed);
    TUBED_ASSERT(again.ok() && again->settings == settings);
  }
  return 0;
}
