#pragma once

#include "line/commands.hpp"
#include "line/verb.hpp"

/// The options of each verb.
namespace portwave::cli {

void add_run(Verb& top, RunArguments& run);
void add_report(Verb& top, ReportArguments& report);
void add_tune(Verb& top, TuneArguments& tune);

/// The options of the verbs below `study`.
struct StudyArguments {
  StudyBudgetArguments budget;
  StudyRateArguments rate;
  StudyDelayArguments delay;
  StudyOrderArguments order;
  StudyToleranceArguments tolerance;
  StudyIterationArguments iteration;
  StudyScalingArguments scaling;
};
void add_study(Verb& top, StudyArguments& studies);

}  // namespace portwave::cli
