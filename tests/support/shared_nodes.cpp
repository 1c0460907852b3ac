#include "support/shared_nodes.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <unistd.h>

#include <atomic>
#include <exception>
#include <thread>

namespace holdfast::tests {

std::string fresh_name(const std::string& stem) {
    static std::atomic<int> counter = 0;
    return stem + ":" + std::to_string(getpid()) + "." + std::to_string(++counter);
}

shared_nodes::shared_nodes()
    : database(postgres_cluster::shared().create_database()),
      first(postgres_cluster::shared().url(database)),
      second(postgres_cluster::shared().url(database)) {}

shared_nodes& shared_nodes::instance() {
    static shared_nodes nodes;
    return nodes;
}

std::vector<std::pair<std::string, std::string>> errors_of(const reply& reply) {
    std::vector<std::pair<std::string, std::string>> found;
    if (!reply.json.is_object()) return found;
    const auto* errors = reply.json.as_object().if_contains("errors");
    if (!errors || !errors->is_array()) return found;
    for (const auto& error : errors->as_array())
        found.emplace_back(error.at("field").as_string(), error.at("code").as_string());
    return found;
}

void in_parallel(std::size_t count, const std::function<void(std::size_t)>& work) {
    std::vector<std::exception_ptr> failures(count);
    {
        std::vector<std::jthread> threads;
        for (std::size_t i = 0; i < count; ++i)
            threads.emplace_back([&work, &failures, i] {
                try {
                    work(i);
                } catch (...) {
                    failures[i] = std::current_exception();
                }
            });
    }
    for (const auto& failure : failures)
        if (failure) std::rethrow_exception(failure);
}

}  // namespace holdfast::tests
