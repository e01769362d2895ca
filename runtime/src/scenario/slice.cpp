#include "scenario/slice.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "portwave/runtime/ranks/slice_builder.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "ranks/slice_sums.hpp"
#include "scenario/reader/limits.hpp"
#include "scenario/settings/names.hpp"
#include "scenario/templates/slice_templates.hpp"

namespace portwave::scenario_file {
namespace {

constexpr std::string_view kParts = "subsystems", kCouplings = "couplings";

/// Goes through a scenario. Entries of the two long lists come one at a time and are gone then; the rest
/// is kept.
class Scanner {
 public:
  using number_integer_t = Json::number_integer_t;
  using number_unsigned_t = Json::number_unsigned_t;
  using number_float_t = Json::number_float_t;
  using string_t = Json::string_t;
  using binary_t = Json::binary_t;
  /// Null: entries of that list are only counted.
  using Take = std::function<void(std::int64_t index, Json&& entry)>;

  Take take_part, take_coupling;

  std::int64_t parts() const { return counts_[0]; }
  std::int64_t couplings() const { return counts_[1]; }
  Json& rest() { return rest_; }
  const std::string& problem() const { return problem_; }

  bool null() { return put(nullptr); }
  bool boolean(bool value) { return put(value); }
  bool number_integer(number_integer_t value) { return put(value); }
  bool number_unsigned(number_unsigned_t value) { return put(value); }
  bool number_float(number_float_t value, const string_t&) { return put(value); }
  bool string(string_t& value) { return put(std::move(value)); }
  bool binary(binary_t&) { return false; }
  bool start_object(std::size_t) { return open(Json::object()); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(string_t& name) {
    keys_.back() = std::move(name);
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) {
    problem_ =
        fmt::format("this is not JSON at byte {}: {}", position, printable(error.what(), 200));
    return false;
  }

 private:
  bool is_list_open() const { return list_ >= 0; }
  bool is_counting() const { return is_list_open() && !(list_ == 0 ? take_part : take_coupling); }

  bool open(Json container) {
    if (keys_.size() >= at(scenario_limits::kNesting)) {
      problem_ = fmt::format("nested deeper than {} levels", scenario_limits::kNesting);
      return false;
    }
    const bool is_of_root = keys_.size() == 1 && !is_list_open();
    if (is_of_root && container.is_array() && (keys_[0] == kParts || keys_[0] == kCouplings)) {
      list_ = keys_[0] == kParts ? 0 : 1;
    } else if (!is_counting()) {
      stack_.push_back(std::move(container));
    }
    keys_.emplace_back();
    return true;
  }
  bool close() {
    keys_.pop_back();
    if (keys_.size() == 1 && is_list_open()) {
      list_ = -1;
      return true;
    }
    if (is_counting()) {
      if (keys_.size() == 2) ++counts_[list_];
      return true;
    }
    Json done = std::move(stack_.back());
    stack_.pop_back();
    return put(std::move(done));
  }
  /// A whole value.
  bool put(Json value) {
    if (is_list_open() && keys_.size() == 2) {
      const std::int64_t index = counts_[list_]++;
      if (const Take& take = list_ == 0 ? take_part : take_coupling) take(index, std::move(value));
      return true;
    }
    if (is_counting()) return true;
    if (stack_.empty()) {
      rest_ = std::move(value);
    } else if (stack_.back().is_array()) {
      stack_.back().push_back(std::move(value));
    } else {
      // Duplicate keys stay, for whoever reads the slice to tell of.
      stack_.back().get_ref<Json::object_t&>().emplace_back(std::move(keys_.back()),
                                                            std::move(value));
    }
    return true;
  }

  std::vector<std::string> keys_;  // of the open containers
  std::vector<Json> stack_;        // those that are kept
  int list_ = -1;                  // which of the long lists is open
  std::int64_t counts_[2] = {0, 0};
  Json rest_;
  std::string problem_;
};

std::string text_of(const Json& object, const char* key) {
  if (!object.is_object()) return {};
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// Names of the parts that a coupling joins.
std::vector<std::string> parts_of(const Json& coupling) {
  std::vector<std::string> names;
  if (!coupling.is_object()) return names;
  const auto ports = coupling.find("ports");
  if (ports == coupling.end() || !ports->is_array()) return names;
  for (const Json& port : *ports) {
    if (!port.is_string()) continue;
    const auto& path = port.get_ref<const std::string&>();
    names.push_back(path.substr(0, path.rfind('.')));
  }
  return names;
}

class SliceFile {
 public:
  SliceFile(const std::filesystem::path& path, Ranks& ranks) : path_(path), ranks_(ranks) {}

  SliceText read(const PhaseCallback& listener) {
    tell(listener, {"counting the subsystems"});
    Scanner counted;
    std::vector<std::pair<std::int64_t, Json>> with_count;
    counted.take_part = [&](std::int64_t entry, Json&& part) {
      // Uses of assemblies are refused later.
      const bool is_array =
          part.is_object() && part.contains("count") && !part.contains("assembly");
      if (is_array) with_count.emplace_back(entry, part["count"]);
    };
    scan(counted);
    templates_.emplace(counted.rest());
    std::int64_t count = counted.parts();
    for (auto& [entry, given] : with_count) {
      const auto own = templates_->count_of(Json{{"count", std::move(given)}}, entry);
      out_.places.arrays.push_back({entry, own.value_or(1)});
      count += own.value_or(1) - 1;
    }
    expect_sound();
    const auto [first, end] = even_slice(count, ranks_.rank(), ranks_.size());
    const std::int64_t most = (count + SliceBuilder::kUnit - 1) / SliceBuilder::kUnit;
    if (most < ranks_.size()) {
      fail(fmt::format("{} subsystems, divided in units of {}, are work for {} ranks at most",
                       count, SliceBuilder::kUnit, most));
    }
    out_.places.first_part = first;
    out_.places.own_parts = static_cast<int>(end - first);
    out_.places.ranks = &ranks_;
    tell(listener, {"reading the subsystems of this slice"});
    take_own_parts(first, end);
    tell(listener, {"reading the couplings of this slice"});
    take_couplings();
    tell(listener, {"reading the subsystems beside this slice"});
    take_outside(first, end);
    Json root = templates_->filled_rest(std::move(counted.rest()));
    expect_sound();
    if (root.is_object()) {
      auto& members = root.get_ref<Json::object_t&>();
      members.emplace_back(std::string(kParts), std::move(parts_));
      members.emplace_back(std::string(kCouplings), std::move(couplings_));
    }
    out_.text = root.dump(-1, ' ', false, Json::error_handler_t::replace);
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(std::string what) const {
    throw ScenarioError(path_.string(), {{"", std::move(what)}});
  }

  void scan(Scanner& scanner) const {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(path_, ignored)) fail("is not a file that can be read");
    std::ifstream file(path_, std::ios::binary);
    if (!file) fail("cannot be read");
    if (!Json::sax_parse(file, &scanner)) fail(scanner.problem());
    if (file.bad()) fail("cannot be read to its end");
  }

  /// Defects of templates, of whatever rank, are told by all.
  void expect_sound() {
    Issues issues = gathered_issues(ranks_, templates_->issues());
    if (!issues.empty()) throw ScenarioError(path_.string(), std::move(issues));
  }

  /// An entry of the file: a subsystem, or an array of them.
  struct Entry {
    std::int64_t number;  ///< in the file
    std::int64_t first, count;
    bool is_array;
    std::optional<std::int64_t> index(std::int64_t part) const {
      return is_array ? std::optional(part - first) : std::nullopt;
    }
  };
  /// Goes through all of them: take(entry, json).
  template <class Take>
  void for_entries(const Take& take) {
    std::int64_t next = 0;
    auto array = out_.places.arrays.begin();
    Scanner scanner;
    scanner.take_part = [&](std::int64_t number, Json&& part) {
      const bool is_array = array != out_.places.arrays.end() && array->entry == number;
      const Entry entry{number, next, is_array ? array->count : 1, is_array};
      next += entry.count;
      if (is_array) ++array;
      take(entry, std::move(part));
    };
    scan(scanner);
  }

  void take_own_parts(std::int64_t first, std::int64_t end) {
    for_entries([&](const Entry& entry, Json&& part) {
      const std::int64_t last = std::min(end, entry.first + entry.count);
      for (std::int64_t i = std::max(first, entry.first); i < last; ++i) {
        Json made = templates_->part(part, entry.number, entry.index(i));
        own_.insert(text_of(made, "name"));
        parts_.push_back(std::move(made));
      }
    });
    expect_sound();
  }
  void take_couplings() {
    std::int64_t claimed = 0, count = 0;
    const auto take = [&](std::int64_t index, Json&& coupling) {
      ++count;
      const std::vector<std::string> names = parts_of(coupling);
      if (names.empty() && ranks_.rank() == 0) {  // what is wrong with it is told once
        ++claimed;
        keep(index, std::move(coupling));
        return;
      }
      if (!names.empty() && own_.contains(names.front())) ++claimed;
      if (std::ranges::none_of(names, [this](const auto& name) { return own_.contains(name); })) {
        return;
      }
      for (const std::string& name : names) {
        if (!own_.contains(name)) outside_.insert(name);
      }
      keep(index, std::move(coupling));
    };
    Scanner scanner;
    scanner.take_coupling = [&](std::int64_t index, Json&& coupling) {
      templates_->for_couplings(std::move(coupling), index,
                                [&](Json&& one) { take(index, std::move(one)); });
    };
    scan(scanner);
    expect_sound();
    std::int64_t all = 0;
    for (const std::int64_t others : gather_values(ranks_, claimed)) all += others;
    if (all < count) {
      fail(fmt::format("the first ports of {} couplings are of subsystems that there are not",
                       count - all));
    }
  }
  void keep(std::int64_t index, Json&& coupling) {
    couplings_.push_back(std::move(coupling));
    out_.places.couplings.push_back(index);
  }
  void take_outside(std::int64_t first, std::int64_t end) {
    std::string twice;
    const auto keep_part = [&](const Entry& entry, const Json& part, std::int64_t number) {
      out_.places.outside.push_back(number);
      parts_.push_back(templates_->part(part, entry.number, entry.index(number)));
    };
    for_entries([&](const Entry& entry, Json&& part) {
      if (entry.first >= first && entry.first + entry.count <= end) return;
      if (const auto base =
              entry.is_array ? templates_->base_of(part, entry.number) : std::nullopt) {
        // Of many whose names follow from one another those that are wanted.
        const auto number_of = [&](const std::string& name) -> std::optional<std::int64_t> {
          const auto words = parts_of_name(name);
          if (!words || words->first != *base || words->second < 0) return std::nullopt;
          const std::int64_t number = entry.first + words->second;
          const bool is_elsewhere = number < first || number >= end;
          return words->second < entry.count && is_elsewhere ? std::optional(number) : std::nullopt;
        };
        std::vector<std::int64_t> wanted;
        for (const std::string& name : outside_) {
          if (const auto number = number_of(name)) wanted.push_back(*number);
        }
        std::ranges::sort(wanted);
        for (const std::int64_t number : wanted) keep_part(entry, part, number);
        for (const std::string& name : own_) {
          if (number_of(name)) twice = name;
        }
        return;
      }
      for (std::int64_t i = entry.first; i < entry.first + entry.count; ++i) {
        if (i >= first && i < end) continue;
        const std::string name = templates_->name_of(part, entry.number, entry.index(i));
        if (own_.contains(name)) twice = name;
        if (outside_.contains(name)) keep_part(entry, part, i);
      }
    });
    std::vector<char> found;
    for (const int others : gather_values(ranks_, twice.empty() ? 0 : 1))
      found.push_back(others != 0);
    if (!twice.empty()) fail(fmt::format("two subsystems are called {}", in_quotes(twice)));
    if (std::ranges::any_of(found, [](char own) { return own != 0; })) {
      fail("two subsystems in different slices have one name");
    }
  }

  std::filesystem::path path_;
  Ranks& ranks_;
  std::optional<SliceTemplates> templates_;
  std::unordered_set<std::string> own_;
  std::set<std::string> outside_;
  Json parts_ = Json::array(), couplings_ = Json::array();
  SliceText out_;
};

/// "/list/7/rest" with another number.
std::string renumbered(const std::string& where, std::string_view list,
                       const std::function<std::int64_t(std::int64_t)>& number) {
  const std::string begin = fmt::format("/{}/", list);
  if (!where.starts_with(begin)) return where;
  std::int64_t index = 0;
  const char* const digits = where.data() + begin.size();
  const auto [end, error] = std::from_chars(digits, where.data() + where.size(), index);
  if (error != std::errc{}) return where;
  return fmt::format(
      "{}{}{}", begin, number(index),
      std::string_view(end, static_cast<std::size_t>(where.data() + where.size() - end)));
}

}  // namespace

SliceText read_slice(const std::filesystem::path& file, Ranks& ranks,
                     const PhaseCallback& listener) {
  return SliceFile(file, ranks).read(listener);
}

Issue placed_in_whole(Issue issue, const SlicePlaces& places) {
  issue.where = renumbered(issue.where, kParts, [&](std::int64_t index) {
    return places.entry_of_part(
        index < places.own_parts
            ? places.first_part + index
            : places.outside.at(static_cast<std::size_t>(index - places.own_parts)));
  });
  issue.where = renumbered(issue.where, kCouplings, [&](std::int64_t index) {
    return places.couplings.at(static_cast<std::size_t>(index));
  });
  return issue;
}

Issues gathered_issues(Ranks& ranks, const Issues& own) {
  std::string text;
  for (const Issue& issue : own) text += issue.where + '\0' + issue.what + '\0';
  const std::vector<std::byte> all = gather_bytes(ranks, std::as_bytes(std::span(text)));
  const char* from = reinterpret_cast<const char*>(all.data());
  const char* const end = from + all.size();
  const auto next = [&] {
    std::string one(from);
    from += one.size() + 1;
    return one;
  };
  Issues issues;
  std::set<std::pair<std::string, std::string>> told;
  while (from < end) {
    std::string where = next(), what = next();
    // Of a place one: an entry may stand for subsystems of many ranks.
    if (told.emplace(where, where.empty() ? what : std::string()).second)
      issues.push_back({std::move(where), std::move(what)});
  }
  return issues;
}

SliceOutputs::SliceOutputs(Json& root, const SlicePlaces& places) {
  const auto outputs = root.find("outputs");
  if (outputs == root.end() || !outputs->is_object()) return;
  const auto observe = outputs->find("observe");
  if (observe == outputs->end() || !observe->is_array()) return;
  std::unordered_set<std::string> own;
  const Json& parts = root.at(std::string(kParts));
  for (int i = 0; i < places.own_parts; ++i) own.insert(text_of(parts[at(i)], "name"));
  Json here = Json::array();
  for (std::size_t i = 0; i < observe->size(); ++i) {
    const Json& entry = (*observe)[i];
    if (!entry.is_string() || is_pattern(entry.get_ref<const std::string&>())) {
      here.push_back(entry);
      continue;
    }
    const auto& label = entry.get_ref<const std::string&>();
    bool is_here = own.contains(label);
    for (auto dot = label.find('.'); dot != std::string::npos; dot = label.find('.', dot + 1)) {
      is_here = is_here || own.contains(label.substr(0, dot));
    }
    labels_.push_back({i, label, is_here});
    if (is_here) here.push_back(entry);
  }
  *observe = std::move(here);
}

void SliceOutputs::check(const SlicePlaces& places, Defects& defects) const {
  std::vector<char> is_here;
  for (const Label& label : labels_) is_here.push_back(label.is_here ? 1 : 0);
  const std::vector<std::size_t> sizes(at(places.ranks->size()), is_here.size());
  std::vector<char> all(sizes.size() * is_here.size());
  places.ranks->gather(std::as_bytes(std::span(is_here)), sizes,
                       std::as_writable_bytes(std::span(all)));
  for (std::size_t i = 0; i < labels_.size(); ++i) {
    bool is_anywhere = false;
    for (std::size_t r = 0; r < sizes.size(); ++r) {
      is_anywhere = is_anywhere || all[r * is_here.size() + i] != 0;
    }
    if (is_anywhere) continue;
    defects.add(fmt::format("/outputs/observe/{}", labels_[i].place),
                fmt::format("{} is of no subsystem", in_quotes(labels_[i].text)));
  }
}

}  // namespace portwave::scenario_file
