# Installation: the programs, and the data that they find in ../share/stepcast. `cpack -G DEB` makes a package for Debian 12.
include(GNUInstallDirs)
file(GLOB_RECURSE data CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
  models/*.yaml models/*.csv platforms/*.yaml scenarios/*.yaml scenarios/*.csv schemas/*.json
  strategies/stacks/*.yaml)
foreach(file ${data})
  get_filename_component(folder ${file} DIRECTORY)
  install(FILES ${file} DESTINATION ${CMAKE_INSTALL_DATADIR}/stepcast/${folder} COMPONENT program)
endforeach()

# Completion of bash and zsh, and man pages where help2man is installed: what the program prints of itself.
install(CODE "execute_process(
  COMMAND bash \"${PROJECT_SOURCE_DIR}/tools/install-help.sh\" \"$<TARGET_FILE:stepcast>\"
    \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}\" COMMAND_ERROR_IS_FATAL ANY)" COMPONENT program)

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
