#include "adapters/structures/power_bonds.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "adapters/structures/response_sign.hpp"
#include "adapters/structures/structure_files.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave::structures {
namespace {

/// How surely two variables make a port.
enum class Evidence { against, none, units, declared, listed };

/// A pair of an element, as far as it is known.
struct Pair {
  Evidence evidence = Evidence::none;
  bool answers_effort = false;
  bool counts_outward = false;
  bool says_direction = false;
  std::string name = {};
};

struct Candidate {
  Bond bond;
  Evidence evidence = Evidence::none;
  bool names_agree = false;  ///< all variables end alike, as components of vectors do
  std::string where = {};
};

std::string suffix_of(std::string_view name) {
  while (!name.empty() && (name.back() == ']' || name.back() == ')')) name.remove_suffix(1);
  const std::size_t at = name.find_last_of("._[(");
  if (at == std::string_view::npos) return {};
  const std::string_view own = name.substr(at + 1);
  const bool is_index = !own.empty() && std::ranges::all_of(own, [](unsigned char c) {
    return c >= '0' && c <= '9';
  });
  return is_index || own == "x" || own == "y" || own == "z" ? std::string(own) : std::string();
}

class Finder {
 public:
  Finder(Structure& structure, const BondOptions& options, Issues& issues)
      : all_(structure), options_(options), issues_(issues) {}

  std::vector<Bond> find() {
    for (std::size_t hub = 0; hub < all_.elements.size(); ++hub) {
      for (const auto& [input, value] : all_.elements[hub].inputs)
        add_candidates(hub, input, value);
    }
    std::ranges::stable_sort(candidates_, [](const Candidate& a, const Candidate& b) {
      if (a.evidence != b.evidence) return a.evidence > b.evidence;
      return a.names_agree > b.names_agree;
    });
    std::vector<Bond> out;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      Candidate& own = candidates_[i];
      if (is_used(own.bond)) continue;
      if (own.evidence == Evidence::units && is_ambiguous(i)) continue;
      if (!settle_directions(own)) continue;
      for (const auto& variable : variables_of(own.bond)) used_.insert(variable);
      out.push_back(std::move(own.bond));
    }
    return out;
  }

 private:
  using Key = Variable;

  void note(const std::string& where, std::string what) {
    all_.notes.push_back({where, std::move(what)});
  }

  static std::vector<Key> variables_of(const Bond& bond) {
    std::vector<Key> out = {{bond.hub.element, bond.hub.input},
                            {bond.hub.element, bond.hub.output}};
    for (const BondEnd& own : bond.members) {
      out.push_back({own.element, own.input});
      out.push_back({own.element, own.output});
    }
    return out;
  }
  bool is_used(const Bond& bond) const {
    return std::ranges::any_of(variables_of(bond),
                               [&](const Key& own) { return used_.contains(own); });
  }

  /// Another candidate that is as good uses one of its variables.
  bool is_ambiguous(std::size_t i) {
    const Candidate& own = candidates_[i];
    const auto variables = variables_of(own.bond);
    for (std::size_t k = 0; k < candidates_.size(); ++k) {
      const Candidate& other = candidates_[k];
      if (k == i || other.evidence != own.evidence || other.names_agree != own.names_agree ||
          is_used(other.bond)) {
        continue;
      }
      const auto its = variables_of(other.bond);
      const bool same = std::set<Key>(variables.begin(), variables.end()) ==
                        std::set<Key>(its.begin(), its.end());
      if (same) continue;  // seen from the other end
      const bool shares = std::ranges::any_of(its, [&](const Key& key) {
        return std::ranges::find(variables, key) != variables.end();
      });
      if (!shares) continue;
      if (told_.insert(own.where).second) {
        note(own.where,
             fmt::format("{} may form power bonds in several ways: its connections are exchanged "
                         "as samples, unless \"bonds\" name the pairs",
                         in_quotes(all_.elements[own.bond.hub.element].name)));
      }
      return true;
    }
    return false;
  }

  /// Those in which `input` of an element takes what others answer to one of its outputs.
  void add_candidates(std::size_t hub, const std::string& input, const Expression& value) {
    if (value.offset != 0.0 || value.terms.empty()) return;
    std::set<std::size_t> members;
    for (const Expression::Term& term : value.terms) {
      const bool is_other = term.source.kind == Source::Kind::output && term.source.index != hub &&
                            term.factor != 0.0 && members.insert(term.source.index).second;
      if (!is_other) return;
    }
    for (const std::string& output : outputs_to(hub, value.terms.front().source.index)) {
      std::vector<BondEnd> ends;
      add_members(hub, input, output, value, 0, ends);
    }
  }

