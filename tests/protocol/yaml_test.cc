#include "protocol/yaml.h"

#include <doctest/doctest.h>

using namespace tubed;
using namespace tubed::protocol;

TEST_CASE("a block is written as beanstalkd 1.13 writes it") {
  YamlBlock block;
  block.number("pid", 42);
  block.quoted("name", "default");
  block.plain("state", "ready");
  block.plain("draining", "false");
  block.seconds("rusage-utime", std::chrono::microseconds(3'000'120));
  block.seconds("rusage-stime", std::chrono::microseconds(999'999));
  block.item("default");
  CHECK(block.text() ==
        "---\npid: 42\nname: \"default\"\nstate: ready\ndraining: false\nrusage-utime: 3.000120\n"
        "rusage-stime: 0.999999\n- default\n");
}
