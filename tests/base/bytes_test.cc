#include "base/bytes.h"

#include <algorithm>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/slab_pool.h"

namespace tubed {

TEST_CASE("an empty handle is false, and a body of no bytes is true") {
  const Bytes none;
  CHECK_FALSE(none);
  CHECK(none.size() == 0);
  CHECK(none.view().empty());
  const Bytes empty = Bytes::allocate(0);
  CHECK(empty);
  CHECK(empty.size() == 0);
  CHECK(empty.view().empty());
}

TEST_CASE("a body may contain any bytes; all copies read the same") {
  Bytes bytes = Bytes::allocate(5);
  const std::string text("a\0\r\n\xff", 5);
  std::copy(text.begin(), text.end(), bytes.writable().begin());
  const Bytes copy = bytes;
  CHECK(bytes.view() == text);
  CHECK(copy.view() == text);
  CHECK(copy.view().data() == bytes.view().data());
}

TEST_CASE("the memory is freed with the last copy, whichever that is") {
  for (std::size_t last = 0; last < 3; ++last) {
    std::vector<Bytes> copies(3, Bytes::copy_of("body"));
    for (std::size_t i = 0; i < copies.size(); ++i) {
      if (i != last) copies[i] = Bytes();
    }
    CHECK(copies[last].view() == "body");
    CHECK(copies[last].writable().size() == 4);  // now the only handle
  }
}

TEST_CASE("bytes can be moved, and assigned to themselves") {
  Bytes bytes = Bytes::copy_of("body");
  const char* const data = bytes.view().data();
  Bytes moved = std::move(bytes);
  CHECK(moved.view().data() == data);
  const Bytes& same = moved;
  moved = same;
  CHECK(moved.view() == "body");
  CHECK(moved.writable().data() == data);
  moved = Bytes::copy_of("other");
  CHECK(moved.view() == "other");
}

TEST_CASE("a thread with its bodies on the heap does not use the pool") {
  std::thread thread([] {
    const BytesOnHeap heap;
    const std::size_t before = SlabPool::memory();
    std::vector<Bytes> bodies;
    for (int i = 0; i < 5000; ++i) bodies.push_back(Bytes::copy_of("a small body"));
    CHECK(SlabPool::memory() == before);
    CHECK(bodies.back().view() == "a small body");
  });
  thread.join();
}

}  // namespace tubed
