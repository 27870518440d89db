#include "redis/tls.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <array>
#include <utility>

#include "net/address.h"

namespace sluice::redis {

namespace {

// OpenSSL's reason for the last failure of this thread; empties its queue.
std::string reason() {
    const unsigned long code = ::ERR_peek_last_error();
    ::ERR_clear_error();
    const char* text = code != 0 ? ::ERR_reason_error_string(code) : nullptr;
    return text != nullptr ? text : "no reason given";
}

Error unreadable(std::string_view what, const std::string& file) {
    return failed("tls: " + std::string(what) + ' ' + file + ": " + reason(),
                  "it has to be a readable PEM file");
}

Status trust(SSL_CTX* context, const std::string& ca_file) {
    if (ca_file.empty()) {
        if (::SSL_CTX_set_default_verify_paths(context) != 1)
            return failed("tls: the system's certificates: " + reason(), "name a ca_file");
        return {};
    }
    if (::SSL_CTX_load_verify_locations(context, ca_file.c_str(), nullptr) != 1)
        return unreadable("ca_file", ca_file);
    return {};
}

Status identify(SSL_CTX* context, const TlsFiles& files) {
    if (files.cert_file.empty())
        return {};
    if (::SSL_CTX_use_certificate_chain_file(context, files.cert_file.c_str()) != 1)
        return unreadable("cert_file", files.cert_file);
    if (::SSL_CTX_use_PrivateKey_file(context, files.key_file.c_str(), SSL_FILETYPE_PEM) != 1)
        return unreadable("key_file", files.key_file);
    if (::SSL_CTX_check_private_key(context) != 1)
        return failed("tls: " + files.key_file + " is not the key of " + files.cert_file);
    return {};
}

bool expect_host(SSL* session, const std::string& host) {
    if (IpAddress::parse(host))
        return ::X509_VERIFY_PARAM_set1_ip_asc(::SSL_get0_param(session), host.c_str()) == 1;
    return ::SSL_set1_host(session, host.c_str()) == 1 &&
           SSL_set_tlsext_host_name(session, host.c_str()) == 1;
}

}  // namespace

Result<TlsContext> TlsContext::make(const TlsFiles& files) {
    ::ERR_clear_error();
    TlsContext context(::SSL_CTX_new(::TLS_client_method()));
    if (context.get() == nullptr)
        return failed("tls: " + reason());
    SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
    ::SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
    if (const Status trusted = trust(context.get(), files.ca_file); !trusted)
        return trusted.error();
    if (const Status identified = identify(context.get(), files); !identified)
        return identified.error();
    return context;
}

Result<TlsSession> TlsSession::make(const TlsContext& context, const std::string& host) {
    ::ERR_clear_error();
    TlsSession session(::SSL_new(context.get()));
    if (!session.session_)
        return failed("tls: " + reason());
    BIO* in = ::BIO_new(::BIO_s_mem());
    BIO* out = ::BIO_new(::BIO_s_mem());
    ::SSL_set_bio(session.session_.get(), in, out);  // takes both
    ::SSL_set_connect_state(session.session_.get());
    if (in == nullptr || out == nullptr || !expect_host(session.session_.get(), host))
        return failed("tls: " + reason());
    return session;
}

Result<TlsSession> TlsSession::handshake(const TlsContext& context, Socket& socket,
                                         const std::string& host, Deadline deadline) {
    auto session = make(context, host);
    if (!session)
        return session;
    SSL* ssl = session->session_.get();
    for (;;) {
        ::ERR_clear_error();
        const int done = ::SSL_do_handshake(ssl);
        const int state = ::SSL_get_error(ssl, done);
        // An alert tells the server why, where this side refuses.
        const Status flushed = session->flush(socket, deadline);
        if (done == 1)
            return flushed ? std::move(session) : Result<TlsSession>(flushed.error());
        if (state != SSL_ERROR_WANT_READ)
            return session->broken("tls handshake");
        if (!flushed)
            return flushed.error();
        const auto fed = session->feed(socket, deadline);
        if (!fed)
            return fed.error().with_context("tls handshake");
        if (!*fed)
            return make_error(ErrorCode::unreachable, "tls handshake: no answer in time",
                              "does the server speak TLS on this port?");
    }
}

Error TlsSession::broken(std::string_view operation) const {
    const std::string text = std::string(operation) + ": ";
    const long verdict = ::SSL_get_verify_result(session_.get());
    if (verdict != X509_V_OK) {
        ::ERR_clear_error();
        return make_error(ErrorCode::unreachable, text + ::X509_verify_cert_error_string(verdict),
                          "compare ca_file and the host in url with the server's certificate: "
                          "openssl s_client -connect HOST:PORT");
    }
    return make_error(ErrorCode::unreachable, text + reason(),
                      "does the server speak TLS on this port, and does it ask for a cert_file?");
}

Status TlsSession::flush(Socket& socket, Deadline deadline) {
    char* bytes = nullptr;
    BIO* out = ::SSL_get_wbio(session_.get());
    const long size = BIO_get_mem_data(out, &bytes);
    if (size <= 0)
        return {};
    Status sent = socket.send({bytes, static_cast<size_t>(size)}, deadline);
    (void)BIO_reset(out);
    return sent;
}

Result<bool> TlsSession::feed(Socket& socket, Deadline deadline) {
    std::array<char, 16'384> chunk;  // as large as a record
    const auto got = socket.receive(chunk, deadline);
    if (!got)
        return got.error();
    if (*got == 0)
        return false;
    const int taken =
        ::BIO_write(::SSL_get_rbio(session_.get()), chunk.data(), static_cast<int>(*got));
    if (taken != static_cast<int>(*got))
        return failed("tls: " + reason());
    return true;
}

Status TlsSession::send(Socket& socket, std::string_view bytes, Deadline deadline) {
    if (bytes.empty())
        return {};
    ::ERR_clear_error();
    size_t taken = 0;
    // Memory takes everything at once.
    if (::SSL_write_ex(session_.get(), bytes.data(), bytes.size(), &taken) != 1 ||
        taken != bytes.size())
        return broken("tls send");
    return flush(socket, deadline);
}

Result<size_t> TlsSession::receive(Socket& socket, std::span<char> room, Deadline deadline) {
    for (;;) {
        ::ERR_clear_error();
        size_t got = 0;
        const int done = ::SSL_read_ex(session_.get(), room.data(), room.size(), &got);
        if (done == 1)
            return got;
        const int state = ::SSL_get_error(session_.get(), done);
        if (state == SSL_ERROR_ZERO_RETURN)
            return make_error(ErrorCode::unreachable, "the server closed the connection",
                              "see its log");
        if (state != SSL_ERROR_WANT_READ)
            return broken("tls receive");
        if (const Status flushed = flush(socket, deadline); !flushed)
            return flushed.error();
        const auto fed = feed(socket, deadline);
        if (!fed)
            return fed.error();
        if (!*fed)
            return size_t{0};
    }
}

}  // namespace sluice::redis
