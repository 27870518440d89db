#include "redis/script.h"

namespace sluice::redis {

Command Script::call(std::initializer_list<std::string_view> keys) const {
    Command command{"EVALSHA", sha1};
    command.script_ = this;
    command.add(keys.size());
    for (const std::string_view key : keys)
        command.add(key);
    return command;
}

}  // namespace sluice::redis
