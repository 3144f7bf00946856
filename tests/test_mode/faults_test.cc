#include "test_mode/faults.h"

#include <doctest/doctest.h>

namespace tubed::test_mode {

TEST_CASE("a fault meets the next commands of its verb, in the order of the faults") {
  Faults faults;
  CHECK(faults.add("put", 2, *Faults::named("OUT_OF_MEMORY")));
  CHECK(faults.add("put", 1, *Faults::named("CLOSE")));
  CHECK_FALSE(faults.take("delete"));
  CHECK(faults.peek("put")->word == "OUT_OF_MEMORY");
  CHECK(faults.take("put")->word == "OUT_OF_MEMORY");
  CHECK(faults.take("put")->word == "OUT_OF_MEMORY");
  CHECK(faults.take("put")->kind == Faults::Kind::close);
  CHECK_FALSE(faults.take("put"));
}

TEST_CASE("a fault of any verb meets each of them") {
  Faults faults;
  CHECK(faults.add("any", 2, *Faults::named("HANG")));
  CHECK(faults.take("put")->kind == Faults::Kind::hang);
  CHECK(faults.take("stats")->kind == Faults::Kind::hang);
  CHECK_FALSE(faults.take("stats"));
  CHECK(faults.add("any", 0, *Faults::named("HANG")));
  CHECK_FALSE(faults.take("stats"));
}

TEST_CASE("a fault is an error word of the protocol, CLOSE or HANG") {
  CHECK(Faults::named("INTERNAL_ERROR")->word == "INTERNAL_ERROR");
  CHECK_FALSE(Faults::named("INSERTED"));
  CHECK_FALSE(Faults::named("close"));
  CHECK_FALSE(Faults::named(""));
}

TEST_CASE("the faults are bounded") {
  Faults faults;
  for (std::size_t i = 0; i < Faults::kMost; ++i) CHECK(faults.add("put", 1, {}));
  CHECK_FALSE(faults.add("put", 1, {}));
  faults.clear();
  CHECK(faults.add("put", 1, {}));
}

}  // namespace tubed::test_mode
