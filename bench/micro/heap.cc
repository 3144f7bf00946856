// IndexedHeap with few and with many items. Keys are drawn at random from a fixed seed.
#include <cstdint>
#include <random>
#include <vector>

#include <benchmark/benchmark.h>

#include "base/indexed_heap.h"

namespace {

using tubed::IndexedHeap;
using tubed::kNotInHeap;

struct Item {
  std::uint32_t index = kNotInHeap;
};
using Heap = IndexedHeap<Item, std::uint64_t, &Item::index>;

// A heap with the number of items in the benchmark's argument, and the random keys for the run.
class FilledHeap {
 public:
  explicit FilledHeap(const benchmark::State& state)
      : items_(static_cast<std::size_t>(state.range(0))) {
    for (std::uint64_t& key : keys_) key = draw_();
    for (Item*& place : places_) place = &items_[draw_() % items_.size()];
    for (Item& item : items_) heap.push(draw_(), &item);
  }

  std::uint64_t key() { return keys_[next_++ % kDrawn]; }
  Item* item() { return places_[next_++ % kDrawn]; }

  Heap heap;

 private:
  static constexpr std::size_t kDrawn = 1 << 14;

  std::mt19937_64 draw_{1};
  std::vector<Item> items_;
  std::vector<std::uint64_t> keys_ = std::vector<std::uint64_t>(kDrawn);
  std::vector<Item*> places_ = std::vector<Item*>(kDrawn);
  std::size_t next_ = 0;
};

void heap_push_and_erase(benchmark::State& state) {
  FilledHeap filled(state);
  Item item;
  for (auto _ : state) {
    filled.heap.push(filled.key(), &item);
    filled.heap.erase(&item);
  }
}

// The pop of a queue: removes the first item and inserts an item with a later key.
void heap_pop_and_push(benchmark::State& state) {
  FilledHeap filled(state);
  for (auto _ : state) {
    Item* first = filled.heap.top();
    filled.heap.erase(first);
    filled.heap.push(filled.key(), first);
  }
}

void heap_erase_any_and_push(benchmark::State& state) {
  FilledHeap filled(state);
  for (auto _ : state) {
    Item* item = filled.item();
    filled.heap.erase(item);
    filled.heap.push(filled.key(), item);
  }
}

void heap_update(benchmark::State& state) {
  FilledHeap filled(state);
  for (auto _ : state) filled.heap.update(filled.key(), filled.item());
}

void few_and_many(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("items")->Arg(1'000)->Arg(1'000'000);
}

BENCHMARK(heap_push_and_erase)->Apply(few_and_many);
BENCHMARK(heap_pop_and_push)->Apply(few_and_many);
BENCHMARK(heap_erase_any_and_push)->Apply(few_and_many);
BENCHMARK(heap_update)->Apply(few_and_many);

}  // namespace
