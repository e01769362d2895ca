#pragma once

// FMUs for the tests: the fixture's libraries, packed with a description.

#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>
#include <zip.h>

#include "support/files/temporary_folder.hpp"
#include "support/files/text_file.hpp"

namespace portwave::testing {

struct ZipMember {
  std::string name;
  std::string content;
  unsigned unix_mode = 0;  ///< 0: not said
};

inline void write_zip(const std::filesystem::path& file, const std::vector<ZipMember>& members) {
  int code = 0;
  zip_t* const zip = zip_open(file.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code);
  if (zip == nullptr) throw std::runtime_error("cannot make " + file.string());
  for (const ZipMember& own : members) {
    zip_source_t* const source = zip_source_buffer(zip, own.content.data(), own.content.size(), 0);
    const zip_int64_t at = zip_file_add(zip, own.name.c_str(), source, ZIP_FL_ENC_UTF_8);
    if (at < 0) throw std::runtime_error(zip_strerror(zip));
    if (own.unix_mode != 0) {
      zip_file_set_external_attributes(zip, static_cast<zip_uint64_t>(at), 0, ZIP_OPSYS_UNIX,
                                       own.unix_mode << 16U);
    }
  }
  if (zip_close(zip) != 0) throw std::runtime_error(zip_strerror(zip));
}

struct FmuRecipe {
  int version = 2;
  std::string library = "mass";  ///< of the fixture, without its version
  bool saves_state = true, writes_state = false;
  bool is_only_once = false;
  std::string units = "si";         ///< "si", "kilo" (kN and km/h), "none"
  std::string co_simulation = "";   ///< further attributes
  std::string more_variables = "";  ///< further elements
  std::string terminals = "";       ///< terminalsAndIcons.xml
  std::string osp = "";             ///< OspModelDescription.xml
  std::string harm = "";  ///< of the library "rogue": where and how (fixtures/fmu/rogue.h)
};

inline std::string unit_definitions(const FmuRecipe& recipe) {
  if (recipe.units == "none") return "";
  const bool is_kilo = recipe.units == "kilo";
  const auto unit = [](const std::string& name, const std::string& base) {
    return "<Unit name=\"" + name + "\"><BaseUnit " + base + "/></Unit>";
  };
  return "<UnitDefinitions>" +
         unit("force",
              std::string("kg=\"1\" m=\"1\" s=\"-2\"") + (is_kilo ? " factor=\"1000\"" : "")) +
         unit("speed", std::string("m=\"1\" s=\"-1\"") + (is_kilo ? " factor=\"0.001\"" : "")) +
         unit("way", std::string("m=\"1\"") + (is_kilo ? " factor=\"0.001\"" : "")) +
         unit("kg", "kg=\"1\"") + "</UnitDefinitions>";
}

/// One variable of either version.
inline std::string fmu_variable(int version, const std::string& name, int reference,
                                const std::string& causality, const std::string& unit,
                                const std::string& start = "", const std::string& type = "") {
  const std::string variability = causality != "parameter" ? ""
                                  : type == "String"       ? " variability=\"fixed\""
                                                           : " variability=\"tunable\"";
  const std::string detail = (unit.empty() ? "" : " unit=\"" + unit + "\"") +
                             (start.empty() ? "" : " start=\"" + start + "\"");
  const std::string common = " name=\"" + name + "\" valueReference=\"" +
                             std::to_string(reference) + "\" causality=\"" + causality + "\"" +
                             variability;
  if (version == 3) return "<" + (type.empty() ? "Float64" : type) + common + detail + "/>\n";
  return "<ScalarVariable" + common + "><" + (type.empty() ? "Real" : type) + detail +
         "/></ScalarVariable>\n";
}

inline std::string model_description(const FmuRecipe& recipe) {
  const int v = recipe.version;
  const bool takes_force = recipe.library.find("spring") != 0;
  const bool has_units = recipe.units != "none";
  const auto unit = [&](const char* name) { return has_units ? std::string(name) : std::string(); };
  std::string out =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<fmiModelDescription fmiVersion=\"";
  out += v == 2 ? "2.0\" modelName=\"fixture\" guid=\"{fixture}\">"
                : "3.0\" modelName=\"fixture\" instantiationToken=\"{fixture}\">";
  out +=
      "\n<CoSimulation modelIdentifier=\"fixture\" "
      "canHandleVariableCommunicationStepSize=\"true\" ";
  out += v == 2 ? "canGetAndSetFMUstate=\"" : "canGetAndSetFMUState=\"";
  out += recipe.saves_state ? "true\"" : "false\"";
  if (recipe.writes_state) {
    out += v == 2 ? " canSerializeFMUstate=\"true\"" : " canSerializeFMUState=\"true\"";
  }
  if (recipe.is_only_once) out += " canBeInstantiatedOnlyOncePerProcess=\"true\"";
  out += " " + recipe.co_simulation + "/>\n" + unit_definitions(recipe) + "\n<ModelVariables>\n";
  out += fmu_variable(v, "time", 0, "independent", "");
  out += fmu_variable(v, "F", takes_force ? 3 : 10, takes_force ? "input" : "output", unit("force"),
                      takes_force ? "0" : "");
  out += fmu_variable(v, "v", takes_force ? 10 : 2, takes_force ? "output" : "input", unit("speed"),
                      takes_force ? "" : "0");
  out += fmu_variable(v, "x", 100, "output", unit("way"));
  out += fmu_variable(v, "mass", 4, "parameter", unit("kg"), "2");
  out += fmu_variable(v, "k", 5, "parameter", "", "100");
  out += fmu_variable(v, "d", 6, "parameter", "", "0.5");
  out += fmu_variable(v, "start.x", 7, "parameter", "", "0");
  out += fmu_variable(v, "start.v", 8, "parameter", "", "0");
  out += fmu_variable(v, "steps", 11, "output", "", "", v == 2 ? "Integer" : "Int32");
  out += fmu_variable(v, "calls", 101, "output", "");
  out += fmu_variable(v, "flag", 12, "input", "", "false", "Boolean");
  out +=
      fmu_variable(v, "label", v == 2 ? 0 : 200, "parameter", "", v == 2 ? "none" : "", "String");
  out += recipe.more_variables;
  return out + "</ModelVariables>\n<ModelStructure/>\n</fmiModelDescription>\n";
}

inline std::string fixture_library(const FmuRecipe& recipe) {
  return read_text(std::filesystem::path(PORTWAVE_FMU_LIBRARIES) /
                   (recipe.library + "_" + std::to_string(recipe.version) + ".so"));
}

inline std::string binary_name(int version) {
#if defined(__aarch64__)
  static_cast<void>(version);
  return "binaries/aarch64-linux/fixture.so";
#else
  return std::string("binaries/") + (version == 2 ? "linux64" : "x86_64-linux") + "/fixture.so";
#endif
}

inline std::vector<ZipMember> fmu_members(const FmuRecipe& recipe) {
  std::vector<ZipMember> out = {{"modelDescription.xml", model_description(recipe)},
                                {binary_name(recipe.version), fixture_library(recipe)},
                                {"resources/table.txt", "1 2 3\n"}};
  if (!recipe.terminals.empty()) {
    out.push_back({"terminalsAndIcons/terminalsAndIcons.xml", recipe.terminals});
  }
  if (!recipe.harm.empty()) out.push_back({"resources/rogue.txt", recipe.harm});
  if (!recipe.osp.empty()) out.push_back({"OspModelDescription.xml", recipe.osp});
  return out;
}

/// A folder with FMUs.
class FmuFolder {
 public:
  std::filesystem::path add(const std::string& name, const FmuRecipe& recipe) {
    return add(name, fmu_members(recipe));
  }
  std::filesystem::path add(const std::string& name, const std::vector<ZipMember>& members) {
    const std::filesystem::path file = folder_ / name;
    write_zip(file, members);
    return file;
  }
  const std::filesystem::path& path() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

}  // namespace portwave::testing
