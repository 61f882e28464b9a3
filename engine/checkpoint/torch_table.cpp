// pytorch_model.bin: a zip archive NAME/data.pkl, NAME/data/0, NAME/data/1, …; the pickle says how tensors lie in these storages.
// Written after what torch.save of PyTorch 1.6 to 2.11 gives (docs/source/notes/serialization.rst).
#include "engine/checkpoint/pickle.h"
#include "engine/checkpoint/tensor_table.h"
#include "engine/checkpoint/zip_archive.h"
#include "models/base/text.h"

#include <algorithm>
#include <array>
#include <unordered_map>

namespace celloom::engine {
namespace {

using Kind = PickleNode::Kind;

struct TypeName {
    const char* storage; // torch.FloatStorage
    const char* dtype;   // torch.float32
    ElementType type;
};
constexpr std::array kTypeNames = {TypeName{"DoubleStorage", "float64", ElementType::Float64},
                                   TypeName{"FloatStorage", "float32", ElementType::Float32},
                                   TypeName{"HalfStorage", "float16", ElementType::Float16},
                                   TypeName{"BFloat16Storage", "bfloat16", ElementType::BFloat16},
                                   TypeName{"LongStorage", "int64", ElementType::Int64},
                                   TypeName{"IntStorage", "int32", ElementType::Int32},
                                   TypeName{"ShortStorage", "int16", ElementType::Int16},
                                   TypeName{"CharStorage", "int8", ElementType::Int8},
                                   TypeName{"ByteStorage", "uint8", ElementType::UInt8},
                                   TypeName{"BoolStorage", "bool", ElementType::Bool},
                                   TypeName{"", "uint64", ElementType::UInt64},
                                   TypeName{"", "uint32", ElementType::UInt32},
                                   TypeName{"", "uint16", ElementType::UInt16}};

const TypeName* findType(std::string_view name, const char* TypeName::*member) {
    const auto found = std::find_if(kTypeNames.begin(), kTypeNames.end(), [&](const TypeName& type) { return name == type.*member; });
    return name.empty() || found == kTypeNames.end() ? nullptr : &*found;
}

bool isUntyped(const PickleNode& node) {
    return node.isFunction("torch.storage", "UntypedStorage") || node.isFunction("torch", "UntypedStorage");
}

/// The functions and types that state dicts are made of; none is ever called here.
bool isKnown(std::string_view module, std::string_view name) {
    if (module == "collections") return name == "OrderedDict";
    if (module == "torch._utils") return name == "_rebuild_tensor_v2" || name == "_rebuild_tensor_v3" || name == "_rebuild_parameter";
    if (module == "torch.storage") return name == "UntypedStorage";
    if (module != "torch") return false;
    return name == "Size" || name == "UntypedStorage" || findType(name, &TypeName::storage) || findType(name, &TypeName::dtype);
}

class StateDict {
public:
    StateDict(const Pickle& pickle, const std::unordered_map<std::string_view, const ZipEntry*>& archive, std::string prefix)
        : m_pickle(pickle), m_archive(archive), m_prefix(std::move(prefix)) {}

    Result<TensorTable> read() {
        CELLOOM_TRY(items, itemsOf(m_pickle.top));
        if (const int inner = nestedStateDict(items); inner >= 0) {
            CELLOOM_TRY(nested, itemsOf(inner));
            for (std::size_t i = 0; i + 1 < items.size(); i += 2)
                if (items[i + 1] != inner) tellNotRead(items[i], items[i + 1]);
            items = std::move(nested);
        }
        for (std::size_t i = 0; i + 1 < items.size(); i += 2) CELLOOM_TRY_STATUS(addItem(items[i], items[i + 1]));
        if (m_table.tensors.empty())
            return fail("holds no tensors: it is " + describe(m_pickle, m_pickle.top) + ".", "Is it a file of weights?");
        return std::move(m_table);
    }

private:
    const PickleNode& node(int index) const { return m_pickle[index]; }

    Result<std::vector<int>> itemsOf(int index) const {
        const PickleNode& dict = node(index);
        if (dict.kind == Kind::Dict || (dict.kind == Kind::Call && node(dict.function).isFunction("collections", "OrderedDict")))
            return dict.items;
        return fail("holds " + describe(m_pickle, index) + ", expected a dictionary of tensors.",
                    "Save model.state_dict(), not the model.");
    }

    bool isTensor(int index) const {
        const PickleNode& call = node(index);
        return call.kind == Kind::Call && node(call.function).text == "torch._utils";
    }

    /// Training checkpoints keep the weights one level down: {"state_dict": {…}, "epoch": 3}. -1 where this is none.
    int nestedStateDict(const std::vector<int>& items) const {
        for (std::size_t i = 0; i + 1 < items.size(); i += 2)
            if (isTensor(items[i + 1])) return -1;
        for (const char* wanted : {"state_dict", "model_state_dict", "model", "module"})
            for (std::size_t i = 0; i + 1 < items.size(); i += 2)
                if (node(items[i]).kind == Kind::Text && node(items[i]).text == wanted && itemsOf(items[i + 1])) return items[i + 1];
        return -1;
    }

