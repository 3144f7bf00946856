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

TEST_CASE("the value of a result may be move-only") {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(7));
  const std::unique_ptr<int> taken = std::move(*result);
  CHECK(*taken == 7);
}

TEST_CASE("a void result is ok unless it has an error") {
  const Result<void> good;
  CHECK(good.ok());
  const Result<void> bad(Error{"reason"});
  CHECK_FALSE(bad);
  CHECK(bad.error().message == "reason");
}

namespace {

Result<int> half_of(int number) {
  if (number % 2 != 0) return Error{"odd", Error::Kind::damaged};
  return number / 2;
}

Result<void> check_even(int number) {
  TRY(half_of(number));
  return {};
}

Result<std::string> quarter_of(int number) {
  TRY(check_even(number));
  const auto half = TRY(half_of(TRY(half_of(number))));
  return std::to_string(half);
}

Result<std::unique_ptr<int>> boxed(int number) {
  auto box = TRY(Result<std::unique_ptr<int>>(std::make_unique<int>(number)));
  ++*box;
  return box;
}

}  // namespace

TEST_CASE("TRY evaluates to the value, or returns the error with its kind") {
  CHECK(*quarter_of(8) == "2");
  const auto odd = quarter_of(6);
  REQUIRE_FALSE(odd);
  CHECK(odd.error().message == "odd");
  CHECK(odd.error().kind == Error::Kind::damaged);
  CHECK_FALSE(quarter_of(5));
  CHECK(**boxed(7) == 8);
}

}  // namespace tubed
