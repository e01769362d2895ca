#include "report/figure.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <utility>

#include <fmt/format.h>

namespace portwave {
namespace {

/// Widths of the characters from ' ' to '~' in Helvetica, in thousandths of the size (Adobe's font metrics).
constexpr std::array<int, 95> kWidths = {
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333,  278, 278, 556, 556, 556,
    556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667,
    611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667,  611, 722, 667, 944, 667,
    667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278,  556, 556, 222, 222, 500,
    222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500,  500, 334, 260, 334, 584};

/// UTF-8 as Latin-1; what that lacks becomes "?".
std::string latin1(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x80) {
      out += text[i];
      continue;
    }
    const bool is_latin1 = (byte == 0xC2 || byte == 0xC3) && i + 1 < text.size();
    const unsigned next = is_latin1 ? static_cast<unsigned char>(text[i + 1]) & 0x3FU : 0U;
    out += is_latin1 ? static_cast<char>((byte == 0xC2 ? 0x80U : 0xC0U) | next) : '?';
    while (i + 1 < text.size() && (static_cast<unsigned char>(text[i + 1]) & 0xC0U) == 0x80U) ++i;
  }
  return out;
}

std::string escaped_for_xml(std::string_view text) {
  std::string out;
  for (const char c : text) {
    out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  }
  return out;
}

std::string escaped_for_pdf(std::string_view text) {
  std::string out;
  for (const char c : latin1(text)) {
    if (c == '(' || c == ')' || c == '\\') out += '\\';
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 0x80 ? std::string(1, c) : fmt::format("\\{:03o}", byte);
  }
  return out;
}

std::string hex_of(const Figure::Colour& colour) {
  const auto byte = [](double share) { return static_cast<int>(std::lround(255.0 * share)); };
  return fmt::format("#{:02x}{:02x}{:02x}", byte(colour.red), byte(colour.green),
                     byte(colour.blue));
}

std::vector<Figure::Point> outline_of(Figure::Point at, Figure::Mark mark) {
  constexpr double kRadius = 2.4;
  int corners = 24;
  double turn = 0.0, radius = kRadius;
  if (mark == Figure::Mark::square || mark == Figure::Mark::diamond) corners = 4;
  if (mark == Figure::Mark::square) turn = 0.125;
  if (mark == Figure::Mark::triangle) {
    corners = 3;
    turn = -0.25;
  }
  if (corners < 5) radius *= 1.3;
  std::vector<Figure::Point> points;
  for (int i = 0; i < corners; ++i) {
    const double angle = 2.0 * std::numbers::pi * (static_cast<double>(i) / corners + turn);
    points.push_back({at.x + radius * std::cos(angle), at.y + radius * std::sin(angle)});
  }
  return points;
}

}  // namespace

void Figure::line(std::vector<Point> points, Pen pen) {
  if (points.size() > 1) lines_.push_back({std::move(points), std::move(pen)});
}

void Figure::mark(Point at, Mark mark, Colour colour, bool filled) {
  lines_.push_back({outline_of(at, mark), {.colour = colour, .width = 0.9}, true, filled});
}

void Figure::text(Point at, std::string text, Font font) {
  texts_.push_back({at, std::move(text), font});
}

double Figure::width_of(std::string_view text, double size) {
  double sum = 0.0;
  for (const char c : latin1(text)) {
    const auto place = static_cast<std::size_t>(static_cast<unsigned char>(c)) - 32;
    sum += place < kWidths.size() ? kWidths[place] : 556;
  }
  return 1e-3 * size * sum;
}

