/* SPDX-License-Identifier: Apache-2.0 */
/* The client's session with an agent. It connects, creates the program's objects, keeps the connection alive, and
 * detects when the agent is gone or was restarted. Then the session reconnects by itself, creates everything again, and
 * resends the messages that were not acknowledged.
 *
 * The session has no thread of its own and does not block: tide_session_poll drives it, called from the link's context
 * (POSIX) or from the executor (bare metal). Only tide_session_wait_* block, for programs that set up step by step.
 *
 * Contexts. Any thread may call write_*. Any thread or interrupt may call poll; one caller does the work, and the
 * others return at once. Only threads may call open, close, add_*, remove_*, set_* and wait_*. Only the lane that runs
 * the reader's callback may call peek and take_done. Received frames are delivered by tide_daemon_process_*, which the
 * lanes of executors call, any number at a time, or a tide_session_wait_* while no executor runs.
 *
 * Order in a new session: first every object, then the readers, then the samples that were kept, then new samples. Kept
 * samples wait in the session, not in the streams, so they get later sequence numbers than the creations. */
#ifndef TIDE_SESSION_H
#define TIDE_SESSION_H

#include "tide/daemon.h"
#include "tide/message.h"

TIDE_EXTERN_C_BEGIN

typedef enum tide_session_state {
  TIDE_SESSION_IDLE,       /* not opened, or closed */
  TIDE_SESSION_CONNECTING, /* CREATE_CLIENT sent, no answer yet */
  TIDE_SESSION_CREATING,   /* the objects are being created */
  TIDE_SESSION_READY,
  TIDE_SESSION_REFUSED, /* the agent refused the client (version, key), see refusal; the session retries slowly */
  TIDE_SESSION_CLOSING  /* DELETE of the client sent, no answer yet; IDLE after four unanswered ones */
} tide_session_state_t;

typedef enum tide_object_state {
  TIDE_OBJECT_WAITING, /* waits for a session, or for earlier creations */
  TIDE_OBJECT_ASKED,   /* CREATE sent, no answer yet */
  TIDE_OBJECT_CREATED,
  TIDE_OBJECT_REFUSED, /* see status; retried in the next session only */
  TIDE_OBJECT_REMOVED  /* not in the table */
} tide_object_state_t;

/* One object of the program on the agent; the session keeps it, so that each new session can create it again. */
typedef struct tide_object {
  tide_xrce_object_t description; /* the description's strings belong to the caller and must outlive the object */
  uint16_t id;                    /* 0: assigned at registration, counting up by kind; any other value is kept */
  uint8_t state;                  /* tide_object_state_t */
  uint8_t status;                 /* the agent's last status for this object */
  uint16_t request;               /* id of the pending request */
  int64_t retry_at_ns;
} tide_object_t;

struct tide_reader;
/* A reader is a subscription's part in the session: it requests samples and queues the last `depth` of them, which stay
 * in their frame slots. */
typedef struct tide_sample {
  const uint8_t *bytes;
  uint32_t length;
  void *memory;
  bool reassembled;
  bool big_endian; /* byte order of the serialised sample; headers of requests and replies are little-endian */
  int64_t arrived_ns;
} tide_sample_t;

