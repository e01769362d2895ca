// A profile as people and as trace viewers read it.

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "portwave/runtime/parallel/profile.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave {
namespace {

constexpr std::size_t kMostTasksShown = 8, kMostTypesShown = 12, kMostWorkersShown = 16;

double per_step_us(const Profile& profile, double time_s) {
  return profile.sampled > 0 ? 1e6 * time_s / static_cast<double>(profile.sampled) : 0.0;
}

std::string percent(double part, double whole) {
  return whole > 0.0 ? fmt::format("{:.1f} %", 100.0 * part / whole) : "–";
}

std::string phases_table(const Profile& p) {
  const double all_s = p.step_s + p.between_s;
  std::string text;
  const auto line = [&](std::string_view what, double time_s) {
    text += fmt::format("    {:<34} {:>10.3g} us {:>8}\n", what, per_step_us(p, time_s),
                        percent(time_s, all_s));
  };
  line("begin (inputs, freezing)", p.begin_s);
  line("inner iteration", p.inner_s);
  line("commit, guard and ledger", p.ledger_s);
  line("between steps (recording)", p.between_s);
  return text;
}

std::string workers_table(const Profile& p) {
  if (p.workers.empty()) return {};
  std::string text =
      fmt::format("  threads, us per step; imbalance {:.3g} (busiest over mean)\n", p.imbalance());
  text += fmt::format("    {:<8} {:>10} {:>10} {:>10} {:>10} {:>9}\n", "thread", "iterate",
                      "exchange", "commit", "waiting", "working");
  for (std::size_t i = 0; i < p.workers.size() && i < kMostWorkersShown; ++i) {
    const ProfileWorker& w = p.workers[i];
    text += fmt::format("    {:<8} {:>10.3g} {:>10.3g} {:>10.3g} {:>10.3g} {:>9}\n", i,
                        per_step_us(p, w.iterate_s), per_step_us(p, w.exchange_s),
                        per_step_us(p, w.commit_s), per_step_us(p, w.waiting_s),
                        percent(w.working_s(), w.working_s() + w.waiting_s));
  }
  if (p.workers.size() > kMostWorkersShown) {
    text += fmt::format("    and {} more\n", p.workers.size() - kMostWorkersShown);
  }
  return text;
}

std::string tasks_table(const Profile& p) {
  if (p.tasks.empty()) return {};
  std::string text = fmt::format("  tasks, us per step ({} of them ran)\n", p.tasks.size());
  text += fmt::format("    {:<8} {:>7} {:>10} {:>10} {:>10}  {}\n", "task", "parts", "iterate",
                      "exchange", "commit", "first part");
  for (std::size_t i = 0; i < p.tasks.size() && i < kMostTasksShown; ++i) {
    const ProfileTask& t = p.tasks[i];
    text += fmt::format(
        "    {:<8} {:>7} {:>10.3g} {:>10.3g} {:>10.3g}  {}\n",
        t.number < 0 ? fmt::format("serial {}", -1 - t.number) : std::to_string(t.number), t.parts,
        per_step_us(p, t.iterate_s), per_step_us(p, t.exchange_s), per_step_us(p, t.commit_s),
        printable(t.first_part, 40));
  }
  if (p.tasks.size() > kMostTasksShown) {
    text += fmt::format("    and {} more\n", p.tasks.size() - kMostTasksShown);
  }
  return text;
}

/// Batches of one type together, the dearest first.
std::string types_table(const Profile& p) {
  if (p.batches.empty()) return {};
  struct Sum {
    std::string type;
    int batches = 0, parts = 0;
    double iterate_s = 0.0, commit_s = 0.0;
  };
  std::map<std::string, Sum> by_type;
  for (const ProfileBatch& batch : p.batches) {
    Sum& sum = by_type[batch.type];
    sum.type = batch.type;
    ++sum.batches;
    sum.parts += batch.parts;
    sum.iterate_s += batch.iterate_s;
    sum.commit_s += batch.commit_s;
  }
  std::vector<Sum> sums;
  const double iterations =
      p.sampled > 0 ? static_cast<double>(p.iterations) / static_cast<double>(p.sampled) : 0.0;
  double all_s = 0.0;
  for (const auto& [type, sum] : by_type) {
    sums.push_back(sum);
    all_s += iterations * sum.iterate_s + sum.commit_s;
  }
  const auto cost = [&](const Sum& sum) { return iterations * sum.iterate_s + sum.commit_s; };
  std::ranges::stable_sort(sums, [&](const Sum& a, const Sum& b) { return cost(a) > cost(b); });
  std::string text = fmt::format(
      "  types of parts, measured alone: {:.3g} us per step of {:.3g} iterations on one thread\n",
      1e6 * all_s, iterations);
  text += fmt::format("    {:<28} {:>7} {:>8} {:>12} {:>12} {:>8}\n", "type", "parts", "batches",
                      "us/iteration", "us/commit", "share");
  for (std::size_t i = 0; i < sums.size() && i < kMostTypesShown; ++i) {
    const Sum& s = sums[i];
    text += fmt::format("    {:<28} {:>7} {:>8} {:>12.3g} {:>12.3g} {:>8}\n", printable(s.type, 28),
                        s.parts, s.batches, 1e6 * s.iterate_s, 1e6 * s.commit_s,
                        percent(cost(s), all_s));
  }
  if (sums.size() > kMostTypesShown) {
    text += fmt::format("    and {} more\n", sums.size() - kMostTypesShown);
  }
  return text;
}

std::string_view name_of(ProfileEvent::Kind kind) {
  constexpr std::string_view kNames[] = {"iterate", "exchange",  "commit",
                                         "begin",   "iteration", "commit and ledger"};
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace

std::string profile_text(const Profile& p) {
  std::string text =
      fmt::format("where the time goes: {} of {} steps were measured, {:.3g} us each", p.sampled,
                  p.steps, 1e6 * p.mean_step_s());
  if (p.other_step_s > 0.0)
    text += fmt::format("; the others took {:.3g} us", 1e6 * p.other_step_s);
  text += '\n';
  if (p.sampled == 0) return text;
  text += phases_table(p) + workers_table(p) + tasks_table(p) + types_table(p);
  if (p.workers.empty()) {
    text += "  tasks are followed with wave coupling and the executors serial and async only\n";
  }
  if (p.dropped_events > 0) {
    text += fmt::format("  {} events of steps with very many were not kept\n", p.dropped_events);
  }
  return text;
}

std::string trace_json(const Profile& profile) {
  // Thread 0 is the one that steps; its phases stand above, as thread -1 would.
  std::string out = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
  const auto name_thread = [&](int number, const std::string& name) {
    out += fmt::format(
        "{{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":{},\"args\":{{\"name\":\"{}\"}}}"
        "},\n",
        number, name);
  };
  out += "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,\"args\":{\"name\":\"portwave\"}},\n";
  name_thread(0, "step");
  for (std::size_t i = 0; i < profile.workers.size(); ++i) {
    name_thread(static_cast<int>(i) + 1, fmt::format("thread {}", i));
  }
  std::map<int, const ProfileTask*> tasks;
  for (const ProfileTask& task : profile.tasks) tasks[task.number] = &task;
  const auto part_of = [&](int number) {
    const auto found = tasks.find(number);
    const std::string name = found == tasks.end() ? "" : found->second->first_part;
    return nlohmann::json(name).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  };
  bool is_first = true;
  for (const ProfileEvent& event : profile.events) {
    const bool is_of_task = event.kind <= ProfileEvent::Kind::commit;
    if (!is_first) out += ",\n";
    is_first = false;
    out += fmt::format(
        "{{\"name\":\"{}\",\"cat\":\"{}\",\"ph\":\"X\",\"pid\":1,\"tid\":{},\"ts\":{:.3f},\"dur\":{"
        ":.3f},"
        "\"args\":{{\"step\":{}",
        name_of(event.kind), is_of_task ? "task" : "step", is_of_task ? event.worker + 1 : 0,
        1e6 * event.begin_s, 1e6 * (event.end_s - event.begin_s), event.step);
    if (is_of_task) {
      out += fmt::format(",\"task\":{},\"first_part\":{}", event.task, part_of(event.task));
    }
    out += "}}";
  }
  if (is_first) {  // no comma before the end
    out.resize(out.size() - 2);
    out += '\n';
  }
  return out + "\n]}\n";
}

}  // namespace portwave
