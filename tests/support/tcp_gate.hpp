#ifndef HOLDFAST_TESTS_SUPPORT_TCP_GATE_HPP
#define HOLDFAST_TESTS_SUPPORT_TCP_GATE_HPP

#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <thread>

namespace holdfast::tests {

/// A TCP proxy on a loopback port through which a test breaks the network between a node and its database (or a client
/// and a node). Each change holds for the connections that are open and for those to come, and is in force when the
/// call returns. Calls may come from any thread.
class tcp_gate {
public:
    enum class direction {
        to_server,  ///< What the client sends.
        to_client,  ///< What the server sends.
        both,
    };

    /// Passes everything to `server_port` on loopback. Throws std::system_error when no port is to be had.
    explicit tcp_gate(std::uint16_t server_port);
    tcp_gate(const tcp_gate&) = delete;
    tcp_gate& operator=(const tcp_gate&) = delete;
    ~tcp_gate();

    std::uint16_t port() const noexcept { return port_; }

    /// Everything flows, also what was held back, and new connections are let in.
    void pass();
    /// Nothing flows in this direction, while connections stay open and the kernel goes on acknowledging what it is
    /// sent. What was held back is delivered after pass(), even if its sender is gone by then.
    void stall(direction which);
    /// Ends every open connection in order (FIN both ways); what was held back is lost. New ones are let in.
    void drop();
    /// Resets every open connection (RST both ways). New ones are let in.
    void reset();
    /// Resets every open connection and refuses new ones until pass().
    void refuse();
    /// Connections open now.
    std::size_t connections() const;

private:
    struct side {
        int descriptor = -1;
        bool ended = false;  ///< It sent its last byte, and the other side was told.
    };
    struct link {
        side client;
        side server;
        bool broken = false;
    };

    void listen();
    void run();
    void accept_one();
    void forward(link& between, side& from, side& to);
    void close_link(link& between, bool with_reset);
    void end_all(bool with_reset);
    void wake() const;
    bool stalls(direction which) const noexcept;

    const std::uint16_t server_port_;
    std::uint16_t port_ = 0;
    mutable std::mutex mutex_;
    std::list<link> links_;
    int listener_ = -1;
    int wake_ = -1;
    bool stalled_to_server_ = false;
    bool stalled_to_client_ = false;
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace holdfast::tests

#endif