typedef struct tide_reader {
  uint16_t object;          /* id of its datareader, requester or replier */
  uint16_t request;         /* id of the READ_DATA: samples carry it */
  tide_priority_t priority; /* priority of the callback; the level in it selects the stream */
  uint8_t owner;            /* number of the executor that processes its frames (TIDE_FRAME_OWNER); 0: any */
  bool reliable;
  bool keep_all;            /* when `depth` samples are queued, further samples wait, and their stream with them */
  uint8_t keep_last;        /* history depth: beyond it, samples that have waited for more than TIDE_BURST_NS are
                               dropped for newer ones. May exceed `depth`: the other samples then wait in their slots as
                               long as no other reader needs these slots. 0: further samples do not wait in slots */
  uint16_t max_samples;     /* the agent stops after that many samples in each session; 0: no limit */
  uint16_t max_elapsed_s;   /* 0: no limit */
  uint16_t max_bytes_per_s; /* 0: no limit */
  uint16_t min_pace_ms;     /* least time between samples; 0: no limit */
  uint8_t state;            /* tide_object_state_t; CREATED: the READ_DATA was sent */
  uint8_t status;           /* the agent's last status for the READ_DATA */
  uint8_t repeats;          /* repeats of the READ_DATA on a best-effort object stream */
  int64_t retry_at_ns;
  tide_sample_t *samples; /* ring of `depth` elements */
  uint8_t depth, first;
  uint8_t count;              /* samples queued, except the one being taken */
  tide_sample_t current;      /* the sample being taken; memory is null when there is none */
  uint32_t received, dropped; /* dropped: oldest samples removed from a full queue */
  uint32_t undelivered;       /* of a service or client: replies or requests that the agent dropped, as it reported,
                                 because no client or server was there to get them */
  tide_account_t account;     /* the reader's slots, of which at most `depth` are reserved; counts frames dropped for
                               * lack of slots */
  /* Called from tide_daemon_process_* when one more sample is queued or `undelivered` has risen, outside the critical
   * section. May be null. */
  void (*on_sample)(void *context, struct tide_reader *reader);
  void *context;
  struct tide_reader *next;
} tide_reader_t;

#define TIDE_SESSION_CREATE_PLAIN 0x80u

typedef struct tide_session_config {
  tide_daemon_config_t daemon; /* the session fills in the receiver's callbacks */
  uint32_t key;                /* client key, not 0; unique among the clients of an agent */
  uint8_t session;             /* id of the first session, 0x81 as the stock client; below 0x80 headers carry the key.
                                  Each later session increments it, so that late frames of an earlier session (delayed
                                  by the network or a radio) are recognised. tide's agent keeps the entities; a stock
                                  agent creates them again, as after a restart */
  tide_object_t **objects;     /* table of object_count elements */
  size_t object_count;
  uint16_t mtu;              /* MTU of the transport; announced as mtu - 4 */
  uint16_t vendor;           /* written into CREATE_CLIENT; default TIDE_XRCE_VENDOR */
  uint8_t object_stream;     /* stream of CREATE, DELETE and READ_DATA; default TIDE_STREAM_REQUESTS, or
                                TIDE_STREAM_BEST_EFFORT(0) in a build without reliable streams. On a best-effort stream
                                the requests are repeated until answered, READ_DATA twice */
  uint8_t create_flags;      /* TIDE_XRCE_FLAG_REUSE, _REPLACE; 0: both flags; TIDE_SESSION_CREATE_PLAIN: no flag */
  uint8_t creations_at_once; /* unanswered CREATEs at a time; default 4; 1 on a best-effort stream */
  int64_t connect_period_ns; /* time between unanswered CREATE_CLIENTs; default 1 s. The first three intervals are a
                                fifth of it; after a refusal the intervals are five times as long */
  int64_t request_period_ns; /* time between repeats of a request without an answer; default 1 s */
  int64_t silence_limit_ns;  /* after this time without a message the session sends a GET_INFO; default 1 s. It
                                reconnects after eight unanswered GET_INFOs (at intervals of half this time), or when
                                the answer is "no session" */
  void (*on_state)(void *context, tide_session_state_t state); /* may be null; called from the context of poll */
  /* tide_session_poll must be called before the time that it last returned: wake its caller. Called from any context,
   * never with the critical section held. May be null. */
  void (*on_work)(void *context);
  void *context;
} tide_session_config_t;

typedef struct tide_session_counters {
  uint32_t connects, reconnects, objects_created, requests_repeated, pings, statuses_unexpected, samples_unwanted;
  uint32_t samples_malformed; /* DATA of an unknown format or truncated */
  uint32_t samples_too_large; /* samples that tide's agent dropped because no message can carry them; the agent reported
                                 their number */
  uint32_t undelivered;       /* sum of the readers' */
  uint32_t held_maximum;      /* largest number of samples kept while there was no session */
  uint32_t polls;             /* calls of poll; reveals a busy-waiting caller */
} tide_session_counters_t;

