// The composites and templates that ship with the product. Their sources are resources/library/*.json and resources/templates/*.json, compiled in:
// nothing has to be found at run time. A source holds its own graph only; the standard composites that it names are filled in here.
#pragma once

#include "models/library/entry.h"

namespace celloom::library {

/// Sorted by category, then name.
const std::vector<Entry>& standard();
/// Null where there is none of that name.
const Entry* findStandard(const std::string& name);

/// A whole graph to begin from.
struct Template {
    std::string name; // "image-classifier"
    std::string title, titleZh, summaryZh;
    std::map<std::string, std::string> helpZh; // of hyper-parameters, by name
    graph::Document document;
    [[nodiscard]] const std::string& summary() const { return document.main.note; }
};

const std::vector<Template>& templates(); // sorted by name
const Template* findTemplate(const std::string& name);

} // namespace celloom::library
