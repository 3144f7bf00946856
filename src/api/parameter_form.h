// The allowed form of a parameter's values, in words: for problems and the reference pages.
#pragma once

#include <string>
#include <string_view>

#include "api/operation.h"

namespace tubed::api {

// Between the form of a time and its examples with units.
inline constexpr std::string_view kOrWithUnit = ", or with a unit as ";

// Returns for example "integer from 1 to 1000". Precondition: the operation has the parameter.
std::string form_of(const Operation& operation, std::string_view parameter);

}  // namespace tubed::api
