// The opcodes are those of Python's Lib/pickletools.py.
#include "engine/checkpoint/pickle.h"

#include "models/base/text.h"

#include <bit>
#include <cstring>
#include <limits>
#include <unordered_map>

namespace celloom::engine {
namespace {

using Kind = PickleNode::Kind;

constexpr std::size_t kMaxBytes = 64 << 20, kMaxNodes = 2'000'000, kMaxStack = 4'000'000;

class Machine {
public:
    Machine(std::string_view bytes, const std::function<bool(std::string_view, std::string_view)>& isKnown)
        : m_bytes(bytes), m_isKnown(isKnown) {}

    Result<Pickle> run() {
        while (!m_isDone) {
            if (m_at >= m_bytes.size()) return fail("ends before its STOP.");
            const auto opcode = static_cast<unsigned char>(m_bytes[m_at++]);
            if (!step(opcode)) return fail(m_problem.empty() ? "is damaged at byte " + std::to_string(m_at) + "." : m_problem);
            if (m_out.nodes.size() > kMaxNodes || m_memo.size() > kMaxNodes || m_stack.size() > kMaxStack || m_marks.size() > kMaxStack)
                return fail("holds more than " + std::to_string(kMaxNodes) + " values.", "This is no file of weights.");
        }
        return std::move(m_out);
    }

private:
    // Each returns false where the pickle is damaged (m_problem says more, where there is more to say).

    bool step(unsigned char opcode) {
        // clang-format off
        switch (opcode) {
        case 0x80: return skip(1);           // PROTO
        case 0x95: return skip(8);           // FRAME
        case '.': return stop();             // STOP
        case '(': return mark();             // MARK
        case '0': return pop() >= 0;         // POP
        case '1': return popMark() != kNone; // POP_MARK
        case '2': return !m_stack.empty() && push(m_stack.back());
        case 'q': return memoize(number<std::uint8_t>());                  // BINPUT
        case 'r': return memoize(number<std::uint32_t>());                 // LONG_BINPUT
        case 0x94: return memoize(m_memo.size());                          // MEMOIZE
        case 'h': return recall(number<std::uint8_t>());                   // BINGET
        case 'j': return recall(number<std::uint32_t>());                  // LONG_BINGET
        case 'c': return functionOfLines();                                // GLOBAL
        case 0x93: return functionOfStack();                               // STACK_GLOBAL
        case 'R': case 0x81: return call();                                // REDUCE, NEWOBJ
        case 'b': return build();                                          // BUILD
        case 'Q': return persistent();                                     // BINPERSID
        case 'a': return append();                                         // APPEND
        case 'e': return appendMany(Kind::List);                           // APPENDS
        case 's': return setItem();                                        // SETITEM
        case 'u': return appendMany(Kind::Dict);                           // SETITEMS
        case ')': return add({.kind = Kind::Tuple});                       // EMPTY_TUPLE
        case ']': return add({.kind = Kind::List});                        // EMPTY_LIST
        case '}': return add({.kind = Kind::Dict});                        // EMPTY_DICT
        case 't': return collect(Kind::Tuple, popMark());                  // TUPLE
        case 'l': return collect(Kind::List, popMark());                   // LIST
        case 0x85: case 0x86: case 0x87: return shortTuple(opcode - 0x84); // TUPLE1, TUPLE2, TUPLE3
        default: return literal(opcode);
        }
        // clang-format on
    }

    bool literal(unsigned char opcode) {
        // clang-format off
        switch (opcode) {
        case 'N': return add({.kind = Kind::None});
        case 0x88: return add({.kind = Kind::Bool, .integer = 1});
        case 0x89: return add({.kind = Kind::Bool});
        case 'J': return integer(number<std::int32_t>());
        case 'K': return integer(number<std::uint8_t>());
        case 'M': return integer(number<std::uint16_t>());
        case 0x8a: return longInteger(number<std::uint8_t>());
        case 'G': return real();
        case 'X': case 'T': return text(Kind::Text, number<std::uint32_t>());    // BINUNICODE, BINSTRING
        case 0x8c: case 'U': return text(Kind::Text, number<std::uint8_t>());    // SHORT_BINUNICODE, SHORT_BINSTRING
        case 0x8d: return text(Kind::Text, number<std::uint64_t>());             // BINUNICODE8
        case 'B': return text(Kind::Bytes, number<std::uint32_t>());             // BINBYTES
        case 'C': return text(Kind::Bytes, number<std::uint8_t>());              // SHORT_BINBYTES
        default:
            m_problem = "uses the pickle instruction " + std::to_string(opcode) + " at byte " + std::to_string(m_at - 1) +
                        ", which files of weights do not need.";
            return false;
        }
        // clang-format on
    }

