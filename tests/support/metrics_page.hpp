#ifndef HOLDFAST_TESTS_SUPPORT_METRICS_PAGE_HPP
#define HOLDFAST_TESTS_SUPPORT_METRICS_PAGE_HPP

// A page in Prometheus's text format, taken apart.

#include <map>
#include <set>
#include <string>
#include <vector>

namespace holdfast::tests {

class metrics_page {
public:
    /// Throws std::runtime_error for a line that the format does not know, a series that stands there twice, or a
    /// sample whose family has no HELP and TYPE before it.
    explicit metrics_page(const std::string& text);

    /// The value of a series as it is written, e.g. `a_total{class="other"}`. Throws std::runtime_error without one.
    double value(const std::string& series) const;
    /// The sum of all series of that name which have all these labels, each as `name="value"`. Throws
    /// std::runtime_error when there is no such series.
    double sum(const std::string& name, const std::vector<std::string>& labels = {}) const;
    /// What is on the page, without the values.
    std::set<std::string> series() const;

private:
    void read_comment(const std::string& line);
    void read_sample(const std::string& line);
    bool is_described(const std::string& name) const;

    std::map<std::string, double> values_;
    std::map<std::string, std::string> types_;
    std::set<std::string> helped_;
};

}  // namespace holdfast::tests

#endif
