/* SPDX-License-Identifier: Apache-2.0 */
/* Return values of every function of tide: zero or a positive count for success, one negative code per cause. */
#ifndef TIDE_STATUS_H
#define TIDE_STATUS_H

#include "tide/base/extern_c.h"

TIDE_EXTERN_C_BEGIN

/* The codes from -39 to -42 are in tide/lock.h. */
typedef enum tide_status {
  TIDE_OK = 0,
  TIDE_ERROR_ARGUMENT = -1,        /* a pointer is null, a size is zero or not aligned, a value is outside its range */
  TIDE_ERROR_STATE = -2,           /* not allowed now: not initialised, already initialised, called from a callback */
  TIDE_ERROR_FULL = -3,            /* a fixed pool or queue is full */
  TIDE_ERROR_TOO_LARGE = -4,       /* larger than the buffer or the stream can ever hold */
  TIDE_ERROR_MALFORMED = -5,       /* bytes that violate the format */
  TIDE_ERROR_CHECKSUM = -6,        /* a frame whose CRC is wrong */
  TIDE_ERROR_TIMEOUT = -7,         /* the deadline passed first */
  TIDE_ERROR_DISCONNECTED = -8,    /* there is no session with an agent */
  TIDE_ERROR_REFUSED = -9,         /* the agent answered with an error status */
  TIDE_ERROR_VERSION = -10,        /* the agent speaks another protocol or version */
  TIDE_ERROR_NOT_FOUND = -11,      /* no such object, stream or handle */
  TIDE_ERROR_EXISTS = -12,         /* the object exists already */
  TIDE_ERROR_LINK = -13,           /* the link could not be opened or was cut */
  TIDE_ERROR_EXPIRED = -14,        /* a message was dropped because it was not delivered in time */
  TIDE_ERROR_UNSUPPORTED = -15,    /* this build, port or configuration does not support the call */
  TIDE_ERROR_CAPACITY_NODES = -16, /* a limit of the program was reached, which the code names */
  TIDE_ERROR_CAPACITY_PUBLISHERS = -17,
  TIDE_ERROR_CAPACITY_SUBSCRIPTIONS = -18,
  TIDE_ERROR_CAPACITY_HANDLES = -19,
  TIDE_ERROR_CAPACITY_STREAMS = -20,
  TIDE_ERROR_CAPACITY_OBJECTS = -21,
  TIDE_ERROR_CAPACITY_NAMES = -22,
  TIDE_ERROR_CAPACITY_MESSAGE = -23, /* a received string or sequence does not fit the memory of the message */
  TIDE_ERROR_NOT_PERMITTED = -24,    /* the operating system does not permit the operation to this user */
  TIDE_ERROR_CAPACITY_TIMERS = -25,
  TIDE_ERROR_CAPACITY_GUARD_CONDITIONS = -26,
  TIDE_ERROR_CAPACITY_EXECUTORS = -27,
  TIDE_ERROR_NAME = -28,                    /* a name violates the rules of ROS 2 */
  TIDE_ERROR_CAPACITY_LANES = -29,          /* more lanes than the program's TIDE_EXECUTOR_LANES */
  TIDE_ERROR_CAPACITY_GROUPS = -30,         /* more callback groups than TIDE_GROUPS */
  TIDE_ERROR_CAPACITY_LOCAL_TOPICS = -31,   /* local delivery: more than TIDE_LOCAL_TOPICS or _SUBSCRIPTIONS */
  TIDE_ERROR_CAPACITY_LOCAL_MESSAGES = -32, /* local delivery: too few TIDE_LOCAL_MESSAGES */
  TIDE_ERROR_CAPACITY_SERVICES = -33,
  TIDE_ERROR_CAPACITY_CLIENTS = -34,
  TIDE_ERROR_NO_HEAP = -35, /* the default allocator was called in a build without a heap */
  TIDE_ERROR_CAPACITY_ACTIONS = -36,
  TIDE_ERROR_CAPACITY_GOALS = -37,
  TIDE_ERROR_CAPACITY_PARAMETERS = -38
} tide_status_t;

/* One line in plain words for a status code; never null. The text is static, and any context may call the function. */
const char *tide_status_text(int status);

TIDE_EXTERN_C_END
#endif