    void tellNotRead(int key, int value) {
        if (m_table.notRead.size() < 1000) m_table.notRead.push_back(describe(m_pickle, key) + " (" + describe(m_pickle, value) + ")");
    }

    Status addItem(int key, int value) {
        if (node(key).kind != Kind::Text || !isTensor(value)) {
            tellNotRead(key, value);
            return {};
        }
        const std::string name(node(key).text);
        auto entry = tensorOf(value);
        if (!entry) return fail("holds the tensor " + inQuotes(name) + ", which " + entry.error().message, entry.error().hint);
        if (!m_table.tensors.emplace(name, std::move(*entry)).second) return fail("names " + inQuotes(name) + " twice.");
        return {};
    }

    /// A tensor, or a parameter around one.
    Result<TensorEntry> tensorOf(int index) {
        const PickleNode* call = &node(index);
        if (node(call->function).name == "_rebuild_parameter") {
            const std::vector<int>& inner = node(call->argument).items;
            if (inner.empty() || !isTensor(inner[0]) || node(node(inner[0]).function).name == "_rebuild_parameter")
                return fail("is a parameter without a tensor.");
            call = &node(inner[0]);
        }
        const std::vector<int>& arguments = node(call->argument).items; // not copied: many tensors may name one list, a long one
        const bool hasType = node(call->function).name == "_rebuild_tensor_v3";
        if (arguments.size() < (hasType ? 7u : 6u)) return fail("is described by too few values.");
        TensorEntry entry;
        CELLOOM_TRY(storage, storageOf(arguments[0], entry.type));
        if (hasType) {
            const TypeName* type = node(arguments[6]).text == "torch" ? findType(node(arguments[6]).name, &TypeName::dtype) : nullptr;
            if (!type) return fail("has the type " + describe(m_pickle, arguments[6]) + ", which is not supported.");
            entry.type = type->type;
        }
        CELLOOM_TRY(shape, wholeNumbers(arguments[2], "shape"));
        CELLOOM_TRY(strides, wholeNumbers(arguments[3], "strides"));
        entry.shape = std::move(shape);
        entry.strides = std::move(strides);
        if (node(arguments[1]).kind != Kind::Integer || node(arguments[1]).integer < 0) return fail("has no valid offset in its storage.");
        CELLOOM_TRY_STATUS(place(entry, storage, static_cast<std::uint64_t>(node(arguments[1]).integer)));
        return entry;
    }

    Result<std::vector<std::int64_t>> wholeNumbers(int index, const char* what) const {
        const PickleNode* tuple = &node(index);
        if (tuple->kind == Kind::Call && node(tuple->function).isFunction("torch", "Size") && node(tuple->argument).items.size() == 1)
            tuple = &node(node(tuple->argument).items[0]); // torch.Size((2, 3))
        if (tuple->kind != Kind::Tuple || tuple->items.size() > kMaxDimensions) return fail(std::string("has no valid ") + what + ".");
        std::vector<std::int64_t> out;
        for (const int item : tuple->items) {
            if (node(item).kind != Kind::Integer || node(item).integer < 0) return fail(std::string("has no valid ") + what + ".");
            out.push_back(node(item).integer);
        }
        return out;
    }

    /// The persistent id ("storage", torch.FloatStorage, "0", "cpu", numel). Sets the type that the storage's class names.
    Result<Extent> storageOf(int index, ElementType& type) {
        if (node(index).kind != Kind::Persistent) return fail("has no valid storage.");
        const std::vector<int>& id = node(node(index).argument).items;
        if (id.size() < 5 || node(id[0]).text != "storage" || node(id[1]).kind != Kind::Function || node(id[2]).kind != Kind::Text ||
            node(id[4]).kind != Kind::Integer || node(id[4]).integer < 0)
            return fail("has no valid storage.");
        const TypeName* known = node(id[1]).text == "torch" ? findType(node(id[1]).name, &TypeName::storage) : nullptr;
        if (!known && !isUntyped(node(id[1]))) return fail("has a storage of " + describe(m_pickle, id[1]) + ", which is not supported.");
        type = known ? known->type : ElementType::UInt8;
        const std::string key(node(id[2]).text), name = m_prefix + "data/" + key;
        const auto found = m_archive.find(name);
        if (found == m_archive.end()) return fail("lies in the storage " + inQuotes(key) + ", which is not in the archive.");
        const ZipEntry& entry = *found->second;
        CELLOOM_TRY(bytes, byteCount(type, {node(id[4]).integer}));
        if (bytes != entry.data.bytes)
            return fail("lies in the storage " + inQuotes(key) + " of " + std::to_string(entry.data.bytes) + " bytes; the pickle claims " +
                        std::to_string(bytes) + ".");
        const auto [checksum, isNew] = m_checksums.emplace(&entry, static_cast<int>(m_table.checksums.size()));
        if (isNew) m_table.checksums.push_back({entry.data, entry.crc, name});
        m_checksum = checksum->second;
        return entry.data;
    }