  /// Outputs of an element that are inputs of another one, as they are but for a factor.
  std::vector<std::string> outputs_to(std::size_t from, std::size_t to) const {
    std::vector<std::string> out;
    for (const auto& [name, value] : all_.elements[to].inputs) {
      const std::string* const own = alone(value, from);
      if (own != nullptr && std::ranges::find(out, *own) == out.end()) out.push_back(*own);
    }
    return out;
  }
  static const std::string* alone(const Expression& value, std::size_t from) {
    const bool is_alone = value.terms.size() == 1 && value.offset == 0.0 &&
                          value.terms[0].source.kind == Source::Kind::output &&
                          value.terms[0].source.index == from && value.terms[0].factor != 0.0;
    return is_alone ? &value.terms[0].source.variable : nullptr;
  }

  void add_members(std::size_t hub, const std::string& input, const std::string& output,
                   const Expression& value, std::size_t next, std::vector<BondEnd>& ends) {
    constexpr std::size_t kMostCandidates = 10'000;
    if (candidates_.size() >= kMostCandidates) return;
    if (next == value.terms.size()) return add(hub, input, output, value, ends);
    const Expression::Term& term = value.terms[next];
    for (const auto& [name, its] : all_.elements[term.source.index].inputs) {
      const std::string* const own = alone(its, hub);
      if (own == nullptr || *own != output) continue;
      ends.push_back({term.source.index, name, term.source.variable, {}});
      add_members(hub, input, output, value, next + 1, ends);
      ends.pop_back();
    }
  }

