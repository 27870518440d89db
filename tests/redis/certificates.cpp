#include "certificates.h"

#include "redis_server.h"

namespace sluice::lab {

namespace {

std::vector<std::string> request(const std::string& name, const std::string& file) {
    return {"openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=" + name,
            "-keyout",
            file + ".key",
            "-out",
            file + ".pem"};
}

void make(const std::vector<std::string>& words) {
    const Status made = run_program(words);
    EXPECT_TRUE(made) << made.error().message;
}

}  // namespace

Certificates::Certificates(const std::string& names) {
    make_authority("ca");
    make_authority("other");
    make_signed("server", names);
    make_signed("client", "DNS:client");
}

std::string Certificates::missing() {
    return run_program({"openssl", "version"}) ? "" : "openssl is not installed";
}

void Certificates::make_authority(const std::string& name) const {
    make(request(name, file(name)));
}

void Certificates::make_signed(const std::string& name,
                               const std::string& alternative_names) const {
    std::vector<std::string> words = request(name, file(name));
    words.insert(words.end(), {"-CA", file("ca.pem"), "-CAkey", file("ca.key"), "-addext",
                               "subjectAltName=" + alternative_names, "-addext",
                               "basicConstraints=critical,CA:FALSE"});
    make(words);
}

}  // namespace sluice::lab
