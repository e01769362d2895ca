#pragma once

#include <algorithm>

#include "network/linear_solver.hpp"
#include "network/splitting/network_flow.hpp"
#include "network/stage_solver.hpp"

namespace portwave {

/// A sparse matrix for one block and for lanes.
struct GroupMatrix {
  SparseMatrix M;
  LaneMatrix rows, columns;

  GroupMatrix() = default;
  explicit GroupMatrix(const SparseMatrix& matrix) : M(matrix) { M.makeCompressed(); }
  void prepare_lanes() {
    rows = LaneMatrix(M, LaneMatrix::By::rows);
    columns = LaneMatrix(M, LaneMatrix::By::columns);
  }
};

/// What is done with the states of a lane group: of one block, arrays [state], or of kLaneGroup
/// side by side, [state][lane]. Code that takes one of the two as a template parameter does the
/// same with either.
struct Alone {
  static constexpr int kWidth = 1;

  static void add_product(const GroupMatrix& M, double factor, const double* x, double* y) {
    portwave::add_product(M.M, factor, x, y);
  }
  static void bilinear(const GroupMatrix& M, const double* x, const double* y, double* sum) {
    *sum = portwave::bilinear(M.M, x, y);
  }
  static void sum_squares(int n, const double* x, double* sum) {
    double total = 0.0;
    for (int i = 0; i < n; ++i) total += x[i] * x[i];
    *sum = total;
  }
  static void scale(int n, double factor, const double* x, double* y) {
    for (int i = 0; i < n; ++i) y[i] = factor * x[i];
  }
  static void add(int n, const double* x, double* y) {
    for (int i = 0; i < n; ++i) y[i] += x[i];
  }
  static void subtract(int n, const double* x, double* y) {
    for (int i = 0; i < n; ++i) y[i] -= x[i];
  }
  static void solve(const LinearSolver& A, const double* b, double* x, double* scratch) {
    A.solve(b, x, scratch);
  }
  static void step(const StageSolver& solver, double* x, double* X, double* scratch) {
    solver.step(x, X, scratch);
  }
  static void increment(const BlockFlow& flow, const double* x, double* d, double* scratch) {
    flow.increment(x, nullptr, d, scratch);
  }
  static void dissipated(const BlockFlow& flow, const double* x, const double* d, double* z,
                         double* sum) {
    *sum = flow.dissipated(x, d, z);
  }
  static void advance(int n, double factor, const double* d, double* x) {
    for (int i = 0; i < n; ++i) x[i] += factor * d[i];
  }
  static void gather(int n, const double* const* from, double* to) { std::copy_n(*from, n, to); }
  static void scatter(int n, int, const double* from, double* const* to) {
    std::copy_n(from, n, *to);
  }
};

struct SideBySide {
  static constexpr int kWidth = kLaneGroup;

  static void add_product(const GroupMatrix& M, double factor, const double* x, double* y) {
    lane_kernels().add_product(M.rows.lines(), factor, x, y);
  }
  static void bilinear(const GroupMatrix& M, const double* x, const double* y, double* sum) {
    lane_kernels().bilinear(M.columns.lines(), x, y, sum);
  }
  static void sum_squares(int n, const double* x, double* sum) {
    lane_kernels().sum_squares(n, x, sum);
  }
  static void scale(int n, double factor, const double* x, double* y) {
    lane_kernels().scale(n, factor, x, y);
  }
  static void add(int n, const double* x, double* y) { lane_kernels().add(n, x, y); }
  static void subtract(int n, const double* x, double* y) { lane_kernels().subtract(n, x, y); }
  static void solve(const LinearSolver& A, const double* b, double* x, double* scratch) {
    A.solve_lanes(b, x, scratch);
  }
  static void step(const StageSolver& solver, double* x, double* X, double* scratch) {
    solver.step_lanes(x, X, scratch);
  }
  static void increment(const BlockFlow& flow, const double* x, double* d, double* scratch) {
    flow.increment_lanes(x, d, scratch);
  }
  static void dissipated(const BlockFlow& flow, const double* x, const double* d, double* z,
                         double* sum) {
    flow.dissipated_lanes(x, d, z, sum);
  }
  static void advance(int n, double factor, const double* d, double* x) {
    lane_kernels().advance(n, factor, d, x);
  }
  static void gather(int n, const double* const* from, double* to) {
    lane_kernels().gather(n, from, to);
  }
  static void scatter(int n, int lanes, const double* from, double* const* to) {
    lane_kernels().scatter(n, lanes, from, to);
  }
};

}  // namespace portwave
