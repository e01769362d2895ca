#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace portwave {

/// A drawing of lines, marks and texts, written as SVG or as PDF of one page. Lengths are in points, 1/72 inch;
/// y grows downwards. Texts are Latin-1 in Helvetica, which readers of PDF have.
class Figure {
 public:
  struct Point {
    double x = 0.0, y = 0.0;
  };
  struct Colour {
    double red = 0.0, green = 0.0, blue = 0.0;  ///< 0 to 1
  };
  struct Pen {
    Colour colour;
    double width = 0.75;
    std::vector<double> dashes = {};  ///< on, off, …; empty: solid
  };
  enum class Mark : std::uint8_t { circle, square, triangle, diamond };
  enum class Anchor : std::uint8_t { start, middle, end };
  struct Font {
    double size = 8.0;
    Anchor anchor = Anchor::start;
    bool upwards = false;  ///< turned by a quarter
    bool bold = false;
  };

  Figure(double width, double height) : width_(width), height_(height) {}

  void line(std::vector<Point> points, Pen pen);
  /// `filled`: else it is white inside.
  void mark(Point at, Mark mark, Colour colour, bool filled);
  /// `at`: on the base line. `text`: UTF-8.
  void text(Point at, std::string text, Font font);
  /// Width of a text.
  static double width_of(std::string_view text, double size);

  std::string svg() const;
  std::string pdf() const;

 private:
  struct Line {
    std::vector<Point> points;
    Pen pen;
    bool closed = false, filled = false;
  };
  struct Text {
    Point at;
    std::string text;
    Font font;
  };

  std::string page_of_pdf() const;

  double width_, height_;
  std::vector<Line> lines_;  ///< in the order of drawing; texts are above them
  std::vector<Text> texts_;
};

}  // namespace portwave
