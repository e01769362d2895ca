#include "line/verb.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include <portwave/subsystems/base/error.hpp>
#include <portwave/subsystems/base/printable.hpp>

namespace portwave::cli {
namespace {

/// Index of a word among `words`; their number if it is none of them.
std::size_t place_of(std::string_view word, const std::vector<std::string>& words) {
  return static_cast<std::size_t>(std::find(words.begin(), words.end(), word) - words.begin());
}

std::string word_defect(std::string_view word, const std::vector<std::string>& words) {
  if (place_of(word, words) < words.size()) return {};
  return fmt::format("{} is not one of {}.{}", in_quotes(word), fmt::join(words, ", "),
                     did_you_mean(std::string(word), words));
}

template <class Range>
std::string defect_of_entries(std::string_view list, Range range, std::string_view of_what) {
  for (const std::string_view entry : split_at_commas(list)) {
    if (entry.empty()) {
      return fmt::format("{} has an empty entry; write {} with a comma between them",
                         in_quotes(list), of_what);
    }
    if (std::string defect = range.defect(entry); !defect.empty()) return defect;
  }
  return {};
}

template <class Read>
auto distinct(const std::vector<std::string>& lists, const Read& read) {
  std::vector<decltype(read(std::string_view()))> values;
  for (const std::string& list : lists) {
    for (const std::string_view entry : split_at_commas(list)) {
      const auto value = read(entry);
      if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
    }
  }
  return values;
}

}  // namespace

std::string IntegerRange::defect(std::string_view text) const {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ptr != end || read.ec == std::errc::invalid_argument) {
    return fmt::format("{} must be an integer from {} to {}", in_quotes(text), least, most);
  }
  const bool inside = read.ec == std::errc{} && value >= least && value <= most;
  return inside ? std::string()
                : fmt::format("{} is not in {} to {}", printable(text), least, most);
}

std::string RealRange::defect(std::string_view text) const {
  double value = 0.0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  const bool is_number = read.ptr == end && read.ec != std::errc::invalid_argument;
  if (!is_number || std::isnan(value)) {
    return fmt::format("{} must be a number from {:g} to {:g}", in_quotes(text), least, most);
  }
  const bool inside = read.ec == std::errc{} && value >= least && value <= most;
  return inside ? std::string()
                : fmt::format("{} is not in {:g} to {:g}", printable(text), least, most);
}

