// TLS: nobody is believed without a certificate that carries the name in the url.
#include "certificates.h"
#include "fake_server.h"
#include "redis_test.h"

namespace sluice {
namespace {

using lab::Certificates;
using lab::RedisServer;
using lab::text;
using testing::HasSubstr;
using namespace std::chrono_literals;

class Tls : public lab::RedisTest {
  protected:
    void SetUp() override {
        RedisTest::SetUp();
        if (const std::string why = Certificates::missing(); !why.empty())
            GTEST_SKIP() << why;
    }

    // Beside the port in the clear, which the server has too.
    RedisServer server_with_tls(const Certificates& certificates, const std::string& clients) {
        tls_port_ = lab::free_port();
        return RedisServer({"tls-port " + std::to_string(tls_port_),
                            "tls-cert-file " + certificates.file("server.pem"),
                            "tls-key-file " + certificates.file("server.key"),
                            "tls-ca-cert-file " + certificates.file("ca.pem"),
                            "tls-auth-clients " + clients});
    }

    [[nodiscard]] redis::Options options(const std::string& host,
                                         const std::string& ca_file) const {
        redis::Options options = patient("rediss://" + host + ':' + std::to_string(tls_port_));
        options.ca_file = ca_file;
        return options;
    }

    static Result<redis::Reply> ping(const redis::Options& options) {
        return Redis::open(options).value().run({"PING"});
    }

    uint16_t tls_port_ = 0;
};

TEST_F(Tls, AServerWithARightCertificateIsBelieved) {
    const Certificates certificates("IP:127.0.0.1,DNS:localhost");
    const RedisServer server = server_with_tls(certificates, "no");
    EXPECT_EQ(text(ping(options("127.0.0.1", certificates.file("ca.pem")))), "PONG");
    if (has_name()) {
        EXPECT_EQ(text(ping(options("localhost", certificates.file("ca.pem")))), "PONG");
    }
}

TEST_F(Tls, CarriesMuchInBothDirectionsAndKeepsItsConnection) {
    const Certificates certificates("IP:127.0.0.1");
    const RedisServer server = server_with_tls(certificates, "no");
    Redis redis = Redis::open(options("127.0.0.1", certificates.file("ca.pem"))).value();
    const int64_t id = lab::number(redis.run({"CLIENT", "ID"}));
    const std::string large(3 << 20, 'x');
    EXPECT_EQ(text(redis.run({"SET", "k", large})), "OK");
    EXPECT_EQ(text(redis.run({"GET", "k"})), large);
    EXPECT_EQ(lab::number(redis.run({"CLIENT", "ID"})), id);
}

TEST_F(Tls, AnotherAuthorityIsRefused) {
    const Certificates certificates("IP:127.0.0.1");
    const RedisServer server = server_with_tls(certificates, "no");
    for (const std::string& ca_file : {certificates.file("other.pem"), std::string()}) {
        const auto refused = ping(options("127.0.0.1", ca_file));
        ASSERT_FALSE(refused);
        EXPECT_THAT(refused.error().message,
                    HasSubstr("self-signed certificate in certificate chain"));
        EXPECT_THAT(refused.error().hint, HasSubstr("ca_file"));
    }
}

TEST_F(Tls, AnotherNameIsRefused) {
    const Certificates certificates("IP:192.0.2.1,DNS:redis.example");
    const RedisServer server = server_with_tls(certificates, "no");
    for (const auto& [host, why] : {std::pair("127.0.0.1", "IP address mismatch"),
                                    std::pair("localhost", "hostname mismatch")}) {
        if (host == kOwnName && !has_name())
            continue;
        const auto refused = ping(options(host, certificates.file("ca.pem")));
        ASSERT_FALSE(refused);
        EXPECT_THAT(refused.error().message, testing::ContainsRegex(why));
    }
}

TEST_F(Tls, ShowsACertificateOfItsOwnWhereOneIsAskedFor) {
    const Certificates certificates("IP:127.0.0.1");
    const RedisServer server = server_with_tls(certificates, "yes");
    redis::Options wanted = options("127.0.0.1", certificates.file("ca.pem"));
    const auto refused = ping(wanted);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::unreachable);
    EXPECT_THAT(refused.error().hint, HasSubstr("cert_file"));
    wanted.cert_file = certificates.file("client.pem");
    wanted.key_file = certificates.file("client.key");
    EXPECT_EQ(text(ping(wanted)), "PONG");
}

TEST_F(Tls, NeitherSideSpeaksItAlone) {
    const Certificates certificates("IP:127.0.0.1");
    const RedisServer server = server_with_tls(certificates, "no");
    redis::Options wanted = options("127.0.0.1", certificates.file("ca.pem"));
    wanted.url = "rediss://" + server.address();
    wanted.connect_timeout = 500ms;  // Redis waits for the end of the line
    const auto in_the_clear = ping(wanted);
    ASSERT_FALSE(in_the_clear);
    EXPECT_THAT(in_the_clear.error().hint, HasSubstr("does the server speak TLS"));
    const auto by_tls = ping(patient("redis://127.0.0.1:" + std::to_string(tls_port_)));
    ASSERT_FALSE(by_tls);
    EXPECT_EQ(by_tls.error().code, ErrorCode::unreachable);
}

TEST_F(Tls, AHandshakeThatIsNotAnsweredEndsInTime) {
    const lab::FakeServer fake("");
    redis::Options wanted;
    wanted.url = "rediss://" + fake.address();
    wanted.connect_timeout = 100ms;
    Redis redis = Redis::open(wanted).value();
    const auto begun = std::chrono::steady_clock::now();
    const auto refused = redis.run({"PING"});
    EXPECT_LT(std::chrono::steady_clock::now() - begun, wanted.connect_timeout + lab::kLate);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr("tls handshake: no answer in time"));
}

TEST_F(Tls, FilesThatAreNoneAreNamedAtOnce) {
    const Certificates certificates("IP:127.0.0.1");
    tls_port_ = 1;
    const auto message_of = [](const redis::Options& wanted) {
        const auto opened = Redis::open(wanted);
        return opened ? "opened" : opened.error().message;
    };
    redis::Options wanted = options("127.0.0.1", "/nonexistent.pem");
    EXPECT_THAT(message_of(wanted), HasSubstr("ca_file /nonexistent.pem"));
    wanted.ca_file = certificates.file("server.key");
    EXPECT_THAT(message_of(wanted), HasSubstr("ca_file"));
    wanted.ca_file = certificates.file("ca.pem");
    wanted.cert_file = certificates.file("client.pem");
    EXPECT_THAT(message_of(wanted), HasSubstr("one is of no use without the other"));
    wanted.key_file = certificates.file("server.key");
    EXPECT_THAT(message_of(wanted), HasSubstr("key"));
}

}  // namespace
}  // namespace sluice
