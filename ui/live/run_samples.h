// Texts that a run wrote, and which of them belong to steps that a resume has run again.
#pragma once

#include "models/store/run_store.h"

#include <cstddef>
#include <deque>
#include <set>

namespace celloom::ui {

/// Indices into samples of a training, newest first, that were written before a resume ran their step again.
std::set<std::size_t> supersededSamples(const std::deque<store::SampleRow>& newestFirst);

} // namespace celloom::ui
