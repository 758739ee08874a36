// SPDX-License-Identifier: Apache-2.0
// Subscriptions, services, clients and guards of plain rcl in an engine, by the middleware's own callbacks: no wait
// set.
//
//   tide_rcl::Engine engine;
//   auto scan = std::make_shared<tide_rcl::Subscription>(&subscription, make_message, on_message);
//   engine.add(scan, TIDE_PRIORITY(2, 1));
//   engine.spin();
//
// What rcl made stays the program's and outlives its place in the engine. While it is there, nobody else sets its
// on-new callback or takes from it. One run takes one message.
#pragma once

#include <functional>
#include <memory>

#include "rcl/client.h"
#include "rcl/service.h"
#include "rcl/subscription.h"
#include "tide_rcl/arrivals.h"

namespace tide_rcl {

// A message, request or response of the right type to take into; called for each run.
using MakeMessage = std::function<std::shared_ptr<void>()>;

class SubscriptionEntity : public Arrivals {
 protected:
  explicit SubscriptionEntity(rcl_subscription_t *subscription);
  void connect() override;
  void disconnect() noexcept override;
  // False: there was none (any more).
  static bool took(rcl_ret_t result);

  rcl_subscription_t *subscription_;
};

// Copies the message.
class Subscription final : public SubscriptionEntity {
 public:
  using Function = std::function<void(const std::shared_ptr<void> &message, const rmw_message_info_t &info)>;
  Subscription(rcl_subscription_t *subscription, MakeMessage make, Function function);

 private:
  void take() override;
  MakeMessage make_;
  Function function_;
};

// The bytes as they came; they are the function's for the length of its call.
class SerializedSubscription final : public SubscriptionEntity {
 public:
  using Function = std::function<void(const rcl_serialized_message_t &message, const rmw_message_info_t &info)>;
  SerializedSubscription(rcl_subscription_t *subscription, Function function);

 private:
  void take() override;
  Function function_;
};

// The middleware's own memory, lent for the length of the call. std::invalid_argument: the middleware does not lend
// messages of this type (rcl_subscription_can_loan_messages).
class LoanedSubscription final : public SubscriptionEntity {
 public:
  using Function = std::function<void(const void *message, const rmw_message_info_t &info)>;
  LoanedSubscription(rcl_subscription_t *subscription, Function function);

 private:
  void take() override;
  Function function_;
};

// The function answers by rcl_send_response, then or later.
class Service final : public Arrivals {
 public:
  using Function = std::function<void(const rmw_request_id_t &id, const std::shared_ptr<void> &request)>;
  Service(rcl_service_t *service, MakeMessage make_request, Function function);

 private:
  void take() override;
  void connect() override;
  void disconnect() noexcept override;
  rcl_service_t *service_;
  MakeMessage make_;
  Function function_;
};

class Client final : public Arrivals {
 public:
  using Function = std::function<void(const rmw_request_id_t &id, const std::shared_ptr<void> &response)>;
  Client(rcl_client_t *client, MakeMessage make_response, Function function);

 private:
  void take() override;
  void connect() override;
  void disconnect() noexcept override;
  rcl_client_t *client_;
  MakeMessage make_;
  Function function_;
};

// A guard condition: the middleware's have no callbacks, so this one is the engine's. trigger makes it ready once,
// however often it is called before it runs.
class Guard final : public Entity {
 public:
  explicit Guard(std::function<void()> function);
  void trigger() noexcept;

 private:
  void run() override;
  void connect() override;
  std::function<void()> function_;
  std::atomic<bool> triggered_{false};
};

}  // namespace tide_rcl
