// The dictionary of the fuzz target tests/fuzz/fuzz_conversation.cc, from the command table.
//
// A fuzzer that knows the words reaches the handlers, and not only the parser's errors.
#pragma once

#include <string>

namespace tubed::docs {

// In libFuzzer's format: the words that command lines are made of.
std::string fuzz_dictionary();

}  // namespace tubed::docs
