/* SPDX-License-Identifier: Apache-2.0 */
/* The client's session with an agent: connects, creates the program's objects, keeps the connection alive, notices
 * that the agent is gone or was restarted, and then connects and creates everything again by itself. Messages that
 * were not acknowledged are sent again in the new session.
 *
 * No thread of its own and no blocking call: tide_session_poll moves it on, called from the link's context (POSIX) or
 * from the executor (bare metal). tide_session_wait_* are conveniences for programs that set up step by step.
 *
 * Contexts: write_* from any thread; poll from any, one does the work and the others return at once; open, close,
 * add_*, remove_*, set_* and wait_* from threads; peek and take_done from whoever executes. Received frames are handed
 * on by tide_daemon_process_*: by the lanes of executors, any number at a time, or by a tide_session_wait_* while no
 * executor runs.
 *
 * Order in a new session: first every object, then the readers, then what was kept, then new samples. What is kept
 * waits in the session, not in the streams, so that it gets its sequence numbers after the creations. */
#ifndef TIDE_SESSION_H
#define TIDE_SESSION_H

#include "tide/daemon.h"
#include "tide/message.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tide_session_state {
  TIDE_SESSION_IDLE,       /* not asked to connect, or closed */
  TIDE_SESSION_CONNECTING, /* CREATE_CLIENT sent, no answer yet */
  TIDE_SESSION_CREATING,   /* the objects are being created */
  TIDE_SESSION_READY,
  TIDE_SESSION_REFUSED, /* the agent refused the client (version, key): see refusal; tried again slowly */
  TIDE_SESSION_CLOSING  /* DELETE of the client sent, no answer yet; IDLE after four unanswered ones */
} tide_session_state_t;

typedef enum tide_object_state {
  TIDE_OBJECT_WAITING, /* for a session, or for its turn */
  TIDE_OBJECT_ASKED,   /* CREATE sent, no answer yet */
  TIDE_OBJECT_CREATED,
  TIDE_OBJECT_REFUSED, /* see status; asked again in the next session only */
  TIDE_OBJECT_REMOVED  /* not in the table */
} tide_object_state_t;

/* One object of the program on the agent: kept here so that it can be created again. */
typedef struct tide_object {
  tide_xrce_object_t description; /* texts stay the caller's and must outlive the object */
  uint16_t id;                    /* 0: given at registration, counting up by kind; else the caller's, kept as it is */
  uint8_t state;                  /* tide_object_state_t */
  uint8_t status;                 /* the last status of the agent */
  uint16_t request;               /* id of the request that is under way */
  int64_t retry_at_ns;
} tide_object_t;

struct tide_reader;
/* A subscription's end in the session: which samples it wants and what to do with one. A queue of the last `depth`
 * samples, in place in the frame slots. */
typedef struct tide_sample {
  const uint8_t *bytes;
  uint32_t length;
  void *memory;
  bool reassembled;
  bool big_endian; /* byte order of what the peer serialised; headers of requests and replies are little-endian */
  int64_t arrived_ns;
} tide_sample_t;

typedef struct tide_reader {
  uint16_t object;          /* datareader, requester or replier */
  uint16_t request;         /* id of the READ_DATA: samples carry it */
  tide_priority_t priority; /* of the callback; its level chooses the stream */
  uint8_t owner;            /* number of the executor that its frames belong to (TIDE_FRAME_OWNER); 0: nobody's */
  bool reliable;
  bool keep_all;            /* when `depth` samples are queued further ones wait, and with them their stream */
  uint16_t max_samples;     /* 0: no limit. The agent stops after so many; asked for again in each session */
  uint16_t max_elapsed_s;   /* 0: no limit */
  uint16_t max_bytes_per_s; /* 0: no limit */
  uint16_t min_pace_ms;     /* between samples; 0: none */
  uint8_t state;            /* tide_object_state_t; CREATED: the READ_DATA has been sent */
  uint8_t status;           /* the last status of the agent about the READ_DATA */
  uint8_t repeats;          /* of the READ_DATA on a best-effort object stream */
  int64_t retry_at_ns;
  tide_sample_t *samples; /* ring of `depth` places */
  uint8_t depth, first;
  uint8_t count;              /* samples queued, without the one that is being taken */
  tide_sample_t current;      /* being taken; memory is null when none is */
  uint32_t received, dropped; /* dropped: the queue was full and the oldest gave way (keep last) */
  tide_account_t account;     /* its slots: `depth`, or fewer, are reserved; and what was dropped for lack of more */
  /* One more sample is queued; from tide_daemon_process_*, outside the critical section. May be null. */
  void (*on_sample)(void *context, struct tide_reader *reader);
  void *context;
  struct tide_reader *next;
} tide_reader_t;

