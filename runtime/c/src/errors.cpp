// Exceptions become statuses, and what is known of an error is kept for the thread.

#include <algorithm>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "handles.hpp"

namespace portwave::c_interface {

LastError& last_error() {
  static thread_local LastError error;
  return error;
}

portwave_status fail(portwave_status status, const char* text) noexcept {
  try {
    last_error().text = text;
  } catch (...) {
    last_error().text.clear();
  }
  return status;
}

portwave_status translate() noexcept {
  try {
    throw;
  } catch (const ScenarioError& error) {
    last_error().issues = error.issues();
    return fail(PORTWAVE_CONFIG_ERROR, error.report().c_str());
  } catch (const ConfigError& error) {
    last_error().issues = error.issues();
    return fail(PORTWAVE_CONFIG_ERROR, error.what());
  } catch (const StepError& error) {
    last_error().part = error.part();
    last_error().solve = error.solve();
    return fail(PORTWAVE_STEP_ERROR, error.what());
  } catch (const std::bad_alloc&) {
    return fail(PORTWAVE_NO_MEMORY, "out of memory");
  } catch (const std::invalid_argument& error) {
    return fail(PORTWAVE_INVALID_ARGUMENT, error.what());
  } catch (const std::out_of_range& error) {
    return fail(PORTWAVE_INVALID_ARGUMENT, error.what());
  } catch (const std::logic_error& error) {
    return fail(PORTWAVE_NOT_POSSIBLE, error.what());
  } catch (const std::exception& error) {
    return fail(PORTWAVE_FAILED, error.what());
  } catch (...) {
    return fail(PORTWAVE_FAILED, "an exception that is no std::exception");
  }
}

portwave_status null_pointer() { return fail(PORTWAVE_INVALID_ARGUMENT, "a pointer is null"); }

}  // namespace portwave::c_interface

using portwave::c_interface::last_error;

namespace {

size_t copy(const std::vector<double>& from, double* values, size_t capacity) {
  if (values != nullptr) std::copy_n(from.begin(), std::min(capacity, from.size()), values);
  return from.size();
}

}  // namespace

extern "C" {

const char* portwave_last_error(void) { return last_error().text.c_str(); }
size_t portwave_failed_state(double* values, size_t capacity) {
  return copy(last_error().solve.state, values, capacity);
}
size_t portwave_failed_inputs(double* values, size_t capacity) {
  return copy(last_error().solve.inputs, values, capacity);
}
size_t portwave_failed_waves(double* values, size_t capacity) {
  return copy(last_error().solve.waves, values, capacity);
}
double portwave_failed_residual(void) { return last_error().solve.residual; }
const char* portwave_failed_part(void) { return last_error().part.c_str(); }
size_t portwave_issue_count(void) { return last_error().issues.size(); }
const char* portwave_issue_where(size_t issue) {
  const portwave::Issues& issues = last_error().issues;
  return issue < issues.size() ? issues[issue].where.c_str() : "";
}
const char* portwave_issue_text(size_t issue) {
  const portwave::Issues& issues = last_error().issues;
  return issue < issues.size() ? issues[issue].what.c_str() : "";
}

}  // extern "C"
