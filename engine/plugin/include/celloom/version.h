// Celloom's version, for libraries that are built against these headers. The same as project(VERSION) in CMakeLists.txt; the build looks.
#pragma once

#define CELLOOM_VERSION_TEXT "0.1.0"
