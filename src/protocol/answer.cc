#include "protocol/answer.h"

#include "base/overloaded.h"
#include "protocol/yaml.h"

namespace tubed::protocol {

namespace {

constexpr std::string_view kReservedBatch = "RESERVED_BATCH";

[[gnu::noinline]] void render_numbers(const Numbers& numbers, ReplyBuffer& replies) {
  std::string words = std::to_string(numbers.first);
  if (!numbers.state.empty()) words.append(" ").append(numbers.state);
  if (numbers.second) words.append(" ").append(std::to_string(*numbers.second));
  replies.line(numbers.word, words);
}

// The view is written straight to the replies.
[[gnu::noinline]] void render_block(const Block& block, ReplyBuffer& replies) {
  replies.block([&block](std::string& text) {
    YamlBlock yaml(text);
    block.write(yaml);
  });
}

}  // namespace

bool operator==(const Block& a, const Block& b) {
  return yaml_of(a) == yaml_of(b);
}

void render(const Answer& answer, ReplyBuffer& replies) {
  std::visit(Overloaded{[&](const Status& status) { replies.line(status.word); },
                        [&](const Number& number) { replies.line(number.word, number.value); },
                        [&](const Name& name) { replies.line(name.word, name.name); },
                        [&](const JobAnswer& job) { replies.job(job.word, job.id, job.body); },
                        [&](const Block& block) { render_block(block, replies); },
                        [&](const Numbers& numbers) { render_numbers(numbers, replies); },
                        [&](const JobBatch& batch) {
                          replies.line(kReservedBatch, batch.jobs.size());
                          for (const JobAnswer& job : batch.jobs) {
                            replies.job(job.word, job.id, job.body);
                          }
                        },
                        [&](const BlockPart& part) {
                          if (part.block_bytes) replies.begin_block(*part.block_bytes);
                          replies.block_part(part.text);
                          if (part.last) replies.end_block();
                        },
                        [](Waiting) {}, [](Unfinished) {}, [](Close) {}},
             answer);
}

void render_with_tubes(const Answer& answer, const TubeOfJob& tube_of, ReplyBuffer& replies) {
  const auto render_job = [&](const JobAnswer& job) {
    replies.job(job.word, job.id, job.body, tube_of(job.id));
  };
  if (const auto* job = std::get_if<JobAnswer>(&answer)) return render_job(*job);
  const auto* batch = std::get_if<JobBatch>(&answer);
  if (batch == nullptr) return render(answer, replies);
  replies.line(kReservedBatch, batch->jobs.size());
  for (const JobAnswer& job : batch->jobs) render_job(job);
}

}  // namespace tubed::protocol