    // ---- bytes ----

    bool skip(std::size_t count) {
        if (count > m_bytes.size() - m_at) return false;
        m_at += count;
        return true;
    }
    template <class Number> Number number() {
        Number value{};
        if (m_bytes.size() - m_at < sizeof value) {
            m_isCut = true; // whoever uses the value asks for it
            return value;
        }
        std::memcpy(&value, m_bytes.data() + m_at, sizeof value);
        m_at += sizeof value;
        return value;
    }
    bool line(std::string_view& out) {
        const std::size_t end = m_bytes.find('\n', m_at);
        if (end == std::string_view::npos) return false;
        out = m_bytes.substr(m_at, end - m_at);
        m_at = end + 1;
        return true;
    }

    // ---- values ----

    bool add(PickleNode node) {
        m_out.nodes.push_back(std::move(node));
        return push(static_cast<int>(m_out.nodes.size()) - 1);
    }
    bool integer(std::int64_t value) { return !m_isCut && add({.kind = Kind::Integer, .integer = value}); }
    bool longInteger(std::uint8_t bytes) { // little-endian, two's complement
        if (m_isCut || bytes > m_bytes.size() - m_at) return false;
        if (bytes > 8) { // no size or place in a file of weights; what lies beside them may have such numbers
            m_at += bytes;
            return add({.kind = Kind::LargeInteger});
        }
        std::uint64_t value = 0;
        for (std::uint8_t i = 0; i < bytes; ++i) value |= std::uint64_t(static_cast<unsigned char>(m_bytes[m_at + i])) << (8 * i);
        if (bytes > 0 && bytes < 8 && (static_cast<unsigned char>(m_bytes[m_at + bytes - 1]) & 0x80) != 0)
            value |= ~std::uint64_t(0) << (8 * bytes);
        m_at += bytes;
        return integer(static_cast<std::int64_t>(value));
    }
    bool real() { // big-endian
        const auto bits = number<std::uint64_t>();
        return !m_isCut && add({.kind = Kind::Real, .real = std::bit_cast<double>(__builtin_bswap64(bits))});
    }
    bool text(Kind kind, std::uint64_t bytes) {
        if (m_isCut || bytes > m_bytes.size() - m_at) return false;
        const std::string_view view = m_bytes.substr(m_at, bytes);
        m_at += bytes;
        if (kind == Kind::Text && !isUtf8(view)) {
            m_problem = "holds a text that is no UTF-8.";
            return false;
        }
        return add({.kind = kind, .text = view});
    }

    // ---- stack and memo ----

    static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

    bool push(int index) {
        m_stack.push_back(index);
        return true;
    }
    /// The lowest entry that may be taken: what lies under a mark belongs to what the mark waits for.
    std::size_t base() const { return m_marks.empty() ? 0 : m_marks.back(); }
    int pop() {
        if (m_stack.size() <= base()) return -1;
        const int index = m_stack.back();
        m_stack.pop_back();
        return index;
    }
    bool mark() {
        m_marks.push_back(m_stack.size());
        return true;
    }
    /// Where the entries after the last mark begin; kNone without a mark.
    std::size_t popMark() {
        if (m_marks.empty()) return kNone;
        const std::size_t start = m_marks.back();
        m_marks.pop_back();
        m_popped.assign(m_stack.begin() + static_cast<std::ptrdiff_t>(start), m_stack.end());
        m_stack.resize(start);
        return start;
    }
    bool memoize(std::size_t key) {
        if (m_isCut || m_stack.size() <= base()) return false;
        m_memo[key] = m_stack.back();
        return true;
    }
    bool recall(std::size_t key) {
        const auto found = m_memo.find(key);
        return !m_isCut && found != m_memo.end() && push(found->second);
    }

    // ---- containers ----

