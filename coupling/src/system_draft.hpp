#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "portwave/coupling/system.hpp"

namespace portwave {

/// What SystemBuilder::check_into finds out on the way: names resolved to numbers, and every
/// defect.
struct SystemBuilder::Draft {
  /// A port as a coupling names it; -1 where the name led nowhere.
  struct PortReference {
    int part = -1;
    int port = -1;

    bool known() const { return port >= 0; }
  };
  /// The first coupling that uses a port.
  struct Use {
    int joint = -1;
    int position = -1;
    bool excused = false;  ///< a misspelt coupling probably means this port: not reported as open
  };

  explicit Draft(const SystemBuilder& builder) : parts(builder.parts_), joints(builder.joints_) {}

  const std::vector<PendingPart>& parts;
  const std::vector<PendingJoint>& joints;

  Issues issues;
  std::unordered_map<std::string_view, int> part_by_name;  ///< the first of that name
  std::vector<bool> shares_name;                           ///< by part
  std::vector<std::vector<Use>> uses;                      ///< by part and port
  std::vector<std::vector<PortReference>> references;      ///< by joint and position

  void check_parts();
  void check_joints();
  void check_open_ports();

  /// The system, once there is no issue. Takes the parts out of `from`.
  System assemble(std::vector<PendingPart>& from) const;

 private:
  void add(std::string where, std::string what);

  void check_name(int part);
  void check_signature(int part);
  void check_initial_state(int part);
  void check_inputs(int part);

  PortReference resolve(const std::string& path, const std::string& where);
  void report_unknown_part(std::string_view name, std::string_view port, const std::string& where);
  void report_unknown_port(int part, std::string_view port, const std::string& where);
  void excuse(int part, std::string_view port);
  void note_use(int joint, int position);
  void check_arity(int joint);
  void check_ports_match(int joint);
  void check_values(int joint);
  void check_gain(const joint::SkewGain& gain, const std::string& where, int size);
  void check_kernel(const joint::Kernel& kernel, const std::string& where, int size);

  static void place(System& system, Part part);
  static void join(System& system, const Joint& joint, const std::vector<PortReference>& ports);
  static PortReference add_termination(System& system, double resistance, PortReference port);
  static void number_islands(System& system);

  const Port& port_of(PortReference reference) const;
  /// Σ dimensions of the ports of a joint; -1 when one of them is not known.
  int scalar_size(int joint) const;
};

}  // namespace portwave
