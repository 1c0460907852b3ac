#include "support/temporary_directory.hpp"

#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace holdfast::tests {

temporary_directory::temporary_directory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "holdfast-test-XXXXXX").string();
    if (!mkdtemp(pattern.data())) throw std::system_error(errno, std::generic_category(), "mkdtemp");
    path_ = pattern;
}

temporary_directory::~temporary_directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

void temporary_directory::give_to(const std::string& user) const {
    if (user.empty() || geteuid() != 0) return;
    const passwd* account = getpwnam(user.c_str());
    if (!account || chown(path_.c_str(), account->pw_uid, account->pw_gid) != 0)
        throw std::system_error(errno, std::generic_category(), "chown to " + user);
}

}  // namespace holdfast::tests
