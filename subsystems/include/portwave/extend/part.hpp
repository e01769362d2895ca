#pragma once

// The base of your own part: its equations, given to one of these, or a component that steps itself.
//   LinearPortHamiltonian, NonlinearPortHamiltonian, DescriptorPortHamiltonian, SecondOrderForm
//   NewtonBatch, nonlinear resistances at ports, stages and substeps of any of them
// Guide    docs/tutorial/your-own-part.md

#include "portwave/subsystems/core/component.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"
#include "portwave/subsystems/core/step_batch.hpp"
#include "portwave/subsystems/core/subsystem.hpp"
#include "portwave/subsystems/descriptor/descriptor.hpp"
#include "portwave/subsystems/descriptor/descriptor_part.hpp"
#include "portwave/subsystems/descriptor/second_order.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"
#include "portwave/subsystems/nonlinear/newton_batch.hpp"
#include "portwave/subsystems/nonlinear/nonlinear_part.hpp"
#include "portwave/subsystems/nonlinear/nonlinear_resistance.hpp"
#include "portwave/subsystems/stages/staged_part.hpp"
