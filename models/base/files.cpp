#include "models/base/files.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

namespace celloom {
namespace fs = std::filesystem;
namespace {

struct Descriptor {
    int fd = -1;
    explicit Descriptor(int value) : fd(value) {}
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() {
        if (fd >= 0) ::close(fd);
    }
};

Error systemError(const std::string& what, const fs::path& path, int code) {
    std::string hint;
    if (code == ENOSPC || code == EDQUOT) hint = "The disk is full: free some space and try again.";
    else if (code == EROFS) hint = "The file system is read-only: choose another folder.";
    else if (code == EACCES || code == EPERM) hint = "Check the permissions of the file and its folder.";
    else if (code == ENOENT) hint = "Check the spelling of the path.";
    return {what + ": " + std::strerror(code) + ".", hint, path.string()};
}

class Digest {
public:
    Digest() : m_context(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
        CELLOOM_CHECK(m_context && EVP_DigestInit_ex(m_context.get(), EVP_sha256(), nullptr) == 1);
    }
    void add(const void* data, std::size_t size) { CELLOOM_CHECK(EVP_DigestUpdate(m_context.get(), data, size) == 1); }
    std::string hex() {
        std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
        unsigned length = 0;
        CELLOOM_CHECK(EVP_DigestFinal_ex(m_context.get(), bytes.data(), &length) == 1);
        static const char* digits = "0123456789abcdef";
        std::string out;
        for (unsigned i = 0; i < length; ++i) {
            out += digits[bytes[i] >> 4];
            out += digits[bytes[i] & 15];
        }
        return out;
    }

private:
    std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> m_context;
};

} // namespace

Result<std::string> readFile(const fs::path& path, std::uint64_t maxBytes) {
    Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.fd < 0) return tl::unexpected(systemError("cannot be opened", path, errno));
    struct stat info {};
    if (::fstat(file.fd, &info) != 0) return tl::unexpected(systemError("cannot be read", path, errno));
    if (S_ISDIR(info.st_mode)) return fail("is a folder, expected a file.", {}, path.string());
    if (static_cast<std::uint64_t>(info.st_size) > maxBytes)
        return fail("is " + std::to_string(info.st_size) + " bytes long; at most " + std::to_string(maxBytes) + " are read here.", {}, path.string());
    std::string content;
    content.reserve(static_cast<std::size_t>(info.st_size));
    std::array<char, 1 << 16> block{};
    while (true) {
        const ssize_t got = ::read(file.fd, block.data(), block.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return tl::unexpected(systemError("cannot be read", path, errno));
        if (got == 0) return content;
        content.append(block.data(), static_cast<std::size_t>(got));
        if (content.size() > maxBytes) return fail("grew past " + std::to_string(maxBytes) + " bytes while it was read.", {}, path.string());
    }
}

Status syncFolder(const fs::path& folder) {
    Descriptor directory(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (directory.fd < 0) return tl::unexpected(systemError("cannot be opened", folder, errno));
    if (::fsync(directory.fd) != 0 && errno != EINVAL) return tl::unexpected(systemError("cannot be synced", folder, errno));
    return {};
}

Status writeFileAtomically(const fs::path& path, std::string_view content) {
    return writeFileAtomically(path, std::vector<std::string_view>{content});
}

Status writeFileAtomically(const fs::path& path, const std::vector<std::string_view>& pieces) {
    std::string temporary = path.string() + ".XXXXXX";
    Descriptor file(::mkostemp(temporary.data(), O_CLOEXEC));
    if (file.fd < 0) return tl::unexpected(systemError("cannot be written", path, errno));
    const auto abandon = [&](int code) {
        ::unlink(temporary.c_str());
        return tl::unexpected(systemError("cannot be written", path, code));
    };
    for (std::string_view content : pieces)
        while (!content.empty()) {
            const ssize_t done = ::write(file.fd, content.data(), content.size());
            if (done < 0 && errno == EINTR) continue;
            if (done < 0) return abandon(errno);
            content.remove_prefix(static_cast<std::size_t>(done));
        }
    const mode_t mask = ::umask(0);
    ::umask(mask);
    if (::fchmod(file.fd, 0666 & ~mask) != 0 || ::fsync(file.fd) != 0) return abandon(errno);
    if (::rename(temporary.c_str(), path.c_str()) != 0) return abandon(errno);
    return syncFolder(path.parent_path());
}

std::string sha256(std::string_view content) {
    Digest digest;
    digest.add(content.data(), content.size());
    return digest.hex();
}

Result<std::string> sha256OfFile(const fs::path& path) {
    Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.fd < 0) return tl::unexpected(systemError("cannot be opened", path, errno));
    Digest digest;
    auto block = std::make_unique<std::array<char, 1 << 20>>();
    while (true) {
        const ssize_t got = ::read(file.fd, block->data(), block->size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return tl::unexpected(systemError("cannot be read", path, errno));
        if (got == 0) return digest.hex();
        digest.add(block->data(), static_cast<std::size_t>(got));
    }
}

} // namespace celloom
