#pragma once

#include <string_view>

namespace tubed::docs {

inline bool mentions(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace tubed::docs
