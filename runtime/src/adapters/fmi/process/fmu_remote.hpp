#pragma once

#include <memory>

#include "adapters/fmi/file/fmu.hpp"
#include "adapters/fmi/instance/fmu_instance.hpp"

namespace portwave::fmi {

/// An instance in a process of its own, not initialised yet. No code of the FMU runs in this process. A process
/// that crashes, exits or does not return from a call within the limit is a FmuFault; the instance is lost then.
/// Errors: ConfigError: there is no host, it is of another version, or it cannot load the library; FmuFault.
std::unique_ptr<Instance> instantiate_in_a_process(const Fmu& fmu, InstanceOrigin origin,
                                                   double time_limit_s);

}  // namespace portwave::fmi
