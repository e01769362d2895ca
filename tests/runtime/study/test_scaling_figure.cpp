// The figure of a scaling study, as SVG and as PDF.

#include <cstddef>
#include <string>

#include <gtest/gtest.h>

#include <portwave/runtime/study/scaling_figure.hpp>

#include "report/figure.hpp"

namespace portwave::test_scaling_figure {
namespace {

int count_of(const std::string& text, const std::string& what) {
  int count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) {
    ++count;
  }
  return count;
}

/// Two sizes, 1 to 4 threads, the last of them predicted.
ScalingStudy made_up() {
  ScalingStudy study;
  for (const int size : {1000, 2000}) {
    for (const int threads : {1, 2, 4}) {
      ScalingRow row;
      row.size = size;
      row.threads = threads;
      row.executor = ExecutorKind::async;
      row.predicted = threads == 4;
      row.step_s = 1e-7 * size / threads;
      row.speed_up = threads;
      if (!row.predicted) row.fastest_s = 0.9 * row.step_s;
      if (!row.predicted) row.slowest_s = 1.1 * row.step_s;
      if (size == 1000 * threads) row.weak_efficiency = 0.9;
      study.rows.push_back(row);
    }
    for (int threads = 1; threads <= 32; ++threads) {
      ScalingRow row;
      row.size = size;
      row.threads = threads;
      row.executor = ExecutorKind::async;
      row.predicted = true;
      row.step_s = 1e-7 * size / threads;
      row.speed_up = threads;
      study.curve.push_back(row);
    }
  }
  return study;
}

TEST(ScalingFigures, HaveEveryPointAndCurve) {
  const std::string svg = scaling_figure(made_up(), FigureFormat::svg);
  EXPECT_TRUE(svg.starts_with("<svg ")) << svg;
  EXPECT_TRUE(svg.ends_with("</svg>\n")) << svg;
  // Three panels with six points, two of them predicted; weak scaling; the legend.
  const int filled = 3 * 4 + 2 + 2, open = 3 * 2;
  EXPECT_EQ(count_of(svg, "<polygon"), filled + open);
  EXPECT_EQ(count_of(svg, "fill=\"white\" stroke="), open);
  EXPECT_EQ(count_of(svg, "stroke-dasharray"), 3 * 2);  // predicted curves
  for (const char* said :
       {"(a) speed-up", "(b) efficiency", "(c) time per step", "(d) weak efficiency",
        "1000 parts, async", "2000 parts, async", "threads"}) {
    EXPECT_GE(count_of(svg, said), 1) << said;
  }
}

TEST(ScalingFigures, ArePdfWithTheSameLines) {
  const ScalingStudy study = made_up();
  const std::string pdf = scaling_figure(study, FigureFormat::pdf);
  const std::string svg = scaling_figure(study, FigureFormat::svg);
  EXPECT_TRUE(pdf.starts_with("%PDF-1.4\n"));
  EXPECT_TRUE(pdf.ends_with("%%EOF\n"));
  EXPECT_EQ(count_of(pdf, "\nb\n"), count_of(svg, "<polygon"));
  EXPECT_EQ(count_of(pdf, "\nS\n"), count_of(svg, "<polyline"));
  EXPECT_EQ(count_of(pdf, "Tj ET\n"), count_of(svg, "<text"));
  // The table of objects says where they are, and the end where the table is.
  const std::size_t start = pdf.rfind("startxref\n");
  ASSERT_NE(start, std::string::npos);
  const std::size_t table = std::stoul(pdf.substr(start + 10));
  EXPECT_EQ(pdf.substr(table, 7), "xref\n0 ");
  const std::size_t first = pdf.find('\n', table + 5) + 1;
  for (int object = 1; object <= 6; ++object) {
    const std::size_t at =
        std::stoul(pdf.substr(first + 20 * static_cast<std::size_t>(object), 10));
    EXPECT_EQ(pdf.substr(at, 8), std::to_string(object) + " 0 obj\n");
  }
  const std::size_t stream = pdf.find("stream\n") + 7, length = pdf.find("/Length ") + 8;
  EXPECT_EQ(pdf.substr(stream + std::stoul(pdf.substr(length)), 9), "endstream");
}

TEST(ScalingFigures, OfWeakScalingShowTheRate) {
  ScalingStudy study = made_up();
  study.weak = true;
  const std::string svg = scaling_figure(study, FigureFormat::svg);
  EXPECT_EQ(count_of(svg, "(a) scaled speed-up"), 1);
  EXPECT_EQ(count_of(svg, "(d) rate"), 1);
}

TEST(Figures, EscapeTextsAndKnowTheirWidths) {
  Figure figure(100.0, 50.0);
  figure.text({1, 1}, "a < b & (c) \xC2\xB5s \xE2\x89\xA4", {});
  EXPECT_EQ(count_of(figure.svg(), "a &lt; b &amp; (c)"), 1);
  EXPECT_EQ(count_of(figure.pdf(), "a < b & \\(c\\) \\265s ?"), 1);
  EXPECT_DOUBLE_EQ(Figure::width_of("10", 10.0), 11.12);
  EXPECT_GT(Figure::width_of("WWW", 8.0), Figure::width_of("iii", 8.0));
}

}  // namespace
}  // namespace portwave::test_scaling_figure