std::string Figure::svg() const {
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}pt\" height=\"{1}pt\" viewBox=\"0 0 "
      "{0} {1}\" "
      "font-family=\"Helvetica, Arial, sans-serif\">\n<rect width=\"100%\" height=\"100%\" "
      "fill=\"white\"/>\n",
      width_, height_);
  for (const Line& line : lines_) {
    out += line.closed ? "<polygon points=\"" : "<polyline points=\"";
    for (const Point& point : line.points) out += fmt::format("{:.2f},{:.2f} ", point.x, point.y);
    const std::string colour = hex_of(line.pen.colour);
    out += fmt::format("\" fill=\"{}\" stroke=\"{}\" stroke-width=\"{}\" stroke-linejoin=\"round\"",
                       !line.closed  ? "none"
                       : line.filled ? colour
                                     : "white",
                       colour, line.pen.width);
    if (!line.pen.dashes.empty()) {
      out += fmt::format(" stroke-dasharray=\"{}\"", fmt::join(line.pen.dashes, " "));
    }
    out += "/>\n";
  }
  static constexpr std::array<const char*, 3> kAnchors = {"start", "middle", "end"};
  for (const Text& text : texts_) {
    const Font& font = text.font;
    out += fmt::format(
        "<text x=\"{0:.2f}\" y=\"{1:.2f}\" font-size=\"{2}\" "
        "text-anchor=\"{3}\"{4}{5}>{6}</text>\n",
        text.at.x, text.at.y, font.size, kAnchors[static_cast<std::size_t>(font.anchor)],
        font.bold ? " font-weight=\"bold\"" : "",
        font.upwards ? fmt::format(" transform=\"rotate(-90 {:.2f} {:.2f})\"", text.at.x, text.at.y)
                     : "",
        escaped_for_xml(text.text));
  }
  return out + "</svg>\n";
}

std::string Figure::page_of_pdf() const {
  std::string out = "1 j\n";
  const auto colour_of = [](const Colour& c) {
    return fmt::format("{:.3f} {:.3f} {:.3f}", c.red, c.green, c.blue);
  };
  for (const Line& line : lines_) {
    out += fmt::format("{} RG {} w [{}] 0 d\n", colour_of(line.pen.colour), line.pen.width,
                       fmt::join(line.pen.dashes, " "));
    if (line.closed) out += colour_of(line.filled ? line.pen.colour : Colour{1, 1, 1}) + " rg\n";
    for (std::size_t i = 0; i < line.points.size(); ++i) {
      out += fmt::format("{:.2f} {:.2f} {}\n", line.points[i].x, height_ - line.points[i].y,
                         i == 0 ? 'm' : 'l');
    }
    out += line.closed ? "b\n" : "S\n";
  }
  out += "0 g\n";
  for (const Text& text : texts_) {
    const Font& font = text.font;
    const double share = 0.5 * static_cast<double>(font.anchor);
    const double back = share * width_of(text.text, font.size);
    const double x = font.upwards ? text.at.x : text.at.x - back;
    const double y = height_ - text.at.y - (font.upwards ? back : 0.0);
    out +=
        fmt::format("BT /F{} {} Tf {} {:.2f} {:.2f} Tm ({}) Tj ET\n", font.bold ? 2 : 1, font.size,
                    font.upwards ? "0 1 -1 0" : "1 0 0 1", x, y, escaped_for_pdf(text.text));
  }
  return out;
}

std::string Figure::pdf() const {
  const std::string page = page_of_pdf();
  const auto font = [](const char* name) {
    return fmt::format("<< /Type /Font /Subtype /Type1 /BaseFont /{} /Encoding /WinAnsiEncoding >>",
                       name);
  };
  const std::string objects[] = {
      "<< /Type /Catalog /Pages 2 0 R >>",
      "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
      fmt::format("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {} {}] /Contents 4 0 R "
                  "/Resources << /Font << /F1 5 0 R /F2 6 0 R >> >> >>",
                  width_, height_),
      fmt::format("<< /Length {} >>\nstream\n{}endstream", page.size(), page),
      font("Helvetica"),
      font("Helvetica-Bold")};
  std::string out = "%PDF-1.4\n", table;
  int number = 0;
  for (const std::string& object : objects) {
    table += fmt::format("{:010} 00000 n \n", out.size());
    out += fmt::format("{} 0 obj\n{}\nendobj\n", ++number, object);
  }
  const std::size_t at = out.size();
  out += fmt::format("xref\n0 {}\n0000000000 65535 f \n{}", number + 1, table);
  return out +
         fmt::format("trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{}\n%%EOF\n", number + 1, at);
}

}  // namespace portwave
