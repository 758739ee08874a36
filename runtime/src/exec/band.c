/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes and bands: which lane serves what, and which one to wake.
 *
 * The only lane of a band is woken by its event, which is sticky. Of several lanes one that is idle is picked; a lane
 * puts itself among the idle ones in the critical section in which it finds nothing, so that no wake-up is lost, and
 * whoever picks it takes it out, so that two wake-ups reach two lanes. A lane that takes a callback and leaves
 * something behind picks another one. With patience only one idle lane wakes at the next expiry, and the others a
 * little later: they find what the callback of that expiry has made ready, and nobody has to wake them for it. */
#include <string.h>

#include "exec.h"

#define LOWEST_OF_LEVEL(level) TIDE_PRIORITY(level, 0)

static bool is_valid(const tide_lane_settings_t *settings) {
  return settings->least_level <= TIDE_LEVEL_MAXIMUM && settings->scheduling <= TIDE_SCHEDULING_SPORADIC;
}

_Static_assert(offsetof(tide_lane_t, settings) + sizeof(tide_lane_settings_t) <= sizeof(tide_lane_t),
               "all before the settings is the executor's, which clears it");
_Static_assert(TIDE_LEVEL_MAXIMUM <= UINT8_MAX, "a level of a lane has eight bits");

/* The band has it among its idle lanes exactly when it says so. */
static bool is_listed(const tide_lane_t *lane) {
  const tide_lane_t *other = lane->band->idle;
  while (other != NULL && other != lane) {
    other = other->idle_next;
  }
  return (other != NULL) == lane->idle;
}

static void join_band(const tide_executor_config_t *config, size_t index) {
  tide_lane_t *lane = &config->lanes[index];
  for (size_t other = 0; TIDE_LANES && other < index; other++) {
    if (config->lanes[other].settings.least_level == lane->settings.least_level) {
      lane->band = config->lanes[other].band;
      lane->band->only = NULL;
      return;
    }
  }
  lane->band = &lane->own_band;
  lane->band->only = lane;
}

static void set_range(const tide_executor_config_t *config, tide_lane_t *lane) {
  const uint8_t level = lane->settings.least_level;
  bool lowest = true;
  unsigned above = UINT16_MAX + 1u;
  for (size_t index = 0; TIDE_LANES && index < config->lane_count; index++) {
    const uint8_t other = config->lanes[index].settings.least_level;
    lowest = lowest && other >= level;
    if (other > level && LOWEST_OF_LEVEL(other) < above) {
      above = LOWEST_OF_LEVEL(other);
    }
  }
  lane->own_band.least = lowest ? 0u : LOWEST_OF_LEVEL(level);
  lane->own_band.most = (tide_priority_t)(above - 1u);
  TIDE_INVARIANT(lane->own_band.least <= lane->own_band.most);
}

bool tide_exec_set_up_lanes(tide_executor_t *executor) {
  const tide_executor_config_t *config = &executor->config;
  for (size_t index = 0; index < exec_lane_count(executor); index++) {
    tide_lane_t *lane = &config->lanes[index];
    if (TIDE_CONFIG_CHECKS && !is_valid(&lane->settings)) {
      return false;
    }
    memset(lane, 0, offsetof(tide_lane_t, settings));
    tide_platform_event_init(config->platform, &lane->event);
    join_band(config, index);
    if (lane->band != &lane->own_band) {
      continue;
    }
    const size_t first = executor->band_count++ * config->callback_count;
    tide_queue_init(&lane->band->ready_list, config->ready_storage + first, config->callback_count);
    tide_queue_init(&lane->band->timer_list, config->timer_storage + first, config->callback_count);
    set_range(config, lane);
#if TIDE_PATIENCE
    lane->band->patience_ns = config->patience_ns;
#endif
  }
  return true;
}

tide_band_t *tide_exec_band_of(const tide_executor_t *executor, tide_priority_t priority) {
  const tide_executor_config_t *config = &executor->config;
  tide_band_t *band = config->lanes[0].band;
  for (size_t index = 1;
       TIDE_LANES && index < exec_lane_count(executor) && (priority < band->least || priority > band->most); index++) {
    band = config->lanes[index].band;
  }
  TIDE_INVARIANT(!TIDE_LANES || (priority >= band->least && priority <= band->most));
  return band;
}

void tide_exec_become_idle(tide_lane_t *lane) {
  TIDE_INVARIANT(lane->running == NULL && is_listed(lane));
  if (TIDE_LANES && lane->band->only == NULL && !lane->idle) {
    lane->idle = true;
    lane->idle_next = lane->band->idle;
    lane->band->idle = lane;
  }
}

void tide_exec_become_busy(tide_lane_t *lane) {
  if (!TIDE_LANES || !lane->idle) {
    return;
  }
  TIDE_INVARIANT(is_listed(lane) && lane->band->only == NULL);
  tide_lane_t **place = &lane->band->idle;
  while (*place != lane) {
    place = &(*place)->idle_next;
  }
  *place = lane->idle_next;
  lane->idle = false;
}

