// Certificates for tests, made by the openssl program: a CA, a server, a client, and another CA
// that has signed none of them.
#pragma once

#include <string>

#include "temp_folder.h"

namespace sluice::lab {

class Certificates {
  public:
    // `names` as in subjectAltName: "IP:127.0.0.1,DNS:localhost".
    explicit Certificates(const std::string& names);

    static std::string missing();

    // ca.pem, other.pem, server.pem, server.key, client.pem, client.key
    [[nodiscard]] std::string file(const std::string& name) const {
        return folder_.path() + '/' + name;
    }

  private:
    void make_authority(const std::string& name) const;
    void make_signed(const std::string& name, const std::string& alternative_names) const;

    TempFolder folder_;
};

}  // namespace sluice::lab
