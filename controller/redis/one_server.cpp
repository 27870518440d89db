#include "redis/one_server.h"

namespace sluice::redis {

OneServer::OneServer(Target target, Access access)
    : access_(std::move(access)), link_([this](Deadline deadline) { return connect(deadline); }) {
    if (target.form == Form::sentinel)
        sentinels_ = std::make_unique<Sentinels>(std::move(target), access_);
    else
        server_ = target.endpoints.front();
}

void OneServer::prepare(Deadline deadline) {
    if (sentinels_ && sentinels_->master_moved(deadline))
        link_.start_anew();
}

Result<Connected> OneServer::connect(Deadline deadline) {
    if (sentinels_)
        return sentinels_->connect_master(deadline);
    auto connection = Connection::open(server_, access_, Role::master, deadline);
    if (!connection)
        return connection.error().with_context(server_.to_string());
    return Connected{*std::move(connection), server_};
}

}  // namespace sluice::redis
