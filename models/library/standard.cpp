// Sources are part of the program: whatever is wrong with one is a programmer's error, and the tests read them all.
#include "models/library/standard.h"

#include "models/graph/json.h"
#include "models/graph/json_text.h"
#include "models/library/resources.h"

#include <algorithm>

namespace celloom::library {
namespace {

using graph::Document;
using nlohmann::json;

json parsed(const Resource& resource) {
    auto value = graph::parseJson(std::string(resource.text), std::string(resource.name));
    CELLOOM_CHECK(value.has_value());
    return std::move(*value);
}

/// The graphs of a source as a document, read by the reader of all documents.
Document documentOf(const json& source, const Resource& resource) {
    json whole{{"format", "celloom-cells"}, {"schema", graph::kSchemaVersion}, {"main", source.at("main")}};
    if (source.contains("composites")) whole["composites"] = source.at("composites");
    auto document = graph::fromJson(whole.dump(), std::string(resource.name));
    CELLOOM_CHECK(document.has_value());
    return std::move(*document);
}

Entry readEntry(const Resource& resource) {
    const json source = parsed(resource);
    Entry out;
    out.library = kStandard;
    out.name = std::string(resource.name);
    out.version = source.at("version").get<std::int64_t>();
    out.category = source.at("category").get<std::string>();
    out.summaryZh = source.at("summary_zh").get<std::string>();
    out.helpZh = source.at("help_zh").get<std::map<std::string, std::string>>();
    out.digests = source.at("digests").get<std::vector<std::string>>();
    out.document = documentOf(source, resource);
    out.document.main.name = out.name;
    out.document.main.origin = out.origin();
    return out;
}

/// Adds the standard composites that the document names, and those that these name.
void fillIn(Document& document, const std::map<std::string, const graph::Graph*>& known) {
    std::vector<const graph::Graph*> open{&document.main};
    for (const auto& [name, graph] : document.composites) open.push_back(&graph);
    while (!open.empty()) {
        const graph::Graph& next = *open.back();
        open.pop_back();
        for (const graph::Cell& cell : next.cells) {
            const auto found = known.find(cell.type);
            if (found == known.end() || document.composites.contains(cell.type)) continue;
            open.push_back(&(document.composites[cell.type] = *found->second)); // nodes of a map stay where they are
        }
    }
}

std::map<std::string, const graph::Graph*> graphsOf(const std::vector<Entry>& entries) {
    std::map<std::string, const graph::Graph*> out;
    for (const Entry& entry : entries) out[entry.name] = &entry.document.main;
    return out;
}

std::vector<Entry> readStandard() {
    std::vector<Entry> out;
    for (const Resource& resource : compositeResources()) out.push_back(readEntry(resource));
    std::sort(out.begin(), out.end(), [](const Entry& a, const Entry& b) { return std::tie(a.category, a.name) < std::tie(b.category, b.name); });
    for (Entry& entry : out) fillIn(entry.document, graphsOf(out));
    return out;
}

std::vector<Template> readTemplates() {
    std::vector<Template> out;
    for (const Resource& resource : templateResources()) {
        const json source = parsed(resource);
        Template made;
        made.name = std::string(resource.name);
        made.title = source.at("title").get<std::string>();
        made.titleZh = source.at("title_zh").get<std::string>();
        made.summaryZh = source.at("summary_zh").get<std::string>();
        made.helpZh = source.at("help_zh").get<std::map<std::string, std::string>>();
        made.document = documentOf(source, resource);
        made.document.main.name = made.name;
        fillIn(made.document, graphsOf(standard()));
        out.push_back(std::move(made));
    }
    std::sort(out.begin(), out.end(), [](const Template& a, const Template& b) { return a.name < b.name; });
    return out;
}

template <class Item> const Item* named(const std::vector<Item>& items, const std::string& name) {
    const auto found = std::find_if(items.begin(), items.end(), [&](const Item& item) { return item.name == name; });
    return found == items.end() ? nullptr : &*found;
}

} // namespace

const std::vector<Entry>& standard() {
    static const std::vector<Entry> list = readStandard();
    return list;
}
const Entry* findStandard(const std::string& name) {
    return named(standard(), name);
}
const std::vector<Template>& templates() {
    static const std::vector<Template> list = readTemplates();
    return list;
}
const Template* findTemplate(const std::string& name) {
    return named(templates(), name);
}

} // namespace celloom::library
