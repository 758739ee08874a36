/* SPDX-License-Identifier: Apache-2.0 */
#include "tide/status.h"

const char *tide_status_text(int status) {
  if (status >= 0) return "success";
  switch ((tide_status_t)status) {
    case TIDE_ERROR_ARGUMENT: return "an argument is null or outside its range";
    case TIDE_ERROR_STATE: return "not allowed in this state";
    case TIDE_ERROR_FULL: return "a fixed pool or queue is full";
    case TIDE_ERROR_TOO_LARGE: return "larger than the buffer that has to hold it";
    case TIDE_ERROR_MALFORMED: return "bytes that violate the format";
    case TIDE_ERROR_CHECKSUM: return "a frame with a wrong checksum";
    case TIDE_ERROR_TIMEOUT: return "the deadline passed first";
    case TIDE_ERROR_DISCONNECTED:
      return "no session with an agent: is the agent running, and is the link's address right?";
    case TIDE_ERROR_REFUSED: return "the agent refused the request";
    case TIDE_ERROR_VERSION: return "the agent speaks another protocol or version";
    case TIDE_ERROR_NOT_FOUND: return "no such object";
    case TIDE_ERROR_EXISTS: return "already there";
    case TIDE_ERROR_LINK: return "the link could not be opened or was cut";
    case TIDE_ERROR_EXPIRED: return "not delivered in time";
    case TIDE_ERROR_UNSUPPORTED: return "this build does not include this feature";
    case TIDE_ERROR_CAPACITY_NODES: return "the pool of nodes is used up";
    case TIDE_ERROR_CAPACITY_PUBLISHERS: return "the pool of publishers is used up";
    case TIDE_ERROR_CAPACITY_SUBSCRIPTIONS: return "the pool of subscriptions is used up";
    case TIDE_ERROR_CAPACITY_HANDLES: return "the executor's handles are used up";
    case TIDE_ERROR_CAPACITY_STREAMS:
      return "the streams are used up: one is needed for each chain level and reliability";
    case TIDE_ERROR_CAPACITY_OBJECTS: return "the table of objects on the agent is used up";
    case TIDE_ERROR_CAPACITY_NAMES: return "a name is longer than its buffer";
    case TIDE_ERROR_CAPACITY_MESSAGE: return "a received string or sequence does not fit the memory of its message";
    case TIDE_ERROR_NOT_PERMITTED: return "the operating system does not allow it to this user";
    case TIDE_ERROR_CAPACITY_TIMERS: return "the pool of timers is used up";
    case TIDE_ERROR_CAPACITY_GUARD_CONDITIONS: return "the pool of guard conditions is used up";
    case TIDE_ERROR_CAPACITY_EXECUTORS: return "the pool of executors is used up";
    case TIDE_ERROR_CAPACITY_LANES: return "more lanes than TIDE_EXECUTOR_LANES of <tide/pools.h>";
    case TIDE_ERROR_CAPACITY_GROUPS: return "the pool of callback groups is used up (TIDE_GROUPS of <tide/pools.h>)";
    case TIDE_ERROR_CAPACITY_LOCAL_TOPICS:
      return "more ends of local topics than TIDE_LOCAL_TOPICS and TIDE_LOCAL_SUBSCRIPTIONS of <tide/pools.h>";
    case TIDE_ERROR_CAPACITY_LOCAL_MESSAGES:
      return "TIDE_LOCAL_MESSAGES of <tide/pools.h> does not cover one more publisher or subscription";
    case TIDE_ERROR_CAPACITY_SERVICES: return "the pool of services is used up (TIDE_SERVICES of <tide/pools.h>)";
    case TIDE_ERROR_CAPACITY_CLIENTS: return "the pool of clients is used up (TIDE_CLIENTS of <tide/pools.h>)";
    case TIDE_ERROR_NO_HEAP:
      return "no default allocator: build with TIDE_HEAP=1 or call rcutils_set_default_allocator";
    case TIDE_ERROR_CAPACITY_ACTIONS: return "the pool of servers and clients of actions is used up";
    case TIDE_ERROR_CAPACITY_GOALS:
      return "the goals are used up: those of the program, or those of this server or client";
    case TIDE_ERROR_CAPACITY_PARAMETERS:
      return "parameters are used up: TIDE_PARAMETER_SERVERS, TIDE_PARAMETERS of <tide/pools.h> or max_params";
    case TIDE_ERROR_NAME:
      return "a name violates the rules of ROS 2: letters, digits and _, no digit first, / between the parts";
    case TIDE_OK: break;
  }
  return "unknown status";
}
