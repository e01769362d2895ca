# Writes a C++ source with the texts that the page of reports is made of.
#   cmake -DPAGE=<runtime/report> -DUPLOT=<its folder of uPlot, or nothing> -DOUT=<file> -P embed_report.cmake
set(names kPageHtml kPageCss kPageJs kUplotCss kUplotJs)
set(kPageHtml "${PAGE}/page.html")
set(kPageCss "${PAGE}/page.css")
set(kPageJs "${PAGE}/page.js")
set(kUplotCss "${UPLOT}/dist/uPlot.min.css")
set(kUplotJs "${UPLOT}/dist/uPlot.iife.min.js")

set(code "#include \"report/page_sources.hpp\"\n\nnamespace portwave::report {\n\n")
foreach(name IN LISTS names)
  set(literals "\"\"")
  if(EXISTS "${${name}}")
    file(READ "${${name}}" hex HEX)
    # As numbers, so that nothing in the text means anything to the compiler.
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\\\x\\1" escaped "${hex}")
    string(LENGTH "${escaped}" length)
    set(literals "")
    set(at 0)
    while(at LESS length)
      string(SUBSTRING "${escaped}" ${at} 16384 line)
      string(APPEND literals "\n    \"${line}\"")
      math(EXPR at "${at} + 16384")
    endwhile()
    if(literals STREQUAL "")
      set(literals "\"\"")
    endif()
  endif()
  string(APPEND code
    "static constexpr char ${name}Text[] = ${literals};\n"
    "const std::string_view ${name}(${name}Text, sizeof ${name}Text - 1);\n\n")
endforeach()
string(APPEND code "}  // namespace portwave::report\n")
file(WRITE "${OUT}" "${code}")
