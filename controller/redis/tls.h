// TLS over a socket, by OpenSSL: TLS 1.2 or later, certificate and name verified, always.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "redis/socket.h"

namespace sluice::redis {

struct TlsFiles {
    std::string ca_file;    // empty: whom the system trusts
    std::string cert_file;  // this side's certificate chain; empty: none
    std::string key_file;
};

// What all sessions share.
class TlsContext {
  public:
    static Result<TlsContext> make(const TlsFiles& files);
    [[nodiscard]] SSL_CTX* get() const { return context_.get(); }

  private:
    struct Free {
        void operator()(SSL_CTX* context) const noexcept { ::SSL_CTX_free(context); }
    };
    explicit TlsContext(SSL_CTX* context) : context_(context) {}

    std::unique_ptr<SSL_CTX, Free> context_;
};

// OpenSSL works on memory here, and the socket moves the bytes: so deadlines are in one place, and
// no write of OpenSSL's own raises SIGPIPE.
class TlsSession {
  public:
    // `host` is the name or address that the server's certificate has to carry.
    static Result<TlsSession> handshake(const TlsContext& context, Socket& socket,
                                        const std::string& host, Deadline deadline);

    // As those of Socket.
    Status send(Socket& socket, std::string_view bytes, Deadline deadline);
    Result<size_t> receive(Socket& socket, std::span<char> room, Deadline deadline);

  private:
    struct Free {
        void operator()(SSL* session) const noexcept { ::SSL_free(session); }
    };
    explicit TlsSession(SSL* session) : session_(session) {}

    static Result<TlsSession> make(const TlsContext& context, const std::string& host);
    [[nodiscard]] Error broken(std::string_view operation) const;
    // Sends what OpenSSL has written.
    Status flush(Socket& socket, Deadline deadline);
    // Gives OpenSSL what has arrived; false where nothing did in time.
    Result<bool> feed(Socket& socket, Deadline deadline);

    std::unique_ptr<SSL, Free> session_;
};

}  // namespace sluice::redis
