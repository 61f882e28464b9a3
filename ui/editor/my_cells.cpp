#include "ui/editor/my_cells.h"

#include "models/graph/declared_ports.h"
#include "models/graph/json.h"
#include "ui/common/format.h"

#include <algorithm>

namespace celloom::ui {

namespace {
const QString kKeyPrefix = QStringLiteral("my cells/");
}

Result<graph::Document> wrapScript(const graph::Document& document, const graph::GraphName& graph, const std::string& cell, const std::string& name, const graph::Scope& scope) {
    CELLOOM_TRY(text, graph::copyCells(document, graph, {cell}));
    CELLOOM_TRY(out, graph::fromJson(text));
    const graph::Cell* copied = graph::findCell(out.main, cell);
    CELLOOM_CHECK(copied);
    graph::Graph inner;
    inner.name = name;
    inner.note = copied->note;
    inner.hyper = out.main.hyper;
    inner.cells = {*copied};
    graph::Cell& script = inner.cells.front();
    script.repeat.clear();
    script.position = graph::Position{0, 0};
    const auto addPorts = [&](const char* parameter, std::vector<graph::Port>& ports) -> Status {
        const auto given = script.params.find(parameter);
        const std::string* declared = given == script.params.end() ? nullptr : std::get_if<std::string>(&given->second);
        if (!declared) return fail("The cell declares no " + std::string(parameter) + ".", "Declare them before it is saved.", cell);
        CELLOOM_TRY(read, graph::readDeclaredPorts(*declared, scope));
        for (const graph::DeclaredPort& port : read) {
            const graph::Endpoint own{"", port.name}, inside{script.name, port.name};
            const bool isInput = &ports == &inner.inputs;
            ports.push_back({port.name, {}, port.dtype});
            inner.wires.push_back(isInput ? graph::Wire{own, inside} : graph::Wire{inside, own});
        }
        return {};
    };
    CELLOOM_TRY_STATUS(addPorts("inputs", inner.inputs));
    CELLOOM_TRY_STATUS(addPorts("outputs", inner.outputs));
    out.main = {};
    out.composites[name] = std::move(inner);
    return out;
}

MyCells::MyCells(const std::filesystem::path& workspace, QObject* parent) : QObject(parent), m_library(workspace) {
    refresh();
}

QString MyCells::keyOf(const std::string& name) {
    return kKeyPrefix + fromUtf8(name);
}

const library::Entry* MyCells::find(const std::string& name) const {
    const auto found = std::find_if(m_entries.begin(), m_entries.end(), [&](const library::Entry& entry) { return entry.name == name; });
    return found == m_entries.end() ? nullptr : &*found;
}

const library::Entry* MyCells::findByKey(const QString& key) const {
    return key.startsWith(kKeyPrefix) ? find(toUtf8(key.mid(kKeyPrefix.size()))) : nullptr;
}

void MyCells::refresh() {
    m_background.run([library = m_library] { return library.list(); },
                     [this](library::Listing listing) {
                         m_entries = std::move(listing.entries);
                         Q_EMIT changed();
                     });
}

void MyCells::save(graph::Document document, const std::string& composite, const std::string& name, const std::string& note,
                   const std::function<void(const Result<library::Saved>&)>& done) {
    CELLOOM_CHECK(document.composites.contains(composite));
    document.composites[composite].note = note;
    m_background.run([library = m_library, document = std::move(document), composite, name] { return library.save(document, composite, name); },
                     [this, done](const Result<library::Saved>& saved) {
                         refresh();
                         done(saved);
                     });
}

void MyCells::remove(const std::string& name, const std::function<void(const Status&)>& done) {
    m_background.run([library = m_library, name] { return library.remove(name); },
                     [this, done](const Status& status) {
                         refresh();
                         done(status);
                     });
}

void MyCells::compare(const DocumentPtr& document) {
    m_comparing = document;
    m_background.run([library = m_library, document] { return library::compare(*document, &library); },
                     [this, document](const std::vector<library::CopyStatus>& copies) {
                         if (m_comparing == document) Q_EMIT compared(document, copies);
                     });
}

} // namespace celloom::ui
