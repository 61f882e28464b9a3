// From the document to text: classes in an order in which Python knows them, the helpers they need before them.
#include "models/catalog/catalog.h"
#include "models/code/class_writer.h"
#include "models/code/code.h"
#include "models/code/helpers.h"
#include "models/code/python.h"

#include <algorithm>

namespace celloom::code {
namespace {

using graph::Document;
using graph::Graph;

class Writer {
public:
    Writer(const Document& document, Dialect dialect) : m_document(document), m_dialect(dialect) {}

    Result<Code> write() {
        nameClasses();
        CELLOOM_TRY(order, inOrder());
        Lines body;
        for (const std::string& key : order) {
            body.add();
            body.add();
            const Graph& graph = key.empty() ? m_document.main : m_document.composites.at(key);
            ClassWriter writer(m_document, graph, key, m_dialect, m_classNames, m_moduleNames, m_needs, body);
            CELLOOM_TRY_STATUS(writer.write());
        }
        Code out;
        Lines head;
        writeImports(head);
        out.text = head.text + body.text;
        out.lines = std::move(body.map);
        for (CellLines& lines : out.lines) {
            lines.first += head.count;
            lines.last += head.count;
        }
        out.mainClass = m_classNames.at("");
        return out;
    }

private:
    [[nodiscard]] bool isMindSpore() const { return m_dialect == Dialect::MindSpore; }

    void nameClasses() {
        m_moduleNames = {"nn", "ops", "torch", "np", "math", "ms", "Tensor", "Parameter", "F"};
        for (const Helper& helper : helpers(m_dialect)) m_moduleNames.insert(helper.name);
        for (const catalog::CellType& type : catalog::all()) m_moduleNames.insert(type.name);
        for (const auto& [key, graph] : m_document.composites) m_classNames[key] = uniqueName(pythonName(key), m_moduleNames);
        m_classNames[""] = uniqueName(className(m_document.main.name), m_moduleNames);
    }

    /// "baichuan 2, 7B" as Baichuan27B.
    static std::string className(const std::string& name) {
        std::string out;
        bool isStart = true;
        for (const char c : name) {
            const bool isLetter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
            const bool isPart = isLetter || (c >= '0' && c <= '9') || c == '_';
            if (isPart) out += isStart && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
            isStart = !isPart;
        }
        while (out.starts_with("_")) out.erase(0, 1);
        if (out.empty()) return "Network";
        return out[0] >= '0' && out[0] <= '9' ? "Model" + out : pythonName(out);
    }

    /// Composites before what contains them, the main graph last. Walks with its own stack.
    Result<std::vector<std::string>> inOrder() const {
        std::vector<std::string> out;
        std::map<std::string, int> marks; // 1: open, 2: done
        struct Step {
            std::string key;
            std::size_t next = 0;
        };
        for (const auto& [start, unused] : m_document.composites) {
            if (marks[start] != 0) continue;
            std::vector<Step> walk{{start}};
            marks[start] = 1;
            while (!walk.empty()) {
                const auto& cells = m_document.composites.at(walk.back().key).cells;
                if (walk.back().next == cells.size()) {
                    marks[walk.back().key] = 2;
                    out.push_back(walk.back().key);
                    walk.pop_back();
                    continue;
                }
                const std::string type = cells[walk.back().next++].type;
                if (!m_document.composites.contains(type) || marks[type] == 2) continue;
                if (marks[type] == 1)
                    return fail("Composites contain each other: " + type + ".", "Remove one of them from the other.", type);
                marks[type] = 1;
                walk.push_back({type});
            }
        }
        out.emplace_back();
        return out;
    }

    void writeImports(Lines& out) {
        std::vector<const Helper*> used;
        for (const Helper& helper : helpers(m_dialect)) { // what helpers use is listed before them, so it is looked up from the end
            const bool isUsed =
                m_needs.contains(helper.name) ||
                std::any_of(helpers(m_dialect).begin(), helpers(m_dialect).end(), [&](const Helper& other) {
                    return m_needs.contains(other.name) && std::find(other.uses.begin(), other.uses.end(), helper.name) != other.uses.end();
                });
            if (isUsed) used.push_back(&helper);
        }
        const bool needsMath =
            m_needs.contains("math") || std::any_of(used.begin(), used.end(), [](const Helper* one) { return one->needsMath; });
        const bool needsNumpy =
            m_needs.contains("numpy") || std::any_of(used.begin(), used.end(), [](const Helper* one) { return one->needsNumpy; });
        if (needsMath) {
            out.add("import math");
            out.add();
        }
        if (isMindSpore()) {
            out.add("import mindspore as ms");
            if (needsNumpy) out.add("import numpy as np");
            out.add("from mindspore import Parameter, Tensor, nn, ops");
        } else {
            out.add("import torch");
            out.add("from torch import nn");
        }
        for (const Helper* helper : used) {
            out.add();
            out.add();
            out.addBlock(helper->text);
        }
    }

    const Document& m_document;
    Dialect m_dialect;
    std::map<std::string, std::string> m_classNames; // by composite; "" the main graph
    std::set<std::string> m_moduleNames, m_needs;
};

} // namespace

Result<Code> write(const Document& document, Dialect dialect) {
    return Writer(document, dialect).write();
}

} // namespace celloom::code