    bool collect(Kind kind, std::size_t start) { return start != kNone && add({.kind = kind, .items = std::move(m_popped)}); }
    bool shortTuple(int count) {
        std::vector<int> items(static_cast<std::size_t>(count));
        for (auto item = items.rbegin(); item != items.rend(); ++item)
            if ((*item = pop()) < 0) return false;
        return add({.kind = Kind::Tuple, .items = std::move(items)});
    }
    /// The container on top of the stack; a call is taken to give one of the right kind (an OrderedDict).
    PickleNode* container(Kind kind) {
        if (m_stack.size() <= base()) return nullptr;
        PickleNode& node = m_out.nodes[static_cast<std::size_t>(m_stack.back())];
        return node.kind == kind || (kind == Kind::Dict && node.kind == Kind::Call) ? &node : nullptr;
    }
    bool append() {
        const int value = pop();
        PickleNode* list = value < 0 ? nullptr : container(Kind::List);
        if (list) list->items.push_back(value);
        return list != nullptr;
    }
    bool setItem() {
        const int value = pop(), key = value < 0 ? -1 : pop();
        PickleNode* dict = key < 0 ? nullptr : container(Kind::Dict);
        if (dict) dict->items.insert(dict->items.end(), {key, value});
        return dict != nullptr;
    }
    bool appendMany(Kind kind) {
        if (popMark() == kNone || (kind == Kind::Dict && m_popped.size() % 2 != 0)) return false;
        PickleNode* target = container(kind);
        if (target) target->items.insert(target->items.end(), m_popped.begin(), m_popped.end());
        return target != nullptr;
    }

    // ---- functions ----

    bool function(std::string_view module, std::string_view name) {
        if (m_isKnown(module, name)) return add({.kind = Kind::Function, .text = module, .name = name});
        m_problem = "asks for " + inQuotes(std::string(module) + "." + std::string(name)) +
                    ", which no file of weights needs: opening it in Python would run code. Nothing was run.";
        return false;
    }
    bool functionOfLines() {
        std::string_view module, name;
        return line(module) && line(name) && function(module, name);
    }
    bool functionOfStack() {
        const int name = pop(), module = name < 0 ? -1 : pop();
        if (module < 0 || m_out[name].kind != Kind::Text || m_out[module].kind != Kind::Text) return false;
        return function(m_out[module].text, m_out[name].text);
    }
    bool call() {
        const int argument = pop(), callee = argument < 0 ? -1 : pop();
        if (callee < 0 || m_out[callee].kind != Kind::Function || m_out[argument].kind != Kind::Tuple) return false;
        return add({.kind = Kind::Call, .function = callee, .argument = argument});
    }
    /// The state of an OrderedDict or a tensor: attributes such as a state dict's _metadata. Nobody reads them.
    bool build() { return pop() >= 0 && container(Kind::Dict) != nullptr; }
    bool persistent() {
        const int id = pop();
        return id >= 0 && add({.kind = Kind::Persistent, .argument = id});
    }
    bool stop() {
        m_out.top = pop();
        m_isDone = true;
        return m_out.top >= 0 && m_stack.empty() && m_marks.empty();
    }

    std::string_view m_bytes;
    const std::function<bool(std::string_view, std::string_view)>& m_isKnown;
    std::size_t m_at = 0;
    bool m_isCut = false, m_isDone = false;
    std::string m_problem;
    Pickle m_out;
    std::vector<int> m_stack, m_popped;
    std::vector<std::size_t> m_marks; // sizes of the stack
    std::unordered_map<std::size_t, int> m_memo;
};

} // namespace

std::string describe(const Pickle& pickle, int index) {
    const PickleNode& node = pickle[index];
    // clang-format off
    switch (node.kind) {
    case Kind::None: return "nothing";
    case Kind::Bool: return node.integer != 0 ? "True" : "False";
    case Kind::Integer: return std::to_string(node.integer);
    case Kind::LargeInteger: return "a large number";
    case Kind::Real: return numberText(node.real);
    case Kind::Text: return inQuotes(node.text, 40);
    case Kind::Bytes: return "bytes";
    case Kind::Tuple: return "a tuple";
    case Kind::List: return "a list";
    case Kind::Dict: return "a dictionary";
    case Kind::Function: return std::string(node.text) + "." + std::string(node.name);
    case Kind::Call: return describe(pickle, node.function) + "(…)";
    case Kind::Persistent: return "a storage";
    }
    // clang-format on
    return {};
}

Result<Pickle> readPickle(std::string_view bytes, const std::function<bool(std::string_view, std::string_view)>& isKnown) {
    if (bytes.size() > kMaxBytes)
        return fail("is " + std::to_string(bytes.size()) + " bytes long; at most 64 MB are read.", "This is no file of weights.");
    return Machine(bytes, isKnown).run();
}

} // namespace celloom::engine
