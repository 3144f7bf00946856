// Overloaded: combines function objects into one, for std::visit with one case per alternative.
//   std::visit(Overloaded{[](const Added& added) { … }, [](const auto& other) { … }}, fact);
#pragma once

namespace tubed {

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

}  // namespace tubed
