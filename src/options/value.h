// The values of options: text in, the form that is stored out.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "options/row.h"

namespace tubed::options {

// The value as its option stores it: numbers, times and sizes as a plain decimal number, so that
// "5m" becomes "300", or "300000" if the type is milliseconds; other text as it is. The Error names
// what the option takes, with its range and units.
Result<std::string> normalized(const ValueType& type, std::string_view text);

// "\"5y\" is not a time": at most 40 bytes of the text are shown.
Error not_a_value(std::string_view text, std::string_view expected);

}  // namespace tubed::options
