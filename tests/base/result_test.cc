#include "base/result.h"

#include <memory>
#include <string>
#include <utility>

#include <doctest/doctest.h>

namespace tubed {

TEST_CASE("a result has a value or an error") {
  Result<std::string> good(std::string("yes"));
  CHECK(good.ok());
  CHECK(*good == "yes");
  CHECK(good->size() == 3);
  good.value() = "changed";
  CHECK(std::as_const(good).value() == "changed");
  const Result<std::string> bad(Error{"open /x: no such file"});
  CHECK_FALSE(bad);
  CHECK(bad.error().message == "open /x: no such file");
}

TEST_CASE("a result's value may be one that can only be moved") {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(7));
  const std::unique_ptr<int> taken = std::move(*result);
  CHECK(*taken == 7);
}

TEST_CASE("a result of nothing is good unless it has an error") {
  const Result<void> good;
  CHECK(good.ok());
  const Result<void> bad(Error{"reason"});
  CHECK_FALSE(bad);
  CHECK(bad.error().message == "reason");
}

}  // namespace tubed