typedef struct tide_time_sync {
  int64_t offset_ns;     /* the agent's wall clock minus our monotonic clock, filtered */
  int64_t round_trip_ns; /* round trip of the best recent exchange */
  uint32_t exchanges;    /* 0: never synchronised */
  uint32_t ignored;      /* late or foreign replies */
} tide_time_sync_t;

#define TIDE_SESSION_READER_BUCKETS 8u
#define TIDE_SESSION_TIME_SAMPLES (TIDE_LEAN ? 1u : 8u)

typedef struct tide_session {
  /* The most frequently used members come first, where the shortest instructions can address them. */
  tide_session_state_t state;
  uint8_t id;   /* id of the session, or of the requested one */
  bool id_used; /* the agent has accepted it */
  bool readers_waiting;
  bool wanted; /* opened, and not closed since */
  uint8_t attempts, unanswered_pings;
  bool ping_under_way;
  bool ping_asked; /* the program's ping is not answered yet */
  bool polling, poll_again, poll_refused;
  bool waiting;
  /* Set by the reception handler, handled by poll. */
  bool agent_answered, agent_lost, info_due, close_answered, reset_due, work_noted;
  bool reserve_needed;
  bool info_knows_us; /* the agent's last INFO says that it knows this session */
  bool time_sync_under_way;
  uint8_t refusal;       /* status from the agent; 0x86 if its version does not fit */
  uint16_t next_request; /* starts at 10, as ids below are reserved */
  uint16_t objects_unanswered, objects_refused, deletes_unanswered;
  uint16_t ping_request, info_request;
  uint16_t agent_vendor; /* vendor id of the agent that accepted us */
  uint16_t held_count;
  size_t objects_used;
  tide_node_t *held_first, *held_last; /* reliable samples kept until their objects exist, oldest first */
  tide_node_t *reserve; /* a node reserved for requests, so that objects can be created however many samples are kept */
  uint32_t request_bytes_maximum;
  int64_t deadline_ns; /* the time that poll last returned; TIDE_FOREVER while a poll runs */
  int64_t state_since_ns;
  int64_t progress_ns;   /* last answer to a creation */
  int64_t request_at_ns; /* time of the next CREATE_CLIENT or DELETE of the client */
  int64_t ping_sent_ns;
  int64_t ping_round_trip_ns; /* round trip of the last answered ping; -1 before */
  uint32_t ping_answers;      /* number of answered pings; needed because a new ping resets the round trip */
  tide_xrce_status_agent_t agent_answer;
  tide_reader_t *readers[TIDE_SESSION_READER_BUCKETS]; /* indexed by object number */
  uint16_t object_numbers[9];                          /* last number given, by kind */
  tide_event_t changed; /* set when state, a status, a ping or the time synchronisation changes */
  tide_session_counters_t counters;
  tide_time_sync_t time_sync;
  int64_t time_sync_sent_ns;
  struct {
    int64_t offset_ns, round_trip_ns;
  } time_samples[TIDE_SESSION_TIME_SAMPLES];
  uint8_t time_sample_count, time_sample_next;
  tide_session_config_t config;
  tide_daemon_t daemon;
} tide_session_t;

int tide_session_init(tide_session_t *session, const tide_session_config_t *config);
/* Start to connect, and connect again whenever the connection is lost. */
void tide_session_open(tide_session_t *session);
/* End the session (DELETE of the client) and stop. Messages in the streams are sent first, for a fifth of
 * connect_period_ns at most; kept samples are discarded. Objects and readers stay registered. Asynchronous: wait with
 * tide_session_wait_state(IDLE). */
void tide_session_close(tide_session_t *session);

