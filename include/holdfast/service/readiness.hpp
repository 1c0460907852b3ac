#ifndef HOLDFAST_SERVICE_READINESS_HPP
#define HOLDFAST_SERVICE_READINESS_HPP

namespace holdfast::service {

/// Whether this node should be sent work. Asked on the I/O thread by /readyz; answers from memory, at once.
class readiness {
public:
    virtual ~readiness() = default;

    /// True while the database was seen writable a moment ago and the node does not drain.
    virtual bool ready() const noexcept = 0;
    /// True from the signal to end on.
    virtual bool draining() const noexcept = 0;
};

}  // namespace holdfast::service

#endif
