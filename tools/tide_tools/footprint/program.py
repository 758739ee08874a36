# SPDX-License-Identifier: Apache-2.0
"""C code for a described client: the header with the sizes of its pools, and a program that uses all pools. Messages
are plain bytes and callbacks are empty, because both belong to the application."""

from __future__ import annotations

from tide_tools.analysis.sizing import Client, Endpoint, pools


def header(client: Client, source: str) -> str:
    """The header: sizes of the pools, and macros for the arguments of tide_chain_init, so that the source need not
    repeat them."""
    lines = [f"#define {name} {value}" for name, value in pools(client).items()]
    for chain in client.chains:
        name = f"CHAIN_{chain.name.upper()}"
        lines += [
            f"#define {name}_LEVEL {client.levels[chain.name]}u",
            f"#define {name}_PERIOD_NS INT64_C({chain.period_ns})",
            f"#define {name}_DEADLINE_NS INT64_C({chain.deadline_ns})",
        ]
    return "\n".join(
        [
            f"/* Made from {source} by `tide footprint`. Include it where the program defines its pools:",
            " *   #define TIDE_DEFINE_POOLS",
            ' *   #include "this file"',
            " *   #include <tide/pools.h>",
            " */",
            "#ifndef TIDE_SYSTEM_POOLS_H",
            "#define TIDE_SYSTEM_POOLS_H",
            *lines,
            "#endif",
            "",
        ]
    )


def _type(index: int, end: Endpoint) -> list[str]:
    size = end.payload_bytes
    return [
        f"static uint8_t message_{index}[{size}];",
        f"static void encode_{index}(tide_cdr_t *cdr, const void *message) "
        f"{{ tide_cdr_put_bytes(cdr, message, {size}); }}",
        f"static void decode_{index}(tide_cdr_t *cdr, void *message) {{ tide_cdr_get_bytes(cdr, message, {size}); }}",
        f'static const tide_message_type_t type_{index} = {{.dds_name = "{end.dds_type}", .structure_bytes = {size}, '
        f".maximum_bytes = {size}, .encode = encode_{index}, .decode = decode_{index}}};",
        f"static const rosidl_message_type_support_t support_{index} = {{TIDE_TYPESUPPORT_IDENTIFIER, &type_{index}, "
        "get_message_typesupport_handle_function};",
    ]


def _qos(end: Endpoint) -> str:
    return "&rmw_qos_profile_default" if end.reliable else "&rmw_qos_profile_sensor_data"