/* Do due work: retries, pings, creation of objects, and tide_daemon_poll. Returns when to call it again; also call it
 * after every reception. Only one caller does the work. A second caller, perhaps an interrupt that preempts the first,
 * returns at once and is notified by on_work when the first is done. */
int64_t tide_session_poll(tide_session_t *session);
/* Like tide_session_poll, after a reception. As long as the session has nothing to do before the time that poll last
 * returned, it takes a quarter of the instructions of poll. It is meant for links with a thread; boards without one
 * save its 200 bytes of code. */
int64_t tide_session_poll_received(tide_session_t *session);

/* Register an object. The object gets its id and is created as soon as there is a session, in the order of
 * registration. So register parents before children. TIDE_ERROR_CAPACITY_OBJECTS: the table is full, or all 4,095
 * numbers of the kind are used. TIDE_ERROR_TOO_LARGE: no node can hold its CREATE. TIDE_ERROR_EXISTS: registered
 * already. */
int tide_session_add_object(tide_session_t *session, tide_object_t *object);
/* Remove an object and delete it on the agent; the structure belongs to the caller again at once. The DELETE may
 * overtake samples of the object, so wait until these are acknowledged (tide_session_is_idle). TIDE_ERROR_FULL: no node
 * is free for the DELETE, and nothing was changed. TIDE_ERROR_NOT_FOUND: it is not registered. */
int tide_session_remove_object(tide_session_t *session, tide_object_t *object);

/* Add a reader: it requests samples (READ_DATA) once its object exists, and again after each reconnection. A new
 * priority moves the reader to the stream of that level; frames that were received already keep the old one. Removing
 * releases the queued samples; do not remove a reader while its sample is being taken. TIDE_ERROR_FULL from remove: the
 * reader was removed, but no node was free to report that to the agent. */
int tide_session_add_reader(tide_session_t *session, tide_reader_t *reader);
int tide_session_remove_reader(tide_session_t *session, tide_reader_t *reader);
/* Set the only executor that processes the reader's frames from now on (see tide_frame_share_t); 0: any. */
void tide_session_set_reader_owner(tide_session_t *session, tide_reader_t *reader, uint8_t owner);
int tide_session_set_reader_priority(tide_session_t *session, tide_reader_t *reader, tide_priority_t priority);

/* True when the reader of the share's most urgent frame has room for it. Also true when the frame must replace an older
 * sample (keep_last), because the history is full or frames of other readers wait behind it. No sample of a burst is
 * lost: samples that arrived less than TIDE_BURST_NS ago are kept, and later ones wait in their slots. Any context may
 * call it. */
bool tide_session_is_welcome(tide_session_t *session, const tide_frame_share_t *share);
/* Number of samples in the reader's queue. */
size_t tide_session_queued(tide_session_t *session, const tide_reader_t *reader);
/* Returns the oldest queued sample, or null. The sample stays valid until tide_session_take_done, whatever arrives.
 * Until then peek returns the same sample. Only one context may take from a reader. */
const tide_sample_t *tide_session_peek(tide_session_t *session, tide_reader_t *reader);
void tide_session_take_done(tide_session_t *session, tide_reader_t *reader);

/* Services. A request that a replier receives begins with an identity of TIDE_SAMPLE_IDENTITY_BYTES bytes, which names
 * the requester and the request; the reply must begin with the same identity. A reply that a requester receives begins
 * with a header of TIDE_REPLY_HEADER_BYTES bytes: the ids of the requester's request, which tide_xrce_get_request
 * reads. CDR alignment starts after the identity or the header. */
#define TIDE_SAMPLE_IDENTITY_BYTES 24u
#define TIDE_REPLY_HEADER_BYTES 4u

/* Bytes of a node used besides the sample's payload: the submessage header and two ids. */
#define TIDE_WRITE_HEADER_BYTES 8u

