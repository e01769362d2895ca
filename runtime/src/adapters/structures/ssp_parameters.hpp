#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "adapters/files/xml_file.hpp"
#include "adapters/structures/structure.hpp"

namespace portwave::structures {

using Units = std::map<std::string, fmi::Unit, std::less<>>;

/// What a connection or a mapping makes of a value, after its units are converted.
struct Transformation {
  double factor = 1.0, offset = 0.0;
  std::vector<std::pair<double, double>> points = {};  ///< of a mapping of numbers
  bool is_none() const { return factor == 1.0 && offset == 0.0 && points.empty(); }
  double of(double value) const;
};

/// A value of a parameter set (SSV), in a unit of its own.
struct ParameterValue {
  FmuValue value = 0.0;
  std::optional<fmi::Unit> unit = {};
  std::string unit_name = {};
  std::string where = {};
  Transformation then = {};  ///< of what it is in the unit of where it goes
};

struct NamedParameter {
  std::string name;
  ParameterValue value;
};

/// What an element of XML is read with: the file it stands in, and the lists of defects and of notes.
struct ReadingOf {
  const files::XmlFile& file;
  Issues& issues;
  Issues& notes;

  void fail(pugi::xml_node at, std::string what) const {
    issues.push_back({file.place(at), std::move(what)});
  }
  std::string required(pugi::xml_node at, const char* name) const;
  /// `otherwise` where it is absent, or no number, which is noted.
  double number(pugi::xml_node at, const char* name, double otherwise) const;
  bool truth(pugi::xml_node at, const char* name, bool otherwise) const;
};

/// <Units>: each with its base unit. Adds to `units`.
void read_units(pugi::xml_node list, const ReadingOf& reading, Units& units);

/// <ParameterSet>, whose units are its own or those of `outer`.
std::vector<NamedParameter> read_parameter_set(pugi::xml_node set, const ReadingOf& reading,
                                               const Units& outer);
/// <ParameterMapping>: the parameters that it names, under their new names.
std::vector<NamedParameter> map_parameters(pugi::xml_node mapping, const ReadingOf& reading,
                                           const std::vector<NamedParameter>& parameters);

/// The transformation below an element; none where there is none.
Transformation read_transformation(pugi::xml_node at, const ReadingOf& reading);

/// The unit of a <Connector> or <DictionaryEntry>: that of its type. Nothing where it has none.
std::optional<fmi::Unit> read_type_unit(pugi::xml_node at, const ReadingOf& reading,
                                        const Units& units, std::string& name);

}  // namespace portwave::structures
