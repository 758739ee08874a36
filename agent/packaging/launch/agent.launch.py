# SPDX-License-Identifier: Apache-2.0
"""Starts the agent, and restarts it when it ends: ros2 launch tide_agent agent.launch.py arguments:='--udp 8888'."""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, ExecuteProcess, OpaqueFunction
from launch.substitutions import LaunchConfiguration


def start(context, *_):
    words = LaunchConfiguration("arguments").perform(context).split()
    seconds = float(LaunchConfiguration("respawn_delay").perform(context))
    return [
        ExecuteProcess(
            cmd=["tide-agent", *words],
            name="tide_agent",
            output="screen",
            respawn=LaunchConfiguration("respawn").perform(context) == "true",
            respawn_delay=seconds,
        )
    ]


def generate_launch_description():
    return LaunchDescription(
        [
            DeclareLaunchArgument("arguments", default_value="--udp 8888", description="Options of tide-agent."),
            DeclareLaunchArgument("respawn", default_value="true", description="Start the agent again when it ends."),
            DeclareLaunchArgument("respawn_delay", default_value="1.0", description="Seconds until then."),
            OpaqueFunction(function=start),
        ]
    )