/* Publish. tide_session_write_begin reserves a node, writes the WRITE_DATA header, and leaves the writer at the
 * payload. tide_session_write_end submits the node.
 *   tide_write_t write;
 *   if (tide_session_write_begin(...) == TIDE_OK) { encode into write.cdr; status = tide_session_write_end(&write); }
 * bytes: the size of the serialised sample, at most 65,531; fewer may be written. While there is no session, or the
 * object is not yet created, reliable samples are kept as long as there are nodes, and best-effort samples are refused.
 * One node always stays free for the creation of objects, so give reliable writers two or more nodes. All samples are
 * refused while the session is closing. TIDE_ERROR_DISCONNECTED: refused for one of these reasons. TIDE_ERROR_FULL: no
 * node is free. TIDE_ERROR_REFUSED: the agent refused the object. */
typedef struct tide_write {
  tide_session_t *session;
  tide_node_t *node;
  tide_cdr_t cdr;
  uint8_t stream;
  uint16_t keep_last;
} tide_write_t;
int tide_session_write_begin(tide_session_t *session, tide_write_t *write, uint16_t object, bool reliable,
                             tide_priority_t priority, uint32_t bytes);
/* Whose samples are written. keep_last: the depth for a best-effort writer with history KEEP_LAST, else 0. Older
 * samples of the object that wait for the link are evicted and counted (tide_transmitter_keep_last). If no node is
 * free, the oldest sample of the writer with the most waiting samples is evicted (tide_transmitter_acquire_last). So a
 * line that cannot carry all samples carries the newest. The lean profile ignores keep_last. */
typedef struct tide_writer {
  uint16_t object, keep_last;
  tide_priority_t priority;
  bool reliable;
} tide_writer_t;
/* Like tide_session_write_begin; no pointer may be null. */
int tide_session_write_begin_by(tide_session_t *session, tide_write_t *write, const tide_writer_t *writer,
                                uint32_t bytes);
int tide_session_write_end(tide_write_t *write);
void tide_session_write_abandon(tide_write_t *write);
/* Id of the request, which the reply will carry. Call it between begin and end of a request. */
static inline uint16_t tide_session_write_request(const tide_write_t *write) {
  return (uint16_t)((write->node->bytes[4] << 8) | write->node->bytes[5]);
}
/* True when every reliable sample of the stream (0: of all streams) is acknowledged, and none waits or is kept. */
bool tide_session_is_idle(tide_session_t *session, uint8_t stream);

/* Ping the agent, inside or outside a session. Outside a session the ping is one frame. Inside a session it is repeated
 * like the liveness check. ping_round_trip_ns gets the round trip of the answer. If several threads ping, each checks
 * whether ping_answers has changed since its ping. TIDE_ERROR_FULL: too many control frames wait. */
int tide_session_ping(tide_session_t *session);
/* Start one exchange of time synchronisation. The originate time identifies the reply; late and foreign replies are
 * ignored. The offset of the quickest recent exchange is used. TIDE_ERROR_DISCONNECTED: there is no session. */
int tide_session_synchronise(tide_session_t *session);

/* Blocking helpers. These functions poll the session, deliver received frames, run `pump` (null if interrupts or a
 * thread drive the link) and sleep on the platform until the condition or the deadline. They return TIDE_OK,
 * TIDE_ERROR_TIMEOUT, TIDE_ERROR_REFUSED, TIDE_ERROR_VERSION or, for an object that was removed, TIDE_ERROR_NOT_FOUND.
 * Never call them from a callback of the link, nor while an executor runs in another thread. */
typedef struct tide_pump {
  void (*run)(void *context, int64_t deadline_ns);
  void *context;
} tide_pump_t;
int tide_session_wait_state(tide_session_t *session, tide_session_state_t state, int64_t deadline_ns,
                            const tide_pump_t *pump);
int tide_session_wait_object(tide_session_t *session, tide_object_t *object, int64_t deadline_ns,
                             const tide_pump_t *pump);
int tide_session_wait_idle(tide_session_t *session, uint8_t stream, int64_t deadline_ns, const tide_pump_t *pump);

TIDE_EXTERN_C_END
#endif