    /// Strides and offset (in elements) must stay inside the storage.
    Status place(TensorEntry& entry, const Extent& storage, std::uint64_t offset) const {
        if (entry.strides.size() != entry.shape.size()) return fail("has a shape and strides of different lengths.");
        CELLOOM_TRY(bytes, byteCount(entry.type, entry.shape));
        const std::uint64_t size = sizeOf(entry.type), elements = storage.bytes / size;
        if (offset > elements || bytes > storage.bytes)
            return fail("leaves its storage, or repeats elements: " + shapeText(entry.shape) + " of " + std::to_string(elements) +
                            " elements from number " + std::to_string(offset) + " on.",
                        "Save it after clone().");
        std::uint64_t last = 0, expected = 1; // highest index; stride of a contiguous tensor
        bool isContiguous = true;
        for (std::size_t i = entry.shape.size(); bytes > 0 && i-- > 0;) {
            const auto length = static_cast<std::uint64_t>(entry.shape[i]), stride = static_cast<std::uint64_t>(entry.strides[i]);
            std::uint64_t reach = 0;
            if (__builtin_mul_overflow(length - 1, stride, &reach) || __builtin_add_overflow(last, reach, &last))
                return fail("has strides too large for this machine.");
            isContiguous = isContiguous && (length == 1 || stride == expected);
            expected *= length;
        }
        if (bytes > 0 && last >= elements - offset)
            return fail("leaves its storage: its last element is number " + std::to_string(offset + last) + " of " +
                        std::to_string(elements) + ".");
        entry.pieces = {{storage.offset + offset * size, bytes == 0 ? 0 : isContiguous ? bytes : (last + 1) * size}};
        if (isContiguous) entry.strides.clear();
        entry.checksum = m_checksum;
        return {};
    }

    const Pickle& m_pickle;
    const std::unordered_map<std::string_view, const ZipEntry*>& m_archive;
    std::string m_prefix;
    std::unordered_map<const ZipEntry*, int> m_checksums;
    int m_checksum = -1; // of the storage that was asked for last
    TensorTable m_table;
};

/// What is no zip archive. A bare pickle is read for the name of the function it would run.
tl::unexpected<Error> notAnArchive(std::string_view file) {
    constexpr std::string_view kLegacy("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 14);
    const bool isTar = file.size() > 262 && file.substr(257, 5) == "ustar";
    if (file.starts_with(kLegacy) || isTar)
        return fail("was saved in the format that PyTorch used before 1.6, which is not read.",
                    "Load it once in PyTorch (weights_only=True) and save it again, best as safetensors.");
    const auto pickle = readPickle(file, isKnown);
    if (!pickle && pickle.error().message.starts_with("asks for"))
        return fail("is a bare pickle that " + pickle.error().message, pickle.error().hint);
    return fail("is neither a safetensors file, nor one of torch.save, nor a MindSpore checkpoint.",
                "Is it a file of weights, and complete?");
}

} // namespace

Result<TensorTable> readTorchTable(std::string_view file) {
    if (!file.starts_with("PK\3\4")) return notAnArchive(file);
    CELLOOM_TRY(entries, readZip(file));
    std::unordered_map<std::string_view, const ZipEntry*> archive;
    const ZipEntry* pickled = nullptr;
    for (const ZipEntry& entry : entries) {
        archive.emplace(entry.name, &entry);
        if (entry.name != "data.pkl" && !(entry.name.ends_with("/data.pkl") && std::count(entry.name.begin(), entry.name.end(), '/') == 1))
            continue;
        if (pickled) return fail("is a zip archive with two files data.pkl.");
        pickled = &entry;
    }
    if (!pickled) return fail("is a zip archive without a data.pkl: torch.save did not write it.");
    const std::string prefix(pickled->name.substr(0, pickled->name.size() - std::string_view("data.pkl").size()));
    if (archive.contains(prefix + "constants.pkl"))
        return fail("is a TorchScript program, not a file of weights.", "Save its state_dict() instead.");
    const auto bytesOf = [&](const ZipEntry& entry) { return file.substr(entry.data.offset, entry.data.bytes); };
    if (const auto order = archive.find(prefix + "byteorder"); order != archive.end() && bytesOf(*order->second) != "little")
        return fail("holds numbers in the byte order " + inQuotes(bytesOf(*order->second), 20) + "; only little-endian files are read.");
    if (crc32(bytesOf(*pickled)) != pickled->crc)
        return fail("has a data.pkl that does not fit its checksum.", "The file is damaged: copy or download it again.");
    auto pickle = readPickle(bytesOf(*pickled), isKnown);
    if (!pickle)
        return fail("has a data.pkl that " + pickle.error().message,
                    pickle.error().hint.empty() ? "Use a safetensors version of this model, if there is one." : pickle.error().hint);
    return StateDict(*pickle, archive, prefix).read();
}

} // namespace celloom::engine
