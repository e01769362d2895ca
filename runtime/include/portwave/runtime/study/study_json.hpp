#pragma once

#include <string>
#include <vector>

#include "portwave/runtime/study/delay_study.hpp"
#include "portwave/runtime/study/iteration_study.hpp"
#include "portwave/runtime/study/order_study.hpp"
#include "portwave/runtime/study/rate_study.hpp"
#include "portwave/runtime/study/scaling.hpp"
#include "portwave/runtime/study/study.hpp"
#include "portwave/runtime/study/tolerance_study.hpp"
#include "portwave/runtime/study/tune.hpp"
#include "portwave/subsystems/base/export.hpp"

/// Studies as texts, for programs: the output of `portwave study --json`, which Python reads. The columns are
/// described in docs/reference/studies.md.
namespace PORTWAVE_EXPORT portwave {

/// JSON. Unknown or non-finite values are null.
std::string study_json(const std::vector<BudgetRow>& rows);
std::string study_json(const std::vector<DelayRow>& rows);
std::string study_json(const std::vector<RateRow>& rows);
std::string study_json(const OrderStudy& study, const Scenario& scenario);
std::string study_json(const ToleranceStudy& study, const Scenario& scenario);
std::string study_json(const IterationStudy& study, const Scenario& scenario);
std::string study_json(const ScalingStudy& study, const ScalingOptions& options);
std::string study_json(const TuningReport& report, const Scenario& scenario);

/// The rows for plotting, with a header and all digits. Unknown or non-finite values are empty.
std::string study_csv(const std::vector<BudgetRow>& rows);
std::string study_csv(const OrderStudy& study);
std::string study_csv(const ToleranceStudy& study);
std::string study_csv(const IterationStudy& study);
std::string study_csv(const ScalingStudy& study);

}  // namespace portwave
