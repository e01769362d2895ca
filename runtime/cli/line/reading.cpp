#include "line/reading.hpp"

#include <algorithm>
#include <ostream>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <portwave/subsystems/base/error.hpp>
#include <portwave/subsystems/base/printable.hpp>

namespace portwave::cli {
namespace {

/// The innermost verb that the line reached.
CLI::App& innermost(CLI::App& app) {
  const auto verbs = app.get_subcommands();
  return verbs.empty() ? app : innermost(*verbs.front());
}

std::string full_name(const CLI::App& verb) {
  const CLI::App* const parent = verb.get_parent();
  return parent == nullptr ? verb.get_name() : full_name(*parent) + " " + verb.get_name();
}

std::vector<std::string> names_of_verbs(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(verb->get_name());
  }
  return names;
}

std::vector<std::string> names_of_options(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

/// The message about a word that is not a verb, with the nearest one; empty if there is none. CLI11 would
/// only say that a subcommand is missing. Leaves `at` at the innermost verb.
std::string unknown_verb(const CLI::App*& at, const std::vector<std::string>& arguments) {
  for (const std::string& word : arguments) {
    const std::vector<std::string> verbs = names_of_verbs(*at);
    if (verbs.empty()) break;
    if (word.rfind('-', 0) == 0) continue;
    if (std::find(verbs.begin(), verbs.end(), word) == verbs.end()) {
      return fmt::format("{} is not a command.{} Commands: {}.",
                         in_quotes(full_name(*at) + " " + word), did_you_mean(word, verbs),
                         fmt::join(verbs, ", "));
    }
    at = at->get_subcommand(word);
  }
  return {};
}

/// The message about something that CLI11 misses, for people.
std::string missing(const CLI::App& verb, const CLI::ParseError& error) {
  const std::string raw = error.what();
  const std::string text = printable(raw, raw.size());
  const std::vector<std::string> verbs = names_of_verbs(verb);
  const bool is_required = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  if (is_required && !verbs.empty()) {
    return fmt::format("\"{}\" needs one of: {}.", full_name(verb), fmt::join(verbs, ", "));
  }
  if (is_required && text.starts_with("SCENARIO ")) return text + ": a scenario file (JSON)";
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    const std::string name = text.substr(0, text.find(':'));
    const CLI::Option* const option = verb.get_option_no_throw(name);
    const bool is_given_again = option != nullptr && option->results().size() > 1;
    return name + (is_given_again ? ": is given more than once" : ": needs a value");
  }
  return text;
}

/// The message about an argument that CLI11 could not place, with the nearest option; empty if there is none.
std::string leftovers(const CLI::App& verb) {
  std::vector<std::string> rest = verb.remaining();
  if (rest.empty()) return {};
  const auto is_option = [](const std::string& word) { return word.rfind('-', 0) == 0; };
  const auto option = std::find_if(rest.begin(), rest.end(), is_option);
  if (option == rest.end()) return fmt::format("unexpected argument {}.", in_quotes(rest.front()));
  const std::string name = option->substr(0, option->find('='));
  return fmt::format("unknown option {}.{}", in_quotes(name),
                     did_you_mean(name, names_of_options(verb)));
}

void allow_extras(CLI::App& app) {
  app.allow_extras();
  for (CLI::App* verb : app.get_subcommands([](CLI::App*) { return true; })) allow_extras(*verb);
}

std::string name_of_program(const CLI::App& verb) {
  const CLI::App* const parent = verb.get_parent();
  return parent == nullptr ? verb.get_name() : name_of_program(*parent);
}

/// Writes all defects, one on each line.
LineRead refuse(const CLI::App& verb, const std::vector<std::string>& whys, std::ostream& err) {
  for (const std::string& why : whys) err << fmt::format("{}: {}\n", name_of_program(verb), why);
  err << fmt::format("See \"{} --help\".\n", full_name(verb));
  return {nullptr, kBadInput};
}

}  // namespace

LineRead read_line(CLI::App& app, std::vector<std::string>& defects,
                   const std::vector<std::string>& arguments, std::ostream& out,
                   std::ostream& err) {
  allow_extras(app);
  if (arguments.empty()) {
    err << app.help();
    return {nullptr, kBadInput};
  }
  const CLI::App* known = &app;
  if (const std::string why = unknown_verb(known, arguments); !why.empty()) {
    return refuse(*known, {why}, err);
  }
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::Success& help_or_version) {
    app.exit(help_or_version, out, err);
    return {nullptr, kOk};
  } catch (const CLI::ParseError& error) {
    CLI::App& verb = innermost(app);
    const std::string rest = leftovers(verb);
    defects.insert(defects.begin(), rest.empty() ? missing(verb, error) : rest);
    return refuse(verb, defects, err);
  }
  CLI::App& verb = innermost(app);
  for (const CLI::App* at : {&app, &verb}) {
    if (std::string rest = leftovers(*at); !rest.empty()) {
      defects.insert(defects.begin(), std::move(rest));
      return refuse(*at, defects, err);
    }
  }
  if (!defects.empty()) return refuse(verb, defects, err);
  return {&verb, kOk};
}

}  // namespace portwave::cli
