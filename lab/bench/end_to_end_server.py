# SPDX-License-Identifier: Apache-2.0
"""An ordinary ROS 2 node that serves /throughput (std_srvs/SetBool). lab/bench/end_to_end.py starts it."""

import contextlib
import os

# The versions of Fast DDS in the agents and in rclpy differ, and so do their formats of shared memory.
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