#define TIDE_SESSION_CREATE_PLAIN 0x80u

typedef struct tide_session_config {
  tide_daemon_config_t daemon; /* the session fills in the receiver's callbacks */
  uint32_t key;                /* client key, not 0; unique among the clients of an agent */
  uint8_t session;             /* id of the first session, 0x81 as the stock client; below 0x80 headers carry the key.
                                  Each later one counts it up, so that nothing late (a copy that a network kept, what a
                                  radio sends after a cut) is taken for a part of it. The agent of tide keeps the
                                  entities; a stock agent makes them anew, as after a restart */
  tide_object_t **objects;     /* table of object_count places */
  size_t object_count;
  uint16_t mtu;              /* of the transport; announced as mtu - 4 */
  uint16_t vendor;           /* written into CREATE_CLIENT; default TIDE_XRCE_VENDOR */
  uint8_t object_stream;     /* of CREATE, DELETE and READ_DATA; default TIDE_STREAM_RELIABLE(0). Best effort works,
                                too: then requests are repeated until answered, READ_DATA twice */
  uint8_t create_flags;      /* TIDE_XRCE_FLAG_REUSE, _REPLACE; 0: both; TIDE_SESSION_CREATE_PLAIN: none */
  uint8_t creations_at_once; /* CREATEs under way without an answer; default 4; 1 on a best-effort stream */
  int64_t connect_period_ns; /* between CREATE_CLIENTs without an answer; default 1 s, the first three after a fifth of
                                it; five times as long after a refusal */
  int64_t request_period_ns; /* between repeats of a request without an answer; default 1 s */
  int64_t silence_limit_ns;  /* nothing heard for so long: ask with GET_INFO; default 1 s; eight unanswered (half of
                                this time each), or one answered with "no session": connect again */
  void (*on_state)(void *context, tide_session_state_t state); /* may be null; from the context of poll */
  /* tide_session_poll has something to do before the time it last returned: wake whoever calls it. From any context,
   * never with the critical section held. May be null. */
  void (*on_work)(void *context);
  void *context;
} tide_session_config_t;

typedef struct tide_session_counters {
  uint32_t connects, reconnects, objects_created, requests_repeated, pings, statuses_unexpected, samples_unwanted;
  uint32_t samples_malformed; /* DATA of an unknown format or cut short */
  uint32_t held_maximum;      /* samples kept at once while there was no session */
} tide_session_counters_t;

typedef struct tide_time_sync {
  int64_t offset_ns;     /* agent's wall clock minus our monotonic clock, filtered */
  int64_t round_trip_ns; /* of the best recent exchange */
  uint32_t exchanges;    /* 0: never synchronised */
  uint32_t ignored;      /* late or foreign replies */
} tide_time_sync_t;

#define TIDE_SESSION_READER_BUCKETS 8u
#define TIDE_SESSION_TIME_SAMPLES (TIDE_TIME_SYNC ? 8u : 1u)

