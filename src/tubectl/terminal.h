// Terminal: what tubectl does only for a person: colours, a progress line, a question.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tubed::tubectl {

// Colours are for a terminal whose user has not set NO_COLOR.
enum class Style : std::uint8_t { plain, bold, dim, red, green, yellow, cyan };

// That user did.
bool colours_unwanted();

class Paint {
 public:
  // Paints if `descriptor` is such a terminal.
  static Paint for_descriptor(int descriptor);

  std::string operator()(Style style, std::string_view text) const;

 private:
  explicit Paint(bool paints) : paints_(paints) {}
  bool paints_;
};

// A body as standard output is to have it: its bytes, and a line end if it is one of several. A
// terminal gets escaped() text that ends its line, unless `raw`.
std::string shown_body(std::string body, bool several, bool raw);

// A bar on standard error, several times a second; none if that is no terminal, or for a short run.
class Progress {
 public:
  // "clearing": what is done. `total` 0: nobody knows how many there are.
  Progress(std::string label, std::uint64_t total);
  // Takes the bar away.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(std::uint64_t done);

 private:
  using Clock = std::chrono::steady_clock;

  std::string label_;
  std::uint64_t total_;
  bool wanted_;
  bool shown_ = false;
  Clock::time_point begin_;
  Clock::time_point next_;
};

// Asks on the terminal, and waits for "y" or "yes". An error: there is no terminal to ask on.
Result<bool> confirm(const std::string& question);

}  // namespace tubed::tubectl