std::int64_t integer(std::string_view text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

double real(std::string_view text) {
  double value = 0.0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::vector<std::string_view> split_at_commas(std::string_view list) {
  std::vector<std::string_view> entries;
  for (;;) {
    const auto comma = list.find(',');
    entries.push_back(list.substr(0, comma));
    if (comma == std::string_view::npos) return entries;
    list.remove_prefix(comma + 1);
  }
}

std::string list_defect(std::string_view list, IntegerRange range) {
  return defect_of_entries(list, range, "integers");
}

std::string list_defect(std::string_view list, RealRange range) {
  return defect_of_entries(list, range, "numbers");
}

std::vector<int> distinct_integers(const std::vector<std::string>& lists) {
  return distinct(lists, [](std::string_view entry) { return static_cast<int>(integer(entry)); });
}

std::vector<double> distinct_reals(const std::vector<std::string>& lists) {
  return distinct(lists, real);
}

CLI::Option* Verb::text(const std::string& name, const std::string& value, const std::string& what,
                        Defect defect_of, std::function<void(const std::string&)> take) {
  return app_
      .add_option_function<std::string>(
          name,
          [&defects = defects_, name, defect_of = std::move(defect_of),
           take = std::move(take)](const std::string& text) {
            if (std::string defect = defect_of(text); !defect.empty()) {
              defects.push_back(fmt::format("{}: {}", name, defect));
            } else {
              take(text);
            }
          },
          what)
      ->type_name(value);
}

CLI::Option* Verb::texts(const std::string& name, const std::string& value, const std::string& what,
                         Defect defect_of,
                         std::function<void(const std::vector<std::string>&)> take) {
  return app_
      .add_option_function<std::vector<std::string>>(
          name,
          [&defects = defects_, name = name.substr(0, name.find(',')),
           defect_of = std::move(defect_of),
           take = std::move(take)](const std::vector<std::string>& texts) {
            bool sound = true;
            for (const std::string& text : texts) {
              std::string defect = defect_of(text);
              if (defect.empty()) continue;
              sound = false;
              defects.push_back(fmt::format("{}: {}", name, defect));
            }
            if (sound) take(texts);
          },
          what)
      ->type_name(value)
      ->allow_extra_args(false);
}

CLI::Option* Verb::integer(const std::string& name, const std::string& what, IntegerRange range,
                           std::function<void(std::int64_t)> take) {
  return text(
      name, "N", what, [range](const std::string& text) { return range.defect(text); },
      [take = std::move(take)](const std::string& text) { take(cli::integer(text)); });
}

CLI::Option* Verb::real(const std::string& name, const std::string& value, const std::string& what,
                        RealRange range, std::function<void(double)> take) {
  return text(
      name, value, what, [range](const std::string& text) { return range.defect(text); },
      [take = std::move(take)](const std::string& text) { take(cli::real(text)); });
}

CLI::Option* Verb::choice(const std::string& name, const std::vector<std::string>& words,
                          const std::string& what, std::function<void(std::size_t)> take) {
  return text(
      name, fmt::format("{}", fmt::join(words, "|")), what,
      [words](const std::string& word) { return word_defect(word, words); },
      [words, take = std::move(take)](const std::string& word) { take(place_of(word, words)); });
}

CLI::Option* Verb::choices(const std::string& name, const std::string& value,
                           const std::vector<std::string>& words, const std::string& what,
                           std::function<void(std::vector<std::size_t>)> take) {
  return texts(
      name, value, fmt::format("{}: {}", what, fmt::join(words, ", ")),
      [words](const std::string& list) {
        for (const std::string_view entry : split_at_commas(list)) {
          if (std::string defect = word_defect(entry, words); !defect.empty()) return defect;
        }
        return std::string();
      },
      [words, take = std::move(take)](const std::vector<std::string>& lists) {
        std::vector<std::size_t> places;
        for (const std::string& list : lists) {
          for (const std::string_view entry : split_at_commas(list)) {
            const std::size_t place = place_of(entry, words);
            if (std::find(places.begin(), places.end(), place) == places.end()) {
              places.push_back(place);
            }
          }
        }
        take(places);
      });
}

CLI::Option* Verb::integers(const std::string& name, const std::string& value,
                            const std::string& what, IntegerRange range,
                            std::function<void(std::vector<int>)> take) {
  return texts(
      name, value, what, [range](const std::string& list) { return list_defect(list, range); },
      [take = std::move(take)](const std::vector<std::string>& lists) {
        take(distinct_integers(lists));
      });
}

CLI::Option* Verb::reals(const std::string& name, const std::string& value, const std::string& what,
                         RealRange range, std::function<void(std::vector<double>)> take) {
  return texts(
      name, value, what, [range](const std::string& list) { return list_defect(list, range); },
      [take = std::move(take)](const std::vector<std::string>& lists) {
        take(distinct_reals(lists));
      });
}

CLI::Option* Verb::path(const std::string& name, const std::string& value, const std::string& what,
                        std::optional<std::filesystem::path>& path) {
  const std::string kind = value == "DIR" ? "needs a folder" : "needs a file";
  return text(
      name, value, what,
      [kind](const std::string& text) { return text.empty() ? kind : std::string(); },
      [&path](const std::string& text) { path = text; });
}

void Verb::check(std::function<std::vector<std::string>()> defects_of) {
  app_.final_callback([defects_of = std::move(defects_of), &defects = defects_] {
    for (std::string& defect : defects_of()) defects.push_back(std::move(defect));
  });
}

}  // namespace portwave::cli