  void add(std::size_t hub, const std::string& input, const std::string& output,
           const Expression& value, const std::vector<BondEnd>& ends) {
    Candidate out{.bond = {.hub = {hub, input, output, {}}, .members = ends}, .where = value.where};
    Pair at_hub = pair_of(hub, input, output);
    std::vector<Pair> pairs;
    Evidence best = at_hub.evidence, worst = at_hub.evidence;
    for (const BondEnd& end : ends) {
      pairs.push_back(pair_of(end.element, end.input, end.output));
      best = std::max(best, pairs.back().evidence);
      worst = std::min(worst, pairs.back().evidence);
    }
    const bool is_listed = is_named(out.bond, value);
    if (is_pair_in(all_.not_bonds, out.bond)) return;
    if (is_listed && worst == Evidence::against) {
      issues_.push_back({value.where, fmt::format("{} is named a power bond, and effort times flow "
                                                  "there is no power",
                                                  described(out.bond))});
      return;
    }
    if (worst == Evidence::against) return;
    out.evidence = is_listed ? Evidence::listed : best;
    if (out.evidence == Evidence::none) return;
    // Who knows which of them is the effort tells the others.
    if (!settle_kinds(at_hub, pairs)) {
      if (!is_listed) return;
      issues_.push_back(
          {value.where,
           fmt::format("{} is named a power bond, and both answer {}: one "
                       "has to answer the effort, the other one the flow",
                       described(out.bond), at_hub.answers_effort ? "efforts" : "flows")});
      return;
    }
    take(at_hub, out.bond.hub);
    const std::string suffix = suffix_of(input);
    out.names_agree = !suffix.empty() && suffix == suffix_of(output);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      take(pairs[i], out.bond.members[i]);
      out.names_agree = out.names_agree && suffix == suffix_of(ends[i].input) &&
                        suffix == suffix_of(ends[i].output);
    }
    if (settle_ratios(out.bond, value)) candidates_.push_back(std::move(out));
  }

  static void take(const Pair& pair, BondEnd& end) {
    end.answers_effort = pair.answers_effort;
    end.counts_outward = pair.counts_outward;
    end.says_direction = pair.says_direction;
    end.name = pair.name;
  }

  static bool settle_kinds(Pair& hub, std::vector<Pair>& members) {
    const auto is_sure = [](const Pair& own) { return own.evidence >= Evidence::units; };
    bool hub_answers_effort = hub.answers_effort;
    if (!is_sure(hub)) {
      const auto sure = std::ranges::find_if(members, is_sure);
      if (sure != members.end()) hub_answers_effort = !sure->answers_effort;
    }
    hub.answers_effort = hub_answers_effort;
    for (Pair& own : members) {
      if (is_sure(own) && own.answers_effort == hub_answers_effort) return false;
      own.answers_effort = !hub_answers_effort;
    }
    return true;
  }

  /// The factors of both ways, in SI units, must be those of one ratio: no power is lost between.
  bool settle_ratios(Bond& bond, const Expression& to_hub) {
    constexpr double kSame = 1e-9;
    for (std::size_t i = 0; i < bond.members.size(); ++i) {
      const BondEnd& member = bond.members[i];
      const double there = all_.elements[member.element].inputs.at(member.input).terms[0].factor *
                           factor_of(member.element, member.input) /
                           factor_of(bond.hub.element, bond.hub.output);
      const double back = to_hub.terms[i].factor * factor_of(bond.hub.element, bond.hub.input) /
                          factor_of(member.element, member.output);
      if (std::abs(std::abs(there) - std::abs(back)) > kSame * std::abs(there)) {
        if (told_.insert(to_hub.where).second) {
          note(to_hub.where,
               fmt::format("{} is scaled by {:.6g} one way and by {:.6g} the other one: it carries "
                           "no power, and is exchanged as samples",
                           described(bond), there, back));
        }
        return false;
      }
      bond.ratios.push_back(there);  // its sign, and the directions, follow
      back_signs_[{bond.hub.element, bond.hub.input, member.element, member.output}] =
          back < 0.0 ? -1.0 : 1.0;
    }
    return true;
  }

  double factor_of(std::size_t element, const std::string& name) const {
    const fmi::Fmu& fmu = *all_.elements[element].fmu;
    const auto unit = unit_of(fmu, *all_.elements[element].find(name));
    return unit ? unit->factor : 1.0;
  }

  std::string described(const Bond& bond) const {
    const auto shown = [&](const BondEnd& end) {
      return in_quotes(all_.elements[end.element].name + "." + end.output);
    };
    std::string out = fmt::format("what {} and {}", shown(bond.hub), shown(bond.members.front()));
    if (bond.members.size() > 1) out += " and others";
    return out + " send one another";
  }

  bool is_named(const Bond& bond, const Expression& to_hub) const {
    if (bond.members.size() != 1) return false;
    const BondEnd& member = bond.members.front();
    const Expression& there = all_.elements[member.element].inputs.at(member.input);
    if (!to_hub.bond.empty() && to_hub.bond == there.bond) return true;
    return is_pair_in(all_.bonds, bond);
  }
  /// Whether the hub and one of the others answer one another, as the user has listed.
  static bool is_pair_in(const std::vector<std::pair<Variable, Variable>>& pairs,
                         const Bond& bond) {
    const Key a{bond.hub.element, bond.hub.output};
    return std::ranges::any_of(bond.members, [&](const BondEnd& member) {
      const Key b{member.element, member.output};
      return std::ranges::any_of(pairs, [&](const auto& own) {
        return (own.first == a && own.second == b) || (own.first == b && own.second == a);
      });
    });
  }

  /// Whether an input and an output of an element are effort and flow of one port.
  Pair pair_of(std::size_t index, const std::string& input, const std::string& output) const {
    const Element& element = all_.elements[index];
    const fmi::ModelDescription& model = element.fmu->description();
    Pair out;
    const fmi::Unit *in_unit = model.unit_of(*element.find(input)),
                    *out_unit = model.unit_of(*element.find(output));
    const bool has_units = in_unit != nullptr && out_unit != nullptr;
    if (has_units && !fmi::make_power(*in_unit, *out_unit)) return {.evidence = Evidence::against};
    if (has_units && (in_unit->offset != 0.0 || out_unit->offset != 0.0)) {
      return {.evidence = Evidence::against};
    }
    const bool answers = has_units && fmi::domain_of(*out_unit, *in_unit) != Domain::generic;
    const bool takes = has_units && fmi::domain_of(*in_unit, *out_unit) != Domain::generic;
    for (const fmi::DeclaredPort& port : element.ports) {
      const bool takes_effort = port.effort == input && port.flow == output;
      const bool gives_effort = port.effort == output && port.flow == input;
      if (!takes_effort && !gives_effort) continue;
      // Terminals call what adds up to zero a flow, which in mechanics is the force.
      const bool is_swapped = takes_effort ? (answers && !takes) : (takes && !answers);
      return {Evidence::declared, gives_effort != is_swapped, port.counts_outward,
              port.says_direction, port.name};
    }
    if (answers || takes) {
      out.evidence = Evidence::units;
      out.answers_effort = answers;
    }
    return out;
  }

  /// +1: inwards, −1: outwards, 0: it answers nothing; none: it cannot be told.
  std::optional<int> direction_of(const BondEnd& end) {
    if (end.says_direction) return end.counts_outward ? -1 : 1;
    const Element& element = all_.elements[end.element];
    const auto [known, is_new] =
        measured_.emplace(std::pair(Key{end.element, end.input}, end.output), 0);
    if (is_new) {
      try {
        const bool in_a_process = options_.in_a_process || !proxied_file(element.source).empty();
        known->second = response_sign(element, end.input, end.output, all_.start_s.value_or(0.0),
                                      options_.step_s, in_a_process, issues_);
      } catch (const std::exception& error) {
        issues_.push_back({element.where, fmt::format("{} cannot be started: {}",
                                                      in_quotes(element.name), error.what())});
      }
    }
    return known->second;
  }

  bool cannot_tell(const std::string& where, const BondEnd& end) {
    const std::string variable = all_.elements[end.element].name + "." + end.output;
    note(where,
         fmt::format("which way {} counts power cannot be measured, since its first answers to "
                     "long steps and to short ones differ in sign: it is exchanged as samples, "
                     "unless a terminal, or \"ports\" in a note, with \"power\", say it",
                     in_quotes(variable)));
    return false;
  }

  /// Power out of one is power into the other: with q_i = a q, p = b p_i and signs s of the ends,
  /// s s_i = − sign(a b).
  bool settle_directions(Candidate& own) {
    Bond& bond = own.bond;
    std::vector<int> products;
    for (std::size_t i = 0; i < bond.members.size(); ++i) {
      const BondEnd& member = bond.members[i];
      const double back =
          back_signs_.at({bond.hub.element, bond.hub.input, member.element, member.output});
      products.push_back(bond.ratios[i] * back > 0.0 ? -1 : 1);
    }
    bool is_told = bond.hub.says_direction;
    std::vector<BondEnd> ends = {bond.hub};
    ends.insert(ends.end(), bond.members.begin(), bond.members.end());
    std::vector<int> directions;
    for (const BondEnd& end : ends) {
      const auto known = direction_of(end);
      if (!known) return cannot_tell(own.where, end);
      directions.push_back(*known);
    }
    int hub = directions.front();
    for (std::size_t i = 0; i < bond.members.size(); ++i) {
      const BondEnd& member = bond.members[i];
      const int its = directions[i + 1] * products[i];
      if (its == 0) continue;
      const bool says = member.says_direction;
      if (hub == 0 || (says && !is_told)) {
        hub = its;
        is_told = is_told || says;
      } else if (hub != its && (says || !is_told)) {
        note(own.where,
             fmt::format("{}: both ends take power from the connection, which would make it from "
                         "nothing; it is exchanged as samples. Is a sign missing?",
                         described(bond)));
        return false;
      }
    }
    if (hub == 0) {  // sources that nothing moves
      hub = 1;
      note(own.where,
           fmt::format("{}: no end answers the other one, so that nothing tells which way "
                       "they count power; they are taken to count it inwards",
                       described(bond)));
    } else if (own.evidence == Evidence::units) {
      const bool is_measured =
          std::ranges::any_of(ends, [](const BondEnd& end) { return !end.says_direction; });
      note(own.where, fmt::format("{} is coupled by waves: known from units{}", described(bond),
                                  is_measured ? ", the direction of power measured" : ""));
    }
    bond.hub.counts_outward = hub < 0;
    for (std::size_t i = 0; i < bond.members.size(); ++i) {
      bond.members[i].counts_outward = hub * products[i] < 0;
      bond.ratios[i] *= hub;  // of what the hub answers, counted into it
    }
    return true;
  }

  Structure& all_;
  const BondOptions& options_;
  Issues& issues_;
  std::vector<Candidate> candidates_;
  std::set<Key> used_;
  std::set<std::string> told_;
  std::map<std::pair<Key, std::string>, std::optional<int>> measured_;
  std::map<std::tuple<std::size_t, std::string, std::size_t, std::string>, double> back_signs_;
};

}  // namespace

std::vector<Bond> find_bonds(Structure& structure, const BondOptions& options, Issues& issues) {
  return Finder(structure, options, issues).find();
}

}  // namespace portwave::structures
