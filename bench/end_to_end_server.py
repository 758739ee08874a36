# SPDX-License-Identifier: Apache-2.0
"""A ROS 2 node as any other: serves /throughput (std_srvs/SetBool). bench/end_to_end.py starts it."""

import contextlib
import os

# Agents are built with other versions of Fast DDS than rclpy, whose segments of shared memory differ.
os.environ["FASTDDS_BUILTIN_TRANSPORTS"] = "UDPv4"

import rclpy
from rclpy.executors import ExternalShutdownException
from std_srvs.srv import SetBool


def answer(request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
    response.success = request.data
    return response


def main() -> None:
    rclpy.init()
    node = rclpy.create_node("throughput_server")
    node.create_service(SetBool, "/throughput", answer)
    print('{"ready": true}', flush=True)
    rclpy.spin(node)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt, ExternalShutdownException):
        main()
