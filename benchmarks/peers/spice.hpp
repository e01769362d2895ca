#pragma once

// ngspice, where it is installed, on the chain of converters.

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>

#include "converter.hpp"

namespace portwave::bench {

struct SpiceSettings {
  std::string method = "trap";  ///< or gear
  double relative = 1e-3;       ///< reltol
  double largest_step_s = 50e-9;

  std::string text() const {
    return fmt::format("{}, reltol={:.0e}, steps up to {:.3g} ns", method, relative,
                       1e9 * largest_step_s);
  }
};

struct SpiceResult {
  double analysis_s = 0.0;   ///< its own "Total analysis time", by the clock
  double processor_s = 0.0;  ///< of the whole process
  long iterations = 0, points = 0;
  std::vector<double> state;  ///< currents of the coils, then the voltages of the outputs
};

inline bool has_spice() { return std::system("ngspice --version > /dev/null 2>&1") == 0; }

inline std::string spice_deck(const ConverterParameters& p, const SpiceSettings& settings,
                              const std::string& raw_file) {
  std::string deck = "* converters\n", saved = ".save";
  deck += fmt::format(".model D D(Is={} N={})\n", p.saturation_A, p.emission);
  deck += fmt::format(".options method={} reltol={} gmin={}\n", settings.method, settings.relative,
                      p.leakage_S);
  for (std::size_t i = 0; i < p.cells; ++i) {
    deck += fmt::format("V{0} s{0} 0 PULSE({1} {2} {3:.12g} {4:.12g} {4:.12g} {5:.12g} {6:.12g})\n",
                        i, p.low_V, p.high_V, p.delay_s(i), p.edge_s, p.high_s, p.period_s);
    deck += fmt::format("Da{0} s{0} x{0} D\nDb{0} 0 x{0} D\n", i);
    deck += fmt::format("L{0} x{0} o{0} {1:.12g} IC=0\nC{0} o{0} 0 {2:.12g} IC=0\n", i,
                        p.inductance_H, p.capacitance_F);
    deck += fmt::format("R{0} o{0} 0 {1:.12g}\n", i, p.load_ohm(i));
    if (i + 1 < p.cells) deck += fmt::format("Rl{0} o{0} o{1} {2}\n", i, i + 1, p.link_ohm);
    saved += fmt::format(" l{0}#branch o{0}", i);
    if (i % 10 == 9) saved += "\n+";
  }
  while (!saved.empty() && (saved.back() == '+' || saved.back() == '\n')) saved.pop_back();
  deck += saved + "\n";
  deck += fmt::format(".tran {0:.12g} {1:.12g} {2:.12g} {0:.12g} uic\n", settings.largest_step_s,
                      p.end_s(), p.end_s() - 1.5 * settings.largest_step_s);
  deck += ".control\nset filetype=ascii\nrun\nrusage everything\n";
  return deck + fmt::format("write {}\n.endc\n.end\n", raw_file);
}

/// The last point of an ASCII raw file, in the order of its variables.
inline std::vector<double> last_point(const std::string& raw_file, std::size_t cells) {
  std::ifstream in(raw_file);
  std::vector<std::size_t> place;  // in the state, by variable; beyond it: the time
  std::string line;
  while (std::getline(in, line) && line.rfind("Variables:", 0) != 0) {
  }
  while (std::getline(in, line) && line.rfind("Values:", 0) != 0) {
    std::istringstream words(line);
    std::string number, name;
    words >> number >> name;
    for (const char* const remove : {"v(", "i(", ")", "#branch"}) {
      const auto at = name.find(remove);
      if (at != std::string::npos) name.erase(at, std::string(remove).size());
    }
    const bool is_time = name == "time";
    const std::size_t cell = is_time ? 2 * cells : std::stoul(name.substr(1));
    place.push_back(is_time || name[0] == 'l' ? cell : cells + cell);
  }
  std::vector<double> state(2 * cells + 1, 0.0);
  std::string number;
  while (in >> number) {  // of the point
    for (const std::size_t at : place) {
      if (!(in >> state[at])) throw std::runtime_error("ngspice: an incomplete point");
    }
  }
  if (place.size() != state.size()) throw std::runtime_error("ngspice: no results");
  state.pop_back();
  return state;
}

/// Errors: std::runtime_error where ngspice gives up.
inline SpiceResult run_spice(const ConverterParameters& p, const SpiceSettings& settings) {
  namespace fs = std::filesystem;
  const std::string stem =
      (fs::temp_directory_path() / fmt::format("portwave_converter_{}", getpid())).string();
  const std::string deck = stem + ".cir", raw = stem + ".raw";
  fs::remove(raw);
  std::ofstream(deck) << spice_deck(p, settings, raw);
  const auto children_s = [] {
    rusage usage{};
    getrusage(RUSAGE_CHILDREN, &usage);
    const auto seconds = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
  };
  SpiceResult result;
  const double before_s = children_s();
  std::FILE* pipe = popen(("ngspice -b '" + deck + "' 2>&1").c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot run ngspice");
  std::array<char, 512> line{};
  while (std::fgets(line.data(), static_cast<int>(line.size()), pipe) != nullptr) {
    const std::string text(line.data());
    const auto number = [&text](const char* key, auto& into) {
      if (text.rfind(key, 0) == 0) std::istringstream(text.substr(text.find('=') + 1)) >> into;
    };
    number("Total analysis time", result.analysis_s);
    number("Transient iterations =", result.iterations);
    number("Accepted timepoints", result.points);
  }
  pclose(pipe);
  result.processor_s = children_s() - before_s;
  result.state = last_point(raw, p.cells);
  fs::remove(deck);
  fs::remove(raw);
  return result;
}

}  // namespace portwave::bench
