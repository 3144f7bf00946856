#include "os/path_steps.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "tests/loop/loopback.h"

namespace tubed::os {

namespace {

namespace fs = std::filesystem;

using Steps = std::vector<PathStep>;

// A temporary directory whose path has no symbolic link.
struct Place {
  std::string path(const std::string& name) const { return root + '/' + name; }
  void make(const std::string& name) const { std::ofstream(path(name)) << "x"; }
  void link(const std::string& name, const std::string& target) const {
    fs::create_symlink(target, path(name));
  }

  loop_test::Directory directory;
  std::string root = fs::canonical(directory.file("")).string();
};

}  // namespace

TEST_CASE("a plain file has one step, and a missing file too") {
  const Place place;
  place.make("a");
  CHECK(path_steps(place.path("a")) == Steps{{place.root, "a"}});
  CHECK(path_steps(place.path("./a")) == Steps{{place.root, "a"}});
  CHECK(path_steps(place.path("//none")) == Steps{{place.root, "none"}});
}

TEST_CASE("a missing directory is the last step") {
  const Place place;
  CHECK(path_steps(place.path("no/such/file")) == Steps{{place.root, "no"}});
  place.make("file");
  CHECK(path_steps(place.path("file/x")) == Steps{{place.root, "file"}});
}

TEST_CASE("the links of a Kubernetes volume are steps") {
  const Place place;
  fs::create_directories(place.path("..1"));
  place.make("..1/tls.crt");
  place.link("..data", "..1");
  place.link("tls.crt", "..data/tls.crt");
  CHECK(path_steps(place.path("tls.crt")) ==
        Steps{{place.root, "tls.crt"}, {place.root, "..data"}, {place.path("..1"), "tls.crt"}});
}

TEST_CASE("links to other places, upwards and absolute") {
  const Place place;
  fs::create_directories(place.path("live/host"));
  fs::create_directories(place.path("archive"));
  place.make("archive/one");
  place.link("live/host/cert", "../../archive/one");
  const std::string up = place.path("live/host") + "/../..";
  CHECK(path_steps(place.path("live/host/cert")) ==
        Steps{{place.path("live/host"), "cert"}, {up + "/archive", "one"}});
  place.link("to", place.path("archive"));
  CHECK(path_steps(place.path("to/one")) ==
        Steps{{place.root, "to"}, {place.path("archive"), "one"}});
  place.link("dangling", "none");
  CHECK(path_steps(place.path("dangling")) ==
        Steps{{place.root, "dangling"}, {place.root, "none"}});
}

TEST_CASE("links in a circle end") {
  const Place place;
  place.link("a", "b");
  place.link("b", "a");
  CHECK(path_steps(place.path("a")).size() == std::size_t{kMostLinks} + 1);
}

TEST_CASE("a path of no name has no step") {
  CHECK(path_steps("").empty());
  CHECK(path_steps("/").empty());
  CHECK(path_steps("none-such") == Steps{{".", "none-such"}});
}

}  // namespace tubed::os