typedef struct tide_session {
  /* What is looked at most stands first, where the shortest instructions reach it. */
  tide_session_state_t state;
  uint8_t id;   /* of the session, or of the one that is asked for */
  bool id_used; /* the agent has accepted it */
  bool readers_waiting;
  bool wanted; /* opened, and not closed since */
  uint8_t attempts, unanswered_pings;
  bool ping_under_way;
  bool ping_asked; /* by the program, and not answered yet */
  bool polling, poll_again, poll_refused;
  bool waiting;
  /* Noted by the reception handler, done by poll. */
  bool agent_answered, agent_lost, info_due, close_answered, reset_due, work_noted;
  bool reserve_needed;
  bool info_knows_us; /* as the last answer said */
  bool time_sync_under_way;
  uint8_t refusal;       /* status of the agent; 0x86 when its version does not fit */
  uint16_t next_request; /* starts at 10, as ids below are reserved */
  uint16_t objects_unanswered, objects_refused, deletes_unanswered;
  uint16_t ping_request, info_request;
  uint16_t agent_vendor; /* of the agent that accepted us */
  uint16_t held_count;
  size_t objects_used;
  tide_node_t *held_first, *held_last; /* reliable samples kept until their objects exist, oldest first */
  tide_node_t *reserve; /* one node that samples cannot take, so that objects can be created whatever is kept */
  uint32_t request_bytes_maximum;
  int64_t deadline_ns; /* what poll last returned; TIDE_FOREVER while somebody is in it */
  int64_t state_since_ns;
  int64_t progress_ns;   /* last answer to a creation */
  int64_t request_at_ns; /* the next CREATE_CLIENT or DELETE of the client */
  int64_t ping_sent_ns;
  int64_t ping_round_trip_ns; /* of the last one answered; -1 before */
  tide_xrce_status_agent_t agent_answer;
  tide_reader_t *readers[TIDE_SESSION_READER_BUCKETS]; /* by object number */
  uint16_t object_numbers[9];                          /* last number given, by kind */
  tide_event_t changed;                                /* set at every change of state, status, ping or time sync */
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
/* Start connecting (and go on doing so whenever the connection is lost). */
void tide_session_open(tide_session_t *session);
/* Say goodbye (DELETE of the client) and stop. What is in the streams is sent first, for a fifth of connect_period_ns
 * at most; what was kept is discarded. Objects and readers stay registered.
 * Asynchronous; wait with tide_session_wait_state(IDLE). */
void tide_session_close(tide_session_t *session);

/* Time passes: retries, pings, creation of objects, and tide_daemon_poll. Returns when to be called again; also call
 * it after every reception. One caller does the work: another one, maybe an interrupt on top of it, leaves it to that
 * one and hears by on_work when it is over. */
int64_t tide_session_poll(tide_session_t *session);

/* Register an object; it gets its id and is created as soon as there is a session, parents before children in the
 * order of registration. TIDE_ERROR_CAPACITY_OBJECTS: the table is full, or all 4,095 numbers of the kind are taken.
 * TIDE_ERROR_TOO_LARGE: no node can hold its CREATE. TIDE_ERROR_EXISTS: registered already. */
int tide_session_add_object(tide_session_t *session, tide_object_t *object);
/* Forget it and delete it on the agent; the structure is the caller's again at once. TIDE_ERROR_FULL: there is no node
 * for the DELETE now, nothing was done. TIDE_ERROR_NOT_FOUND. */
int tide_session_remove_object(tide_session_t *session, tide_object_t *object);

/* Ask for samples (READ_DATA) once the object exists; again after each reconnection. Changing the priority moves the
 * reader to the stream of its level; frames that were received already keep their old one. Removing releases the
 * queued samples; do not remove a reader while its sample is being taken. TIDE_ERROR_FULL from remove: removed here,
 * but there was no node to tell the agent. */
int tide_session_add_reader(tide_session_t *session, tide_reader_t *reader);
int tide_session_remove_reader(tide_session_t *session, tide_reader_t *reader);
/* From now on its frames are processed by this owner alone, see tide_frame_share_t; 0: by anyone. */
void tide_session_set_reader_owner(tide_session_t *session, tide_reader_t *reader, uint8_t owner);
int tide_session_set_reader_priority(tide_session_t *session, tide_reader_t *reader, tide_priority_t priority);

/* Oldest queued sample, or null. It stays valid until tide_session_take_done, whatever else arrives; until then the
 * same one is returned again. One taker a reader. */
const tide_sample_t *tide_session_peek(tide_session_t *session, tide_reader_t *reader);
void tide_session_take_done(tide_session_t *session, tide_reader_t *reader);

/* Services. A replier's samples start with TIDE_SAMPLE_IDENTITY_BYTES that tell who asks, and what is written to it
 * starts with those of the request that it answers. A requester's samples start with TIDE_REPLY_HEADER_BYTES: the ids,
 * as tide_xrce_get_request reads them, of the request that is answered. CDR is aligned from behind them. */
#define TIDE_SAMPLE_IDENTITY_BYTES 24u
#define TIDE_REPLY_HEADER_BYTES 4u

/* Publish: reserves a node, writes the WRITE_DATA header, and leaves the writer at the payload; finish submits it.
 *   tide_write_t write;
 *   if (tide_session_write_begin(...) == TIDE_OK) { encode into write.cdr; status = tide_session_write_end(&write); }
 * bytes: the size of the serialised sample, at most 65,531; fewer may be written. While there is no session (or the
 * object is not yet created) reliable samples are kept (as long as there are nodes, one of which always stays free for
 * the creation of objects: give reliable writers two or more) and best-effort samples are refused with
 * TIDE_ERROR_DISCONNECTED, as is everything while the session is closing. TIDE_ERROR_FULL: no node. TIDE_ERROR_REFUSED:
 * the agent refused the object. */
typedef struct tide_write {
  tide_session_t *session;
  tide_node_t *node;
  tide_cdr_t cdr;
  uint8_t stream;
} tide_write_t;
int tide_session_write_begin(tide_session_t *session, tide_write_t *write, uint16_t object, bool reliable,
                             tide_priority_t priority, uint32_t bytes);
int tide_session_write_end(tide_write_t *write);
void tide_session_write_abandon(tide_write_t *write);
/* Between begin and end, of a requester: the id that the reply will carry. */
static inline uint16_t tide_session_write_request(const tide_write_t *write) {
  return (uint16_t)((write->node->bytes[4] << 8) | write->node->bytes[5]);
}
/* True when every reliable sample of the stream (0: of all streams) is acknowledged and nothing waits or is kept. */
bool tide_session_is_idle(tide_session_t *session, uint8_t stream);

/* Ask the agent for a sign of life (works inside and outside a session; outside it is one frame, inside it is repeated
 * as the liveness check is). The answer is in ping_round_trip_ns. TIDE_ERROR_FULL: too many control frames wait. */
int tide_session_ping(tide_session_t *session);
/* Start one exchange of time synchronisation. The reply is matched by its originate time; late or foreign replies are
 * ignored; offsets are filtered by round trip. */
int tide_session_synchronise(tide_session_t *session);

/* Blocking helpers: they poll the session, hand on received frames, run `pump` (may be null: where interrupts or a
 * thread drive the link) and sleep on the platform until the condition or the deadline. TIDE_OK, TIDE_ERROR_TIMEOUT,
 * TIDE_ERROR_REFUSED, TIDE_ERROR_VERSION. Never call them from a callback of the link, nor while an executor runs in
 * another thread. */
typedef struct tide_pump {
  void (*run)(void *context, int64_t deadline_ns);
  void *context;
} tide_pump_t;
int tide_session_wait_state(tide_session_t *session, tide_session_state_t state, int64_t deadline_ns,
                            const tide_pump_t *pump);
int tide_session_wait_object(tide_session_t *session, tide_object_t *object, int64_t deadline_ns,
                             const tide_pump_t *pump);
int tide_session_wait_ping(tide_session_t *session, int64_t deadline_ns, const tide_pump_t *pump);
int tide_session_wait_idle(tide_session_t *session, uint8_t stream, int64_t deadline_ns, const tide_pump_t *pump);
int tide_session_wait_synchronised(tide_session_t *session, int64_t deadline_ns, const tide_pump_t *pump);

#ifdef __cplusplus
}
#endif
#endif
