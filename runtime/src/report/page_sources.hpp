#pragma once

#include <string_view>

namespace portwave::report {

// Files that the build embeds in the program (cmake/embed_report.cmake); empty without uPlot.
extern const std::string_view kPageHtml, kPageCss, kPageJs, kUplotCss, kUplotJs;

}  // namespace portwave::report