def program(client: Client) -> str:
    ends = [*client.publications, *client.subscriptions]
    ends += [end for one in client.services for end in (one.sends, one.takes)]
    number = {id(end): index for index, end in enumerate(ends)}
    lines = [
        "#define TIDE_DEFINE_POOLS",
        '#include "system_pools.h"',
        "#include <tide/pools.h>",
        '#include "board.h"',
        "#include <rclc/client.h>",
        "#include <rclc/service.h>",
        "#include <tide/message_memory.h>",
        "#include <tide/rclc_service.h>",
        '#include "uart.h"',
        "static uint8_t piece[32], ring[256];",
        "const tide_uart_board_t tide_uart_board = {&tide_mps2_uart, piece, sizeof piece, ring, sizeof ring};",
        "static rclc_support_t support;",
        "static rcl_node_t node;",
        "static rclc_executor_t executor;",
        f"static rcl_timer_t timers[{max(1, len(client.timers))}];",
        f"static rcl_publisher_t publishers[{max(1, len(client.publications))}];",
        f"static rcl_subscription_t subscriptions[{max(1, len(client.subscribed))}];",
        f"static rcl_service_t services[{max(1, len(client.served))}];",
        f"static rcl_client_t clients[{max(1, client.clients)}];",
        f"static tide_chain_t chains[{max(1, len(client.chains))}];",
    ]
    for index, end in enumerate(ends):
        lines += _type(index, end)
    asked = [one for one in client.services if one.is_client]
    served = client.served
    for index, one in enumerate(client.services):
        request, reply = (one.sends, one.takes) if one.is_client else (one.takes, one.sends)
        lines += [
            f'static const tide_service_type_t service_type_{index} = {{"{one.package}", "{one.type}", '
            f"&type_{number[id(request)]}, &type_{number[id(reply)]}}};",
            f"static const rosidl_service_type_support_t service_support_{index} = {{TIDE_TYPESUPPORT_IDENTIFIER, "
            f"&service_type_{index}, get_service_typesupport_handle_function}};",
        ]
    if asked:
        lines.append("static int64_t number_of_request;")
    lines += [
        "static void publish_all(void) {",
        *(
            f"  (void)rcl_publish(&publishers[{index}], message_{number[id(end)]}, NULL);"
            for index, end in enumerate(client.publications)
        ),
        *(
            f"  (void)rcl_send_request(&clients[{index}], message_{number[id(one.sends)]}, &number_of_request);"
            for index, one in enumerate(asked)
        ),
        "}",
        "static void on_timer(rcl_timer_t *timer, int64_t last) { (void)timer; (void)last; publish_all(); }",
        "static void on_message(const void *message) { (void)message; publish_all(); }",
        *(["static void on_reply(const void *reply) { (void)reply; publish_all(); }"] if asked else []),
        *(
            ["static void on_request(const void *request, void *reply) { (void)request; (void)reply; publish_all(); }"]
            if served
            else []
        ),
        "int main(void) {",
        "  rcl_allocator_t allocator = rcl_get_default_allocator();",
        "  int errors = rclc_support_init(&support, 0, NULL, &allocator);",
        '  errors += rclc_node_init_default(&node, "client", "", &support);',
        "  errors += rclc_executor_init(&executor, &support.context, TIDE_HANDLES, &allocator);",
    ]
    chain_at = {chain.name: index for index, chain in enumerate(client.chains)}
    sender_at = {id(one): index for index, chain in enumerate(client.chains) for one in chain.callbacks}
    for chain, index in zip(client.chains, chain_at.values(), strict=True):
        level = client.levels[chain.name]
        lines.append(f'  errors += tide_chain_init(&chains[{index}], "{chain.name}", {level}, 1000000, 1000000);')
    for index, (chain, _) in enumerate(client.timers):
        lines += [
            f"  errors += rclc_timer_init_default(&timers[{index}], &support, RCL_MS_TO_NS(100), on_timer);",
            f"  errors += rclc_executor_add_timer(&executor, &timers[{index}]);",
            f"  errors += tide_rclc_chain_add_timer(&chains[{chain_at[chain.name]}], &timers[{index}]);",
        ]
    for index, end in enumerate(client.publications):
        lines += [
            f"  errors += rclc_publisher_init(&publishers[{index}], &node, &support_{number[id(end)]}, "
            f'"{end.topic}", {_qos(end)});',
            f"  errors += tide_rclc_chain_add_publisher(&chains[{sender_at[id(end.callback)]}], &publishers[{index}]);",
        ]
    for index, (end, *_) in enumerate(client.subscribed):
        item = number[id(end)]
        lines += [
            f"  errors += rclc_subscription_init(&subscriptions[{index}], &node, &support_{item}, "
            f'"{end.topic}", {_qos(end)});',
            f"  errors += rclc_executor_add_subscription(&executor, &subscriptions[{index}], message_{item}, "
            "on_message, ON_NEW_DATA);",
            f"  errors += tide_rclc_chain_add_subscription(&chains[{chain_at[end.chain.name]}], "
            f"&subscriptions[{index}]);",
        ]
    supports = {id(one): f"service_support_{index}" for index, one in enumerate(client.services)}
    for index, one in enumerate(asked):
        lines += [
            f'  errors += rclc_client_init_default(&clients[{index}], &node, &{supports[id(one)]}, "{one.service}");',
            f"  errors += rclc_executor_add_client(&executor, &clients[{index}], "
            f"message_{number[id(one.takes)]}, on_reply);",
            f"  errors += tide_rclc_chain_add_client(&chains[{chain_at[one.sends.chain.name]}], &clients[{index}]);",
        ]
    for index, one in enumerate(served):
        lines += [
            f'  errors += rclc_service_init_default(&services[{index}], &node, &{supports[id(one)]}, "{one.service}");',
            f"  errors += rclc_executor_add_service(&executor, &services[{index}], message_{number[id(one.takes)]}, "
            f"message_{number[id(one.sends)]}, on_request);",
            f"  errors += tide_rclc_chain_add_service(&chains[{chain_at[one.sends.chain.name]}], &services[{index}]);",
        ]
    return "\n".join([*lines, "  return errors != 0 ? 1 : rclc_executor_spin(&executor);", "}", ""])
