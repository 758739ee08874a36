// SPDX-License-Identifier: Apache-2.0
// Services as rmw_fastrtps has them: a topic for requests and one for replies. A request names, as its related sample,
// the reader that its reply is meant for; the reply names that reader and the number of the request.
#pragma once

#include <memory>

#include "core/middleware.h"
#include "dds/endpoints.h"

namespace tide::agent {

// Null when DDS refuses.
std::unique_ptr<Requester> make_requester(const NodePointer &node, const Service &service, const Qos &qos,
                                          const Wake &wake);
std::unique_ptr<Replier> make_replier(const NodePointer &node, const Service &service, const Qos &qos,
                                      const Wake &wake);

}  // namespace tide::agent
