#include "live/live_feed.hpp"

#include <algorithm>
#include <ostream>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include <portwave/subsystems/base/printable.hpp>

#include "live/signals_blocked.hpp"

namespace portwave::cli {
namespace {

constexpr auto kTick = std::chrono::milliseconds(100);
constexpr double kLineEvery_s = 1.0;
/// For a run whose steps choose their size.
constexpr std::int64_t kShares = 1'000'000;

std::size_t columns_of_terminal() {
  winsize size = {};
  const bool is_known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return is_known ? size.ws_col : 80;
}

std::string guard_words(const LiveFacts& facts) {
  if (!facts.guard) return "off";
  if (facts.guard->steps == 0) return "never had to act";
  return fmt::format("acted in {} step{}, withheld {:.3g} J", facts.guard->steps,
                     facts.guard->steps == 1 ? "" : "s", facts.guard->withheld_J);
}

std::string energy_words(const LiveFacts& facts) {
  if (!facts.has_ledger) return "no ledger is kept";
  const EnergyTotals& e = facts.totals;
  const double open = facts.stored_J - e.initial_J - e.supplied_J + e.dissipated_J +
                      e.numerical_dissipation_J + e.mismatch_J + e.impact_J;
  std::string text = fmt::format("{:.6g} J", facts.stored_J);
  if (facts.tank_J != 0.0) text += fmt::format(", tank {:.3g} J", facts.tank_J);
  return text +
         fmt::format(", ledger open by {:.1g} J; certificate {}", open, to_string(facts.status));
}

std::string coupling_words(const LiveProgress& progress, const LiveFacts& facts) {
  std::string text = fmt::format("{:.3g} iterations per step", progress.iterations);
  if (facts.residual > 0.0) text += fmt::format(", residual {:.2g}", facts.residual);
  if (facts.missed > 0) text += fmt::format(", {} steps missed the tolerance", facts.missed);
  if (facts.slack_s) text += fmt::format(", slack {:.3g} us", 1e6 * *facts.slack_s);
  return text;
}

std::string steps_words(const LiveProgress& progress, const LiveFacts& facts) {
  std::string text = fmt::format("step {}", facts.step);
  if (progress.steps > 0) text += fmt::format(" of {}", progress.steps);
  return text + fmt::format(", {:.6g} of {:g} s", facts.time_s, progress.end_s);
}

std::string rate_words(const LiveProgress& progress) {
  std::string text;
  if (progress.rate) text = fmt::format("{:.3g} steps/s", *progress.rate);
  if (progress.real_time_factor) {
    text += fmt::format("{}{:.3g} times real time", text.empty() ? "" : ", ",
                        *progress.real_time_factor);
  }
  return text;
}

std::string time_words(const LiveProgress& progress) {
  std::string text = duration_text(progress.wall_s);
  if (progress.left_s) text += fmt::format(", {} left", duration_text(*progress.left_s));
  return text;
}

std::string bar(double share, std::size_t width) {
  const auto full =
      static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(width));
  return "[" + std::string(full, '#') + std::string(width - full, '.') + "]";
}

}  // namespace

std::string live_panel(const LiveProgress& progress, const LiveFacts& facts, std::size_t width) {
  constexpr std::size_t kBar = 24;
  std::string text;
  const auto line = [&](const char* head, const std::string& words) {
    if (words.empty()) return;
    const std::string all = printable(fmt::format("  {:<10} {}", head, words), 1000);
    text += all.substr(0, std::max<std::size_t>(width, 2) - 1) + "\n";
  };
  const std::string name = printable(progress.title, 40);
  line(name.c_str(), fmt::format("{} {:3.0f} %  {}", bar(progress.share, kBar),
                                 100.0 * progress.share, time_words(progress)));
  line("steps", steps_words(progress, facts));
  line("rate", rate_words(progress));
  line("coupling", coupling_words(progress, facts));
  line("energy", energy_words(facts));
  line("guard", guard_words(facts));
  if (!facts.worst_part.empty()) line("worst part", in_quotes(facts.worst_part));
  return text;
}

std::string live_line(const LiveProgress& progress, const LiveFacts& facts) {
  const std::string rate = rate_words(progress);
  std::string text = fmt::format(
      "{:3.0f} %  {}; {}{}; {}; energy {}; guard {}", 100.0 * progress.share,
      steps_words(progress, facts), time_words(progress), rate.empty() ? "" : ", " + rate,
      coupling_words(progress, facts), energy_words(facts), guard_words(facts));
  if (!facts.worst_part.empty()) text += "; worst part " + in_quotes(facts.worst_part);
  return printable(text, 1000) + "\n";
}

