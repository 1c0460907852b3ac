#ifndef HOLDFAST_TESTS_SUPPORT_TEMPORARY_DIRECTORY_HPP
#define HOLDFAST_TESTS_SUPPORT_TEMPORARY_DIRECTORY_HPP

#include <filesystem>
#include <string>

namespace holdfast::tests {

/// A fresh folder below the system's temporary folder, removed with all that is in it.
class temporary_directory {
public:
    temporary_directory();
    temporary_directory(const temporary_directory&) = delete;
    temporary_directory& operator=(const temporary_directory&) = delete;
    ~temporary_directory();

    const std::filesystem::path& path() const noexcept { return path_; }

    /// Makes `user` the owner of the folder, when the test runs as root; an empty name changes nothing.
    void give_to(const std::string& user) const;

private:
    std::filesystem::path path_;
};

}  // namespace holdfast::tests

#endif
