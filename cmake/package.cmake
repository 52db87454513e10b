# Installation: the programs, and the data that they find in ../share/stepcast. `cpack -G DEB` makes a package for Debian 12.
include(GNUInstallDirs)
file(GLOB_RECURSE data CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
  models/*.yaml models/*.csv platforms/*.yaml scenarios/*.yaml scenarios/*.csv schemas/*.json
  strategies/stacks/*.yaml validate/data/nccl_tests.yaml)
install(PROGRAMS tools/netcluster DESTINATION ${CMAKE_INSTALL_DATADIR}/stepcast/tools COMPONENT program)  # validate --cluster
foreach(file ${data})
  get_filename_component(folder ${file} DIRECTORY)
  install(FILES ${file} DESTINATION ${CMAKE_INSTALL_DATADIR}/stepcast/${folder} COMPONENT program)
endforeach()

# Completion of bash and zsh, and man pages where help2man is installed: what the program prints of itself.
install(CODE "execute_process(
  COMMAND bash \"${PROJECT_SOURCE_DIR}/tools/install-help.sh\" \"$<TARGET_FILE:stepcast>\"
    \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}\" COMMAND_ERROR_IS_FATAL ANY)" COMPONENT program)

# Debian wants the licence as `copyright`.
set(documents ${CMAKE_INSTALL_DATADIR}/doc/stepcast)
install(FILES LICENSE DESTINATION ${documents} RENAME copyright COMPONENT program)
install(FILES README.md CHANGELOG.md DESTINATION ${documents} COMPONENT program)
install(DIRECTORY docs DESTINATION ${documents} COMPONENT program FILES_MATCHING PATTERN *.md PATTERN *.png)

# The Python module finds the program two folders above its own (python/stepcast.py).
install(FILES python/stepcast.py DESTINATION lib/python3/dist-packages COMPONENT program)

# The libraries for other programs (docs/how-to/use-as-a-library.md): find_package(stepcast) gives stepcast::forecast and the
# libraries below it, pkg-config gives stepcast. Each after those that need it, as linkers want them.
set(libraries forecast sim report scenarios campaigns data strategies arithmetic platforms models core)
set(headers ${libraries})
list(REMOVE_ITEM headers arithmetic)  # strategies/arithmetic
foreach(library ${libraries})
  set_target_properties(${library} PROPERTIES OUTPUT_NAME stepcast_${library})
  string(APPEND STEPCAST_LINK_FLAGS " -lstepcast_${library}")
endforeach()
install(TARGETS ${libraries} EXPORT stepcast ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/stepcast)
install(DIRECTORY ${headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/stepcast COMPONENT development
  FILES_MATCHING PATTERN *.hpp)
install(EXPORT stepcast NAMESPACE stepcast:: FILE stepcast-targets.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/stepcast COMPONENT development)
include(CMakePackageConfigHelpers)
configure_package_config_file(cmake/stepcast-config.cmake.in stepcast-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/stepcast PATH_VARS CMAKE_INSTALL_DATADIR)
write_basic_package_version_file(stepcast-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/stepcast-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/stepcast-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/stepcast COMPONENT development)
file(RELATIVE_PATH up_to_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(cmake/stepcast.pc.in stepcast.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/stepcast.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME stepcast)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL program)  # without stepcast-gpu, whose libraries are not Debian's
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "The stepcast developers <stepcast@localhost>")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "gnuplot-nox, fonts-dejavu-core, openmpi-bin")  # plots; real runs
include(CPack)