LiveFeed::LiveFeed(std::ostream& err, Show show, std::string title, std::int64_t steps,
                   double start_s, double end_s, std::int64_t first, LiveReport* page)
    : err_(err),
      show_(show),
      title_(std::move(title)),
      steps_(steps),
      start_s_(start_s),
      end_s_(end_s),
      first_(first),
      page_(page),
      start_(Clock::now()),
      remaining_(steps > 0 ? std::max<std::int64_t>(steps - first, 1) : kShares, 1) {
  ticker_ = thread_to_show([this] { run(); });
  if (!ticker_.joinable()) wanted_ = false;
}

void LiveFeed::take(const Stepper& stepper, const StepReport& report) {
  wanted_.store(false, std::memory_order_relaxed);
  LiveFacts facts = live_facts(stepper, report);
  if (page_ != nullptr) {
    const double wall_s = std::chrono::duration<double>(Clock::now() - start_).count();
    page_->sample(stepper, facts, wall_s);
  }
  const std::scoped_lock lock(mutex_);
  facts_ = std::move(facts);
}

void LiveFeed::run() {
  std::unique_lock lock(mutex_);
  while (!stop_.wait_for(lock, kTick, [this] { return stopping_; })) {
    lock.unlock();  // a terminal may take its time
    show();
    wanted_.store(true, std::memory_order_relaxed);
    lock.lock();
  }
  lock.unlock();
  if (lines_ > 0) err_ << fmt::format("\x1b[{}A\x1b[J", lines_) << std::flush;
}

LiveProgress LiveFeed::progress(const LiveFacts& facts, double now_s) {
  LiveProgress out = {.title = title_, .steps = steps_, .end_s = end_s_, .wall_s = now_s};
  out.share = steps_ > 0 ? static_cast<double>(facts.step) / static_cast<double>(steps_)
                         : (facts.time_s - start_s_) / (end_s_ - start_s_);
  remaining_.note(steps_ > 0 ? facts.step - first_
                             : static_cast<std::int64_t>(out.share * static_cast<double>(kShares)),
                  now_s);
  out.left_s = remaining_.left_s(now_s);
  if (steps_ > 0) out.rate = remaining_.rate();
  if (shown_ && now_s > shown_s_) {
    const double since_s = now_s - shown_s_;
    if (!out.rate) out.rate = static_cast<double>(facts.step - shown_->step) / since_s;
    out.real_time_factor = (facts.time_s - shown_->time_s) / since_s;
    if (steps_ > 0 && remaining_.rate() && facts.step > 0) {
      out.real_time_factor = *out.rate * facts.time_s / static_cast<double>(facts.step);
    }
    if (facts.step > shown_->step) {
      iterations_ = static_cast<double>(facts.iterations - shown_->iterations) /
                    static_cast<double>(facts.step - shown_->step);
    }
  } else if (facts.step > first_ && now_s > 0.0) {
    if (!out.rate) out.rate = static_cast<double>(facts.step - first_) / now_s;
    out.real_time_factor = *out.rate * facts.time_s / static_cast<double>(facts.step);
    iterations_ = static_cast<double>(facts.iterations) / static_cast<double>(facts.step);
  }
  out.iterations = iterations_;
  return out;
}

void LiveFeed::show() {
  if (show_ == Show::nothing) return;
  std::optional<LiveFacts> facts;
  {
    const std::scoped_lock lock(mutex_);
    facts = facts_;
  }
  if (!facts) return;
  const double now_s = std::chrono::duration<double>(Clock::now() - start_).count();
  if (show_ == Show::lines && now_s - line_s_ < kLineEvery_s && line_s_ > 0.0) return;
  if (show_ == Show::lines && now_s < kLineEvery_s) return;
  const LiveProgress own = progress(*facts, now_s);
  shown_ = facts;
  shown_s_ = now_s;
  if (show_ == Show::lines) {
    line_s_ = now_s;
    err_ << live_line(own, *facts) << std::flush;
    return;
  }
  const std::string text = live_panel(own, *facts, columns_of_terminal());
  std::string out = lines_ > 0 ? fmt::format("\x1b[{}A\x1b[J", lines_) : std::string();
  err_ << out + text << std::flush;
  lines_ = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

void LiveFeed::finish() {
  if (!ticker_.joinable()) return;
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_one();
  ticker_.join();
}

}  // namespace portwave::cli
