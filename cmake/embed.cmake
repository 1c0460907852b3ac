# Turns files into string_view constants, so that the binary needs nothing beside itself.
#
# embed_files(TARGET FUNCTION HEADER ROOT dir PATTERNS glob...)
#   defines, for TARGET, the function declared in HEADER (which is a checked-in file):
#   std::span<const embedded_file> FUNCTION(), sorted by path relative to ROOT.
function(embed_files target function header)
  cmake_parse_arguments(EMBED "" "ROOT" "PATTERNS" ${ARGN})
  set(root ${CMAKE_CURRENT_SOURCE_DIR}/${EMBED_ROOT})
  list(TRANSFORM EMBED_PATTERNS PREPEND ${root}/)
  file(GLOB files CONFIGURE_DEPENDS ${EMBED_PATTERNS})
  set(output ${CMAKE_CURRENT_BINARY_DIR}/embedded/${function}.cpp)
  string(REPLACE ";" "|" joined "${files}")
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DROOT=${root} -DFILES=${joined} -DFUNCTION=${function} -DHEADER=${header}
            -DOUTPUT=${output} -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/write_embedded.cmake
    DEPENDS ${files} ${CMAKE_CURRENT_SOURCE_DIR}/cmake/write_embedded.cmake
    VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()
