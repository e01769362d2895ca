#include "line/scaling_files.hpp"

#include <ostream>
#include <utility>

#include <fmt/format.h>

#include <portwave/runtime/output/file_recorder.hpp>
#include <portwave/runtime/study/scaling_figure.hpp>
#include <portwave/subsystems/base/printable.hpp>

namespace portwave::cli {

void ScalingFiles::add_to(Verb& verb) {
  verb.path("--csv", "FILE", "Write the rows as CSV", csv);
  verb.text(
      "--plot", "FILE", "Draw the figure of a paper: FILE.pdf or FILE.svg",
      [](const std::string& text) {
        return text.ends_with(".pdf") || text.ends_with(".svg")
                   ? std::string()
                   : in_quotes(text) + " does not end with .pdf or .svg";
      },
      [this](const std::string& text) { plot = text; });
}

Issues ScalingFiles::defects() const {
  Issues issues;
  for (const auto& [option, file] : {std::pair("--csv", csv), std::pair("--plot", plot)}) {
    if (!file) continue;
    const std::filesystem::path folder = file->has_parent_path() ? file->parent_path() : ".";
    if (std::filesystem::is_directory(*file)) {
      issues.push_back({option, fmt::format("{} is a folder", file->string())});
    } else if (!std::filesystem::is_directory(folder)) {
      issues.push_back({option, fmt::format("there is no folder {}", folder.string())});
    }
  }
  return issues;
}

void ScalingFiles::write(const ScalingStudy& figure, const std::string& rows,
                         std::ostream& err) const {
  const auto put = [&err](const std::filesystem::path& file, const std::string& text) {
    write_file_atomically(file, text);
    err << fmt::format("written to {}\n", file.string());
  };
  if (csv) put(*csv, rows);
  if (!plot) return;
  const bool is_pdf = plot->extension() == ".pdf";
  put(*plot, scaling_figure(figure, is_pdf ? FigureFormat::pdf : FigureFormat::svg));
}

}  // namespace portwave::cli
