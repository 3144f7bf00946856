// The values of options: text in, the form that is stored out.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "options/row.h"

namespace tubed::options {

// Returns the value in the form that the option stores. A number, time or size becomes a plain
// decimal number: "5m" is "300", or "300000" in milliseconds. Other text is returned as it is. The
// Error names the expected form with its range and units.
Result<std::string> normalized(const ValueType& type, std::string_view text);

// "\"5y\" is not a time": at most 40 bytes of the text are shown.
Error not_a_value(std::string_view text, std::string_view expected);

}  // namespace tubed::options
