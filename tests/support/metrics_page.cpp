#include "support/metrics_page.hpp"

#include <algorithm>
#include <sstream>
#include <stdexcept>

namespace holdfast::tests {
namespace {

std::string name_of(const std::string& series) {
    return series.substr(0, series.find('{'));
}

bool has_label(const std::string& series, const std::string& label) {
    return series.find('{' + label) != std::string::npos || series.find(',' + label) != std::string::npos;
}

}  // namespace

metrics_page::metrics_page(const std::string& text) {
    if (!text.ends_with('\n')) throw std::runtime_error("a page of metrics that does not end its last line");
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with('#'))
            read_comment(line);
        else
            read_sample(line);
    }
}

void metrics_page::read_comment(const std::string& line) {
    std::istringstream words(line);
    std::string mark, kind, name, type;
    words >> mark >> kind >> name >> type;
    const bool first = kind == "HELP" ? helped_.insert(name).second : types_.emplace(name, type).second;
    const bool known = kind == "HELP" || (kind == "TYPE" && helped_.contains(name) &&
                                          (type == "counter" || type == "gauge" || type == "histogram"));
    if (!first || !known || type.empty()) throw std::runtime_error("not a line of metrics: " + line);
}

void metrics_page::read_sample(const std::string& line) {
    const auto end = line.find(' ');  // none of our labels has a blank in it
    if (end == std::string::npos) throw std::runtime_error("not a line of metrics: " + line);
    const std::string series = line.substr(0, end);
    std::size_t used = 0;
    const std::string text = line.substr(end + 1);
    const double value = std::stod(text, &used);
    if (used != text.size() || !is_described(name_of(series)))
        throw std::runtime_error("not a line of metrics: " + line);
    if (!values_.emplace(series, value).second) throw std::runtime_error("a series stands twice: " + series);
}

bool metrics_page::is_described(const std::string& name) const {
    if (const auto own = types_.find(name); own != types_.end()) return own->second != "histogram";
    const auto family = types_.find(name.substr(0, name.rfind('_')));
    const std::string part = name.substr(std::min(name.rfind('_'), name.size()));
    return family != types_.end() && family->second == "histogram" &&
           (part == "_bucket" || part == "_sum" || part == "_count");
}

double metrics_page::value(const std::string& series) const {
    const auto found = values_.find(series);
    if (found == values_.end()) throw std::runtime_error("no series " + series);
    return found->second;
}

double metrics_page::sum(const std::string& name, const std::vector<std::string>& labels) const {
    double sum = 0;
    bool any = false;
    for (const auto& [series, value] : values_) {
        const auto fits = [&series = series](const std::string& label) { return has_label(series, label); };
        if (name_of(series) != name || !std::all_of(labels.begin(), labels.end(), fits)) continue;
        sum += value;
        any = true;
    }
    if (!any) throw std::runtime_error("no series of " + name);
    return sum;
}

std::set<std::string> metrics_page::series() const {
    std::set<std::string> all;
    for (const auto& [series, value] : values_)
        all.insert(series);
    return all;
}

}  // namespace holdfast::tests