#if TIDE_PATIENCE
static int64_t patience_of(const tide_band_t *band) { return band->patience_ns; }
#else
static int64_t patience_of(const tide_band_t *band) {
  (void)band;
  return 0;
}
#endif

static bool has_patience(const tide_band_t *band) { return TIDE_LANES && patience_of(band) > 0 && band->idle != NULL; }

/* TIDE_FOREVER: no lane is idle, or none does. */
static int64_t first_look_ns(const tide_band_t *band) {
  int64_t first_ns = TIDE_FOREVER;
  for (const tide_lane_t *lane = band->idle; lane != NULL; lane = lane->idle_next) {
    first_ns = exec_minimum(first_ns, lane->sleeps_until_ns);
  }
  return first_ns;
}

bool tide_exec_looks_soon(const tide_band_t *band, int64_t now_ns) {
  return has_patience(band) && first_look_ns(band) <= exec_after(now_ns, patience_of(band));
}

static bool has_lane_at(const tide_band_t *band, int64_t time_ns) {
  const tide_lane_t *lane = band->idle;
  while (lane != NULL && lane->sleeps_until_ns != time_ns) {
    lane = lane->idle_next;
  }
  return lane != NULL;
}

/* A lane that looks before the next expiry leaves that to this one: so timers stay on the lane whose caches are warm.
 */
int64_t tide_exec_idle_until(const tide_band_t *band) {
  const tide_queue_entry_t *expiry = tide_queue_head(&band->timer_list);
  const int64_t next_ns = expiry == NULL ? TIDE_FOREVER : expiry->key;
  if (!has_patience(band) || !has_lane_at(band, next_ns)) {
    return next_ns;
  }
  return exec_minimum(tide_queue_second_key(&band->timer_list), exec_after(next_ns, patience_of(band)));
}

/* The one that looks last by itself: another one waits for the next expiry. */
static tide_lane_t *last_to_look(const tide_band_t *band) {
  tide_lane_t *last = band->idle;
  for (tide_lane_t *lane = last; has_patience(band) && lane != NULL; lane = lane->idle_next) {
    last = lane->sleeps_until_ns > last->sleeps_until_ns ? lane : last;
  }
  return last;
}

tide_lane_t *tide_exec_pick(tide_band_t *band) {
  tide_lane_t *lane = band->only;
  if (TIDE_LANES && lane == NULL && band->idle != NULL) {
    lane = last_to_look(band);
    TIDE_INVARIANT(lane->band == band);
    tide_exec_become_busy(lane);
  }
  return lane;
}

/* A callback that may run, or an expiry before the idle lane looks again by itself. */
tide_lane_t *tide_exec_pick_for_rest(tide_band_t *band) {
  if (!TIDE_LANES || band->idle == NULL) {
    return NULL;
  }
  const tide_queue_entry_t *expiry = tide_queue_head(&band->timer_list);
  const int64_t look_ns = has_patience(band) ? first_look_ns(band) : band->idle->sleeps_until_ns;
  const bool rest = tide_queue_head(&band->ready_list) != NULL || (expiry != NULL && expiry->key < look_ns);
  return rest ? tide_exec_pick(band) : NULL;
}

void tide_exec_wake_lane(const tide_executor_t *executor, tide_lane_t *lane) {
  if (lane != NULL) {
    tide_platform_event_set(executor->config.platform, &lane->event);
  }
}

static void wake_band(const tide_executor_t *executor, tide_band_t *band) {
  const uintptr_t lock = exec_lock(executor);
  tide_lane_t *lane = tide_exec_pick(band);
  exec_unlock(executor, lock);
  tide_exec_wake_lane(executor, lane);
}

/* For frames of all bands but one. */
static void wake_for_frames(const tide_executor_t *executor, const tide_band_t *except) {
  for (size_t index = 0; TIDE_LANES && index < exec_lane_count(executor); index++) {
    tide_lane_t *lane = &executor->config.lanes[index];
    const bool first = lane->band == &lane->own_band;
    if (first && lane->band != except && tide_exec_most_urgent(executor, lane->band) != TIDE_PRIORITY_NONE) {
      wake_band(executor, lane->band);
    }
  }
}

void tide_executor_wake_for_frames(tide_executor_t *executor) { wake_for_frames(executor, NULL); }

/* A frame that was digested may have kept one of another band waiting, behind it in its stream. */
void tide_exec_wake_other_bands(tide_executor_t *executor, const tide_lane_t *lane) {
  if (executor->band_count > 1u) {
    wake_for_frames(executor, lane->band);
  }
}

void tide_executor_wake(tide_executor_t *executor) {
  for (size_t index = 0; index < exec_lane_count(executor); index++) {
    tide_exec_wake_lane(executor, &executor->config.lanes[index]);
  }
}
